"""A search as it goes: a live table on a terminal, one line per trial anywhere else; both on standard error."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from nasbot._words import duration, first_line
from nasbot.cli._outcome import one_line
from nasbot.domain import share_in_words
from nasbot.storage.tally import Line, Tally, spent_in_words
from nasbot.trial import FINAL, POOL, Direction, Failed, Scored, Stopped, Trial, TrialState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from nasbot.data.metrics import Metric
    from nasbot.study import Budget

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 24
OTHER_COLUMNS, MIN_NETWORK = CURVE_WIDTH + 40, 12  # characters beside the network's description, and of it
LAST_SHOWN = 6
REFRESHES = 4  # a second


@contextmanager
def progress(
    budget: Budget, *, elapsed: Callable[[], float], trials: Sequence[Trial], metric: Metric, plan: str = ""
) -> Iterator[Callable[[Trial], None]]:
    """Show what becomes of the trials that are told, for the time of this ``with``. Values are of ``metric``;
    ``elapsed`` is the study's clock; ``trials`` are those that a resumed study has already."""
    console = screen()
    state = _State(budget, elapsed, trials, metric, width=console.width, plan=plan)
    if not console.is_terminal:
        yield _Lines(state)
        return
    from rich.live import Live

    with Live(
        get_renderable=lambda: _table(state), console=console, refresh_per_second=REFRESHES, transient=True
    ) as live:

        def tell(trial: Trial) -> None:
            state.take(trial)

        yield tell
        live.refresh()


def sparkline(values: Sequence[float]) -> str:
    """A curve in one line of text: high values high, means of equal pieces where it is longer than the line."""
    if not values:
        return ""
    if len(values) > CURVE_WIDTH:
        edges = [round(i * len(values) / CURVE_WIDTH) for i in range(CURVE_WIDTH + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(values), max(values)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in values)


def described(trial: Trial) -> str:
    """Where a network came from, and for how much of a training, in a few words."""
    share = "" if trial.fidelity >= 1 else f"{share_in_words(trial.fidelity)}, "
    if trial.promoted_from is not None:
        return f"{share_in_words(trial.fidelity)}, promoted from trial {trial.promoted_from}"
    origin = trial.origin
    if origin.changes:
        parent = f"from {origin.parents[0]}: " if origin.parents else ""
        return one_line(share + parent + "; ".join(origin.changes))
    if origin.searcher == FINAL:
        return f"final: trial {origin.of_trial} with another seed"
    if origin.was_proposed and origin.of_trial is not None:
        return f"repeat of trial {origin.of_trial} with another seed"
    return "initial pool" if origin.searcher == POOL else f"{share}new"


class _State:
    """What is known of the search at the moment; told by the driver's thread, read by the one that draws."""

    def __init__(
        self,
        budget: Budget,
        elapsed: Callable[[], float],
        trials: Sequence[Trial],
        metric: Metric,
        *,
        width: int = 100,
        plan: str = "",
    ) -> None:
        self.plan = plan
        self.finished: list[Line] = []
        self.budget, self.metric, self.width = budget, metric, width
        self.elapsed = elapsed
        self.running: dict[int, Trial] = {}
        self.last: list[Trial] = []
        self.best: Trial | None = None
        self.causes: Counter[str] = Counter()
        self.n_completed = self.n_stopped = 0
        for trial in trials:
            if trial.state.is_final:
                self.take(trial)
        self.last.clear()

    @property
    def n_finished(self) -> int:
        return self.n_completed + self.n_stopped + sum(self.causes.values())

    def take(self, trial: Trial) -> bool:
        """Remember what became of a trial; whether it is the best so far."""
        if trial.state is TrialState.RUNNING:
            self.running = {**self.running, trial.number: trial}
            return False
        self.running = {number: other for number, other in self.running.items() if number != trial.number}
        if trial.state is TrialState.WAITING:
            return False
        self.last = [*self.last, trial][-LAST_SHOWN:]
        self.finished.append(Line.of(trial))
        if trial.cause is not None:
            self.causes[str(trial.cause)] += 1
        self.n_stopped += isinstance(trial.outcome, Stopped)
        if not isinstance(trial.outcome, Scored):
            return False
        self.n_completed += 1
        is_best = trial.fidelity >= 1 and (self.best is None or self.cost(trial) < self.cost(self.best))
        if is_best:
            self.best = trial
        return is_best

    def cost(self, trial: Trial) -> float:
        """The value of a completed trial, turned so that lower is better."""
        return self.metric.cost(value_of(trial))

    def left(self) -> str:
        """How much of the budget is left, in words."""
        parts = []
        if self.budget.seconds is not None:
            remaining = self.budget.seconds - self.elapsed()
            parts.append(f"{duration(remaining)} left" if remaining > 0 else "finishing what runs")
        if self.budget.trials is not None:
            parts.append(f"{max(0, self.budget.trials - self.n_finished - len(self.running))} trials to begin")
        return ", ".join(parts)


def value_of(trial: Trial) -> float:
    """The value of a trial, NaN where it has none."""
    return trial.value if trial.value is not None else float("nan")


class _Lines:
    """One line for each trial that ends."""

    def __init__(self, state: _State) -> None:
        self._state = state

    def __call__(self, trial: Trial) -> None:
        is_best = self._state.take(trial)
        if trial.state is TrialState.RUNNING and not trial.curve:
            if self._state.n_finished == 0:  # something is seen at once
                print(f"trial {trial.number:3d}  begun: {described(trial)}", file=sys.stderr, flush=True)
            return
        if trial.state.is_final:
            print(self._line(trial, is_best), file=sys.stderr, flush=True)

    def _line(self, trial: Trial, is_best: bool) -> str:
        took = duration(trial.seconds or 0.0)
        if trial.cause is not None:
            said = one_line(first_line(trial.message, 120))
            return f"trial {trial.number:3d}  failed ({trial.cause}) after {took}: {said}"
        if isinstance(trial.outcome, Stopped):
            return f"trial {trial.number:3d}  {trial.message}  {took}"
        if not isinstance(trial.outcome, Scored):
            return f"trial {trial.number:3d}  cancelled"
        best = "  best so far" if is_best else ""
        return (
            f"trial {trial.number:3d}  {self._state.metric.name} {value_of(trial):.5g}  {took}  {described(trial)[:60]}"
            f"  [{self._state.left()}]{best}"
        )


def _table(state: _State) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column(state.metric.name, justify="right", no_wrap=True)
    table.add_column("curve", width=CURVE_WIDTH, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("network", no_wrap=True)
    for trial in state.last:
        table.add_row(*_row(trial, state), style="dim" if isinstance(trial.outcome, Failed | Stopped) else None)
    for trial in state.running.values():
        table.add_row(*_row(trial, state), style="cyan")
    best = (
        "none yet"
        if state.best is None
        else f"{value_of(state.best):.5g} (trial {state.best.number}: {described(state.best)[:60]})"
    )
    failures = ", ".join(f"{n} {cause}" for cause, n in state.causes.most_common()) or "none"
    stopped = f"{state.n_stopped} stopped early, " if state.n_stopped else ""
    spent = Tally.of(state.finished, Direction.MAXIMISE).spent  # times have no direction
    lines = [
        f"best so far  {best}",
        f"trials       {state.n_completed} completed, {stopped}{len(state.running)} running; failures: {failures}",
        f"budget       {state.left()}    (Ctrl-C leaves safely; the same command goes on)",
        *([f"plan         {state.plan}"] if state.plan else []),
        *([f"time went to {spent_in_words(spent, duration)}"] if spent else []),
    ]
    return Group(table, Text("\n".join(lines)))


def _row(trial: Trial, state: _State) -> tuple[str, str, str, str, str]:
    curve = [point.value for point in trial.curve]
    if trial.state is TrialState.RUNNING:
        now = state.elapsed()
        took = now - (trial.started or now)
        value = f"{min(curve, key=state.metric.cost):.4g} …" if curve else "starting"
    else:
        took = trial.seconds or 0.0
        value = _value(trial)
    mark = " *" if state.best is not None and trial.number == state.best.number else ""
    # Cut here: a column that is too wide would take the room of all the others.
    network = described(trial)
    room = max(MIN_NETWORK, state.width - OTHER_COLUMNS)
    network = network if len(network) <= room else network[: room - 1] + "…"
    return f"{trial.number}{mark}", value, sparkline(curve), duration(max(0.0, took)), network


def _value(trial: Trial) -> str:
    if trial.value is not None:
        return f"{trial.value:.4g}"
    return "stopped" if isinstance(trial.outcome, Stopped) else str(trial.cause or "-")


def screen() -> Console:
    """Where a search's words for people go while standard output is kept for results."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)
