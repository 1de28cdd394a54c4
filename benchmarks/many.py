"""Search thousands of networks with a cheap objective: ``python -m benchmarks.many --function f1 --evaluations 5000``.

Workers ask together, ``--batch`` at a time, and are told together. The study is kept where ``--study`` says and goes on
from there when the command is given again; the best so far is printed as it grows, and the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from nasbot.architecture import SearchSpace
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch
from nasbot.searchers.base import Searcher
from nasbot.study import Study
from nasbot.synthetic import SYNTHETIC

KINDS = {"f1": "cnn", "f2": "mlp-reg", "f3": "mlp-reg"}
METHODS = ("nasbot", "evolution", "random")
TIMES_TOLD = 20  # lines of progress


def main() -> None:
    """Search, and print how the best grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", choices=sorted(KINDS), default="f1", help="Synthetic function of a network.")
    parser.add_argument("--method", choices=METHODS, default="nasbot", help="Searcher.")
    parser.add_argument("--evaluations", type=int, default=1000, help="Networks in all.")
    parser.add_argument("--batch", type=int, default=100, help="Workers that ask at once.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed of the searcher.")
    parser.add_argument("--study", type=Path, help="File of the study; in memory if not given.")
    options = parser.parse_args()
    print(json.dumps(searched(**vars(options))))


def searched(
    function: str, method: str, evaluations: int, batch: int, seed: int, study: Path | None = None
) -> dict[str, object]:
    """The best value after each batch of one search, and what it cost."""
    searcher = _searcher(method, SearchSpace(KINDS[function]))
    begun = time.process_time()
    opened = Study.in_memory(searcher, seed=seed) if study is None else Study.open(study, searcher, seed=seed)
    curve: list[tuple[int, float]] = []
    with opened:
        while (left := evaluations - len(opened.history.finished)) > 0:
            for trial in opened.ask(min(batch, left)):
                opened.tell(trial, float(SYNTHETIC[function](trial.arch)))
            curve.append((len(opened.history.finished), float(opened.best_value or 0.0)))
            if len(curve) % max(1, evaluations // batch // TIMES_TOLD) == 0:
                print(f"{curve[-1][0]:7d} networks, best {curve[-1][1]:.6g}", flush=True)
        best = opened.best
    return {
        "function": function,
        "method": method,
        "seed": seed,
        "evaluations": evaluations,
        "batch": batch,
        "best": None if best is None else best.value,
        "best_trial": None if best is None else best.number,
        "cpu_seconds": round(time.process_time() - begun, 1),
        "curve": curve,
    }


def _searcher(method: str, space: SearchSpace) -> Searcher:
    if method == "nasbot":
        return NASBOT(space=space)
    return EvolutionSearch(space=space) if method == "evolution" else RandomSearch(space=space)


if __name__ == "__main__":
    main()
