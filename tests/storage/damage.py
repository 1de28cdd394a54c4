"""A study with its log, and ways to damage the two; what may come of it is decided in one place, ``verdict``."""

import resource
import shutil
from contextlib import contextmanager
from pathlib import Path

from nasbot.errors import NasbotError, StorageError
from nasbot.storage import SqliteStorage, examine, repair
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Failed, FailureCause, History, Point, Scored


def states_of_a_study(folder: Path, n_trials: int = 24) -> tuple[Path, Path, list[History]]:
    """A file, its log as it stood before the last checkpoint, and every history that was acknowledged, in order."""
    path = folder / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(n) for n in range(3)])
    states = [History(), storage.history()]

    def save(trial):
        storage.save(trial)
        states.append(storage.history())

    for n in range(n_trials):
        if n == n_trials // 2:
            storage._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # from here on everything is in the log alone
        running = (sample_trial(n)).begun(float(n))
        save(running)
        save(running.with_points([Point(1, n / 3), Point(2, n / 7)]))
        outcome = Scored(n / 3, {"text": "x" * n * 100}) if n % 5 else Failed(FailureCause.NAN, "not finite")
        save(states[-1][n].ended(outcome, at=n + 1.0, rank=n))
    file, log = folder / "file.bytes", folder / "log.bytes"
    shutil.copy(path, file)
    shutil.copy(f"{path}-wal", log)
    storage.close()
    return file, log, states


class Damaged:
    """A place to put damaged files, over and over."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "damaged.sqlite"

    def put(self, content: bytes, log: bytes) -> Path:
        for suffix in ("", "-wal", "-shm", ".lock"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.path.write_bytes(content)
        Path(f"{self.path}-wal").write_bytes(log)
        return self.path


def verdict(path: Path, states: list[History]) -> str:
    """ "opened" with a state that was acknowledged, or "refused" by an error of ours; anything else is a failure."""
    try:
        settings, history = _read_all(path)
    except NasbotError as error:
        return _refused(path, error)
    assert settings in (SETTINGS, None)
    alike = [state for state in states if (len(state), len(state.finished)) == (len(history), len(history.finished))]
    assert history in alike, f"a history that never was: {history}"
    return "opened"


def _refused(path: Path, error: NasbotError) -> str:
    if str(path) not in str(error):
        raise AssertionError(f"it does not say of which file: {error}") from error
    return "refused"


def _read_all(path: Path):
    reader = SqliteStorage(path, read_only=True)
    try:
        list(reader.runs())
        list(reader.requests())
        return reader.settings(), reader.history()
    finally:
        reader.close()


def check_repair(path: Path, states: list[History], copy: Path) -> int:
    """What a repaired copy holds was acknowledged, trial by trial; returns how many outcomes it holds, -1 for none."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
    assert examine_quietly(path) is not None
    try:
        report = repair(path, copy)
    except StorageError as error:
        if "settings are lost" not in str(error):
            raise
        return -1
    reader = SqliteStorage(copy, read_only=True)
    history, last = reader.history(), states[-1]
    reader.close()
    for trial in history:
        number = trial.notes.get("number_before_repair", trial.number)
        was = last[number]
        assert trial.arch == was.arch
        if trial.outcome is not None:
            assert (trial.outcome, trial.started, trial.finished) == (was.outcome, was.started, was.finished)
            assert was.curve[: len(trial.curve)] == trial.curve
    if len(history.finished) < len(last.finished):
        assert report.lost or verdict(path, states) == "opened"  # an earlier state of the study, and whole
    return report.n_outcomes


def examine_quietly(path: Path) -> object:
    try:
        return examine(path)
    except NasbotError as error:
        return error


def with_noise(content: bytes, rng) -> bytes:
    """One random corruption: a flipped bit, a run of random, zero or foreign bytes, or a block moved elsewhere."""
    broken = bytearray(content)
    at = int(rng.integers(len(broken)))
    length = int(min(len(broken) - at, 2 ** rng.integers(0, 13)))
    match int(rng.integers(5)):
        case 0:
            broken[at] ^= 1 << int(rng.integers(8))
        case 1:
            broken[at : at + length] = rng.bytes(length)
        case 2:
            broken[at : at + length] = bytes(length)
        case 3:
            source = int(rng.integers(len(broken) - length + 1))
            broken[at : at + length] = broken[source : source + length]
        case 4:
            broken[at : at + length] = b"\xff" * length
    return bytes(broken)


def cuts_of_the_end(content: bytes, n_bytes: int = 2048) -> range:
    return range(max(0, len(content) - n_bytes), len(content))


@contextmanager
def fsize_limit(n_bytes):
    """For the time of this ``with`` no file grows beyond this: what a full disk is to a process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill_the_disk(path: Path, room: int) -> tuple[int, int]:
    """Save trials until there is no room, then go on with room: how many were saved at each point, all present."""
    storage = SqliteStorage(path, patience=0)
    storage.create(SETTINGS)
    saved = 0
    size = max(Path(f"{path}{suffix}").stat().st_size for suffix in ("", "-wal", "-shm"))
    error = None
    with fsize_limit(size + room):
        try:
            for n in range(200):
                storage.save(sample_trial(n))
                saved = n + 1
        except NasbotError as raised:
            error = raised
    assert error is None or type(error).__name__ == "FileError", error
    assert len(storage.history()) == saved
    assert len(_read(path)) == saved
    for n in range(saved, saved + 3):
        storage.save(sample_trial(n))
    storage.close()
    assert list(_read(path)) == [sample_trial(n) for n in range(saved + 3)]
    assert examine(path).is_intact
    return saved, 0 if error is None else 1


def _read(path):
    return _read_all(path)[1]
