"""What an experiment is to the command: how one of its runs is done, and how its page is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.runs import Record
from experiments.protocol import Protocol
from experiments.records import Do, Places, known


@dataclass(frozen=True)
class Results:
    """The records of an experiment that its page is about: those under the protocol's settings."""

    protocol: Protocol
    records: Sequence[Record]
    used: Mapping[str, Results] = field(default_factory=dict)  # those of the experiments that it also reads

    @property
    def everything(self) -> list[Record]:
        """Its own records, then those it also reads."""
        return [*self.records, *(record for other in self.used.values() for record in other.records)]

    def where(self, **wanted: Any) -> list[Record]:
        """The records of runs with these entries."""
        return [r for r in self.records if all(r["run"].get(key) == value for key, value in wanted.items())]

    def values(self, axis: str) -> list[Any]:
        """The different entries of an axis that records have: those of the protocol first, in its order."""
        found = dict.fromkeys(record["run"][axis] for record in self.records)
        ordered = [value for value in self.protocol.axes.get(axis, ()) if value in found]
        return [*ordered, *(value for value in found if value not in ordered)]


def results_of(protocol: Protocol, places: Places) -> Results:
    """What is recorded under these settings, in the order of the recording."""
    return Results(protocol, list(known(places.records(protocol.name).records(), protocol).values()))


@dataclass(frozen=True)
class Body:
    """What a page says that depends on the results: Markdown, figures included as links."""

    result: str
    shows: str


Write = Callable[[Results, Places], Body]
Prepare = Callable[[Protocol, Places], None]


@dataclass(frozen=True)
class Experiment:
    """One experiment; its protocol has the same name."""

    name: str
    title: str
    question: str
    method: str  # what the settings alone do not say, in prose
    do: Do | None  # None where the page is drawn from other experiments' records
    write: Write
    prepare: Prepare | None = None  # what all runs need, done once before them
    single: bool = True  # whether a run keeps one core busy, so that several may go on at a time
    uses: tuple[str, ...] = ()  # experiments whose records it also reads
    hosted_by: str = ""  # a page written by hand that has a place for this one; its own page otherwise

    @property
    def page(self) -> str:
        """The name of the file that its page is, or stands in."""
        return f"{self.hosted_by or self.name}.md"
