"""Types that belong to no one module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# What JSON can say: numbers are finite. Read-only types, because those let a list of strings pass for a list of Json.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
