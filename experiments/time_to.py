"""How long a search takes to the validation error that NASBOT had reached after 100 s when the paper was last rerun.

    python -m experiments.time_to --sets protein,naval,indoor --seeds 0,1,2,3,4 --budget 100s

The targets are medians over the same seeds of NASBOT's best trial in docs/results/records/regression.jsonl, under the
protocol of that page. They are of the same rows as here and in the same units: the data are divided by seed 0, as they
were then (every validation row and number is equal, compared once), and a value is the mean squared error of the
standardised target. Searches are the plain front door's with two workers. The clock begins with the call, so yardstick,
calibration and starting processes count; as in those records imports and compilation do not, which a small search makes
first. A search that ends without reaching the target counts as never.

Wall-clock by its nature: run it where nothing else runs. Each search is a line of docs/results/records/time-to.jsonl,
with the machine's load when it ended, and is not run again at the same commit.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

import nasbot
from benchmarks.runs import RunFile, revision
from experiments.model import data_of
from experiments.protocol import read_protocol
from nasbot.data.dataset import Dataset
from nasbot.study import Budget
from nasbot.training.recipes import FAST
from nasbot.trial import Trial, TrialState

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "records"
RECORDS, REFERENCE = FOLDER / "time-to.jsonl", FOLDER / "regression.jsonl"
DIVISION = 0  # the seed by which the data are divided, in the reference, too
BARS = (33.0, 33.0, 60.0)  # seconds, of the quickest, the next and the slowest set

Record = dict[str, Any]


def targets(sets: Sequence[str], seeds: Sequence[int], reference: Path = REFERENCE) -> dict[str, float]:
    """For each set the median over the seeds of the best validation error that NASBOT's searches reached."""
    digest = read_protocol("regression").digest
    best: dict[str, dict[int, float]] = {name: {} for name in sets}
    for record in RunFile(reference).records():
        run = record["run"]
        if record["protocol"] == digest and run["method"] == "NASBOT" and run["dataset"] in best:
            best[run["dataset"]][run["seed"]] = min(record["result"]["values"])
    for name, known in best.items():
        if missing := set(seeds) - set(known):
            raise SystemExit(f"{reference.name}: no search by NASBOT on {name} with seeds {sorted(missing)}")
    return {name: median(known[seed] for seed in seeds) for name, known in best.items()}


def searched(data: Dataset, budget: Budget, seed: int) -> dict[str, list[float]]:
    """The values of a search's trials, and when each was there: seconds since the call."""
    times: list[float] = []
    values: list[float] = []

    def note(trial: Trial) -> None:
        if trial.state is TrialState.COMPLETED and trial.value is not None:
            times.append(round(monotonic() - begun, 2))
            values.append(float(f"{trial.value:.6g}"))

    begun = monotonic()
    nasbot.search(data, budget=budget, workers=2, seed=seed, name=None, progress=False, on_change=note).close()
    return {"times": times, "values": values}


def reached(record: Mapping[str, Any], target: float) -> float:
    """When the best trial so far had reached the target; infinite where none did."""
    pairs = zip(record["times"], record["values"], strict=True)
    return min((at for at, value in pairs if value <= target), default=math.inf)


def run(
    sets: Sequence[str], seeds: Sequence[int], budget: Budget, folder: str, known: Sequence[Record] = ()
) -> Iterator[Record]:
    """Records of the searches that are not known yet, seed by seed."""
    done = {_key(record) for record in known}
    for seed, name in product(seeds, sets):
        record: Record = {"set": name, "seed": seed, "budget": budget.seconds, "revision": revision()}
        if _key(record) not in done:
            yield {**record, **searched(data_of(name, folder, DIVISION), budget, seed), "load": os.getloadavg()[0]}


def _key(record: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(record[name] for name in ("set", "seed", "budget", "revision"))


def warm_up() -> None:
    """Have everything imported and compiled, and the process that workers are forked from loaded."""
    rows = np.random.default_rng(0).normal(size=(2500, 3))
    nasbot.search(rows, rows[:, 0], budget=8, workers=2, recipe=FAST.changed(n_steps=2), name=None).close()


def table(records: Sequence[Record], wanted: Mapping[str, float]) -> str:
    """A row for each set: the target, the seconds to it, their median; then whether the bar is held."""
    lines = ["| set | target | seconds to it, by seed | median |", "|---" * 4 + "|"]
    medians = []
    for name, target in wanted.items():
        found = [reached(record, target) for record in sorted(records, key=_key) if record["set"] == name]
        medians.append(median(found) if found else math.inf)
        each = ", ".join(map(_shown, found))
        lines.append(f"| {name} | {target:.4g} | {each} | {_shown(medians[-1])} |")
    if len(medians) == len(BARS):
        holds = all(seconds <= bar for seconds, bar in zip(sorted(medians), BARS, strict=True))
        bars = f"at most {BARS[0]:g} s on two of three sets and {BARS[-1]:g} s on the third"
        lines.append(f"\n{bars}: {'held' if holds else 'missed'}")
    return "\n".join(lines)


def _shown(seconds: float) -> str:
    return "never" if seconds == math.inf else f"{seconds:.1f}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="protein,naval,indoor")
    parser.add_argument("--seeds", default="0,1,2,3,4", help="of the searches; the data are divided by 0")
    parser.add_argument("--budget", default="100s")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    sets, seeds = given.sets.split(","), [int(seed) for seed in given.seeds.split(",")]
    wanted, file, budget = targets(sets, seeds), RunFile(Path(given.records)), Budget.of(given.budget)
    known = [record for record in file.records() if record["revision"] == revision()]
    warm_up()
    made = [*known, *file.keep(run(sets, seeds, budget, given.folder, known))]
    chosen = [record for record in made if record["budget"] == budget.seconds and record["seed"] in seeds]
    print(table(chosen, wanted))


if __name__ == "__main__":
    main()
