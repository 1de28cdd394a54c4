"""What drives a study: claims trials, records what becomes of them, keeps its clock and runs, answers requests.

A loop, or ``ask`` and ``tell`` by hand, stand above it; the storage, and other drivers of it, below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from nasbot.errors import NasbotError, StudyError
from nasbot.execution import Job
from nasbot.execution.interruption import allowed
from nasbot.pacing import Bar, NoPacer, Pacer
from nasbot.searchers.base import Proposal, ProposesMany
from nasbot.storage import Answer, MemoryStorage, Request, Run, RunState, Storage
from nasbot.storage.base import Decide, change
from nasbot.storage.base import shared as shared_storage
from nasbot.study.budget import Budget
from nasbot.study.requests import changed_trial
from nasbot.study.runs import new_run
from nasbot.study.view import StudyView, known_trial
from nasbot.trial import History, Outcome, Point, Trial, TrialState

VOID = "void: the run it was meant for had ended"


class Driver:
    """One driver of a study, by one thread of one process; ``storage`` may have others beside it."""

    def __init__(self, study: StudyView, storage: Storage, pacer: Pacer) -> None:
        self._study = study
        self._searcher = study.searcher
        self._storage = storage
        self._pacer = pacer
        self._seconds_before = self.history.elapsed
        self._now: Callable[[], float] | None = None
        self._origin = 0.0
        self._run: Run | None = None  # the one that is open
        self.last_run: Run | None = None  # of this driver
        self._is_by_hand = False
        self.stretch: Callable[[History], float] | None = None  # of new proposals' trainings, after a history
        self._shared = shared_storage(storage)
        if self._shared is None:
            self._requeue_all()
        else:
            self._shared.release_dead()

    @property
    def history(self) -> History:
        """All trials so far."""
        return self._study.history

    # -- the study's clock ---------------------------------------------------------------------------------------------

    def elapsed(self) -> float:
        """Seconds that the study has been driven, over all its runs; what passed after the last record is forgotten."""
        now = self._now  # once: whoever shows the study asks from another thread
        return self._seconds_before if now is None else self._seconds_before + now() - self._origin

    def start_clock(self, now: Callable[[], float]) -> None:
        """Driving goes on from the last moment recorded: neither pauses nor the time between runs count."""
        self._seconds_before = self.history.elapsed
        self._now, self._origin = now, now()

    def stop_clock(self) -> None:
        """Driving has ended; what passed since the last record is forgotten."""
        self._seconds_before, self._now = self.history.elapsed, None

    def hold_clock(self) -> None:
        """Stop counting seconds, while nothing runs."""
        self._seconds_before, self._now = self.elapsed(), None

    def release_clock(self, now: Callable[[], float]) -> None:
        """Go on counting from where ``hold_clock`` stopped."""
        self._now, self._origin = now, now()

    # -- runs ----------------------------------------------------------------------------------------------------------

    def begin_run(
        self, executor: str, *, workers: int | None = None, budget: Budget | None = None, plan: str = ""
    ) -> None:
        """Record that driving begins, for whoever looks from outside; what was asked of earlier runs is void."""
        self.end_run("closed")
        self._is_by_hand = False
        run = new_run(len(self._storage.runs()), executor=executor, workers=workers, budget=budget, plan=plan)
        if self._shared is None:
            self._storage.save_run(run)
        else:
            run = self._shared.join(run)
        self._run = run
        void = [Answer(request, VOID) for request in self.requests() if not request.kind.names_trial]
        if void:
            self._storage.save(answers=void)

    def go_by_hand(self) -> None:
        """Before somebody asks for a trial: begin a run if none is open, and answer what others ask."""
        if self._now is None:
            self.start_clock(time.monotonic)
        if self._run is None:
            self.begin_run("by hand")
            self._is_by_hand = True
        if self._is_by_hand:
            self._heed_by_hand()

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
            self.last_run = run.over(ending, at=max(time.time(), run.begun))
            self._storage.save_run(self.last_run)

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

        return self.change(changed, answers=[Answer(request, text)])[0]

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

    # -- trials --------------------------------------------------------------------------------------------------------

    def begin(self, may_begin: Callable[[History], bool], *, proposes: bool = True) -> Trial | None:
        """The next trial, recorded as running: one that waits, else a new proposal unless that is not wanted.

        None where the newest history says that nothing may begin, or while another driver proposes.
        """

        def next_waiting(history: History) -> list[Trial]:
            waiting = next((t for t in history.pending if t.state is TrialState.WAITING), None)
            return [waiting.begun(self.elapsed())] if waiting is not None and may_begin(history) else []

        if claimed := self.change(next_waiting):
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

            return next(iter(self.change(next_proposed)), None)

    def bars(self, trial: Trial) -> tuple[Bar, ...]:
        """What the pacer asks of this trial: by what was known when it was chosen, so that a resume asks the same."""
        if not trial.origin.was_proposed or self._pacer.name == NoPacer.name:
            return ()
        return tuple(self._pacer.bars(self.history.at_proposal(trial.number), trial))

    def job(self, trial: Trial) -> Job:
        """The trial as an executor takes it."""
        first = trial
        while first.promoted_from is not None:  # a longer training has the seed of the shorter ones
            first = self._study.history[first.promoted_from]
        seed = self._study.seed
        return Job(trial.number, trial.candidate, seed, trial.fidelity, self.bars(trial), draws_as=first.number)

    def propose_ahead(self, n: int) -> None:
        """Let so many trials wait, those that do so already included, where the searcher chooses many at once."""
        history = self.history
        n -= sum(trial.state is TrialState.WAITING for trial in history.pending)
        if n < 2 or self._shared is not None or not isinstance(self._searcher, ProposesMany):
            return
        begun = time.perf_counter()
        with allowed():
            proposals = self._study._propose_many(history, n)
        seconds = (time.perf_counter() - begun) / max(1, len(proposals))
        trials: list[Trial] = []
        for proposal in proposals:
            trials.append(self._checked(proposal, history, seconds))
            history = history.with_trial(trials[-1])
        if trials:
            self._storage.save(*trials)

    def finish(self, number: int, outcome: Outcome, *, at: float) -> Trial:
        """Record the outcome of a running trial that ended at ``at`` on the executor's clock."""
        return self.record(number, outcome, at=self._seconds_before + at - self._origin)

    def extend(self, trial: Trial | int, points: Sequence[Point]) -> Trial:
        """Record points of a running trial's curve."""
        return self.change(lambda history: [self.running_trial(history, trial).with_points(points)])[0]

    def requeue(self, number: int, *, interrupted: bool) -> Trial:
        """Let a running trial wait again."""
        return self.change(lambda history: [self.running_trial(history, number).requeued(interrupted=interrupted)])[0]

    # -- of several drivers --------------------------------------------------------------------------------------------

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

    def change(self, decide: Decide, answers: Sequence[Answer] = ()) -> tuple[Trial, ...]:
        """Record what ``decide`` makes of the newest history."""
        return change(self._storage, decide, answers=answers)

    def _turn(self) -> AbstractContextManager[bool]:
        return nullcontext(True) if self._shared is None else self._shared.turn()

    def _proposed(self) -> Trial:
        history = self.history
        begun = time.perf_counter()
        with allowed():
            proposal = self._study._propose(history)
        return self._checked(proposal, history, time.perf_counter() - begun)

    def _checked(self, proposal: Proposal, history: History, seconds: float) -> Trial:
        """The trial of a proposal that keeps its promises, chosen in so many seconds."""
        try:
            self._searcher.domain.check(proposal.candidate)
        except NasbotError as error:
            raise StudyError(f"{self._searcher.name} proposed a candidate outside its domain: {error}") from None
        repeated = proposal.origin.of_trial
        is_repeat = repeated is not None and history[repeated].candidate == proposal.candidate
        if self.stretch is not None and not is_repeat:  # which is compared with others of its length
            proposal = replace(proposal, fidelity=proposal.fidelity * self.stretch(history))
        if not is_repeat and (proposal.candidate.fingerprint, proposal.fidelity) in history.seen_at:
            raise StudyError(f"{self._searcher.name} proposed a candidate again that is evaluated, pending or failed")
        origin = replace(
            proposal.origin,
            searcher=proposal.origin.searcher or self._searcher.name,
            seconds={**proposal.origin.seconds, "deciding": seconds},
        )
        return replace(proposal, origin=origin).trial(history)

    def record(self, trial: Trial | int, outcome: Outcome, *, at: float) -> Trial:
        """Record the outcome of a running trial that ended at ``at`` on the study's clock."""
        return self.change(lambda history: [ended(self.running_trial(history, trial), outcome, at, history)])[0]

    def _requeue_all(self) -> None:
        running = [t for t in self.history.pending if t.state is TrialState.RUNNING]
        if running:
            self._storage.save(*(trial.requeued(interrupted=True) for trial in running))

    def running_trial(self, history: History, trial: Trial | int) -> Trial:
        """The trial as the history has it; StudyError unless it runs and is the same."""
        known = known_trial(history, trial)
        if isinstance(trial, Trial) and trial.candidate != known.candidate:
            raise StudyError(f"trial {known.number} of this study has another candidate: the trial is not from here")
        if known.state.is_final:
            raise StudyError(f"trial {known.number} is {known.state} already; an outcome is told once")
        if known.state is TrialState.WAITING:
            raise StudyError(f"trial {known.number} is waiting and was not asked for; ask() begins it")
        return known


def ended(trial: Trial, outcome: Outcome, at: float, history: History) -> Trial:
    """The trial with its outcome, the next to be recorded."""
    # Two clocks meet in a resumed study; a trial never ends before it began.
    return trial.ended(outcome, at=max(at, trial.started or 0.0), rank=len(history.finished))
