"""``nasbot show``: the trials of a study, or everything about one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot._words import duration
from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json, print_table, short_fingerprint
from nasbot.errors import OptionError, StudyError

PARAMS = "params"  # the last column, where there are any

if TYPE_CHECKING:
    from nasbot.cli._summary import Summary, Watched
    from nasbot.trial import Trial


def show(
    study: Study,
    trial: Annotated[
        int | None, typer.Argument(metavar="[TRIAL]", help="A trial's number, for everything about it.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many of the best trials to list.")] = 10,
    everything: Annotated[bool, typer.Option("--all", help="List all trials, by number.")] = False,
    as_json: Json = False,
) -> None:
    """List the best trials of a study and those in flight, or show one trial.

    With --json all trials, or everything about the one.
    """
    if top < 0:
        raise OptionError(f"--top must be at least 0, got {top}")
    from nasbot.cli._summary import Watched
    from nasbot.study.settings import naming_vocabulary

    with Watched(study) as watched, naming_vocabulary(watched.storage):
        summary = watched.summary()
        if trial is not None:
            known = _one(watched, summary, trial)
            _show_trial(summary, known, why=_why(watched, known), as_json=as_json)
        elif as_json:
            from nasbot.page.records import trial_record

            trials = [trial_record(one) for one in watched.storage.history()]
            print_json(summary.to_dict() | {"list": trials})
        elif everything:
            _print_trials(summary, watched.storage.history())
        else:  # the best, then what runs
            tally = summary.tally
            _print_trials(summary, watched.storage.some([*map(int, tally.ranked[:top]), *tally.running]))


def _one(watched: Watched, summary: Summary, number: int) -> Trial:
    n = summary.tally.n_trials
    if not 0 <= number < n:
        raise StudyError(f"there is no trial {number}; the study has {n}, numbered from 0")
    return watched.storage.some([number])[0]


def _why(watched: Watched, trial: Trial) -> str:
    """Why it was stopped, promoted, discarded or a final; empty for a full training that a searcher proposed."""
    from nasbot.searchers.promotion import why
    from nasbot.study.settings import fidelity_of_settings

    settings = watched.storage.settings() or {}
    return why(watched.storage.history(), trial, fidelity_of_settings(settings))


def _print_trials(summary: Summary, trials: Sequence[Trial]) -> None:
    from nasbot.domain import share_in_words

    rows: list[tuple[str, ...]] = []
    has_params = any(trial.candidate.params for trial in trials)
    for trial in trials:
        value = trial.value
        rows.append(
            (
                str(trial.number),
                _state(trial) + ("" if trial.fidelity >= 1 else f" ({share_in_words(trial.fidelity)})"),
                "" if value is None else f"{value:.6g}",
                "" if trial.seconds is None else duration(trial.seconds),
                str(len(trial.arch.processing_layers)),
                f"{trial.arch.total_mass:,.0f}",
                one_line(trial.origin.searcher)[:30],
                one_line(str(trial.candidate)) if has_params else short_fingerprint(trial.arch.fingerprint),
            )
        )
    # Candidates of one network have one fingerprint; it does not tell them apart.
    headings = ("trial", "state", "value", "took", "layers", "mass", "from", PARAMS if has_params else "fingerprint")
    title = f"{one_line(summary.name)}: {summary.status.state}, {summary.tally}"
    print_table(headings, rows, title=title, wrapped=PARAMS)


def _state(trial: Trial) -> str:
    return str(trial.state) if trial.cause is None else f"failed ({trial.cause})"


def _show_trial(summary: Summary, trial: Trial, *, why: str, as_json: bool) -> None:
    from nasbot.page.records import whole_trial_record

    record: dict[str, Any] = whole_trial_record(trial, why)
    if as_json:
        print_json(record)
        return
    print(f"{one_line(summary.name)}, trial {trial.number}: {_state(trial)}")
    for name, text in _trial_rows(trial, record).items():
        if text:
            print(f"  {name:<12} {one_line(text)}")
    if why:
        print(f"  {'why':<12} {one_line(why)}")
    for line in [] if why else record["message"].splitlines():
        print(f"    {one_line(line)}")
    for line in _traceback(trial):
        print(f"    {one_line(line)}")
    print("\n".join(one_line(line) for line in str(trial.arch).splitlines()))


def _traceback(trial: Trial) -> list[str]:
    """Where a failed evaluation raised, as Python says it; nothing for one that did not."""
    text = trial.details.get("traceback") if trial.cause is not None else None
    return text.splitlines() if isinstance(text, str) else []


def _trial_rows(trial: Trial, record: dict[str, Any]) -> dict[str, str]:
    from nasbot.domain import share_in_words

    curve = record["curve"]
    last = f", the last {curve[-1][1]:.6g} at step {curve[-1][0]}" if curve else ""
    parents = ", ".join(f"trial {parent}" for parent in record["parents"])
    return {
        "value": "" if record["value"] is None else f"{record['value']:.6g}",
        "took": "" if trial.seconds is None else duration(trial.seconds),
        "training": "" if trial.fidelity == 1 else share_in_words(trial.fidelity),
        "promoted": "" if trial.promoted_from is None else f"from trial {trial.promoted_from}",
        "params": str(trial.candidate),
        "attempts": f"{trial.attempts}" + (f", {trial.interruptions} interrupted" if trial.interruptions else ""),
        "from": str(record["searcher"] or ""),
        "made from": parents + (f" by {'; '.join(record['changes'])}" if record["changes"] else ""),
        "curve": f"{record['n_points']} points{last}" if curve else "",
        "details": ", ".join(f"{name} {value:.6g}" for name, value in record["details"].items()),
        "fingerprint": trial.arch.fingerprint,
    }
