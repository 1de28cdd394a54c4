"""Views of what only grows: many versions of a value share one list or table, and each sees its own beginning of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class First(Sequence[T_co]):
    """The first ``n`` items of a list that is only ever appended to; equal to any sequence of the same items."""

    __slots__ = ("_items", "_n")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: list[T_co], n: int) -> None:
        self._items, self._n = items, n

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        places = range(self._n)[index]
        if isinstance(places, range):
            return tuple(self._items[place] for place in places)
        return self._items[places]

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[T_co]:
        return islice(self._items, self._n)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, First) and other._items is self._items:
            return other._n == self._n
        return isinstance(other, Sequence) and len(other) == self._n and all(map(_is_equal, self, other))

    def __repr__(self) -> str:
        return repr(tuple(self))


class SeenBefore(Set[T], Generic[T]):
    """The keys whose place in a table that only grows is below ``n``, and a few others."""

    __slots__ = ("_n", "_others", "_places")

    def __init__(self, places: Mapping[T, int], n: int, others: frozenset[T]) -> None:
        self._places, self._n, self._others = places, n, others

    def __contains__(self, key: object) -> bool:
        return key in self._others or self._places.get(key, self._n) < self._n  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        yield from self._others
        # A copy, since the table may grow meanwhile.
        for key, place in list(self._places.items()):
            if place < self._n and key not in self._others:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @classmethod
    def _from_iterable(cls, keys: Iterator[T]) -> frozenset[T]:  # type: ignore[override]
        return frozenset(keys)

    def __repr__(self) -> str:
        return repr(frozenset(self))


def _is_equal(a: object, b: object) -> bool:
    return a is b or a == b
