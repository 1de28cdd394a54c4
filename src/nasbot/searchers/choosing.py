"""Which table of a learned distance a search goes by: the one under which the values seen so far are most likely.

Chosen again each time that the number of evaluated networks has doubled, from those there were then: so it is a
function of the history alone, costs little, and the distance does not change under the feet of every proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot._typing import Json
from nasbot.candidate import Candidate
from nasbot.gp import BeliefOptions, Rows
from nasbot.gp.evidence import log_evidence
from nasbot.otmann import Otmann
from nasbot.otmann.learned import LearnedDistance

Floats = NDArray[np.float64]
RowsUnder = Callable[[Otmann, Sequence[Candidate]], Rows]

FIRST_CHOICE = 20  # evaluated networks; below, the expected table is taken
LAST_CHOICE = 160
EXPECTED_MORE = 2.0  # log odds by which the expected table is ahead of any other before values are seen


@dataclass(frozen=True)
class Choice:
    """The table chosen, and why."""

    number: int
    after: int  # evaluated networks that had a say; 0: none, it is the expected one
    log_evidence: tuple[float, ...]  # of each table, the expected one's head start left out

    def to_dict(self, names: Sequence[str]) -> dict[str, Json]:
        """For the notes of a proposal."""
        evidence = {name: round(value, 3) for name, value in zip(names, self.log_evidence, strict=False)}
        return {"chosen": names[self.number], "after": self.after, "log_evidence": evidence}


def due(n: int) -> int:
    """How many evaluated networks, of n, the choice is made from: 0, 20, 40, 80 or 160."""
    at = [k for k in (FIRST_CHOICE << i for i in range(8)) if k <= min(n, LAST_CHOICE)]
    return at[-1] if at else 0


def chosen(
    learned: LearnedDistance,
    evaluated: Sequence[Candidate],
    values: Floats,
    rows_under: RowsUnder,
    *,
    options: BeliefOptions,
    fidelities: Floats | None = None,
) -> Choice:
    """The choice from these networks, all of which have a say."""
    found = tuple(
        log_evidence(rows_under(table, evaluated), values, options=options, fidelities=fidelities)
        for table in learned.tables
    )
    ahead = np.array(found)
    ahead[0] += EXPECTED_MORE
    return Choice(int(np.argmax(ahead)), len(evaluated), found)
