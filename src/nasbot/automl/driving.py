"""Driving a search on data: the search itself, then finals, or refits of the networks that it has found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nasbot.architecture import Architecture
from nasbot.automl.files import DATA, WEIGHTS
from nasbot.automl.finals import ENOUGH_PAIRS, final_fidelity, finals_of
from nasbot.automl.limits import MARGIN, ModelLimits
from nasbot.automl.plan import Plan
from nasbot.automl.refits import refit_model, seconds_for_refits
from nasbot.candidate import Candidate
from nasbot.execution import Executor, SerialExecutor
from nasbot.study import Budget, Study
from nasbot.study.loop import OnChange
from nasbot.trial import FINAL, History, Scored, Trial, TrialState

if TYPE_CHECKING:
    from nasbot.data.metrics import Metric
    from nasbot.training.objective import Live, TrainingObjective
    from nasbot.training.recipes import Recipe

SAFETY = 1.1  # by which a final must be expected to end before the budget does
FINALS_PER_WORKER = 2  # after a search that ended before its budget did
SHORTEST = 0.1  # seconds of a training that the end of the budget cuts short


def drive(
    study: Study,
    plan: Plan,
    recipe: Recipe,
    metric: Metric | None,
    limits: ModelLimits,
    device: str,
    files: Path,
    executor: Executor,
    max_failures: int | None,
    on_change: OnChange | None,
    stop_when_settled: bool,
    spent: float = 0.0,
) -> None:
    """The search; then finals, or the refits of what it has found. ``spent`` are seconds of the plan that are gone."""
    from nasbot.training.objective import TrainingObjective, keep_best

    files = files.resolve()  # the workers' fork server may have begun in another folder
    weights = files / WEIGHTS
    name = None if metric is None else metric.name
    objective = TrainingObjective(
        files / DATA,
        recipe,
        weights=weights,
        seconds=plan.seconds_per_trial,
        metric=name,
        device=device,
        max_latency=None if limits.max_latency is None else MARGIN * limits.max_latency,
        folds=plan.folds,
        fidelity_of="steps" if (rungs := study.searcher.domain.fidelity) is None else rungs.of,
    )

    in_finals = is_settled = False
    clock = _Clock(study, executor.now, spent)

    def tell(trial: Trial) -> None:
        clock.see()
        if trial.state is TrialState.COMPLETED:
            keep_best(weights, study.history)
        if in_finals and trial.state.is_final:  # a worker is free: the next one that still fits
            enqueue_finals(1)
        if on_change is not None:
            on_change(trial)

    def enqueue_finals(n: int) -> None:
        fidelity = final_fidelity(study.history, plan.stretch)
        if is_settled:  # there is more time than finals are worth
            n = min(n, FINALS_PER_WORKER * plan.workers - sum(t.origin.searcher == FINAL for t in study.history))
        study.enqueue(
            lambda history: _finals(history, plan, n, clock.spent(), fidelity), searcher=FINAL, fidelity=fidelity
        )

    def run(budget: Budget, *, until: float | None, proposes: bool) -> None:
        overtime = None if until is None else max(0.0, until - (budget.seconds or 0.0))
        ends_itself = until is None or not isinstance(executor, SerialExecutor)
        study.optimise(
            objective if ends_itself else _InTime(objective, clock, until or 0.0),
            clock.as_the_study_counts(budget),
            executor=executor,
            max_consecutive_failures=max_failures,
            overtime=overtime,
            on_change=tell,
            proposes=proposes,
            stop_when_settled=stop_when_settled and proposes,
        )

    try:
        if plan.stretch > 1 and plan.rungs is None:
            study.lengthen(partial(final_fidelity, stretch=plan.stretch))
            study.enqueue(partial(_lengthened, plan=plan, elapsed=clock.spent()), searcher=FINAL, fidelity=plan.stretch)
        if plan.look is not None:
            run(plan.look, until=plan.search_end, proposes=True)
            needed = seconds_for_refits(study.history, files, objective, metric, executor.slots, limits)
            plan = plan if needed is None else plan.with_refits(needed)
        if plan.look is None or not (study.was_stopped or study.was_settled):
            run(plan.search, until=plan.search_end, proposes=True)
        if study.history.best_here is None and plan.end.seconds is not None and not study.was_stopped:
            run(plan.end, until=plan.end.seconds, proposes=False)  # rather a network late than none, and no refits
        is_settled = study.was_settled
        if not study.was_stopped and (plan.refit_seconds is None or plan.end.seconds is None or plan.stretch > 1):
            in_finals = True
            enqueue_finals(plan.workers)
            end = plan.end_of_finals
            run(end, until=end.seconds, proposes=False)
            study.drop_waiting(FINAL)
        if not study.was_stopped and plan.refit_seconds is not None:
            left = None if plan.end.seconds is None else max(0.0, plan.end.seconds - clock.spent())
            refit_model(study.history, files, objective, metric, executor, seed=study.seed, seconds=left, limits=limits)
    finally:
        executor.close()


class _Clock:
    """How much of its budget a search has spent.

    The study's own clock forgets what passed after the last trial ended, and stands still between its runs.
    """

    def __init__(self, study: Study, now: Callable[[], float], spent: float) -> None:
        self._study, self._now = study, now
        self._seen, self._at = study.elapsed() + spent, now()
        self._ahead = spent  # of the study's clock, since the last run of it began

    def spent(self) -> float:
        """Seconds, up to now."""
        return self._seen + self._now() - self._at

    def see(self) -> None:
        """Look at the study's clock, which runs and leaves pauses out."""
        self._seen, self._at = max(self._seen, self._study.elapsed() + self._ahead), self._now()

    def as_the_study_counts(self, budget: Budget) -> Budget:
        """The same budget for a run of the study that begins now."""
        self._ahead = self.spent() - self._study.elapsed()
        return budget if budget.seconds is None else replace(budget, seconds=max(1e-3, budget.seconds - self._ahead))


def _lengthened(history: History, plan: Plan, elapsed: float) -> list[Candidate]:
    """The best candidates at the new length, before anything new: what they gain says what the old values are worth."""
    n_before = sum(trial.fidelity == plan.stretch for trial in history if trial.state is not TrialState.CANCELLED)
    left = math.inf if plan.search.seconds is None else plan.search.seconds - elapsed
    return finals_of(history, max(0, ENOUGH_PAIRS - n_before), longest=left / SAFETY, fidelity=plan.stretch)


@dataclass(frozen=True)
class _InTime:
    """The objective in this process, where nobody else could end a training when the budget is spent."""

    objective: TrainingObjective
    clock: _Clock
    until: float

    def __call__(self, arch: Architecture, trial: Live) -> Scored:
        left = max(SHORTEST, self.until - self.clock.spent())
        longest = min(self.objective.seconds or math.inf, left / max(1.0, trial.fidelity))
        return replace(self.objective, seconds=longest)(arch, trial=trial)


def _finals(history: History, plan: Plan, n: int, spent: float, fidelity: float) -> list[Candidate]:
    """The next ``n`` finals; of a budget in time only such as can be trained in what is left of it."""
    waiting = sum(trial.origin.searcher == FINAL for trial in history.pending if trial.started is None)
    n -= waiting  # those of a run before this one that was interrupted
    end = plan.end_of_finals
    if end.seconds is None:
        known = sum(trial.state is not TrialState.CANCELLED for trial in history)  # what waits comes first
        n = min(n, (plan.end.trials or 0) - known)
    left = math.inf if end.seconds is None else end.seconds - spent
    return finals_of(history, max(0, n), longest=left / SAFETY, fidelity=fidelity)
