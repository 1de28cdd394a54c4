"""What came of a search, in words and as one JSON value."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.architecture.resources import resources
from nasbot.automl.members import learned_from_trees, members_of
from nasbot.automl.model import Result, refitted_trials, results_of
from nasbot.data.metrics import notices
from nasbot.errors import FileError, StorageError, StudyError
from nasbot.trial import POOL, History

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy
    from nasbot.automl.understanding import Understanding


def summary_of(study: FoundStudy) -> str:
    """A few lines for people: the data, the trials, and baseline, best network and ensemble beside each other."""
    data, history, best = study.dataset, study.history, study.best
    causes = Counter(str(t.cause) for t in history.failed)
    failures = ", ".join(f"{n} {cause}" for cause, n in causes.most_common())
    lines = [
        *data.summary(),
        f"trials: {len(history.completed)} completed, {len(history.failed)} failed{f' ({failures})' * bool(failures)}"
        + (f", {len(history.stopped)} stopped early" if history.stopped else ""),
    ]
    if best is None:
        return "\n".join([*lines, "best: none yet"])
    size = resources(best.arch, data.input_shape, data.n_outputs)
    params = f", {best.candidate}" if best.candidate.params else ""
    lines.append(
        f"best network: trial {best.number}, {best.arch.depth}, {len(best.arch.edges)} connections, "
        f"{size.parameters:,} parameters{params}"
    )
    found = results_of(study)
    metric = study.metric
    lines.append(f"chosen by: {metric.name if study.has_metric else 'validation loss'} ({metric.sense})")
    rows = {
        "trees": found.trees,
        "baseline": found.baseline,
        "best network": found.single,
        "ensemble": found.ensemble,
    }
    lines += _table([*([("majority", found.majority)] if found.majority else []), *rows.items()])
    if found.gain is not None and found.baseline is not None:
        of_error = (
            ""
            if metric.higher_is_better or not found.baseline.test
            else f", {found.gain.value / found.baseline.test:.0%} of it"
        )
        lines.append(
            f"gain over the baseline: {metric.name} better by {found.gain.value:.3g} ± {found.gain.noise:.2g} on test "
            f"rows{of_error}"
        )
    lines += notices(data, metric)
    if cut := cut_by_time(history):
        too = ", that of the best network too" if best.number in cut else ""
        lines.append(
            f"{len(cut)} of {len(history.completed)} trainings were ended by their time, before their last step{too}; "
            "with a larger budget fewer are"
        )
    if best.origin.searcher == POOL:
        lines.append("the best network is still one that the search began with")
    chosen = members_of(study)
    if chosen is not None:
        parts = ", ".join(f"{n} x {w:.2f}" for n, w in zip(chosen.trials, chosen.weights, strict=True))
        lines.append(f"ensemble of trials: {parts}")
    if shares := learned_from_trees(study):
        which = ", ".join(f"{number} ({share:.0%})" for number, share in shares.items())
        lines.append(f"learned from trees too, which are no part of the model: trials {which}")
    if refitted := refitted_trials(study):
        which = ", ".join(map(str, refitted))
        taught = "" if chosen is None or not chosen.taught else f", {chosen.taught:.0%} of it the ensemble's word"
        lines.append(
            f"trained once more, on training and validation rows{taught}: trials {which}; validation is from before "
            "that"
        )
    if (outlook := study.outlook()) is not None:
        lines.append(str(outlook))
    if (known := _understood(study)) is not None:
        lines += known.lines()
    return "\n".join(lines)


def cut_by_time(history: History) -> list[int]:
    """The completed trials whose trainings had not the time for all of their steps."""
    return [trial.number for trial in history.completed if trial.details.get("stopped") == "time"]


def record_of(study: FoundStudy) -> dict[str, Json]:
    """The same as JSON."""
    history, best, again = study.history, study.best, study.recommend()
    causes = Counter(str(t.cause) for t in history.failed)
    return {
        **results_of(study).to_dict(),
        "understanding": None if (known := _understood(study)) is None else known.to_dict(),
        "metric": study.metric.name,
        "higher_is_better": study.metric.higher_is_better,
        "best_value": study.best_value,
        "best_trial": None if best is None else best.number,
        "recommended_trial": None if again is None else again.number,
        "params": None if best is None else dict(best.candidate.params),
        "refitted": list(refitted_trials(study)),
        "taught": 0.0 if (chosen := members_of(study)) is None else chosen.taught,
        "from_trees": {str(number): share for number, share in learned_from_trees(study).items()},
        "trials": len(history.completed) + len(history.failed) + len(history.stopped),
        "completed": len(history.completed),
        "failed": dict(causes),
        "stopped": len(history.stopped),
        "cut_by_time": len(cut_by_time(history)),
        "outlook": None if (outlook := study.outlook()) is None else outlook.to_dict(),
        "seconds": history.elapsed,
    }


def _understood(study: FoundStudy) -> Understanding | None:
    """None where the weights that it takes are gone, or the metric is a function that nobody has named."""
    try:
        return study.understanding()
    except (FileError, StorageError, StudyError):
        return None


def _table(rows: list[tuple[str, Result | None]]) -> list[str]:
    """Validation and test of each, one below the other."""
    known = [(name, result) for name, result in rows if result is not None]
    lines = []
    for name, result in known:
        test = "" if result.test is None else f", test {result.test:.5g}"
        more = "".join(
            f", {key.removeprefix('test_')} {result.details[key]:.4g}"
            for key in ("test_r2", "test_accuracy", "test_balanced-accuracy")
            if key in result.details
        )
        lines.append(f"  {name:<13} {result.metric}: validation {result.validation:.5g}{test}{more}")
    return lines
