"""A study of very many trials, as a page can show it: all of them in numbers, and a few thousand whole.

Whole are the records, the best, the latest, some of those that failed, others evenly, and the ancestors of the best.
Counts, the best value, the table of trials and downloads are always of all trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from nasbot._typing import Json
from nasbot.plots.snapshot import Snapshot, parent_of
from nasbot.storage import PartedStorage, Storage, Tally
from nasbot.storage.memory import study_direction
from nasbot.storage.tally import Line
from nasbot.trial import Direction, History, Trial

MOST_WHOLE = 5000  # trials up to which a study is shown whole
N_RECORDS, N_BEST, N_LATEST, N_FAILED, N_EVEN = 300, 300, 300, 100, 800
MOST_ANCESTORS = 200
GLANCE = 0.1  # of those: what the first visitor sees at once; all of them follow


class Excerpt(History):
    """Some trials of a study, under their own numbers: ``excerpt[n]`` is trial n, or KeyError where it is not in it.

    ``tally`` is of all trials; length and order are those of the trials at hand.
    """

    tally: Tally

    def __init__(self, trials: Iterable[Trial], tally: Tally, direction: Direction) -> None:
        by_number = {trial.number: trial for trial in trials}
        self.__dict__.update(tally=tally, _numbers=sorted(by_number))
        self._hold([by_number[number] for number in sorted(by_number)], direction)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self._trial(index) if isinstance(index, int) else tuple(self)[index]

    def __iter__(self) -> Iterator[Trial]:
        return map(self._trial, self.__dict__["_numbers"])

    def latest(self) -> Excerpt:
        """The last trials alone, which are next to each other: a timeline needs neighbours."""
        return Excerpt(tuple(self)[-N_LATEST:], self.tally, self.direction)


def tally_of(history: History) -> Tally:
    """All trials in numbers."""
    return history.tally if isinstance(history, Excerpt) else Tally.of_history(history)


def snapshot_in(storage: Storage, name: str, settings: Mapping[str, Json]) -> Snapshot:
    """What a page shows of the study in a storage; of a large file, no more than that is rebuilt."""
    if isinstance(storage, PartedStorage) and storage.n_trials() > MOST_WHOLE:
        return Snapshot(ExcerptReader(storage).read(study_direction(settings)), name, settings)
    return Snapshot(storage.history(), name, settings)


def shown(snapshot: Snapshot) -> Snapshot:
    """The snapshot as a page shows it: an excerpt where there are very many trials."""
    history = snapshot.history
    if isinstance(history, Excerpt) or len(history) <= MOST_WHOLE:
        return snapshot
    tally = Tally.of_history(history)
    numbers = chosen([Line.of(trial) for trial in history], tally, history.direction)
    trials = [history[number] for number in numbers]
    return Snapshot(
        _with_ancestors(trials, tally, history.direction, lambda n: [history[i] for i in n]),
        snapshot.name,
        snapshot.settings,
    )


class ExcerptReader:
    """Reads a large study from its file, again and again: rows of finished trials once, networks of few of them."""

    def __init__(self, storage: PartedStorage) -> None:
        self._storage = storage
        self.lines: list[Line] = []
        self._n_finished = 0
        self._known: dict[int, Trial] = {}  # finished ones of the last excerpt

    def glance(self, direction: Direction) -> Excerpt:
        """A small excerpt as of now, without a look at checksums: what a page shows until ``read`` is done."""
        self.lines = self._storage.quick_lines()
        tally = Tally.of(self.lines, direction)
        return _with_ancestors(self._some(chosen(self.lines, tally, direction, GLANCE)), tally, direction, self._some)

    def read(self, direction: Direction) -> Excerpt:
        """The excerpt as of now."""
        for line in self._storage.lines(since=self._n_finished):
            if line.number < len(self.lines):
                self.lines[line.number] = line
            else:
                self.lines.append(line)
        self._n_finished = sum(line.rank is not None for line in self.lines)
        tally = Tally.of(self.lines, direction)
        excerpt = _with_ancestors(self._some(chosen(self.lines, tally, direction)), tally, direction, self._some)
        self._known = {trial.number: trial for trial in excerpt if trial.outcome is not None}
        return excerpt

    def page(self, query: Mapping[str, str], n: int) -> tuple[int, list[Trial]]:
        """Of the table of all trials: how many fit the query, and n of them from ``from`` on."""
        words = query.get("q", "").lower().split()
        state = query.get("state", "")
        fitting = [
            line
            for line in self.lines
            if (not state or line.state == state)
            and all(word in f"{line.number} {line.state} {line.cause or ''}".lower() for word in words)
        ]
        key = SORTED_BY.get(query.get("sort", ""), SORTED_BY["number"])
        # What is not known comes last, either way.
        known = [line for line in fitting if key(line) is not None]
        known.sort(key=lambda line: (key(line), line.number), reverse=query.get("order") == "down")
        ordered = known + [line for line in fitting if key(line) is None]
        text = query.get("from", "0")
        first = int(text) if text.isascii() and text.isdigit() else 0
        return len(ordered), self._some([line.number for line in ordered[first : first + n]])

    def _some(self, numbers: Sequence[int]) -> list[Trial]:
        missing = [number for number in numbers if number not in self._known]
        found = dict(zip(missing, self._storage.some(missing), strict=True))
        return [self._known[number] if number in self._known else found[number] for number in numbers]


SORTED_BY: Mapping[str, Callable[[Line], Any]] = {
    "number": lambda line: line.number,
    "state": lambda line: line.state,
    "value": lambda line: line.value,
    "seconds": lambda line: None if line.finished is None or line.started is None else line.finished - line.started,
}


def chosen(lines: Sequence[Line], tally: Tally, direction: Direction, share: float = 1.0) -> list[int]:
    """The numbers of the trials that are shown whole, or of so large a share of as many."""
    n_records, n_best, n_latest, n_failed, n_even = (
        math.ceil(share * n) for n in (N_RECORDS, N_BEST, N_LATEST, N_FAILED, N_EVEN)
    )
    numbers = {*_records(lines, direction)[-n_records:], *tally.ranked[:n_best].tolist(), *tally.running}
    numbers |= {line.number for line in lines[-n_latest:]}
    numbers |= set([line.number for line in lines if line.cause is not None][-n_failed:])
    numbers |= set(np.linspace(0, len(lines) - 1, min(len(lines), n_even)).round().astype(int).tolist())
    return sorted(numbers)


def _records(lines: Sequence[Line], direction: Direction) -> list[int]:
    """Trials that were the best when they came."""
    finished = [line for line in lines if line.rank is not None and line.value is not None and line.fidelity >= 1]
    best, found = -np.inf, []
    for line in sorted(finished, key=lambda line: line.rank or 0):
        if (merit := direction.turned(line.value or 0.0)) > best:
            best = merit
            found.append(line.number)
    return found


def _with_ancestors(
    trials: Sequence[Trial], tally: Tally, direction: Direction, some: Callable[[Sequence[int]], list[Trial]]
) -> Excerpt:
    """With those of which the best was made, so that its line of descent is whole."""
    found = {trial.number: trial for trial in trials}
    at = None if tally.best is None else tally.best.trial
    for _ in range(MOST_ANCESTORS):
        if at is None:
            break
        if at not in found:
            found[at] = some([at])[0]
        at = parent_of(found[at], at)
    return Excerpt(found.values(), tally, direction)


def excerpt_record(history: History) -> dict[str, Json] | None:
    """What to say about it on the page; None where all trials are shown."""
    if not isinstance(history, Excerpt):
        return None
    return {"n_all": history.tally.n_trials, "n_shown": len(history)}
