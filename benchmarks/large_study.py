"""Page, report, status and export of a study of very many trials: ``python -m benchmarks.large_study --trials 100000``.

The study is simulated: 2,000 networks that descend from the pool are evaluated again and again, with values, forecasts
and curves as a search leaves them. The last line is JSON. CPU seconds are those of the process that is measured and of
what it starts; on a machine that others use they say what something costs. First paint is in seconds on the clock, as
a browser measures it; without chromium it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.page import SETTINGS, browsing, memory, serving, trials
from nasbot.storage import open_storage
from nasbot.storage.records import Run
from nasbot.trial import Scored

N_NETWORKS = 2000
PER_WRITE = 250
CURVE_EVERY = 10  # trials
FIRST_PAINT, SERVER_MB, REPORT_MB = 2.0, 300.0, 10.0  # seconds, and MB of 100,000 trials


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000, help="Trials of the study.")
    parser.add_argument("--study", type=Path, help="Keep the study in this file, or use the one that is there.")
    parser.add_argument("--no-report", action="store_true", help="Leave the report and the exports out.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nasbot-large-") as folder:
        file = options.study or Path(folder) / "large.sqlite"
        if not file.exists():
            filling = get_context("spawn").Process(target=fill, args=(file, options.trials))
            filling.start()
            filling.join()
        figures: dict[str, Any] = {"trials": options.trials, "file_mb": round(file.stat().st_size / 1e6, 1)}
        figures |= {"status_cpu_seconds": commanded("status", str(file))[0]}
        figures |= measured_page(file)
        if not options.no_report:
            for name, command in (
                ("report", ("report", str(file), "-o", f"{folder}/r.html")),
                ("csv", ("export", str(file), "--to", "csv", "--out", f"{folder}/t.csv")),
                ("parquet", ("export", str(file), "--to", "parquet", "--out", f"{folder}/t.parquet")),
            ):
                seconds, peak = commanded(*command)
                size = Path(command[-1]).stat().st_size / 1e6
                figures |= {f"{name}_cpu_seconds": seconds, f"{name}_peak_mb": peak, f"{name}_mb": round(size, 2)}
    print(json.dumps(figures))


def fill(file: Path, n: int) -> None:
    """Write the study, a part at a time."""
    made = trials(min(n, N_NETWORKS))
    storage = open_storage(file)
    try:
        storage.create(SETTINGS)
        for first in range(0, n, PER_WRITE):
            part = []
            for number in range(first, min(n, first + PER_WRITE)):
                known = made[number % len(made)]
                value = (known.value or 0.0) + 0.3 * (number / n)
                part.append(
                    replace(
                        known,
                        number=number,
                        rank=number,
                        proposed_after=number,
                        started=10.0 * number,
                        finished=10.0 * number + 9,
                        curve=known.curve if number % CURVE_EVERY == 0 else (),
                        outcome=Scored(value, {"parameters": 1000 + number}),
                        origin=replace(known.origin, parents=(number - 3,) if number > 9 else ()),
                    )
                )
            storage.save(*part)
        storage.save_run(Run(number=0, begun=time.time(), record={"workers": 1}).over("finished", at=time.time()))
    finally:
        storage.close()


def commanded(*arguments: str) -> tuple[float, float]:
    """CPU seconds and the most memory in MB of ``nasbot`` with these arguments."""
    process = subprocess.Popen([sys.executable, "-m", "nasbot", *arguments], stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"nasbot {' '.join(arguments)} failed")
    return round(used.ru_utime + used.ru_stime, 2), round(used.ru_maxrss / 1024, 1)


def measured_page(file: Path) -> dict[str, Any]:
    """First paint of the first visit and of later ones, pages of the table, and the server's memory."""
    figures: dict[str, Any] = {}
    with serving(file) as (url, pid), browsing() as page:
        if page is not None:
            seconds = []
            for _ in range(4):
                page.goto("about:blank")
                page.goto(url)
                page.wait_for_selector("figure.chart circle", timeout=120_000)
                seconds.append(round(page.evaluate("performance.now()") / 1000, 2))
            figures |= {"first_paint_cold": seconds[0], "first_paint": sorted(seconds[1:])[1]}
        address = f"{url}s/{file.stem}/api/"
        sizes = {}
        for name in ("study", "series/history", "series/lineage", "table?sort=value&order=down"):
            begun = time.perf_counter()
            with urllib.request.urlopen(address + name) as answer:
                sizes[name] = [round(len(answer.read()) / 1e6, 2), round(time.perf_counter() - begun, 2)]
        figures |= {"answers_mb_seconds": sizes, "server_mb": memory(pid), "server_cpu_seconds": _cpu(pid)}
    return figures


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
