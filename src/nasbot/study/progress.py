"""A search in Python as it goes: a line for each trial that ends, on standard error."""

from __future__ import annotations

import sys

from nasbot._words import first_line
from nasbot.study.budget import Budget
from nasbot.study.loop import OnChange
from nasbot.trial import Direction, Trial, TrialState


def is_watched() -> bool:
    """Whether somebody is likely to look: at a terminal, or a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def with_progress(
    wanted: bool | None, on_change: OnChange | None, budget: Budget, direction: Direction
) -> OnChange | None:
    """``on_change`` with lines for people before it; None wants them where somebody watches."""
    if not (is_watched() if wanted is None else wanted):
        return on_change
    lines = _Lines(budget, direction)

    def tell(trial: Trial) -> None:
        lines.tell(trial)
        if on_change is not None:
            on_change(trial)

    return tell


class _Lines:
    def __init__(self, budget: Budget, direction: Direction) -> None:
        self._budget, self._direction = budget, direction
        self._best: Trial | None = None

    def tell(self, trial: Trial) -> None:
        if trial.state.is_final and trial.state is not TrialState.CANCELLED:
            print(f"trial {trial.number}: {self._said(trial)} [budget {self._budget}]", file=sys.stderr, flush=True)

    def _said(self, trial: Trial) -> str:
        took = "" if trial.seconds is None else f" in {trial.seconds:.1f} s"
        if trial.cause is not None:
            said = first_line(trial.message, 80)
            return f"failed{took} ({trial.cause}{f': {said}' if said else ''})"
        value = trial.value
        if value is None:
            return f"{trial.state}{took}"
        before = None if self._best is None else self._best.value
        if before is None or self._direction.turned(value) > self._direction.turned(before):
            self._best = trial
            return f"{value:.6g}{took}, the best so far: {trial.arch.depth}"
        return f"{value:.6g}{took}, best {before:.6g} (trial {self._best.number if self._best else ''})"
