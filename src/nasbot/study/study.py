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
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack, overload

from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.domain import check_pool
from nasbot.errors import NasbotError, OptionError, StudyError
from nasbot.execution import Executor, Job, Limits, Objective, SerialExecutor, outcome_of, process_executor
from nasbot.execution.evaluation import CANNOT_SEE, as_number, sees_fidelity
from nasbot.execution.interruption import Interrupted, allowed, leaving_on_signals, shielded
from nasbot.pacing import Bar, NoPacer, Pacer, pacer_of
from nasbot.searchers.base import Proposal, ProposesMany, Searcher
from nasbot.storage import Answer, MemoryStorage, Request, Run, RunState, Storage, is_begun, open_storage
from nasbot.storage.base import Decide, change
from nasbot.storage.base import shared as shared_storage
from nasbot.study.budget import Budget
from nasbot.study.forking import Fork, fork_of, missing_from
from nasbot.study.interrupted_message import THE_SAME_CALL, interrupted_message
from nasbot.study.loop import LOG, TURN_SECONDS, Loop, OnChange
from nasbot.study.requests import changed_trial
from nasbot.study.runs import command_line, new_run
from nasbot.study.settings import check_same, study_settings
from nasbot.study.settled import check_can_settle
from nasbot.study.view import StudyView, known_trial
from nasbot.trial import ADDED, POOL, Cancelled, Direction, History, Outcome, Point, Provenance, Trial, TrialState

SETTLED = "settled"  # how a run ended
VOID = "void: the run it was meant for had ended"


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
        _check_pool(first, searcher)
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
        self._seconds_before = self.history.elapsed
        self._now: Callable[[], float] | None = None
        self._origin = 0.0
        self._run: Run | None = None  # the one that is open
        self._last_run: Run | None = None  # of this driver
        self._is_by_hand = False
        self.plan = ""  # how the budget is spent, in words, for whoever looks
        self._shared = shared_storage(storage)
        if self._shared is None:
            self._requeue_all(interrupted=True)
        else:
            self._shared.release_dead()

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
            if n < 1:
                raise OptionError(f"n: expected at least 1 trial to ask for, got {n}")
            self.propose_ahead(n)
            return [self.ask() for _ in range(n)]
        if self._now is None:
            self._start_clock(time.monotonic)
        if self._run is None:
            self.begin_run("by hand")
            self._is_by_hand = True
        if self._is_by_hand:
            self._heed_by_hand()
        while (trial := self.begin(lambda history: True)) is None:  # another driver proposes
            with allowed():
                time.sleep(TURN_SECONDS)
        return trial

    def tell(self, trial: Trial | int, value: object) -> Trial:
        """Record what an evaluation gave: a number, or an Outcome. Anything but a finite number is a failed trial.

        Raises StudyError for a trial that is unknown, was not asked for, or was told before.
        """
        return self._record(trial, outcome_of(value), at=self.elapsed())

    def add(self, candidate: Candidate | Architecture, value: object) -> Trial:
        """Record what was measured elsewhere: a number, or an Outcome. A network alone has its params at defaults.

        Raises OptionError or OutsideSpaceError for a candidate outside the domain, StudyError for one that is known.
        """
        domain = self.searcher.domain
        added, outcome = domain.candidate(candidate), outcome_of(value)
        domain.check(added)

        def ended(history: History) -> list[Trial]:
            if added.fingerprint in history.seen:
                number = next(trial.number for trial in history if trial.candidate.fingerprint == added.fingerprint)
                raise StudyError(f"add: trial {number} has this candidate already; its outcome is told once")
            return [_ended(Proposal(added, origin=Provenance(searcher=ADDED)).trial(history), outcome, now, history)]

        now = self.elapsed()
        return self._change(ended)[0]

    def report(self, trial: Trial | int, step: int, value: float) -> Trial:
        """Add a point to a running trial's curve; a value that is not finite is not recorded."""
        known, score = self._running_trial(self.history, trial), as_number(value)
        if score is None or not math.isfinite(score):
            return known
        return self.extend(known, [Point(int(step), score)])

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
                self._start_clock(chosen.now)
                loop = Loop(self, chosen, total, max_consecutive_failures, overtime, on_change, proposes)
                loop.stops_when_settled = stop_when_settled
                self.begin_run(type(chosen).__name__, workers=chosen.slots, budget=total)
                self._drive(loop)
            except Interrupted as stop:
                resume = command_line() or THE_SAME_CALL
                raise Interrupted(interrupted_message(self, stop, resume=resume), signal_number=stop.signal) from None
            finally:
                self._stop_clock()
                if executor is None:
                    chosen.close()
        return self

    @property
    def was_stopped(self) -> bool:
        """Whether somebody asked the last run to stop."""
        last = self._last_run or (self.runs[-1] if self.runs else None)
        return last is not None and last.ending == "stopped"

    @property
    def was_settled(self) -> bool:
        """Whether the last run ended because little was to be expected of more trials."""
        last = self._last_run or (self.runs[-1] if self.runs else None)
        return last is not None and last.ending == SETTLED

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

        return list(self._change(waiting))

    def drop_waiting(self, searcher: str) -> None:
        """Cancel the trials that wait and were chosen by this searcher: there is no time left for them."""
        message, now = Cancelled("the budget was spent before it began"), self.elapsed()

        def dropped(history: History) -> list[Trial]:
            waiting = [t for t in history.pending if t.state is TrialState.WAITING and t.origin.searcher == searcher]
            rank = len(history.finished)
            return [trial.ended(message, at=now, rank=rank + i) for i, trial in enumerate(waiting)]

        self._change(dropped)

    def elapsed(self) -> float:
        """Seconds that the study has been driven, over all its runs; what passed after the last record is forgotten."""
        return self._seconds_before if self._now is None else self._seconds_before + self._now() - self._origin

    def close(self) -> None:
        """Let go of the study's file; whoever opens it next may drive it."""
        if self._run is not None:
            with suppress(NasbotError):  # a full disk must not keep anybody from leaving
                self.end_run("closed")
        super().close()

    # -- runs ----------------------------------------------------------------------------------------------------------

    def begin_run(self, executor: str, *, workers: int | None = None, budget: Budget | None = None) -> None:
        """Record that driving begins, for whoever looks from outside; what was asked of earlier runs is void."""
        self.end_run("closed")
        self._is_by_hand = False
        run = new_run(len(self._storage.runs()), executor=executor, workers=workers, budget=budget, plan=self.plan)
        if self._shared is None:
            self._storage.save_run(run)
        else:
            run = self._shared.join(run)
        self._run = run
        void = [Answer(request, VOID) for request in self.requests() if not request.kind.names_trial]
        if void:
            self._storage.save(answers=void)

    def _drive(self, loop: Loop) -> None:
        """To the end, and record how it ended."""
        try:
            loop.run()
        except BaseException as error:
            with suppress(NasbotError):  # the error to be told is the first one
                self.end_run(_ending(error))
            raise
        self.end_run("stopped" if loop.is_stopping else SETTLED if loop.is_settled else "finished")

    def note_run(self, state: RunState) -> None:
        """Record that the open run is now paused, stopping or running."""
        if self._run is not None and self._run.state is not state:
            run = self._run.now(state)
            self._storage.save_run(run)
            self._run = run

    def end_run(self, ending: str) -> None:
        """Record that driving ends, and how; nothing where it has."""
        if self._run is not None:
            run, self._run = self._run, None
            self._last_run = run.over(ending, at=max(time.time(), run.begun))
            self._storage.save_run(self._last_run)

    # -- requests from outside -----------------------------------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """What others ask of this study, oldest first; ``answer`` or ``heed`` closes one."""
        return self._storage.requests()

    @property
    def can_be_asked(self) -> bool:
        """Whether there is a file through which others can ask."""
        return not isinstance(self._storage, MemoryStorage)

    def answer(self, request: Request, text: str) -> None:
        """Record what became of a request."""
        self._storage.save(answers=[Answer(request, text)])

    def heed(self, request: Request) -> Trial:
        """Cancel the trial that is asked for and does not run, or try one again. StudyError where that cannot be."""
        if request.trial is None:
            raise StudyError(f"{request.kind} is not about a trial")
        number, now = request.trial, self.elapsed()
        _, text = changed_trial(self.history, request.kind, number, at=now)

        def changed(history: History) -> list[Trial]:
            return [changed_trial(history, request.kind, number, at=now)[0]]

        return self._change(changed, answers=[Answer(request, text)])[0]

    def _heed_by_hand(self) -> None:
        for request in self.requests():
            trial = request.trial
            if trial is None:
                self.answer(request, "refused: the study is driven by hand, by ask and tell")
            elif self.runs_elsewhere(trial):
                continue  # its driver will see to it
            elif trial < len(self.history) and self.history[trial].state is TrialState.RUNNING:
                self.answer(request, f"refused: trial {trial} was asked for by hand and is being evaluated")
            else:
                try:
                    self.heed(request)
                except StudyError as error:
                    self.answer(request, f"refused: {error}")

    # -- for the loop --------------------------------------------------------------------------------------------------

    def hold_clock(self) -> None:
        """Stop counting seconds, while nothing runs."""
        self._seconds_before, self._now = self.elapsed(), None

    def release_clock(self, now: Callable[[], float]) -> None:
        """Go on counting from where ``hold_clock`` stopped."""
        self._now, self._origin = now, now()

    def begin(self, may_begin: Callable[[History], bool], *, proposes: bool = True) -> Trial | None:
        """The next trial, recorded as running: one that waits, else a new proposal unless that is not wanted.

        None where the newest history says that nothing may begin, or while another driver proposes.
        """

        def next_waiting(history: History) -> list[Trial]:
            waiting = next((t for t in history.pending if t.state is TrialState.WAITING), None)
            return [waiting.begun(self.elapsed())] if waiting is not None and may_begin(history) else []

        if claimed := self._change(next_waiting):
            return claimed[0]
        if not proposes or not may_begin(self.history):
            return None
        with self._turn() as is_ours:
            if not is_ours:
                return None
            proposed = self._proposed()

            def next_proposed(history: History) -> list[Trial]:
                is_next = self._shared is None or (len(history) == proposed.number and may_begin(history))
                return [proposed.begun(self.elapsed())] if is_next else []

            return next(iter(self._change(next_proposed)), None)

    def bars(self, trial: Trial) -> tuple[Bar, ...]:
        """What the pacer asks of this trial: by what was known when it was chosen, so that a resume asks the same."""
        if not trial.origin.was_proposed or self.pacer.name == NoPacer.name:
            return ()
        return tuple(self.pacer.bars(self.history.at_proposal(trial.number), trial))

    def job(self, trial: Trial) -> Job:
        """The trial as an executor takes it."""
        return Job(trial.number, trial.candidate, self.seed, trial.fidelity, self.bars(trial))

    def propose_ahead(self, n: int) -> None:
        """Let so many trials wait, those that do so already included, where the searcher chooses many at once."""
        history = self.history
        n -= sum(trial.state is TrialState.WAITING for trial in history.pending)
        if n < 2 or self._shared is not None or not isinstance(self.searcher, ProposesMany):
            return
        begun = time.perf_counter()
        with allowed():
            proposals = self._propose_many(history, n)
        seconds = (time.perf_counter() - begun) / max(1, len(proposals))
        trials: list[Trial] = []
        for proposal in proposals:
            trials.append(self._checked(proposal, history, seconds))
            history = history.with_trial(trials[-1])
        if trials:
            self._storage.save(*trials)

    def finish(self, number: int, outcome: Outcome, *, at: float) -> Trial:
        """Record the outcome of a running trial that ended at ``at`` on the executor's clock."""
        return self._record(number, outcome, at=self._on_study_clock(at))

    def extend(self, trial: Trial | int, points: Sequence[Point]) -> Trial:
        """Record points of a running trial's curve."""
        return self._change(lambda history: [self._running_trial(history, trial).with_points(points)])[0]

    def requeue(self, number: int, *, interrupted: bool) -> Trial:
        """Let a running trial wait again."""
        return self._change(lambda history: [self._running_trial(history, number).requeued(interrupted=interrupted)])[0]

    # -- for the loop, of several drivers ------------------------------------------------------------------------------

    def runs_elsewhere(self, number: int) -> bool:
        """Whether this trial runs, and it was another driver that began it."""
        history = self.history
        is_running = number < len(history) and history[number].state is TrialState.RUNNING
        return self._shared is not None and is_running and not self._shared.is_ours(number)

    def waits_for_others(self) -> bool:
        """Whether other drivers run trials, of which any may come back to wait."""
        return self._shared is not None and any(self.runs_elsewhere(trial.number) for trial in self.history.pending)

    def waits_for_its_turn(self, may_begin: Callable[[History], bool], *, proposes: bool) -> bool:
        """Whether a trial could begin here, but for another driver that proposes."""
        if self._shared is None:
            return False
        history = self.history
        return may_begin(history) and (proposes or any(t.state is TrialState.WAITING for t in history.pending))

    def release_dead(self) -> Sequence[Trial]:
        """Let the trials of drivers that died wait again."""
        return () if self._shared is None else self._shared.release_dead()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _change(self, decide: Decide, answers: Sequence[Answer] = ()) -> tuple[Trial, ...]:
        return change(self._storage, decide, answers=answers)

    def _turn(self) -> AbstractContextManager[bool]:
        return nullcontext(True) if self._shared is None else self._shared.turn()

    def _proposed(self) -> Trial:
        history = self.history
        begun = time.perf_counter()
        with allowed():
            proposal = self._propose(history)
        return self._checked(proposal, history, time.perf_counter() - begun)

    def _checked(self, proposal: Proposal, history: History, seconds: float) -> Trial:
        """The trial of a proposal that keeps its promises, chosen in so many seconds."""
        try:
            self.searcher.domain.check(proposal.candidate)
        except NasbotError as error:
            raise StudyError(f"{self.searcher.name} proposed a candidate outside its domain: {error}") from None
        if (proposal.candidate.fingerprint, proposal.fidelity) in history.seen_at:
            raise StudyError(f"{self.searcher.name} proposed a candidate again that is evaluated, pending or failed")
        origin = replace(
            proposal.origin,
            searcher=proposal.origin.searcher or self.searcher.name,
            seconds={**proposal.origin.seconds, "deciding": seconds},
        )
        return replace(proposal, origin=origin).trial(history)

    def _record(self, trial: Trial | int, outcome: Outcome, *, at: float) -> Trial:
        return self._change(lambda history: [_ended(self._running_trial(history, trial), outcome, at, history)])[0]

    def _requeue_all(self, *, interrupted: bool) -> None:
        running = [t for t in self.history.pending if t.state is TrialState.RUNNING]
        if running:
            self._storage.save(*(trial.requeued(interrupted=interrupted) for trial in running))

    def _running_trial(self, history: History, trial: Trial | int) -> Trial:
        known = known_trial(history, trial)
        if isinstance(trial, Trial) and trial.candidate != known.candidate:
            raise StudyError(f"trial {known.number} of this study has another candidate: the trial is not from here")
        if known.state.is_final:
            raise StudyError(f"trial {known.number} is {known.state} already; an outcome is told once")
        if known.state is TrialState.WAITING:
            raise StudyError(f"trial {known.number} is waiting and was not asked for; ask() begins it")
        return known

    def _start_clock(self, now: Callable[[], float]) -> None:
        """Driving goes on from the last moment recorded: neither pauses nor the time between runs count."""
        self._seconds_before = self.history.elapsed
        self._now, self._origin = now, now()

    def _stop_clock(self) -> None:
        self._seconds_before, self._now = self.history.elapsed, None

    def _on_study_clock(self, at: float) -> float:
        return self._seconds_before + at - self._origin


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


def _ended(trial: Trial, outcome: Outcome, at: float, history: History) -> Trial:
    # Two clocks meet in a resumed study; a trial never ends before it began.
    return trial.ended(outcome, at=max(at, trial.started or 0.0), rank=len(history.finished))


def _ending(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    first = next((line for line in str(error).splitlines() if line), "")
    return f"failed: {type(error).__name__}: {first[:300]}"


def _executor(workers: int, limits: Limits) -> Executor:
    return SerialExecutor() if workers == 1 and limits == Limits() else process_executor(workers, limits=limits)


def _check_pool(pool: Sequence[Candidate], searcher: Searcher) -> None:
    """Every candidate of the pool lies in the domain, and none is there twice."""
    check_pool(pool, searcher.domain)
    first: dict[str, int] = {}
    for i, candidate in enumerate(pool):
        if candidate.fingerprint in first:
            raise OptionError(f"pool networks {first[candidate.fingerprint]} and {i} are the same up to numbering")
        first[candidate.fingerprint] = i
