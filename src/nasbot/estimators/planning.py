"""A planned search with another number of training steps, which its study remembers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from nasbot._typing import Json
from nasbot.automl import Search


@dataclass(frozen=True)
class SearchWithSteps(Search):
    """A search whose recipe was changed: a resume with another number of steps is refused."""

    steps: int = 0

    @property
    def context(self) -> dict[str, Json]:
        """What must not change between runs of the study."""
        return {**super().context, "steps": self.steps}


def with_steps(search: Search, steps: int) -> Search:
    """The same search, with trainings of so many steps."""
    planned = {entry.name: getattr(search, entry.name) for entry in fields(Search)}
    return SearchWithSteps(**{**planned, "recipe": search.recipe.changed(n_steps=steps)}, steps=steps)
