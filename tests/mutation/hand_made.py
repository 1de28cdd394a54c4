"""Faults that somebody put into the code by hand and the tests beside it did not notice; now they must.

Each is a line of the code, what it became, and the tests that are to fail. ``python -m tests.mutation.mutants
--hand-made`` tries all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HandMade:
    """One fault; ``before`` stands once in its file."""

    what: str
    package: str
    path: Path
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """For the report."""
        return f"{self.what} ({self.path.as_posix()})"

    @property
    def line(self) -> int:
        """None in particular."""
        return 0

    def source(self, root: Path) -> str:
        """The whole file, with the fault. Raises ValueError where the code has changed."""
        text = (root / self.path).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.what}: expected one {self.before!r} in {self.path}, got {text.count(self.before)}")
        return text.replace(self.before, self.after)


def _fault(what: str, path: str, before: str, after: str, *tests: str) -> HandMade:
    return HandMade(
        what, path.split("/")[0], Path("src/nasbot") / path, before, after, tuple(f"tests/{test}" for test in tests)
    )


FAULTS = (
    _fault(
        "categories taken from all rows",
        "data/tables.py",
        "rows = [values[i] for i in train]",
        "rows = list(values)",
        "data/test_splits.py",
        "data/test_data.py",
    ),
    _fault(
        "landmarks the worst half",
        "searchers/knowledge.py",
        'np.argsort(-values, kind="stable")\n    rest',
        'np.argsort(values, kind="stable")\n    rest',
        "searchers/test_edges.py",
        "searchers/test_nasbot.py",
    ),
    _fault(
        "recommend by one sample",
        "searchers/nasbot.py",
        "-view.belief.denoised.mean(axis=0), kind",
        "-view.belief.denoised[0], kind",
        "searchers/test_nasbot.py",
    ),
    _fault(
        "a climber that moves without gain",
        "acquisition/maximise.py",
        "if best is not None and best.utility > candidates.found[climber].utility:",
        "if best is not None:",
        "acquisition/test_maximise.py",
    ),
    _fault(
        "interruptions counted as attempts",
        "study/loop.py",
        "tries = trial.attempts - trial.interruptions",
        "tries = trial.attempts",
        "execution/test_environment.py",
    ),
    _fault(
        "a cancelled trial resets the failures in a row",
        "study/loop.py",
        "elif isinstance(event.outcome, Scored | Stopped):\n            self._failures.clear()",
        "else:\n            self._failures.clear()",
        "execution/test_environment.py",
    ),
    _fault(
        "no RLIMIT_DATA",
        "execution/_child.py",
        "    resource.setrlimit(resource.RLIMIT_DATA, (soft, soft + ROOM_TO_REPORT))\n",
        "",
        "execution/test_guards.py",
    ),
    _fault(
        "shared pages counted per process",
        "execution/_tree.py",
        'if line.startswith(("Pss:", "SwapPss:")):',
        'if line.startswith(("Rss:", "SwapPss:")):',
        "execution/test_guards.py",
    ),
    _fault(
        "frame checksum unchecked",
        "execution/_frames.py",
        "if zlib.crc32(body) != checksum:",
        "if False:",
        "execution/test_guards.py",
    ),
    _fault(
        "no limit on a frame's length",
        "execution/_frames.py",
        "if length > MAX_FRAME:",
        "if False:",
        "execution/test_guards.py",
    ),
    _fault(
        "a supervisor killed after 500 s instead of 5",
        "execution/local.py",
        "SECONDS_TO_KILL = 5.0",
        "SECONDS_TO_KILL = 500.0",
        "execution/test_guards.py",
    ),
    _fault(
        "trusted_schema on",
        "storage/_sqlite_file.py",
        '    db.execute("PRAGMA trusted_schema = OFF")',
        '    db.execute("PRAGMA trusted_schema = ON")',
        "storage/test_guards.py",
    ),
    _fault(
        "cell_size_check off",
        "storage/_sqlite_file.py",
        'db.execute("PRAGMA cell_size_check = ON")',
        'db.execute("PRAGMA cell_size_check = OFF")',
        "storage/test_guards.py",
    ),
    _fault(
        "no cell limit",
        "storage/_sqlite_file.py",
        "    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)\n",
        "",
        "storage/test_guards.py",
    ),
    _fault(
        "requests posted unsynced",
        "storage/sqlite.py",
        'db.execute("PRAGMA synchronous = FULL")\n        db.execute("BEGIN IMMEDIATE")\n        number',
        'db.execute("PRAGMA synchronous = OFF")\n        db.execute("BEGIN IMMEDIATE")\n        number',
        "storage/test_guards.py",
        "storage/test_requests.py",
    ),
    _fault("new folder unsynced", "storage/_sqlite_file.py", "os.fsync(folder)", "pass", "storage/test_guards.py"),
    _fault(
        "a dead run ended now instead of at its last sign of life",
        "storage/sqlite.py",
        "at=max(last.begun, self._lock.seen_before)",
        "at=time.time()",
        "storage/test_guards.py",
        "storage/test_sqlite.py",
        "storage/test_ownership.py",
    ),
    _fault(
        "no pixel limit",
        "data/files.py",
        "if math.prod(shape) > min(MAX_PIXELS, allowance(*files)):",
        "if False:",
        "data/test_bounds.py",
    ),
    _fault(
        "stratification's rounding",
        "data/splitting.py",
        "owed[:] = wanted - counts",
        "pass",
        "data/test_splits.py",
    ),
    _fault(
        "units from the first of several parents",
        "evolution/wiring.py",
        "u = arch.parents[u][-1]",
        "u = arch.parents[u][0]",
        "evolution/test_structure.py",
    ),
    _fault(
        "bound on log hyper-parameters",
        "gp/likelihood.py",
        "LARGEST_LOG = 230.0",
        "LARGEST_LOG = 1e9",
        "gp/test_likelihood.py",
        "gp/test_hostile_kernels.py",
    ),
    _fault(
        "slice not placed at random",
        "gp/slice_sampler.py",
        "left = position[axis] - width * rng.random()",
        "left = position[axis] - width * 0.5",
        "gp/test_slice_sampler.py",
    ),
)
