"""The last part of a budget: the networks of the model trained once more, on training and validation rows together.

The validation rows have chosen the members and how long each is trained; then they are learned from, too: the truth
of all rows, and where that is noisy also what the ensemble says of them (``nasbot.training.distilling``). What is
chosen is written beside the study (``model.json``), so that everybody who opens it sees the same model. A refit is
there when its weights are: one that was cut short is begun again by the next run, and until then the weights of the
search stand for it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby, product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from nasbot._system import n_cores
from nasbot.architecture import Architecture
from nasbot.automl.ensemble import MAX_MEMBERS
from nasbot.automl.files import DATA, WEIGHTS
from nasbot.automl.members import Members, chosen_members, kept, settle
from nasbot.candidate import Params
from nasbot.data.metrics import truth_of
from nasbot.errors import FileError, StorageError, StudyError
from nasbot.execution import Executor, Finished, Job, SerialExecutor
from nasbot.execution.interruption import leaving_on_signals, shielded
from nasbot.trial import History, Scored, Trial

if TYPE_CHECKING:
    from nasbot.automl.limits import ModelLimits
    from nasbot.data.dataset import Dataset
    from nasbot.data.metrics import Metric
    from nasbot.training.objective import Live, TrainingObjective
    from nasbot.training.refitting import Length, RefitObjective

SAFETY = 1.05  # by which refits must be expected to end before the budget does
SHORTEST = 0.1  # seconds of a training that the end of the budget cuts short
LESSON_SHARE = 0.25  # of the time that is left, for asking the ensemble about all rows; else the truth alone is learned
ENOUGH_OF_A_REFIT = 0.75  # of its expected time: with less left the weights of the search stay
# Of a budget in trials, which says nothing about time: no more refits than a third of the trials, or than these.
TRIALS_PER_MEMBER, LEAST_MEMBERS = 3, 3
ENOUGH_MEMBERS = 4  # fewer are not averaged so that all can be refitted
# Times as long as its trial, for one that learns from the ensemble, too, and was still getting better at its end: as
# long as there is time for. One that learned from trees got better for longer by that: on Blog twice as long was worse.
LONGER = (2.0, 1.75, 1.5, 1.25)


@dataclass(frozen=True)
class Refit:
    """One network to train again, and how long that is expected to take."""

    trial: Trial
    length: Length
    seconds: float


def refit_model(
    history: History,
    files: Path,
    base: TrainingObjective,
    metric: Metric | None,
    executor: Executor,
    *,
    seed: int,
    seconds: float | None,
    limits: ModelLimits | None = None,
) -> None:
    """Choose the model that can be refitted in time, write down which it is, and train what is missing of it.

    Args:
        history: of the search, which is over.
        files: the study's folder.
        base: how the search trained.
        metric: what members are chosen by; None: the validation loss.
        executor: where to train; it is started anew.
        seed: the study's.
        seconds: what is left of the budget; None: a budget in trials.
        limits: on the model, which its members hold together.
    """
    from nasbot.data.dataset import Dataset
    from nasbot.training.refitting import RefitObjective, discard_refits, has_refit

    if history.best_here is None:
        return
    end = math.inf if seconds is None else executor.now() + seconds

    def left() -> float:
        return max(0.0, end - executor.now())

    data, weights = Dataset.load(files / DATA), files / WEIGHTS
    teachers = _teachers(history, files, data, base, metric)
    lesson = None if teachers is None else _lesson(teachers, history, files, data, base.device, LESSON_SHARE * left())
    share = 0.0 if lesson is None else lesson[1]
    time_left = None if seconds is None else left()
    members, refits = _affordable(history, files, data, base, metric, executor.slots, time_left, limits, share)
    wanted = {refit.trial.number: refit for refit in refits}
    discard_refits(weights, set(wanted))
    if members is not None:
        settle(files, replace(members, taught=share), history)
    missing = [refit for number, refit in wanted.items() if not has_refit(weights, number)]
    if missing:
        lengths = {refit.trial.number: refit.length for refit in missing}
        _train(
            {Job(r.trial.number, r.trial.candidate, seed, r.trial.fidelity): r.seconds for r in missing},
            RefitObjective(base, base.data_folder, weights, lengths, lesson),
            executor,
            None if seconds is None else left(),
        )


def seconds_for_refits(
    history: History,
    files: Path,
    base: TrainingObjective,
    metric: Metric | None,
    workers: int,
    limits: ModelLimits | None = None,
) -> float | None:
    """What refitting the model would take if the search ended now, and the last trials; None while nothing is known."""
    from nasbot.data.dataset import Dataset

    if history.best_here is None:
        return None
    data = Dataset.load(files / DATA)
    teachers = _teachers(history, files, data, base, metric)
    share = 0.0 if teachers is None else teachers.share
    _, refits = _affordable(history, files, data, base, metric, workers, math.inf, limits, share)
    _, ends = _in_time(refits, workers, math.inf)
    return SAFETY * max(ends) + median(trial.seconds or 0.0 for trial in history.ranked[:MAX_MEMBERS])


def expected_seconds(training: float, ratio: float, workers: int) -> float:
    """What refitting a whole ensemble takes where a full training takes ``training`` seconds, and the last trials."""
    return SAFETY * ratio * training * math.ceil(MAX_MEMBERS / workers) + training


# -- who teaches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Teachers:
    """The best ensemble, whatever limits there are on the model, and how much its word counts."""

    members: Members
    share: float


def _teachers(
    history: History, files: Path, data: Dataset, base: TrainingObjective, metric: Metric | None
) -> _Teachers | None:
    """None where nobody has anything to teach; by the predictions that were kept for the validation rows."""
    from nasbot.training.distilling import share_of

    members = chosen_members(history, files, data, metric) if base.folds == 1 else None
    if members is None:
        return None
    truth = truth_of(data, data.valid.y)
    truth = np.eye(data.n_outputs)[truth] if data.is_classification else truth
    scales = 1.0 if data.is_classification else np.asarray(data.preprocessing.target.scales)  # type: ignore[union-attr]
    mean, alone = np.zeros(truth.shape), 0.0
    for number, weight in zip(members.trials, members.weights, strict=True):
        predictions = kept(files, history[number], len(data.valid))
        if predictions is None:
            return None
        said = np.exp(predictions[0]) if data.is_classification else predictions[0]
        alone += weight * float(np.square((said - truth) / scales).mean())
        mean += weight * said
    share = share_of(float(np.square((mean - truth) / scales).mean()), alone)
    return _Teachers(members, share) if share and len(members.trials) > 1 else None


def _lesson(
    teachers: _Teachers, history: History, files: Path, data: Dataset, device: str, seconds: float = math.inf
) -> tuple[np.ndarray, float] | None:
    """What they say of all rows, and how much it counts; None where weights of one are gone, or time is."""
    from nasbot.training.distilling import Voice, said_together
    from nasbot.training.fitting import with_weights
    from nasbot.training.objective import computing_threads, preparation_of, weights_path
    from nasbot.training.temperature import sharpen

    weighted = zip(teachers.members.trials, teachers.members.weights, strict=True)
    members = [(history[number], weight) for number, weight in weighted]
    end = time.monotonic() + seconds

    def preparation(member: tuple[Trial, float]) -> str:
        return preparation_of(member[0].candidate.params)

    def voices() -> Iterator[Voice]:  # one set of prepared rows in memory at a time
        for name, alike in groupby(sorted(members, key=preparation), key=preparation):
            prepared = data.prepared_as(name)
            for trial, weight in alike:
                if time.monotonic() >= end:
                    raise TimeoutError
                network = with_weights(trial.arch, prepared, weights_path(files / WEIGHTS, trial.number))
                sharpen(network, teachers.members.sharpness)
                yield Voice(network, prepared, weight)

    # Threads that wait for each other at every small step would take fifty times as long on a machine that is busy.
    with computing_threads(1), suppress(FileError, StorageError, TimeoutError):
        said = said_together(data, voices(), device=device, at_once=n_cores())  # no training runs meanwhile
        return said, teachers.share
    return None


# -- which -------------------------------------------------------------------------------------------------------------


def _affordable(
    history: History,
    files: Path,
    data: Dataset,
    base: TrainingObjective,
    metric: Metric | None,
    workers: int,
    seconds: float | None,
    limits: ModelLimits | None,
    share: float,
) -> tuple[Members | None, list[Refit]]:
    """The largest ensemble whose refits fit into the time, and these, the most important first.

    But not fewer than a few members for the sake of refits: averaging gains more than a third more rows. Where there is
    no time for all of these, they are not trained for longer than their trials, and then not all are refitted.
    """
    best = history.best_here
    assert best is not None
    most = MAX_MEMBERS
    if seconds is None:
        most = min(MAX_MEMBERS, max(LEAST_MEMBERS, len(history) // TRIALS_PER_MEMBER))
    chosen = cache(partial(chosen_members, history, files, data, metric, folds=base.folds, limits=limits))
    as_its_trial = cache(lambda number: _as_its_trial(history[number], data, base))
    lengths = (*LONGER, 1.0) if share else (1.0,)
    for longer, n in product(lengths, range(most, min(most, ENOUGH_MEMBERS) - 1, -1)):
        members = chosen(max_members=n)
        numbers = [best.number] if members is None else list(dict.fromkeys((*members.trials, best.number)))
        refits = _refits(numbers, as_its_trial, longer, share)
        in_time, _ = _in_time(refits, workers, math.inf if seconds is None else seconds / SAFETY)
        if len(in_time) == len(refits):
            break
    return members, in_time


def _in_time(refits: Sequence[Refit], workers: int, seconds: float) -> tuple[list[Refit], list[float]]:
    """Those that end in time where each goes to the worker that is free first, and when each worker is free again.

    One that would not end in time is left out.
    """
    busy_until, found = [0.0] * workers, []
    for refit in refits:
        first = busy_until.index(min(busy_until))
        if busy_until[first] + refit.seconds <= seconds:
            busy_until[first] += refit.seconds
            found.append(refit)
    return found, busy_until


def _refits(
    numbers: Sequence[int], as_its_trial: Callable[[int], Refit | None], longer: float, share: float
) -> list[Refit]:
    """As long as their trials, or for longer: but none that learned more of what others say than its refit will."""
    from nasbot.training.objective import share_from_trees

    found = []
    for refit in filter(None, map(as_its_trial, numbers)):
        length, seconds = refit.length, refit.seconds
        if longer > 1 and length.is_short and share_from_trees(refit.trial.candidate.params) <= share:
            length, seconds = replace(length, steps=round(longer * length.steps)), longer * seconds
        found.append(Refit(refit.trial, length, seconds))
    return found


def _as_its_trial(trial: Trial, data: Dataset, base: TrainingObjective) -> Refit | None:
    """As long as it was; None where it does not say."""
    from nasbot.training.refitting import length_of, rows_ratio

    length = length_of(trial, data, base)
    if length is None:
        return None
    ratio = rows_ratio(data, base.folds) / base.folds
    return Refit(trial, length, (trial.seconds or 0.0) * ratio * _share_until_best(trial))


def _share_until_best(trial: Trial) -> float:
    """Of the steps of a trial, those until its best validation, after which its refit ends."""
    return float(trial.details["best_step"] / trial.details["steps"])  # ``length_of`` has checked them


# -- training ----------------------------------------------------------------------------------------------------------


def _train(jobs: Mapping[Job, float], objective: RefitObjective, executor: Executor, seconds: float | None) -> None:
    """Evaluate the jobs, each with the seconds that it is expected to take, those that time is left for.

    What fails, or is left out, leaves the weights of the search in its place.
    """
    end = math.inf if seconds is None else executor.now() + seconds

    def left() -> float:
        return max(0.0, end - executor.now())

    waiting, running = deque(jobs), set[int]()
    with leaving_on_signals(), shielded():
        executor.start(_InTime(objective, left) if isinstance(executor, SerialExecutor) else _within(objective, left()))
        try:
            while (waiting or running) and left() > 0:
                while waiting and len(running) < executor.slots:
                    job = waiting.popleft()
                    if ENOUGH_OF_A_REFIT * jobs[job] <= left():
                        executor.submit(job)
                        running.add(job.number)
                events = executor.wait(None if seconds is None else left())
                running -= {event.number for event in events if isinstance(event, Finished)}
        finally:
            for number in sorted(running):
                with suppress(StudyError):  # it has just ended
                    executor.cancel(number)
            while executor.wait(0):
                pass


@dataclass(frozen=True)
class _InTime:
    """The objective in this process, where nobody else could end a training when the budget is spent."""

    objective: RefitObjective
    left: Callable[[], float]

    def __call__(self, arch: Architecture, params: Params, trial: Live) -> Scored:
        return _within(self.objective, self.left())(arch, params, trial)


def _within(objective: RefitObjective, seconds: float) -> RefitObjective:
    """Refits that end after so many seconds at the latest."""
    longest = min(objective.base.seconds or math.inf, max(SHORTEST, seconds / SAFETY))
    return replace(objective, base=replace(objective.base, seconds=None if longest == math.inf else longest))
