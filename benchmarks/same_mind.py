"""Does NASBOT still decide as it did? Recorded histories with the proposals and beliefs that followed, replayed.

    python -m benchmarks.same_mind --record FILE --table nasbench201.npz    # with the code that is to be kept to
    python -m benchmarks.same_mind --check FILE [--every 10]                # with the code of today

A recording (gzipped JSON lines) holds everything a replay needs: for each problem the networks of one evolutionary run,
then histories made of them (sizes 0 to 150, some trials pending or failed), each with the options of the searcher, the
seed, the proposal and what was believed of a few other networks. Bars: equal proposals, beliefs within 1e-10. They hold
on one kind of machine: where another BLAS rounds differently, a chain of samples may take another turn.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import nasbench201
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace, Vocabulary
from nasbot.candidate import Candidate
from nasbot.gp import BeliefOptions
from nasbot.searchers import NASBOT, EvolutionSearch
from nasbot.synthetic import SYNTHETIC
from nasbot.trial import Failed, FailureCause, History, Outcome, Scored, Trial

RECORDED = Path(__file__).parent / "recorded" / "same_mind.jsonl.gz"
LARGEST_DIFFERENCE = 1e-10

KINDS = {"f1": "cnn", "f2": "mlp-reg", "f3": "mlp-reg", "released_cnn": "cnn", "released_mlp": "mlp-class"}
PROBLEMS = (*KINDS, "cells")
SIZES = (0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 32, 33, 40, 50, 70, 100, 150)
N_NETWORKS = 160  # of each problem; the last of them are asked about and in no history
N_ASKED = 5
MOST_LAYERS = 30  # of the networks in histories: a proposal should take half a second
BELIEFS = ("mean", "sd", "observed_sd", "median", "lower", "upper", "log_ei", "feasible")

# By the place of a size in SIZES; the default elsewhere.
OPTIONS: Mapping[int, Mapping[str, Any]] = {
    4: {"acquisition": "ei"},
    5: {"kernel_terms": "d"},
    6: {"acquisition": "ucb"},
    7: {"maximiser": "paper"},
    8: {"belief": {"inference": "map"}},
    9: {"kernel_terms": "d_bar"},
    11: {"belief": {"warp": "none"}},
    12: {"belief": {"n_samples": 3, "distance_power": 1.0}},
}


@dataclass(frozen=True)
class Difference:
    """One replayed history: whether the proposal is the recorded one, and the largest difference of beliefs."""

    name: str
    same_proposal: bool
    beliefs: float

    @property
    def is_none(self) -> bool:
        """Whether both bars are met."""
        return self.same_proposal and self.beliefs <= LARGEST_DIFFERENCE


def vocabulary(problem: str) -> Vocabulary | None:
    """That of the cells, which no file can name; None for a built-in one."""
    return nasbench201.CELLS if problem == "cells" else None


@cache
def searcher(problem: str, options: str) -> NASBOT:
    """The searcher of a problem with options given as JSON; one for all histories, so that distances are kept."""
    given = json.loads(options)
    if problem == "cells":
        powers = {"distance_power": 1.0, "normalised_power": 1.0}
        given["belief"] = {**powers, **given.get("belief", {})}
        given |= {"pool": _cells(), "modifiers": nasbench201.SWAPS, "distance": nasbench201.WIDE}
    given["belief"] = BeliefOptions(**{"warp": "rank", **given.get("belief", {})})
    given.setdefault("kernel_terms", "both")  # this and the warp: the defaults when the recording was made
    space = nasbench201.SPACE if problem == "cells" else SearchSpace(KINDS[problem], max_layers=2 * MOST_LAYERS)
    return NASBOT(space=space, **given)


def _cells() -> tuple[Architecture, ...]:
    operations = nasbench201.OPERATIONS
    return tuple(nasbench201.network_of((name,) * len(nasbench201.EDGES)) for name in operations)


def trial_of(number: int, arch: Architecture) -> Trial:
    """A trial of a network alone."""
    return Trial(number=number, candidate=Candidate(arch))


def history_of(trials: Iterable[tuple[Architecture, Outcome | None]]) -> History:
    """A history of networks and how they ended, recorded in this order; None: pending."""
    made, rank = [], 0
    for number, (arch, outcome) in enumerate(trials):
        trial = trial_of(number, arch)
        if outcome is not None:
            trial, rank = trial.begun(float(number)).ended(outcome, at=number + 1.0, rank=rank), rank + 1
        made.append(trial)
    return History(tuple(made))


def outcome_of(entry: float | str | None) -> Outcome | None:
    """A value, the cause of a failure, or None for a pending trial."""
    return Failed(FailureCause(entry)) if isinstance(entry, str) else None if entry is None else Scored(entry)


def decided(line: Mapping[str, Any], networks: Sequence[Architecture]) -> tuple[Architecture, list[list[float]]]:
    """What the code of today proposes after a recorded history, and believes of the last networks of the problem."""
    mind = searcher(line["problem"], json.dumps(line["options"]))
    history = history_of((networks[i], outcome_of(entry)) for i, entry in line["trials"])
    proposal = mind.propose(history, rng=stream(line["seed"], len(history), Role.PROPOSAL))
    beliefs: list[list[float]] = []
    if history.completed:
        asked = [(Candidate(arch), "") for arch in networks[-N_ASKED:]]
        effects = mind.believed(history, asked, rng=stream(line["seed"], len(history), Role.PROPOSAL))
        beliefs = [[float(getattr(effect, name)) for name in BELIEFS] for effect in effects]
    return proposal.arch, beliefs


# -- recording ---------------------------------------------------------------------------------------------------------


def recording(table: nasbench201.Table) -> Iterator[dict[str, Any]]:
    """The lines of a recording: one with the networks of each problem, then its histories."""
    for problem in PROBLEMS:
        networks, values = _networks(problem, table)
        yield {"problem": problem, "networks": [arch.to_dict() for arch in networks]}
        for place, size in enumerate(SIZES):
            line = {"problem": problem, "options": OPTIONS.get(place, {}), "seed": 1000 + place}
            line["trials"] = _trials(values, size, np.random.default_rng([place, PROBLEMS.index(problem)]))
            arch, beliefs = decided(line, networks)
            yield {**line, "proposal": arch.to_dict(), "beliefs": beliefs}
            print(problem, size, file=sys.stderr)


def _networks(problem: str, table: nasbench201.Table) -> tuple[list[Architecture], list[float]]:
    """Networks of an evolutionary run, and their values."""
    if problem == "cells":
        rows = np.random.default_rng(0).choice(len(table.cells), N_NETWORKS, replace=False)
        cells = [table.cells[row] for row in rows]
        return [nasbench201.network_of(cell) for cell in cells], [table.accuracy[cell] for cell in cells]
    evolution = EvolutionSearch(space=SearchSpace(KINDS[problem], max_layers=MOST_LAYERS))
    value = SYNTHETIC[problem]
    networks = [candidate.arch for candidate in evolution.initial_pool()]
    while len(networks) < N_NETWORKS:
        history = history_of((arch, Scored(value(arch))) for arch in networks)
        networks.append(evolution.propose(history, rng=stream(0, len(history), Role.PROPOSAL)).arch)
    return networks, [value(arch) for arch in networks]


def _trials(values: Sequence[float], size: int, rng: np.random.Generator) -> list[tuple[int, float | str | None]]:
    """``size`` of the networks in a random order; in two histories of three some are pending or have failed."""
    chosen = rng.permutation(len(values) - N_ASKED)[:size]
    if size % 3 == 0:
        return [(int(i), values[i]) for i in chosen]
    entries: list[float | str | None] = [None, None, "timeout", "oom", "nan", "killed"]
    ends = [entries[int(rng.integers(len(entries)))] if rng.random() < 0.15 else values[i] for i in chosen]
    return [(int(i), end) for i, end in zip(chosen, ends, strict=True)]


# -- replaying ---------------------------------------------------------------------------------------------------------


def differences(path: Path = RECORDED, every: int = 1, most_trials: int = max(SIZES)) -> Iterator[Difference]:
    """Replay every so many of the histories of a recording that are no longer than ``most_trials``."""
    networks: list[Architecture] = []
    number = 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "networks" in line:
                networks = [
                    Architecture.from_dict(record, vocabulary=vocabulary(line["problem"]))
                    for record in line["networks"]
                ]
            elif len(line["trials"]) <= most_trials:
                if number % every == 0:
                    yield difference(line, networks)
                number += 1


def difference(line: Mapping[str, Any], networks: Sequence[Architecture]) -> Difference:
    """One history decided again."""
    arch, beliefs = decided(line, networks)
    then, now = np.array(line["beliefs"]), np.array(beliefs)
    # Relative where numbers are large: log EI is -1e3 where nothing is hoped for.
    same_shape = then.shape == now.shape
    far = float((np.abs(then - now) / np.maximum(1.0, np.abs(then))).max(initial=0.0)) if same_shape else np.inf
    name = f"{line['problem']}, {len(line['trials'])} trials, {line['options'] or 'defaults'}"
    return Difference(name, arch.to_dict() == line["proposal"], far)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or check; 1 where something differs."""
    parser = argparse.ArgumentParser(description="Compare NASBOT's proposals and beliefs with recorded ones.")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write a recording made with this code")
    parser.add_argument("--check", type=Path, metavar="FILE", help=f"replay a recording (default {RECORDED.name})")
    parser.add_argument("--table", type=Path, metavar="NPZ", help="nasbench201.npz, for recording")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="replay every N-th history only")
    given = parser.parse_args(arguments)
    if given.record:
        lines = (json.dumps(line, separators=(",", ":")) for line in recording(_table(parser, given.table)))
        with gzip.GzipFile(given.record, "wb", mtime=0) as file:
            file.writelines(f"{line}\n".encode() for line in lines)
        return 0
    found = []
    for entry in differences(given.check or RECORDED, given.every):
        found.append(entry)
        if not entry.is_none:
            verdict = "equal" if entry.same_proposal else "DIFFERS"
            print(f"{entry.name}: proposal {verdict}, beliefs {entry.beliefs:.1e}")
    n_same = sum(entry.same_proposal for entry in found)
    largest = max((entry.beliefs for entry in found), default=0.0)
    print(f"{n_same} of {len(found)} proposals equal; largest difference of beliefs {largest:.1e}")
    return 0 if all(entry.is_none for entry in found) else 1


def _table(parser: argparse.ArgumentParser, path: Path | None) -> nasbench201.Table:
    if path is None:
        parser.error("--record needs --table nasbench201.npz")
    return nasbench201.read_table(path, "cifar100")


if __name__ == "__main__":
    raise SystemExit(main())
