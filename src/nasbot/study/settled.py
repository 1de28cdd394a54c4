"""When it is enough: whether the trials to come can be expected to improve the best by more than the noise.

A searcher with a surrogate says of each candidate it chooses by how much it is expected to improve on the best, and how
noisy values are, both in standardised units. The next ``N_NEXT`` trials are expected to bring no more than as many
times the most that one of the last ``N_LAST`` promised: what is learned from each leaves less to the others. So it is a
function of the history alone, and a resumed study comes to the same. It is as good as the surrogate is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nasbot._typing import Json
from nasbot.errors import OptionError
from nasbot.searchers.base import Explains
from nasbot.trial import History

N_NEXT = 20  # trials to come
N_LAST = 8  # proposals that say what to expect
LEAST = 20  # completed trainings before which nothing is settled


@dataclass(frozen=True)
class Outlook:
    """What is to be expected of the next trials, at most, in standard deviations of the noise."""

    improvement: float
    n_next: int = N_NEXT

    @property
    def is_settled(self) -> bool:
        """Whether that is less than the noise."""
        return self.improvement < 1.0

    def __str__(self) -> str:
        much = f"{self.improvement:.2g} times" if self.improvement >= 0.01 else "less than 0.01 times"
        said = f"the next {self.n_next} trials are expected to improve the best by at most {much} the noise"
        return f"settled: {said}" if self.is_settled else f"not settled: {said}"

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return {"improvement": self.improvement, "n_next": self.n_next, "settled": self.is_settled, "text": str(self)}


def outlook_of(history: History) -> Outlook | None:
    """What the last proposals promise; None where too few have said so, as with a searcher without a surrogate."""
    if len(history.completed) < LEAST:
        return None
    found = []
    for trial in reversed(history.trials):
        said = trial.forecast
        if said is None or said.improvement is None or said.sd is None or said.observed_sd is None:
            continue
        noise = math.sqrt(max(0.0, said.observed_sd**2 - said.sd**2))
        if noise > 0:
            found.append(said.improvement / noise)
        if len(found) == N_LAST:
            return Outlook(N_NEXT * max(found))
    return None


def check_can_settle(searcher: object) -> None:
    """OptionError for a searcher that says nothing of what its candidates promise."""
    if not isinstance(searcher, Explains):
        name = getattr(searcher, "name", type(searcher).__name__)
        raise OptionError(
            f"stop_when_settled: {name} has no beliefs to tell by; expected a searcher with a surrogate (NASBOT)"
        )
