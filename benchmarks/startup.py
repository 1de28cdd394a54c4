"""How long it takes until something happens: importing, compiling, and starting with what was compiled before."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bars import Bar

ROOT = Path(__file__).resolve().parent.parent
IMPORT_SECONDS = 0.3
HELP_SECONDS = 0.4
FIRST_DISTANCE_SECONDS = 6.0

IMPORT = "import time; start = time.process_time(); import nasbot; print(time.process_time() - start)"
HELP = """
import contextlib, io, time
start = time.process_time()
from nasbot.cli import main
with contextlib.redirect_stdout(io.StringIO()) as shown:
    assert main(["--help"]) == 0
assert "Usage" in shown.getvalue()
print(time.process_time() - start)
"""
FIRST_DISTANCE = """
import time
start = time.process_time()
import nasbot
from nasbot.architecture.pools import initial_pool
a, b = initial_pool("cnn")[:2]
ready = time.process_time()
nasbot.distance(a, b)
print(time.process_time() - ready)
"""
COMPILING = """
import time
from nasbot.otmann.solver import compile_solver
start = time.process_time()
assert compile_solver()
print(time.process_time() - start)
"""


def seconds_in_process(code: str, **environment: str) -> float:
    """The number that ``code`` prints, run by a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return the raw numbers and the bars."""
    seconds_in_process(IMPORT)  # once, so that files are in memory and compiled to bytecode
    imports = [seconds_in_process(IMPORT) for _ in range(repetitions)]
    helped = [seconds_in_process(HELP) for _ in range(repetitions)]
    with tempfile.TemporaryDirectory() as cache:
        first = median(seconds_in_process(FIRST_DISTANCE, NUMBA_CACHE_DIR=cache) for _ in range(repetitions))
        compiling = seconds_in_process(COMPILING, NUMBA_CACHE_DIR=cache)
        cached = median(seconds_in_process(COMPILING, NUMBA_CACHE_DIR=cache) for _ in range(repetitions))
    print(
        f"CPU seconds: import nasbot {median(imports):.3f}; nasbot --help {median(helped):.3f}; "
        f"first distance after an installation {first:.3f}; "
        f"compiling the solver {compiling:.1f}, loading it again {cached:.2f} (numba's import included)\n"
    )
    measured = {"import": imports, "help": helped, "first_distance": first, "compiling": compiling, "cached": cached}
    return measured, [
        Bar("import nasbot, CPU", median(imports), IMPORT_SECONDS, 2 * IMPORT_SECONDS, False, " s"),
        Bar("nasbot --help, CPU", median(helped), HELP_SECONDS, 2 * HELP_SECONDS, False, " s"),
        Bar("first distance, CPU", first, FIRST_DISTANCE_SECONDS, FIRST_DISTANCE_SECONDS, False, " s"),
    ]
