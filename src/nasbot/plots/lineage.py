"""Where networks came from: the tree of which network was made of which, and what each modifier brought."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from nasbot.plots.snapshot import Snapshot, Source, parent_of, records_of
from nasbot.trial import History, Trial


class LineageNode(NamedTuple):
    """One trial in the tree of descent, with a place for drawing: ``generation`` to the right, ``row`` down."""

    trial: int
    parent: int | None
    generation: int  # steps from a network without a parent
    row: float  # leaves on whole numbers, a parent in the middle of its children
    modifiers: tuple[str, ...]
    changes: tuple[str, ...]  # in words
    value: float | None
    gain: float | None  # over its parent, positive where better
    state: str
    cause: str
    is_ancestor: bool  # the winner, or one that it descends from


@dataclass(frozen=True)
class Lineage:
    """Parent to child, by trial number."""

    direction: str
    nodes: tuple[LineageNode, ...]
    winner: int | None
    ancestry: tuple[int, ...]  # from the first ancestor to the winner
    message: str = ""

    @property
    def n_rows(self) -> int:
        """Leaves of all trees."""
        return round(max((node.row for node in self.nodes), default=-1.0)) + 1


def lineage(source: Source) -> Lineage:
    """The tree of descent, and the winner's line in it."""
    snapshot = Snapshot.of(source)
    history = snapshot.history
    shown = tuple(history)  # of a study that is not shown whole, some of its trials
    places = {trial.number: i for i, trial in enumerate(shown)}
    made_of = [parent_of(trial, trial.number) for trial in shown]
    parents = [None if parent is None else places.get(parent) for parent in made_of]
    winner = None if history.best is None else history.best.number
    ancestry: list[int] = []
    at = None if winner is None else places[winner]
    while at is not None:
        ancestry.append(shown[at].number)
        at = parents[at]
    generations: list[int] = []
    for parent in parents:
        generations.append(0 if parent is None else generations[parent] + 1)
    rows = _rows(parents)
    nodes = []
    for i, trial in enumerate(shown):
        parent = parents[i]
        nodes.append(
            LineageNode(
                trial.number,
                None if parent is None else shown[parent].number,
                generations[i],
                rows[i],
                trial.origin.modifiers,
                trial.origin.changes,
                trial.value,
                None if parent is None else _gain(history, trial, shown[parent]),
                str(trial.state),
                str(trial.cause or ""),
                trial.number in ancestry,
            )
        )
    return Lineage(
        str(snapshot.direction), tuple(nodes), winner, tuple(reversed(ancestry)), "" if nodes else "no trials yet"
    )


def _gain(history: History, trial: Trial, over: Trial) -> float | None:
    """How much better a trial is than another, None where one of them has no value."""
    return None if trial.value is None or over.value is None else history.merit(trial) - history.merit(over)


def _rows(parents: list[int | None]) -> list[float]:
    """Children below each other in the order of their numbers, a parent in the middle between its first and last."""
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for child, parent in enumerate(parents):
        (roots if parent is None else children[parent]).append(child)
    rows = [0.0] * len(parents)
    n_leaves = 0
    pending = [(root, False) for root in reversed(roots)]
    while pending:  # without recursion: a line of descent may be as long as the study
        node, is_done = pending.pop()
        if not children[node]:
            rows[node] = float(n_leaves)
            n_leaves += 1
        elif is_done:
            rows[node] = (rows[children[node][0]] + rows[children[node][-1]]) / 2
        else:
            pending.append((node, True))
            pending += [(child, False) for child in reversed(children[node])]
    return rows


# -- modifiers ---------------------------------------------------------------------------------------------------------


class LedgerRow(NamedTuple):
    """One modifier. A network is made by one to five of them, and each is credited with its whole gain."""

    modifier: str
    n_tries: int  # trials it took part in
    n_alone: int  # of those, by itself
    n_failed: int
    n_improved: int  # better than the parent
    n_records: int  # better than everything before
    mean_gain: float | None  # over the parent, positive where better; None where no pair of values is known
    best_gain: float | None
    in_ancestry: int  # how often on the winner's line


@dataclass(frozen=True)
class ModifierLedger:
    """Modifiers, the most tried first."""

    rows: tuple[LedgerRow, ...]
    message: str = ""


def ledger(source: Source) -> ModifierLedger:
    """What each modifier was tried for and what came of it."""
    snapshot = Snapshot.of(source)
    tree = lineage(snapshot)
    records = frozenset(records_of(snapshot.history))
    by_name: dict[str, list[LineageNode]] = {}
    for node in tree.nodes:
        for name in dict.fromkeys(node.modifiers):
            by_name.setdefault(name, []).append(node)
    rows = []
    for name, nodes in by_name.items():
        gains = [node.gain for node in nodes if node.gain is not None]
        rows.append(
            LedgerRow(
                name,
                len(nodes),
                sum(len(node.modifiers) == 1 for node in nodes),
                sum(bool(node.cause) for node in nodes),
                sum(gain > 0 for gain in gains),
                sum(node.trial in records for node in nodes),
                fmean(gains) if gains else None,
                max(gains, default=None),
                sum(node.is_ancestor for node in nodes),
            )
        )
    rows.sort(key=lambda row: (-row.n_tries, row.modifier))
    message = "" if rows else "no network was made by a modifier yet" if tree.nodes else "no trials yet"
    return ModifierLedger(tuple(rows), message)
