"""Runs of searchers, kept as lines of JSON: nothing is lost when an experiment stops, and nothing is run twice.

Every record says which code made it: ``revision`` is the commit, ``tag`` a word of the experimenter's. Records of
different tags are never mixed; whoever changes the search and wants new numbers says another tag.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import FileError

ROOT = Path(__file__).resolve().parent.parent
Floats = NDArray[np.float64]
Record = dict[str, Any]


@dataclass(frozen=True)
class RunFile:
    """A file of records, one to a line. A line is written whole or not at all; a torn last line is passed over."""

    path: Path

    def append(self, record: Mapping[str, object]) -> None:
        """Add one record: a single write under a lock, so that two processes may share the file. A torn line goes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, separators=(",", ":")) + "\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _cut_torn_line(descriptor)
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def keep(self, records: Iterable[Record]) -> Iterator[Record]:
        """These records, each added and printed before the next is made."""
        for record in records:
            self.append(record)
            print(json.dumps(record), flush=True)
            yield record

    def records(self) -> Iterator[Record]:
        """All records, in the order in which they were added; none where there is no file yet."""
        if not self.path.exists():
            return
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read ({error.strerror})") from None
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                if number < len(lines):
                    raise FileError(f"{self.path}, line {number}: expected a JSON object") from None


def _cut_torn_line(descriptor: int) -> None:
    """Without this, the next record would be written behind what a kill left, and be lost with it."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.ftruncate(descriptor, os.pread(descriptor, size, 0).rfind(b"\n") + 1)


@cache
def revision() -> str:
    """The commit of the working tree, short, with a + where a file of the package differs from it."""
    try:
        commit = _git("rev-parse", "--short", "HEAD").strip()
        return commit + ("+" if _git("status", "--porcelain", "--", "src", "benchmarks", "experiments").strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


class Average(NamedTuple):
    """A mean over runs and its standard error, which is 0 for a single run."""

    mean: Floats
    se: Floats


def average(runs: Floats | Sequence[Floats]) -> Average:
    """Over the first axis."""
    values = np.asarray(runs, dtype=np.float64)
    n = len(values)
    spread = values.std(axis=0, ddof=1) if n > 1 else np.zeros(values.shape[1:])
    return Average(values.mean(axis=0), np.asarray(spread / sqrt(n)))


class Paired(NamedTuple):
    """One searcher against another on the same seeds."""

    mean: float  # of the differences, positive where the first is ahead
    se: float
    wins: int
    losses: int
    p: float  # of the two-sided sign test; ties are left out


def paired(ours: Floats, theirs: Floats) -> Paired:
    """Compare values, larger being better, seed by seed."""
    difference = ours - theirs
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    mean, se = average(difference)
    return Paired(float(mean), float(se), wins, losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """The probability that a fair coin falls at least as unevenly as this, to either side."""
    n, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2.0 * sum(comb(n, k) for k in range(fewer + 1)) / 2.0**n)
