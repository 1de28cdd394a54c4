"""How a budget is spent on given data: what is searched, how long a full training is, what is kept for the end.

All of it follows from the data, the budget, the number of workers and how fast this machine was seen to train, by rules
simple enough to be said to people. A study remembers its plan, so that one that goes on goes on with the same
trainings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.architecture import Architecture, SearchSpace, Vocabulary
from nasbot.architecture.pools import narrower
from nasbot.architecture.resources import resources
from nasbot.automl.baselines import baseline_of
from nasbot.domain import Fidelity
from nasbot.errors import OptionError
from nasbot.searchers.promotion import mean_share
from nasbot.study.budget import Budget

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

SEARCH_SHARE = 0.65  # of the time at least; the rest is for finals or refits, and for assembling the model
ASSEMBLING_SHARE = 0.03
# From here on the search ends as soon as refits of what it has found need the time that is left; it is asked once, of
# budgets long enough for it.
LOOK_SHARE, SECONDS_FOR_A_LOOK = 0.6, 60.0
OVERTIME_SHARE = 0.35  # of the time between search and end: for trials that run when the search ends
# Full trainings that must fit into the search: so many in 100 seconds, and with more time both more and longer ones.
FULL_TRAININGS, REFERENCE_SECONDS = 20, 100.0
# Networks of images learn for longer: fewer of them, though never fewer than these.
IMAGE_TRAININGS, LEAST_TRAININGS = 7, 12
SHORTEST_TRAINING, LONGEST_TRAINING = 0.5, 600.0  # seconds of a full one
LEAST_STEPS, MOST_EPOCHS = 100, 400
SECONDS_FOR_CARE = 200.0  # of a budget from which a full training is tried before its length is settled
SLACK = 4.0  # times the time of a full training of the baseline, after which a training ends with what it has
ENOUGH = 2 / SEARCH_SHARE  # times one full training: a budget in which a few fit, with reading and calibrating
WORTH_STRETCHING = 1.5  # times longer: less is not worth training anything again for
DEFAULT_SECONDS = 30.0  # for one training, where the budget is in trials
FINAL_TRIALS = 0.25  # of a budget in trials
# Networks that cost more than so many times what the baseline costs are not searched: few of them would fit.
COST_OVER_BASELINE = 4.0
# Networks of many more parameters than there are numbers to learn from cost time and rarely win.
PARAMETERS_PER_ROW, LEAST_PARAMETERS = 1000, 400_000
MAX_MEMORY = 2.0 * 2**30
# With fewer rows for training and validation a fifth of them says little: all of them judge, in turn.
ROWS_FOR_HOLDOUT, FOLDS = 2000, 5


@dataclass(frozen=True)
class Plan:
    """How one budget is spent. ``n_steps`` is the length of a full training; None: as the recipe says."""

    budget: Budget
    workers: int
    n_steps: int | None
    seconds_per_trial: float  # after which a training ends with what it has
    # For training the networks of the model on all rows at the end; None: no refits, and finals in their place.
    refit_seconds: float | None = None
    folds: int = 1  # of a cross-validation by which trials are judged; 1: by the validation rows
    stretch: float = 1.0  # how many times longer trainings are, in a study that goes on with more time than it had
    training_seconds: float | None = None  # that a full training of the baseline is expected to take; None: not known
    rungs: Fidelity | None = None  # short trainings that decide who gets a full one; then only finals become longer
    n_pool: int = 0  # networks to begin with, which are trained in full
    least_search: float = SEARCH_SHARE  # of the time

    @property
    def search(self) -> Budget:
        """What the search may spend before the finals or refits."""
        if self.budget.seconds is not None:
            share = self.least_search * self.budget.seconds
            if self.refit_seconds is not None and self.stretch == 1:
                share = max(share, (1 - ASSEMBLING_SHARE) * self.budget.seconds - self.refit_seconds)
            return Budget(self._trials(self.budget.trials), share)
        assert self.budget.trials is not None
        return Budget(self._trials(self.budget.trials - self.n_finals))

    def _trials(self, full: int | None) -> int | None:
        """How many trials cost as much as so many full trainings, on rungs more than that."""
        if full is None or self.rungs is None or full <= self.n_pool:
            return full
        return self.n_pool + int((full - self.n_pool) / mean_share(self.rungs))

    @property
    def look(self) -> Budget | None:
        """What the search may spend before it is asked how long refits will take; None where it is not."""
        seconds = self.budget.seconds
        if self.refit_seconds is None or self.stretch > 1 or seconds is None or seconds < SECONDS_FOR_A_LOOK:
            return None
        return Budget(self._trials(self.budget.trials), LOOK_SHARE * seconds)

    def with_refits(self, seconds: float) -> Plan:
        """The same with so much time for refits, as far as the search has not spent it before it was asked."""
        return replace(self, refit_seconds=seconds, least_search=LOOK_SHARE)

    @property
    def search_end(self) -> float | None:
        """When trials that still run after the search are ended, so that refits have their time."""
        last = self.end.seconds
        if last is None or self.refit_seconds is None:
            return last
        begun = self.search.seconds
        assert begun is not None
        return begun + OVERTIME_SHARE * (last - begun)

    @property
    def n_finals(self) -> int:
        """Trials kept for finals where the budget is in trials."""
        return 0 if self.budget.trials is None else int(FINAL_TRIALS * self.budget.trials)

    @property
    def end(self) -> Budget:
        """What search and finals may spend together."""
        if self.budget.seconds is None:
            return Budget((self.search.trials or 0) + self.n_finals)
        return Budget(self._trials(self.budget.trials), (1 - ASSEMBLING_SHARE) * self.budget.seconds)

    @property
    def end_of_finals(self) -> Budget:
        """The same without what is kept for refits, where there are both."""
        end = self.end
        if end.seconds is None or self.refit_seconds is None:
            return end
        return Budget(end.trials, max(1e-3, end.seconds - self.refit_seconds))

    @property
    def shortfall(self) -> str | None:
        """What people are told where not one full training fits into the search; None where one does."""
        needed, given = self.training_seconds, self.search.seconds
        if needed is None or given is None or needed <= given:
            return None
        return (
            f"budget: too short for one full training, which takes about {needed:.2g} s here, where {given:.2g} s are "
            "left for searching; trainings end when the time does, with what they have reached by then. For whole ones "
            f'give {math.ceil(ENOUGH * needed)} s or more, or a budget in trials ("3 trials"), which waits for them'
        )

    def to_dict(self) -> dict[str, Json]:
        """What a study must go on with."""
        folds: dict[str, Json] = {} if self.folds == 1 else {"folds": self.folds}
        return {"n_steps": self.n_steps, "seconds_per_trial": self.seconds_per_trial, **folds}

    def __str__(self) -> str:
        steps = "as many steps as the recipe says" if self.n_steps is None else f"{self.n_steps:,} steps"
        end = "finals" if self.refit_seconds is None else "the model's networks once more, on all rows"
        if self.stretch != 1:
            what = "these" if self.rungs is not None else "new trainings"
            end = f"finals; {what} are {self.stretch:g} times as long, for there is more time than before"
        each = "" if self.folds == 1 else f", once for each of {self.folds} folds"
        search = str(self.search) if self.look is None else f"{self.look} or more"
        if self.budget.seconds is None and self.search != Budget(full := (self.budget.trials or 0) - self.n_finals):
            search += f", which cost as much as {full} full trainings,"
        return f"{search} of search, then {end}; a full training has {steps}{each}; {self.workers} at a time"


def full_training_seconds(budget: Budget, workers: int, takes_images: bool = False) -> float | None:
    """How long a full training may be so that enough of them fit into the search; None for a budget in trials."""
    if budget.seconds is None:
        return None
    in_reference = IMAGE_TRAININGS if takes_images else FULL_TRAININGS
    n_trainings = max(LEAST_TRAININGS, in_reference * math.sqrt(max(1.0, budget.seconds / REFERENCE_SECONDS)))
    each = SEARCH_SHARE * budget.seconds * workers / n_trainings
    return min(max(each, SHORTEST_TRAINING), LONGEST_TRAINING)


def folds_of(given: int | str, data: Dataset, stored: Mapping[str, Json] | None) -> int:
    """How many folds trials are judged by: as the study was begun with; "auto": several where rows are few.

    Raises OptionError for a number that cannot be meant, or for rows that must not be mixed.
    """
    n_rows = len(data.train) + len(data.valid)
    if given != "auto" and (type(given) is not int or not 1 <= given <= n_rows):
        raise OptionError(f"folds: expected auto, or a whole number from 1 to {n_rows:,} rows, got {str(given)[:40]!r}")
    if not data.is_divided_at_random and given not in ("auto", 1):
        raise OptionError("folds: these rows are divided by group, time or file, and folds would mix them; expected 1")
    if stored is not None:
        before = stored.get("folds", 1)
        if given not in ("auto", before):
            raise OptionError(
                f"folds: the study was begun with {before}, not {given}; use that, or choose another name"
            )
        return before if isinstance(before, int) else 1
    if given != "auto":
        assert isinstance(given, int)
        return given
    is_small = n_rows < ROWS_FOR_HOLDOUT and len(data.input_shape) == 1 and data.is_divided_at_random
    return FOLDS if is_small else 1


def stretch_of(full: float | None, n_steps: int | None, seconds_per_trial: float, most_steps: int) -> float:
    """How many times longer a full training is if it takes ``full`` seconds from now on; 1 for little more."""
    if full is None or n_steps is None:
        return 1.0
    stretch = min(full / (seconds_per_trial / SLACK), most_steps / n_steps)
    return float(f"{stretch:.2g}") if stretch >= WORTH_STRETCHING else 1.0


def most_steps(n_rows: int, batch_size: int) -> int:
    """Steps beyond which more of them teach nothing, whatever the time."""
    return max(LEAST_STEPS, MOST_EPOCHS * max(1, n_rows // batch_size))


def planned(
    budget: Budget,
    workers: int,
    *,
    n_steps: int | None,
    stored: Mapping[str, Json] | None,
    seconds: float | None,
    most_steps: int,
    refit_seconds: float | None = None,
    folds: int = 1,
    training_seconds: float | None = None,
    takes_images: bool = False,
    rungs: Fidelity | None = None,
    n_pool: int = 0,
) -> Plan:
    """The plan of a search: that of the stored study where there is one, else with trainings of ``n_steps``.

    With more time than a study began with its trainings become longer, by ``stretch``; see ``driving``.
    """
    full = full_training_seconds(budget, workers, takes_images)
    if stored is not None:
        known, cap = stored.get("n_steps"), stored.get("seconds_per_trial")
        n_steps = known if isinstance(known, int) else None
        each = float(cap) if isinstance(cap, int | float) else DEFAULT_SECONDS
        stretch = 1.0 if seconds is not None else stretch_of(full, n_steps, each, most_steps)
        training_seconds = None
    else:
        each, stretch = DEFAULT_SECONDS if full is None else round(SLACK * full, 1), 1.0
    longest = seconds or each
    return Plan(budget, workers, n_steps, longest, refit_seconds, folds, stretch, training_seconds, rungs, n_pool)


def space_for(
    kind: str,
    input_shape: tuple[int, ...],
    n_outputs: int,
    *,
    n_rows: int,
    batch_size: int,
    vocabulary: Vocabulary | None = None,
) -> SearchSpace:
    """The paper's limits, and no networks that cost many times what the baseline does, or that few rows do not need.

    The baseline is that of ``kind``, what the data ask for; the networks are of ``vocabulary`` where one is given.
    """
    baseline = fitting_baseline(kind, n_rows)
    needs = resources(baseline, input_shape, n_outputs)
    parameters = max(LEAST_PARAMETERS, PARAMETERS_PER_ROW * n_rows, 2.0 * needs.parameters)
    return SearchSpace(
        kind if vocabulary is None else vocabulary,
        input_shape=input_shape,
        n_outputs=n_outputs,
        batch_size=batch_size,
        max_flops=float(f"{COST_OVER_BASELINE * needs.flops:.3g}"),
        max_parameters=float(f"{parameters:.3g}"),
        max_memory=MAX_MEMORY,
    )


def fitting_baseline(kind: str, n_rows: int) -> Architecture:
    """The first plain network."""
    return narrower(baseline_of(kind, n_rows), SearchSpace.min_units)[0]
