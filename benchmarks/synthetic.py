"""The synthetic functions of Appendix C.4: NASBOT against the paper's three rivals, and against parts of itself.

    python -m benchmarks.synthetic --seeds 20                        the four methods, f1, f2, f3, 1 and 4 workers
    python -m benchmarks.synthetic --seeds 20 --methods ablations    with the paper's masses, one thing changed
    python -m benchmarks.synthetic --summary --figure FILE           what is known so far

Every run is one line of JSON in ``--out`` and is never done twice, so an experiment may be stopped and gone on with.
Workers run on a virtual clock: the duration of a trial is drawn for its number, from a log-normal distribution.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from benchmarks.release_modifiers import RELEASE_MODIFIERS
from benchmarks.runs import ROOT, Floats, Record, RunFile, average, paired, revision
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace
from nasbot.errors import FileError, NasbotError, OptionError
from nasbot.evolution import CNN_MODIFIERS, MODIFIERS, STRUCTURE_MODIFIERS, UNIT_MODIFIERS
from nasbot.execution import SimulatedExecutor
from nasbot.execution.evaluation import LiveTrial
from nasbot.gp import BeliefOptions
from nasbot.gp.warping import Warp
from nasbot.otmann import Otmann
from nasbot.searchers import (
    NASBOT,
    EvolutionSearch,
    KernelTerms,
    Maximiser,
    RandomSearch,
    Searcher,
    TreeBO,
)
from nasbot.study import Study
from nasbot.synthetic import SYNTHETIC

OUT = ROOT / "docs" / "results" / "synthetic.jsonl"
AUTHORS = ROOT.parent / "shared" / "reference" / "synthetic_curves.json"
SPREAD_OF_DURATIONS = 0.5  # standard deviation of log seconds: two in three take between 0.6 and 1.65 times the median
MARKS = (25, 50, 100)  # evaluations after which the summary reports

FUNCTIONS = ("f1", "f2", "f3")
KINDS = {"f1": "cnn", "f2": "mlp-reg", "f3": "mlp-reg", "released_cnn": "cnn", "released_mlp": "mlp-reg"}
RELEASED = {"cnn_syn_func1": "released_cnn", "mlp_syn_func1": "released_mlp"}  # the authors' names for them
RIVALS = ("RAND", "EA", "TreeBO")

Make = Callable[[SearchSpace], Searcher]


def _with_papers_masses(space: SearchSpace, **changed: Any) -> Searcher:
    options = {"modifiers": tuple(MODIFIERS), "kernel_terms": KernelTerms.BOTH, **changed}
    return NASBOT(space=space, distance=Otmann(preset="paper"), **options)


def _with_powers(p: float, p_bar: float, space: SearchSpace) -> Searcher:
    return _with_papers_masses(space, belief=BeliefOptions(distance_power=p, normalised_power=p_bar))


def _with_warp(warp: Warp, space: SearchSpace) -> Searcher:
    return NASBOT(space=space, belief=BeliefOptions(warp=warp))


METHODS: Mapping[str, Make] = {
    "NASBOT": lambda space: NASBOT(space=space),
    "RAND": lambda space: RandomSearch(space=space),
    "EA": lambda space: EvolutionSearch(space=space),
    "TreeBO": lambda space: TreeBO(space=space),
}
# What the paper takes away, it takes from a search by its own distance and modifiers, so these have the paper's masses
# and its nine. The first is NASBOT but for that: both kernel terms, p = p_bar = 1.5, climbing, log EI.
PAPERS_MASSES = "paper's masses"
ABLATIONS: Mapping[str, Make] = {
    PAPERS_MASSES: _with_papers_masses,
    "kernel of d": partial(_with_papers_masses, kernel_terms=KernelTerms.DISTANCE),
    "kernel of d_bar": partial(_with_papers_masses, kernel_terms=KernelTerms.NORMALISED),
    "units only": partial(_with_papers_masses, modifiers=UNIT_MODIFIERS),
    "structure only": partial(_with_papers_masses, modifiers=STRUCTURE_MODIFIERS),
    "p=1 p_bar=1": partial(_with_powers, 1.0, 1.0),
    "p=1 p_bar=2": partial(_with_powers, 1.0, 2.0),
    "p=2 p_bar=2": partial(_with_powers, 2.0, 2.0),
    "p=2 p_bar=1": partial(_with_powers, 2.0, 1.0),
    "paper's maximiser": partial(_with_papers_masses, maximiser=Maximiser.PAPER),
    "EI": partial(_with_papers_masses, acquisition="ei"),
    "UCB": partial(_with_papers_masses, acquisition="ucb"),
    "Thompson": partial(_with_papers_masses, acquisition="thompson"),
}
# Networks changed much as the authors' code changes them, to tell a difference of the search from one of the modifiers.
RELEASE: Mapping[str, Make] = {
    "NASBOT release": partial(_with_papers_masses, modifiers=RELEASE_MODIFIERS),
    "EA release": lambda space: EvolutionSearch(space=space, modifiers=RELEASE_MODIFIERS),
    "RAND release": lambda space: RandomSearch(space=space, modifiers=RELEASE_MODIFIERS),
}
# Rivals with the modifiers that NASBOT has for CNNs: what the search itself is worth.
SAME_MODIFIERS: Mapping[str, Make] = {
    "EA leaps": lambda space: EvolutionSearch(space=space, modifiers=CNN_MODIFIERS),
    "RAND leaps": lambda space: RandomSearch(space=space, modifiers=CNN_MODIFIERS),
}
# Values warped in one way, whatever the default is.
WARPED: Mapping[str, Make] = {f"NASBOT {warp}": partial(_with_warp, warp) for warp in (Warp.BEST, Warp.RANK)}
ALL_METHODS: Mapping[str, Make] = {**METHODS, **ABLATIONS, **RELEASE, **SAME_MODIFIERS, **WARPED}
CHANGED = {*ABLATIONS, "NASBOT release"} - {PAPERS_MASSES}  # these differ in one thing from the search by those masses
BASES = {**dict.fromkeys(CHANGED, PAPERS_MASSES), "NASBOT rank": "NASBOT best"}  # what a method is compared with

# -- one run -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What is run; two runs that are equal here give the same values with the same code."""

    function: str
    method: str
    workers: int
    seed: int


def search(run: Run, n_evaluations: int) -> tuple[list[float], list[float]]:
    """The best value after each evaluation, in the order in which they ended, and the seconds each proposal took."""
    objective = SYNTHETIC[run.function]

    def evaluated(arch: Architecture, trial: LiveTrial) -> tuple[float, float]:
        duration = stream(run.seed, trial.number, Role.DURATION).lognormal(0.0, SPREAD_OF_DURATIONS)
        return objective(arch), float(duration)

    searcher = ALL_METHODS[run.method](SearchSpace(KINDS[run.function]))
    study = Study.in_memory(searcher, seed=run.seed)
    study.optimise(evaluated, n_evaluations, executor=SimulatedExecutor(run.workers))
    best = np.maximum.accumulate([trial.value for trial in study.history.completed if trial.value is not None])
    seconds = [trial.origin.seconds for trial in study.history]
    return [float(value) for value in best], [taken["deciding"] for taken in seconds if "deciding" in taken]


def record_of(run: Run, n_evaluations: int, tag: str) -> Record:
    """One run, as it is kept."""
    start = time.perf_counter()
    best, deciding = search(run, n_evaluations)
    p50, p95 = np.quantile(deciding, (0.5, 0.95)) if deciding else (0.0, 0.0)
    return {
        **vars(run),
        "evaluations": n_evaluations,
        "tag": tag,
        "revision": revision(),
        "seconds": round(time.perf_counter() - start, 2),
        "deciding": {"p50": round(float(p50), 4), "p95": round(float(p95), 4)},
        "best": [round(value, 6) for value in best],
    }


def run_missing(out: RunFile, runs: Sequence[Run], n_evaluations: int, tag: str) -> None:
    """Do and record the runs that the file does not have; a longer run counts as a shorter one."""
    known = {_run_of(record) for record in out.records() if _counts(record, n_evaluations, tag)}
    missing = [run for run in runs if run not in known]
    print(f"{len(runs) - len(missing)} of {len(runs)} runs are in {out.path}", flush=True)
    for run in missing:
        record = record_of(run, n_evaluations, tag)
        out.append(record)
        print(f"{run}: {record['best'][-1]:.3f} in {record['seconds']:.0f} s", flush=True)


def _run_of(record: Record) -> Run:
    return Run(record["function"], record["method"], record["workers"], record["seed"])


def _counts(record: Record, n_evaluations: int, *tags: str) -> bool:
    return bool(record["tag"] in tags and record["evaluations"] >= n_evaluations)


# -- what came out -----------------------------------------------------------------------------------------------------

Curves = dict[tuple[str, int], dict[str, dict[int, Floats]]]  # (function, workers) -> method -> seed -> best so far


def curves_of(records: Iterator[Record], n_evaluations: int, *tags: str) -> Curves:
    """All runs of these tags that are long enough, cut to the same length; of equal runs the one recorded last."""
    curves: Curves = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if _counts(record, n_evaluations, *tags):
            run = _run_of(record)
            curves[run.function, run.workers][run.method][run.seed] = np.array(record["best"][:n_evaluations])
    return curves


def summary(curves: Curves, n_evaluations: int) -> Iterator[str]:
    """For each function a Markdown table: values on the way, and NASBOT against each other method, seed by seed."""
    marks = sorted({mark for mark in MARKS if mark < n_evaluations} | {n_evaluations})
    for (function, workers), by_method in sorted(curves.items()):
        yield f"\n{function}, {workers} worker{'s' * (workers > 1)}:\n"
        columns = [*(f"best at {mark}" for mark in marks), "NASBOT is ahead by", "wins : losses", "sign test p"]
        yield "| method | seeds | " + " | ".join(columns) + " |"
        yield "|---|---|" + "---|" * len(columns)
        for method in (name for name in ALL_METHODS if name in by_method):
            yield _row(method, by_method, marks)


def _row(method: str, by_method: Mapping[str, Mapping[int, Floats]], marks: Sequence[int]) -> str:
    mean, se = average(list(by_method[method].values()))
    cells = [f"{mean[mark - 1]:.3f} ± {se[mark - 1]:.3f}" for mark in marks]
    against = _against(by_method, method)
    return f"| {method} | {len(by_method[method])} | " + " | ".join([*cells, *against]) + " |"


def _against(by_method: Mapping[str, Mapping[int, Floats]], method: str) -> tuple[str, str, str]:
    base = BASES.get(method, "NASBOT")
    ours, theirs = by_method.get(base, {}), by_method[method]
    seeds = sorted(set(ours) & set(theirs))
    if method == base or not seeds:
        return "", "", ""
    result = paired(np.array([ours[s][-1] for s in seeds]), np.array([theirs[s][-1] for s in seeds]))
    return f"{result.mean:+.3f} ± {result.se:.3f}", f"{result.wins} : {result.losses}", f"{result.p:.2g}"


# -- the authors' own runs ---------------------------------------------------------------------------------------------

AUTHORS_METHODS = {"nasbot": "NASBOT", "ga": "EA", "rand": "RAND"}
FEWEST_AUTHORS_RUNS = 3


def authors_curves(path: Path) -> dict[str, dict[str, Floats]]:
    """Function -> method -> (runs, evaluations) of the 2018 release; runs of few evaluations are left out."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"{path}: expected the authors' curves as JSON ({type(error).__name__})") from None
    lists: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        lists[RELEASED[run["func"]]][AUTHORS_METHODS[run["method"]]].append(run["best_so_far"])
    return {f: {m: _cut(values) for m, values in by_method.items()} for f, by_method in lists.items()}


def _cut(values: Sequence[Sequence[float]]) -> Floats:
    """The longest runs, at least three of them, cut to the length of the shortest of these."""
    longest = sorted(values, key=len, reverse=True)
    length = len(longest[min(FEWEST_AUTHORS_RUNS, len(longest)) - 1])
    return np.array([run[:length] for run in longest if len(run) >= length])


def authors_summary(curves: Curves, authors: Mapping[str, Mapping[str, Floats]]) -> Iterator[str]:
    """Ours against theirs after as many evaluations as theirs have; seeds cannot be paired between two programs."""
    yield "\n| function | method | evaluations | the authors' (runs) | ours (runs) |\n|---|---|---|---|---|"
    for function, by_method in authors.items():
        for method, theirs in by_method.items():
            ours = list(curves.get((function, 1), {}).get(method, {}).values())
            if ours:
                n = min(theirs.shape[1], len(ours[0]))
                yield f"| {function} | {method} | {n} | {_at(theirs, n)} | {_at(np.array(ours), n)} |"


def _at(curves: Floats, n: int) -> str:
    mean, se = average(curves[:, n - 1])
    return f"{mean:.3f} ± {se:.3f} ({len(curves)})"


# -- the figure --------------------------------------------------------------------------------------------------------

COLOURS = {"NASBOT": "#c0392b", "RAND": "#7f8c8d", "EA": "#2980b9", "TreeBO": "#27ae60"}


def draw(curves: Curves, authors: Mapping[str, Mapping[str, Floats]], path: Path) -> None:
    """One panel for each function and number of workers: mean best value, shaded by one standard error."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels = sorted(curves, key=lambda panel: (panel[1], panel[0]))
    n_columns = min(3, len(panels)) or 1
    n_rows = -(-len(panels) // n_columns)
    figure = Figure(figsize=(4.2 * n_columns, 3.2 * n_rows), layout="constrained")
    for place, (function, workers) in enumerate(panels):
        axes = figure.add_subplot(n_rows, n_columns, place + 1)
        _draw_panel(axes, curves[function, workers], authors.get(function, {}) if workers == 1 else {})
        axes.set_title(f"{function}, {workers} worker{'s' * (workers > 1)}")
        axes.set_xlabel("evaluations")
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "nasbot"}):  # equal numbers, equal files
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_panel(axes: Any, by_method: Mapping[str, Mapping[int, Floats]], authors: Mapping[str, Floats]) -> None:
    for method in (name for name in METHODS if name in by_method):
        mean, se = average(list(by_method[method].values()))
        evaluations = np.arange(1, len(mean) + 1)
        label = f"{method} ({len(by_method[method])} seeds)"
        axes.plot(evaluations, mean, color=COLOURS[method], linewidth=1.5, label=label)
        axes.fill_between(evaluations, mean - se, mean + se, color=COLOURS[method], alpha=0.2, linewidth=0)
    for method, runs in authors.items():
        mean, _ = average(runs)
        label = f"{method}, authors' code ({len(runs)} seeds)"
        axes.plot(np.arange(1, len(mean) + 1), mean, color=COLOURS[method], linestyle="--", linewidth=1, label=label)
    axes.legend(fontsize=7, frameon=False, loc="lower right")


# -- the command -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m benchmarks.synthetic", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--functions", type=_names, default=FUNCTIONS, help=f"of {', '.join(KINDS)}, with commas")
    parser.add_argument("--methods", type=_names, default=tuple(METHODS), help="names, with commas, or 'ablations'")
    parser.add_argument("--workers", type=_names, default=("1", "4"), help="on a virtual clock, with commas")
    parser.add_argument("--seeds", metavar="N", type=int, default=20, help="runs, of the seeds K, K + 1, …")
    parser.add_argument("--first-seed", metavar="K", type=int, default=0)
    parser.add_argument("--evaluations", metavar="N", type=int, default=100, help="of a run, the pool of ten included")
    parser.add_argument("--out", metavar="FILE", type=Path, default=OUT, help="where the runs are kept")
    parser.add_argument("--tag", default="", help="goes into the records; runs of another tag count as not done")
    parser.add_argument("--with-tags", type=_names, default=(), help="in summary and figure, runs of these tags too")
    parser.add_argument("--authors", metavar="FILE", type=Path, default=AUTHORS, help="the authors' curves")
    parser.add_argument("--summary", action="store_true", help="run nothing, print what is known")
    parser.add_argument("--figure", metavar="FILE", type=Path, help="run nothing, draw what is known")
    return _checked(parser.parse_args(arguments))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _checked(options: argparse.Namespace) -> argparse.Namespace:
    if options.methods == ("ablations",):
        options.methods = tuple(ABLATIONS)
    for option, known in (("functions", KINDS), ("methods", ALL_METHODS)):
        if unknown := [name for name in getattr(options, option) if name not in known]:
            raise OptionError(f"--{option}: expected some of {', '.join(known)}; got {unknown[0]!r}")
    if unknown := [name for name in options.workers if not name.isdecimal() or not int(name)]:
        raise OptionError(f"--workers: expected whole numbers >= 1, got {unknown[0]!r}")
    for name in ("seeds", "evaluations"):
        if (value := getattr(options, name)) < 1:
            raise OptionError(f"--{name}: expected a whole number >= 1, got {value}")
    if options.first_seed < 0:
        raise OptionError(f"--first-seed: expected a whole number >= 0, got {options.first_seed}")
    return options


def _report(options: argparse.Namespace) -> None:
    curves = curves_of(RunFile(options.out).records(), options.evaluations, *options.with_tags, options.tag)
    authors = authors_curves(options.authors) if options.authors.exists() else {}
    if options.summary:
        print(*summary(curves, options.evaluations), sep="\n")
        print(*authors_summary(curves, authors), sep="\n")
    if options.figure is not None:
        draw(curves, authors, options.figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or report; the exit code is 2 for an option that cannot be meant and 3 for a file that cannot be read."""
    try:
        options = _options(arguments)
        if options.summary or options.figure is not None:
            _report(options)
            return 0
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        # Seeds outermost: whenever it is stopped, all methods have about the same number of runs.
        choices = product(seeds, map(int, options.workers), options.functions, options.methods)
        runs = [Run(function, method, workers, seed) for seed, workers, function, method in choices]
        run_missing(RunFile(options.out), runs, options.evaluations, options.tag)
    except NasbotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
