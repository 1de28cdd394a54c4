"""Every benchmark, its figures against the bars, and on request the raw numbers: ``make bench``.

The exit code is 0 unless a figure falls below its gate, the part of the bar that a busy machine can still reach.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

# Before numpy is imported: everybody computes on one thread, unless the benchmark says otherwise.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

BUSY = 0.5  # load average before we begin, from which on the figures of two threads mean little


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the raw numbers here, as JSON")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    from benchmarks import deciding, otmann, page, plots, startup, training

    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {load:.2f} before the start", end=""
    )
    print("; BUSY: two threads cannot be judged\n" if load > BUSY else "\n")
    pairs, bars = otmann.run(options.repetitions)
    started, more_bars = startup.run(options.repetitions)
    decided, deciding_bars = deciding.run(options.repetitions)
    steps, training_bars = training.run(options.repetitions)
    workers, worker_bars = training.run_workers()
    pictures, plot_bars = plots.run(options.repetitions)
    shown, page_bars = page.run(options.repetitions)
    bars += more_bars + deciding_bars + training_bars + worker_bars + plot_bars + page_bars
    print(*bars, sep="\n")
    missed, stopped = [bar for bar in bars if not bar.passed], [bar for bar in bars if not bar.through_gate]
    print(f"\n{len(bars) - len(missed)} of {len(bars)} bars met, {len(stopped)} figures below their gate")
    if options.out is not None:
        raw = {
            "load": load,
            "otmann": pairs,
            "startup": started,
            "deciding": decided,
            "training": steps,
            "workers": workers,
            "plots": pictures,
            "page": shown,
        }
        options.out.write_text(json.dumps(raw, indent=1) + "\n")
    return 1 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())
