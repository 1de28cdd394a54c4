"""All of it in one call: ``nasbot.maximise(objective, space, trials=100, name="mine")``, or ``minimise``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.architecture.space import SearchSpace
from nasbot.candidate import Candidate
from nasbot.domain import Param
from nasbot.errors import NasbotError, OptionError
from nasbot.execution import Executor, Objective
from nasbot.execution._sending import stop_at_study
from nasbot.execution.evaluation import CANNOT_SEE, check_objective, sees_fidelity, wanted
from nasbot.execution.repeating import Repeated
from nasbot.otmann.solver import compile_solver
from nasbot.pacing import Pacer
from nasbot.searchers.base import Searcher
from nasbot.searchers.pool import PoolSearcher
from nasbot.storage import is_begun
from nasbot.study.budget import Budget
from nasbot.study.loop import OnChange
from nasbot.study.progress import with_progress
from nasbot.study.study import Study
from nasbot.study.view import StudyView
from nasbot.trial import Direction

LOG = logging.getLogger("nasbot")


class RunOptions(TypedDict, total=False):
    """What ``Study.optimise`` takes beside objective and budget."""

    workers: int
    executor: Executor | None  # another place to run than this machine: it has workers and limits of its own
    timeout_per_trial: float | None  # seconds
    memory_per_trial: int | None  # bytes
    max_consecutive_failures: int | None
    overtime: float | None
    on_change: OnChange | None
    stop_when_settled: bool


class SearchOptions(RunOptions, total=False):
    """What ``maximise`` and ``minimise`` take beside objective and space."""

    name: str | Path | None  # of the study, that of the objective by default: where it is kept; None keeps nothing
    budget: Budget | int | str | None  # "10m", "50 trials" or 50: a total of the study, over all its runs
    trials: int | None  # the same as a number, alone or with seconds
    seconds: float | None
    seed: int
    searcher: Searcher | None  # NASBOT with its defaults
    params: Mapping[str, Param]  # searched together with the network
    known: Iterable[tuple[Candidate | Architecture, float]]  # measured elsewhere, told before the search begins
    pacer: Pacer | str | None  # what ends evaluations that fall behind: "median", or an object
    progress: bool | None  # a line for each trial that ends; None: on a terminal and in a notebook
    repeats: int  # evaluations of each candidate, with other seeds, whose mean is its value; 1
    context: Mapping[str, Json]  # what else must not change between calls (data, recipe), as plain data


def maximise(objective: Objective, space: SearchSpace | str, **options: Unpack[SearchOptions]) -> StudyView:
    """Search for a network of high value, and keep the study, so that the same call goes on where it was left.

    Args:
        objective: ``objective(arch)``, or with ``params`` and ``trial`` beside it; returns the value.
        space: which networks; ``"cnn"`` is all CNNs within the paper's limits.
        name: of the study, or its file; that of the objective by default, None keeps nothing.
        budget: what the study may spend in all, over every call: "10m", "50 trials", or a number of trials.
        trials: the same as a number of trials; alone, or with ``seconds`` for whichever ends first.
        seconds: the same as a time.
        seed: random seed (initial choices, searcher, the objective's own).
        searcher: what chooses the networks; NASBOT with its defaults if not given.
        params: searched with the network: ``{"learning_rate": Float(1e-4, 1e-1, log=True)}``.
        pacer: what ends evaluations that fall behind in what they report, "median" or an object; None: nothing does.
        progress: a line for each trial that ends, on standard error; by default on a terminal and in a notebook.
        known: pairs of a candidate (or a network, with params at their defaults) and its value, measured elsewhere.
            They count as trials; a candidate that the study has already, or that its pool begins with, stays as it is.
        repeats: evaluations of each candidate, each with a seed of its own, whose mean is its value; 1 if not given.
        context: what else makes values comparable (data, recipe), as plain data; a later call with another is refused.
        workers: evaluations at a time, each in a process of its own where there are several.
        executor: another place to evaluate in, with workers and limits of its own.
        timeout_per_trial: seconds after which an evaluation is ended.
        memory_per_trial: bytes that an evaluation may take.
        max_consecutive_failures: failures in a row after which the search ends; None: never.
        overtime: seconds that running evaluations may take when the time is up; None: as long as they need.
        on_change: called with every new state of a trial.
        stop_when_settled: end when the next twenty trials are expected to improve the best by less than the noise.

    Returns:
        The study, open for reading, not for driving, so that the call can be repeated.

    Raises:
        OptionError: what is wrong with the call.
        StudyError: the study of this name is another one; FailingError where too many evaluations failed.
        StorageError: the file of this name is damaged or no study.
    """
    return _optimised(Direction.MAXIMISE, objective, space, options)


def minimise(objective: Objective, space: SearchSpace | str, **options: Unpack[SearchOptions]) -> StudyView:
    """Search the space for a network of low value (a loss, an error); otherwise as ``maximise``."""
    return _optimised(Direction.MINIMISE, objective, space, options)


def _optimised(
    direction: Direction, objective: Objective, space: SearchSpace | str, options: SearchOptions
) -> StudyView:
    stop_at_study()
    if unknown := [name for name in options if name not in SearchOptions.__annotations__]:
        known = ", ".join(SearchOptions.__annotations__)
        raise OptionError(f"{direction}: unknown option {unknown[0]!r}; there are {known}")
    check_objective(objective)
    budget = _budget(options)
    name = options["name"] if "name" in options else _name_of(objective)
    searcher = _searcher(space, options.get("params", {}), options.get("searcher"), name)
    seed = options.get("seed", 0)
    if searcher.domain.params and not wanted(objective):
        names = ", ".join(searcher.domain.params)
        raise OptionError(
            f"params: {names}: searched, but the objective takes neither params nor trial beside the network"
        )
    if searcher.domain.fidelity is not None and not sees_fidelity(objective) and isinstance(searcher, PoolSearcher):
        LOG.warning("%s; searched without", CANNOT_SEE)
        searcher = replace(searcher, fidelity=None)
    if budget.seconds is not None and hasattr(searcher, "distance"):
        compile_solver()  # before the clock starts
    repeats, context = options.get("repeats", 1), dict(options.get("context", {}))
    if repeats != 1:
        objective, context["repeats"] = Repeated(objective, repeats), repeats
    pacer = options.get("pacer")
    told = known_pairs(options.get("known", ()))
    run: RunOptions = {key: options[key] for key in RunOptions.__annotations__ if key in options}  # type: ignore[literal-required, assignment]
    run["on_change"] = with_progress(options.get("progress"), run.get("on_change"), budget, direction)
    if name is None:
        study = Study.in_memory(searcher, seed=seed, direction=direction, context=context, pacer=pacer)
        tell_known(study, told)
        return study.optimise(objective, budget, **run)
    with Study.open(name, searcher, seed=seed, direction=direction, context=context, pacer=pacer) as study:
        tell_known(study, told)
        study.optimise(objective, budget, **run)
    return StudyView.read(name, vocabulary=searcher.domain.networks.vocabulary, searcher=searcher)


def known_pairs(known: object) -> list[tuple[Candidate | Architecture, object]]:
    """What was measured elsewhere, in pairs; whether candidates lie in the domain the study will say."""
    if isinstance(known, str) or not isinstance(known, Iterable):
        raise OptionError(f"known: expected pairs of a candidate and its value, got {type(known).__name__}")
    pairs = list(known)
    for i, pair in enumerate(pairs):
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], Candidate | Architecture):
            raise OptionError(f"known: entry {i}: expected (candidate or network, value), got {str(pair)[:60]}")
    return [(given, value) for given, value in pairs]


def tell_known(study: Study, known: Sequence[tuple[Candidate | Architecture, object]]) -> None:
    """Record what the study does not know yet, so that the same call can be repeated."""
    for i, (given, value) in enumerate(known):
        if study.searcher.domain.candidate(given).fingerprint not in study.history.seen:
            try:
                study.add(given, value)
            except NasbotError as error:
                error.args = (f"known: entry {i}: {error}",)
                raise


def _budget(options: SearchOptions) -> Budget:
    trials, seconds, given = options.get("trials"), options.get("seconds"), options.get("budget")
    if given is None:
        return Budget(trials, seconds)
    if trials is not None or seconds is not None:
        raise OptionError("budget: expected this, or trials and seconds, not both")
    return Budget.of(given)


def _name_of(objective: Objective) -> str:
    """``score`` for a function score, the class's name for an object; other characters than a file's become -.

    All lambdas have one name, so they have none here: two of them must not share a study by accident.
    """
    name = getattr(objective, "__name__", type(objective).__name__)
    if name == "<lambda>":
        raise OptionError("name: a lambda has no name to keep the study under; pass name=... (None keeps nothing)")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:60] or "study"


def _searcher(
    space: SearchSpace | str, params: Mapping[str, Param], given: Searcher | None, name: str | Path | None
) -> Searcher:
    """The one given; or NASBOT, with the options that the study of this name was begun with, if there is one."""
    asked: object = params
    if not isinstance(asked, Mapping):
        expected = 'expected names and their ranges, such as {"learning_rate": Float(1e-4, 1e-1, log=True)}'
        raise OptionError(f"params: {expected}, got {type(asked).__name__}")
    where = space if isinstance(space, SearchSpace) else SearchSpace(space)
    if given is None:
        from nasbot.searchers.nasbot import NASBOT
        from nasbot.study.rebuilding import as_begun

        made = NASBOT(space=where, params=params)
        if name is None or not is_begun(name):
            return made
        with StudyView.read(name, vocabulary=where.vocabulary) as begun:
            return as_begun(made, begun.settings)
    if isinstance(given, str | type):
        got = f"the class {given.__name__}" if isinstance(given, type) else f"the text {given[:40]!r}"
        raise OptionError(f"searcher: expected an object such as RandomSearch(space=space), got {got}")
    if given.domain.networks != where:
        raise OptionError(f"space: expected that of the searcher, {given.domain.networks}, got {where}")
    if params and dict(params) != given.domain.params:
        raise OptionError("params: the searcher that is given has its own; expected one or the other")
    return given
