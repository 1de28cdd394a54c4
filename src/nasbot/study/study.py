"""A study: one search, remembered trial by trial, resumable at any moment.

    study = Study.open("protein", NASBOT(space), seed=0)          # begins it, or resumes it where it was left
    study.optimise(objective, "50 trials", workers=2)             # or: trial = study.ask(); study.tell(trial, value)
    study.best.arch

The proposal for trial n is a function of the searcher's settings, the seed, n, and the history in the order in which
outcomes were recorded; so it is the same after a resume, in another process and in a replay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, Unpack, overload

from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot._words import first_line
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.domain import check_pool
from nasbot.errors import NasbotError, OptionError, StudyError
from nasbot.execution import Executor, Limits, Objective, SerialExecutor, outcome_of, process_executor
from nasbot.execution._sending import stop_at_study
from nasbot.execution.evaluation import CANNOT_SEE, as_number, check_objective, sees_fidelity
from nasbot.execution.interruption import Interrupted, allowed, leaving_on_signals, shielded
from nasbot.pacing import Pacer, pacer_of
from nasbot.searchers.base import Proposal, Searcher
from nasbot.storage import MemoryStorage, Storage, is_begun, open_storage
from nasbot.study.budget import Budget
from nasbot.study.driver import Driver, ended
from nasbot.study.forking import Fork, fork_of, missing_from
from nasbot.study.interrupted_message import THE_SAME_CALL, interrupted_message
from nasbot.study.loop import LOG, TURN_SECONDS, Loop, OnChange
from nasbot.study.runs import command_line
from nasbot.study.settings import check_same, study_settings
from nasbot.study.settled import check_can_settle
from nasbot.study.view import StudyView
from nasbot.trial import ADDED, POOL, Cancelled, Direction, History, Point, Provenance, Trial, TrialState

SETTLED = "settled"  # how a run ended


class StudyOptions(TypedDict, total=False):
    """What ``Study`` takes beside storage and searcher."""

    seed: int
    direction: str
    pool: Sequence[Candidate | Architecture] | None
    context: Mapping[str, Json] | None
    pacer: Pacer | str | None


class Study(StudyView):
    """A study to drive, by one thread of one process.

    ``pool`` is evaluated first (default: the searcher's own); ``context`` names whatever else must not change between
    runs (the data, the recipe); ``pacer`` ends trainings that fall behind (``nasbot.pacing``). All of these are stored
    at the beginning; a resume with others raises StudyError.
    ``taken_over`` are completed trials of another study that a new one begins with (``open`` with ``fork`` finds them).
    """

    def __init__(
        self,
        storage: Storage,
        searcher: Searcher,
        *,
        seed: int = 0,
        direction: str = Direction.MAXIMISE,
        pool: Sequence[Candidate | Architecture] | None = None,
        context: Mapping[str, Json] | None = None,
        pacer: Pacer | str | None = None,
        taken_over: Sequence[Trial] = (),
    ) -> None:
        self.pacer = pacer_of(pacer)
        first = tuple(searcher.initial_pool() if pool is None else map(searcher.domain.candidate, pool))
        self.n_pool = len(first)
        check_pool(first, searcher.domain)
        given = study_settings(
            searcher,
            seed=checked_seed(seed),
            direction=Direction.of(direction),
            pool=first,
            context=context or {},
            pacer=self.pacer,
        )
        stored = storage.settings()
        if stored is None:
            new = enumerate(missing_from(taken_over, first), start=len(taken_over))
            origin = Provenance(searcher=POOL)
            pool_trials = [Trial(number=n, candidate=candidate, origin=origin) for n, candidate in new]
            stored = _created(storage, given, [*taken_over, *pool_trials])
        check_same(stored, given)
        super().__init__(storage, searcher)
        self.plan = ""  # how the budget is spent, in words, for whoever looks
        self._driver = Driver(self, storage, self.pacer)

    def lengthen(self, stretch: Callable[[History], float]) -> None:
        """Let trainings of what is proposed from now on be so many times as long as a full one, after a history."""
        self._driver.stretch = stretch

    @classmethod
    def open(
        cls,
        where: str | Path,
        searcher: Searcher,
        *,
        fork: str | Path | None = None,
        shared: bool = False,
        **options: Unpack[StudyOptions],
    ) -> Study:
        """The study of this name (a file in the studies' folder) or file: begun if it is new, resumed otherwise.

        Args:
            where: name of the study, its file, or its address in a database (postgresql://user@host/database#study).
            searcher: what chooses the candidates.
            shared: whether other drivers that say so may work on the study at the same time.
            fork: name of another study, to be begun with the completed trials of ``where`` that are still valid under
                these settings, or resumed if it is there already; ``where`` is only read then.
            seed: random seed of the searcher and of the objective.
            direction: "maximise" or "minimise".
            pool: candidates to begin with instead of the searcher's own.
            context: what else makes values comparable (data, recipe), as plain data; another one is refused.
            pacer: what ends trainings that fall behind, "median" or an object; None: nothing does.

        Returns:
            The study, to be driven by nobody else until it is closed, unless it is shared.

        Raises:
            OptionError: what is wrong with the call.
            StudyError: the study was begun with other settings, or somebody drives it.
            StorageError, FileError: the file is damaged, no study, or cannot be opened.
        """
        stop_at_study()
        place = where if fork is None else fork
        is_fork = fork is not None and not is_begun(fork)
        taken_over = _forked(where, searcher, options).trials if is_fork else ()
        storage = open_storage(place, vocabulary=searcher.domain.networks.vocabulary, shared=shared)
        try:
            return cls(storage, searcher, taken_over=taken_over, **options)
        except BaseException:
            storage.close()
            raise

    @classmethod
    def in_memory(cls, searcher: Searcher, **options: Unpack[StudyOptions]) -> Study:
        """A study that ends with this process."""
        return cls(MemoryStorage(), searcher, **options)

    # -- one trial at a time -------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial to evaluate, recorded as running: one that waits, else a new proposal.

        Args:
            n: for so many workers at once, a list of trials. NASBOT then chooses all of them by Thompson sampling from
                one belief, which takes little longer than choosing one; other searchers choose one after the other.

        Raises:
            OptionError: n is below 1.
            ExhaustedError: no candidate of the domain is left.
        """
        if n is not None:
            if type(n) is not int or n < 1:
                raise OptionError(f"n: expected at least 1 trial to ask for, as a whole number, got {n!r}")
            self._driver.propose_ahead(n)
            return [self.ask() for _ in range(n)]
        self._driver.go_by_hand()
        while (trial := self._driver.begin(lambda history: True)) is None:  # another driver proposes
            with allowed():
                time.sleep(TURN_SECONDS)
        return trial

    def tell(self, trial: Trial | int, value: object) -> Trial:
        """Record what an evaluation gave: a number, or an Outcome. Anything but a finite number is a failed trial.

        Raises StudyError for a trial that is unknown, was not asked for, or was told before.
        """
        return self._driver.record(trial, outcome_of(value), at=self.elapsed())

    def add(self, candidate: Candidate | Architecture, value: object) -> Trial:
        """Record what was measured elsewhere: a number, or an Outcome. A network alone has its params at defaults.

        Raises OptionError or OutsideSpaceError for a candidate outside the domain, StudyError for one that is known.
        """
        domain = self.searcher.domain
        added, outcome = domain.candidate(candidate), outcome_of(value)
        domain.check(added)

        def told(history: History) -> list[Trial]:
            if added.fingerprint in history.seen:
                number = next(trial.number for trial in history if trial.candidate.fingerprint == added.fingerprint)
                raise StudyError(f"add: trial {number} has this candidate already; its outcome is told once")
            return [ended(Proposal(added, origin=Provenance(searcher=ADDED)).trial(history), outcome, now, history)]

        now = self.elapsed()
        return self._driver.change(told)[0]

    def report(self, trial: Trial | int, step: int, value: float) -> Trial:
        """Add a point to a running trial's curve; a value that is not finite is not recorded."""
        try:
            step = int(step)
        except (TypeError, ValueError, OverflowError):
            raise OptionError(f"step: expected a whole number, got {str(step)[:40]!r}") from None
        known, score = self._driver.running_trial(self.history, trial), as_number(value)
        if score is None or not math.isfinite(score):
            return known
        return self._driver.extend(known, [Point(step, score)])

    # -- the loop ------------------------------------------------------------------------------------------------------

    def optimise(
        self,
        objective: Objective,
        budget: Budget | int | str,
        workers: int = 1,
        *,
        executor: Executor | None = None,
        timeout_per_trial: float | None = None,
        memory_per_trial: int | None = None,
        max_consecutive_failures: int | None = 3,
        overtime: float | None = None,
        on_change: OnChange | None = None,
        proposes: bool = True,
        stop_when_settled: bool = False,
    ) -> Study:
        """Evaluate until the budget, a total over all runs of the study, is spent.

        Ctrl-C, SIGTERM and SIGUSR1 end it as soon as what was evaluated is recorded; the same call goes on from there
        (``nasbot.execution.interruption``).

        Args:
            objective: ``objective(arch)``, or with ``params`` and ``trial`` beside it. With one worker and no limits it
                is called in this process and may be any callable.
            budget: trials (50), time ("10m"), or a Budget.
            workers: evaluations at a time, each in a process of its own where there are several.
            executor: another place to evaluate in, with workers and limits of its own.
            timeout_per_trial: seconds after which an evaluation is ended.
            memory_per_trial: bytes that an evaluation may take.
            max_consecutive_failures: failures in a row after which the run ends; None: never.
            overtime: seconds that running trials may take when the time is up, those cut short wait for the next run;
                None: as long as they need.
            on_change: called with every new state of a trial.
            proposes: whether new trials are proposed; otherwise only those that wait are evaluated.
            stop_when_settled: end when the next twenty trials are expected to improve the best by less than the noise.

        Returns:
            The study itself.

        Raises:
            OptionError: what is wrong with the call.
            FailingError: too many evaluations in a row failed.
            ExhaustedError: no candidate of the domain is left.
            Interrupted: somebody ended it; it is a KeyboardInterrupt.
        """
        check_objective(objective)
        if isinstance(executor, str):
            raise OptionError(f"executor: expected an object such as LocalExecutor(2), got the text {executor[:40]!r}")
        total = Budget.of(budget)
        limits = Limits(timeout_per_trial, memory_per_trial)
        if self.searcher.domain.fidelity is not None and not sees_fidelity(objective):
            LOG.warning("%s; every rung of it is a full evaluation", CANNOT_SEE)
        if stop_when_settled:
            check_can_settle(self.searcher)
        if executor is not None and (workers != 1 or limits != Limits()):
            raise OptionError("workers and limits: an executor that is given has its own; expected one or the other")
        with leaving_on_signals(), shielded():
            chosen = executor or _executor(workers, limits)
            try:
                chosen.start(objective)
                self._driver.start_clock(chosen.now)
                loop = Loop(self._driver, chosen, total, max_consecutive_failures, overtime, on_change, proposes)
                loop.stops_when_settled = stop_when_settled
                self._driver.begin_run(type(chosen).__name__, workers=chosen.slots, budget=total, plan=self.plan)
                self._drive(loop)
            except Interrupted as stop:
                resume = command_line() or THE_SAME_CALL
                raise Interrupted(interrupted_message(self, stop, resume=resume), signal_number=stop.signal) from None
            finally:
                self._driver.stop_clock()
                if executor is None:
                    chosen.close()
        return self

    @property
    def was_stopped(self) -> bool:
        """Whether somebody asked the last run to stop."""
        return self._last_ending() == "stopped"

    @property
    def was_settled(self) -> bool:
        """Whether the last run ended because little was to be expected of more trials."""
        return self._last_ending() == SETTLED

    def _last_ending(self) -> str | None:
        last = self._driver.last_run or (self.runs[-1] if self.runs else None)
        return None if last is None else last.ending

    def enqueue(
        self,
        candidates: Sequence[Candidate] | Callable[[History], Sequence[Candidate]],
        *,
        searcher: str,
        fidelity: float = 1.0,
    ) -> list[Trial]:
        """Let these candidates wait, to be evaluated in this order before anything new; known ones once more.

        They may be a function of the history, the newest. ``searcher`` says who chose them, as ``Provenance`` has it.
        """

        def waiting(history: History) -> list[Trial]:
            trials = []
            for candidate in candidates(history) if callable(candidates) else candidates:
                self.searcher.domain.check(candidate)
                before = next((t.number for t in history if t.candidate == candidate), None)
                origin = Provenance(searcher=searcher, of_trial=before)
                trials.append(Proposal(candidate, fidelity, origin=origin).trial(history))
                history = history.with_trial(trials[-1])
            return trials

        return list(self._driver.change(waiting))

    def drop_waiting(self, searcher: str) -> None:
        """Cancel the trials that wait and were chosen by this searcher: there is no time left for them."""
        message, now = Cancelled("the budget was spent before it began"), self.elapsed()

        def dropped(history: History) -> list[Trial]:
            waiting = [t for t in history.pending if t.state is TrialState.WAITING and t.origin.searcher == searcher]
            rank = len(history.finished)
            return [trial.ended(message, at=now, rank=rank + i) for i, trial in enumerate(waiting)]

        self._driver.change(dropped)

    def elapsed(self) -> float:
        """Seconds that the study has been driven, over all its runs; what passed after the last record is forgotten."""
        return self._driver.elapsed()

    def close(self) -> None:
        """Let go of the study's file; whoever opens it next may drive it."""
        with suppress(NasbotError):  # a full disk must not keep anybody from leaving
            self._driver.end_run("closed")
        super().close()

    def _drive(self, loop: Loop) -> None:
        """To the end, and record how it ended."""
        try:
            loop.run()
        except BaseException as error:
            with suppress(NasbotError):  # the error to be told is the first one
                self._driver.end_run(_ending(error))
            raise
        self._driver.end_run("stopped" if loop.is_stopping else SETTLED if loop.is_settled else "finished")


def _forked(where: str | Path, searcher: Searcher, options: StudyOptions) -> Fork:
    with StudyView.read(where, vocabulary=searcher.domain.networks.vocabulary) as old:
        return fork_of(old, searcher.domain, context=options.get("context") or {}, source=str(where))


def _created(storage: Storage, given: Mapping[str, Json], trials: Sequence[Trial]) -> Mapping[str, Json]:
    """Begin the study; what is stored of it then, which is another driver's where that was quicker."""
    try:
        storage.create(given, trials)
    except StudyError:
        stored = storage.settings()
        if stored is None:
            raise
        return stored
    return given


def _ending(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return f"failed: {type(error).__name__}: {first_line(error)}"


def _executor(workers: int, limits: Limits) -> Executor:
    return SerialExecutor() if workers == 1 and limits == Limits() else process_executor(workers, limits=limits)
