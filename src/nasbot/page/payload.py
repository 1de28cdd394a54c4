"""What the page shows, as JSON: the same for the report, which embeds all of it, and for the live page, which asks.

about      the study: settings, seed, versions, commands        series   numbers for the plots, by name
strip      its state now                                         whole    everything about one trial
trials     what tables and plots need of every trial             figures  what takes a moment: map, surrogate, near
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nasbot._json import table
from nasbot._typing import Json
from nasbot._versions import noted_versions
from nasbot.page.beside import Beside
from nasbot.page.excerpt import Excerpt, excerpt_record, tally_of
from nasbot.page.records import thinned
from nasbot.plots import series
from nasbot.plots.meaning import axis_of, data_of, meaning_of
from nasbot.plots.rungs import rungs
from nasbot.plots.snapshot import Snapshot
from nasbot.plots.traits import traits
from nasbot.storage import Tally
from nasbot.study.runs import with_longer_budget
from nasbot.study.settled import outlook_of
from nasbot.study.status import StudyState, StudyStatus
from nasbot.trial import TrialState

SHOWN_CURVES = 40
NOTHING_BESIDE = Beside()
MIN_FOR_RATE = 5  # trials before the time left is guessed from the time spent


# -- the study ---------------------------------------------------------------------------------------------------------


def about_record(
    snapshot: Snapshot, status: StudyStatus | None, file: str, beside: Beside = NOTHING_BESIDE
) -> dict[str, Json]:
    """What changes little while a study runs, and how to do it again."""
    settings = snapshot.settings
    meaning = meaning_of(settings)
    searcher, space = table(settings.get("searcher")), table(settings.get("space"))
    kind = space.get("kind")
    return {
        "name": snapshot.name,
        "file": file,
        "direction": str(snapshot.direction),
        "metric": meaning.name,
        "unit": meaning.unit,
        "excerpt": excerpt_record(snapshot.history),
        "data": None if beside.data is None else dict(beside.data),
        "model": None if beside.model is None else dict(beside.model),
        "members": list(beside.members),
        "searcher": snapshot.searcher,
        "acquisition": str(searcher.get("acquisition") or ""),
        "seed": settings.get("seed"),
        "kind": str(table(kind).get("name", "")) if isinstance(kind, Mapping) else str(kind or ""),
        "n_pool": len(pool) if isinstance(pool := settings.get("pool"), list | tuple) else 0,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "commands": [list(pair) for pair in _commands(snapshot, status, file)],
        "versions": _versions(status),
        "settings": dict(settings),
    }


def strip_record(snapshot: Snapshot, status: StudyStatus | None) -> dict[str, Json]:
    """The strip on top of every page."""
    tally = tally_of(snapshot.history)
    elapsed = tally.seconds
    is_driven = status is not None and status.is_driven
    if status is not None and status.state is StudyState.RUNNING and status.run is not None:
        elapsed = max(elapsed, _driven_before(tally, status) + status.at - status.run.begun)
    return {
        "state": str(status.state) if status is not None else str(StudyState.IDLE),
        "elapsed": elapsed,
        "budget": str(status.budget) if status is not None and status.budget is not None else None,
        "left": _left(tally, status, elapsed) if is_driven else None,
        **tally.to_dict(),
        "plan": None if status is None else status.plan,
        "outlook": None if (outlook := outlook_of(snapshot.history)) is None else outlook.to_dict(),
        "workers": status.workers if status is not None and is_driven else 0,
        "sign_age": status.silence if status is not None else None,
        "ending": status.run.ending if status is not None and status.run is not None else None,
    }


def _driven_before(tally: Tally, status: StudyStatus) -> float:
    """The study's clock when its present run began: where the trials begun in this run leave it, roughly."""
    if status.run is None or status.n_runs <= 1:
        return 0.0
    return max(0.0, tally.seconds - (status.at - status.run.begun))


def _left(tally: Tally, status: StudyStatus | None, elapsed: float) -> float | None:
    """Seconds until the budget is spent: by the clock, or at the pace so far."""
    budget = status.budget if status is not None else None
    if budget is None:
        return None
    left = [budget.seconds - elapsed] if budget.seconds is not None else []
    finished, running = tally.n_trials - len(tally.pending), len(tally.running)
    begun = finished - tally.states.get(TrialState.CANCELLED, 0) + running
    if budget.trials is not None and finished >= MIN_FOR_RATE:
        left.append((budget.trials - begun + running / 2) * elapsed / finished)
    return max(0.0, min(left)) if left else None


def _commands(snapshot: Snapshot, status: StudyStatus | None, file: str) -> list[tuple[str, str]]:
    """Words and a command: what goes on with the study, what begins it again, and what looks at it."""
    again, n_trials = f"{snapshot.name or 'study'}-again", tally_of(snapshot.history).n_trials
    quoted = shlex.quote(file)
    looks = ("Look at it live, or keep a report:", f"nasbot serve {quoted}\nnasbot report {quoted}")
    rows = []
    if status is not None and status.command:
        folder = status.run.record.get("folder") if status.run is not None else None
        where = f"cd {shlex.quote(folder)} && " if isinstance(folder, str) else ""
        is_spent = status.run is not None and status.run.ending == "finished"
        command = with_longer_budget(status.command) if is_spent else status.command
        words = "It goes on where it was left:"
        if is_spent:
            longer = "With a longer one this" if command != status.command else "Change it in the call, and this"
            words = f"It has had its budget. {longer} goes on:"
        rows.append((words, where + command))
        what = _command_of(status.command)
        if what == "demo":  # its study has no name of its own to be begun again under
            return [*rows, looks]
        if what == "run":  # no objective is needed to say it again
            repeat = f"{where}{status.command} --name {shlex.quote(again)}"  # a second --name replaces the first
            rows.append(("Do all of it again, under another name:", repeat))
            return [*rows, looks]
    if "data_name" in table(snapshot.settings.get("context")):
        return [
            *rows,
            ("Go on with it in Python, with the same data and options:", _search_call(snapshot, file)),
            looks,
        ]
    name, context = json.dumps(file), "view.settings['context']"
    opened = (
        f"from nasbot import Study, StudyView\n\nwith StudyView.read({name}) as view:\n"
        f"    searcher, seed = view.searcher, view.seed\n"
        f"    options = {{'direction': str(view.direction), 'context': {context}}}\n"
    )
    rows.append(
        (
            "Go on with it in Python, with the objective that it was begun with:",
            f"{opened}with Study.open({name}, searcher, seed=seed, **options) as study:\n"
            f"    study.optimise(objective, {n_trials + 50})  # trials in all, those so far included",
        )
    )
    rows.append(
        (
            "Do all of it again: the same searcher, settings and seed, under another name:",
            f"{opened}with Study.open({json.dumps(again)}, searcher, seed=seed, **options) as study:\n"
            f"    study.optimise(objective, {max(1, n_trials)})",
        )
    )
    return [*rows, looks]


def _search_call(snapshot: Snapshot, file: str) -> str:
    seed = snapshot.settings.get("seed")
    options = f'name={json.dumps(file)}, budget="20m"' + (f", seed={seed}" if seed else "")
    return f"import nasbot\n\nstudy = nasbot.search(X, y, {options})  # the budget in all, what is spent included"


def _command_of(line: str) -> str:
    """The command of nasbot's in it; empty where it is another program."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ""
    words = ["nasbot", *words[3:]] if words[:3] == ["python", "-m", "nasbot"] else words
    return words[1] if len(words) > 1 and words[0] == "nasbot" else ""


def _versions(status: StudyStatus | None) -> dict[str, Json]:
    """Of the last driver where it noted them, else of whoever looks."""
    noted = status.run.record.get("versions") if status is not None and status.run is not None else None
    if isinstance(noted, Mapping) and noted:
        return {str(name)[:40]: str(found)[:40] for name, found in noted.items()}
    return dict(noted_versions())


# -- series ------------------------------------------------------------------------------------------------------------


def _curves(snapshot: Snapshot) -> dict[str, Json]:
    """The best, running and latest curves, thinned: a page cannot show a thousand."""
    history = snapshot.history
    with_curves = [trial for trial in history if trial.curve]
    by_value = [t for t in history.ranked if t.curve]
    chosen = {trial.number: trial for trial in by_value[:10]}
    chosen |= {trial.number: trial for trial in with_curves if trial.state is TrialState.RUNNING}
    for trial in reversed(with_curves):
        if len(chosen) >= SHOWN_CURVES:
            break
        chosen.setdefault(trial.number, trial)
    best = history.best
    message = "" if with_curves else series.NO_CURVES
    return {
        "n_all": len(with_curves),
        "message": message,
        "curves": [
            {
                "trial": trial.number,
                "state": str(trial.state),
                "is_best": best is not None and trial.number == best.number,
                "steps": [point.step for point in points],
                "values": [point.value for point in points],
            }
            for trial in sorted(chosen.values(), key=lambda t: t.number)[:SHOWN_CURVES]
            for points in [thinned(trial.curve)]
        ],
    }


def _time_sums(snapshot: Snapshot) -> dict[str, object]:
    """Where the time went, in all: the overview shows no more, and it is asked for at every update."""
    split = series.time_split(snapshot)
    return {
        "n_trials": len(split.rows),
        "training": split.training,
        "deciding": split.deciding,
        "message": split.message,
    }


def _timeline(snapshot: Snapshot) -> series.Timeline:
    """Of all trials, or of the latest where there are very many."""
    history = snapshot.history
    return series.timeline(history.latest() if isinstance(history, Excerpt) else snapshot)


def _failures(snapshot: Snapshot) -> series.Failures:
    """By cause; of very many trials all are counted and the latest named."""
    found = series.failures(snapshot)
    if not isinstance(snapshot.history, Excerpt):
        return found
    tally = snapshot.history.tally
    causes = {str(cause): n for cause, n in tally.causes.items()}
    rows = tuple(row._replace(n=causes.get(row.cause, row.n)) for row in found.rows)
    n_finished = tally.n_trials - len(tally.pending)
    return dataclasses.replace(found, rows=rows, n_failed=sum(causes.values()), n_finished=n_finished)


SERIES: Mapping[str, Callable[[Snapshot], object]] = {
    "history": series.history,
    "rungs": rungs,
    "timeline": _timeline,
    "costs": series.costs,
    "curves": _curves,
    "failures": _failures,
    "layer_use": series.layer_use,
    "time_split": series.time_split,
    "time_sums": _time_sums,
    "lineage": series.lineage,
    "ledger": series.ledger,
    "acquisition": series.acquisition,
    "traits": traits,
}


def series_json(name: str, snapshot: Snapshot) -> str:
    """One series as JSON text."""
    return as_json(SERIES[name](snapshot))


def compare_record(studies: Sequence[tuple[Snapshot, Mapping[str, Json]]]) -> dict[str, Any]:
    """The studies side by side: a table, and the best so far of those with one data set, metric and direction.

    Values of two data sets never share an axis; ``axes`` are those of the first study, then the others.
    """
    axes: dict[tuple[str, ...], list[Snapshot]] = {}
    for snapshot, _ in studies:
        axes.setdefault(axis_of(snapshot.settings), []).append(snapshot)
    places = {axis: i for i, axis in enumerate(axes)}
    return {
        "studies": [
            {
                "name": snapshot.name,
                "searcher": snapshot.searcher,
                "seed": snapshot.settings.get("seed"),
                "trials": (tally := tally_of(snapshot.history)).n_trials,
                "waiting": tally.states.get(TrialState.WAITING, 0),
                "best": None if (best := snapshot.history.best) is None else best.value,
                "data": data_of(snapshot.settings),
                "metric": str(meaning_of(snapshot.settings)),
                "axis": places[axis_of(snapshot.settings)],
                **more,
            }
            for snapshot, more in studies
        ],
        "axes": [_axis(snapshots) for snapshots in axes.values()],
    }


def _axis(snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """Studies that may be compared: by searcher, seeds averaged, and each study for itself."""
    settings = snapshots[0].settings
    meaning = meaning_of(settings)
    each: dict[str, list[Snapshot]] = {}
    for snapshot in snapshots:
        name = snapshot.name or "study"
        while name in each:
            name += " (another)"
        each[name] = [snapshot]
    kinds = {"searchers": series.grouped(snapshots), "studies": each}
    return {
        "data": data_of(settings),
        "metric": meaning.name,
        "unit": meaning.unit,
        "direction": str(snapshots[0].direction),
        **{
            kind: {by: series.comparison(groups, by=by) for by in ("trials", "seconds")}
            for kind, groups in kinds.items()
        },
    }


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(value: object) -> str:
    """Compact JSON. Lists of like records are rolled up as {columns, rows}; a number that is not finite is null."""
    rolled = _rolled(value)
    try:
        return json.dumps(rolled, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(rolled), allow_nan=False, separators=(",", ":"))


PLAIN = (str, int, float, type(None))


def _rolled(value: Any) -> Any:
    if isinstance(value, tuple | list):
        if value and all(type(entry) is type(value[0]) for entry in value) and hasattr(value[0], "_fields"):
            return {"columns": list(value[0]._fields), "rows": [_row(entry) for entry in value]}
        if hasattr(value, "_asdict"):
            return {name: _rolled(entry) for name, entry in value._asdict().items()}
        return [_rolled(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(name): _rolled(entry) for name, entry in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {entry.name: _rolled(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    return value


def _row(entry: Sequence[Any]) -> list[Any]:
    """The cells of one record; most are plain and need no look inside, and there are thousands of them."""
    return [cell if isinstance(cell, PLAIN) else _rolled(cell) for cell in entry]


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) if isinstance(entry, Mapping | list | float) else entry for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
