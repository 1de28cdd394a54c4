"""Damaged files: every problem is named, and a repaired copy holds what can be proven and nothing else."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from nasbot.architecture import Label, LabelPenalties, Layer, Role, Vocabulary, chain
from nasbot.candidate import Candidate
from nasbot.errors import FileError, NasbotError, StorageError, StudyError
from nasbot.storage import Run, SqliteStorage, _schema, examine, integrity, post_request, repair
from nasbot.storage._pages import rows_in
from nasbot.storage._rows import encoded
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Failed, FailureCause, History, Point, Scored, Trial
from tests.storage.make_golden import FOLDER

N_TRIALS = 12


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A study of 12 trials: 9 outcomes in another order than their numbers, curves, a run, an answered request."""
    path = tmp_path_factory.mktemp("whole") / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(n) for n in range(N_TRIALS)])
    storage.save_run(Run(number=0, begun=1.0, record={"pid": 1}))
    post_request(path, "pause")
    for rank, n in enumerate((1, 0, 2, 4, 3, 5, 7, 6, 8)):
        running = sample_trial(n).begun(1.0).with_points([Point(i, i / 7) for i in range(n)])
        storage.save(running)
        outcome = Scored(n / 3, {"long": "x" * (3000 * (n == 4))}) if n % 4 else Failed(FailureCause.OOM, "☃")
        storage.save(running.ended(outcome, at=2.0, rank=rank))
    storage.save(sample_trial(9).begun(5.0))
    storage.save_run(storage.runs()[0].over("finished", at=9.0))
    storage.close()
    return path


@pytest.fixture
def path(whole, tmp_path):
    return shutil.copy(whole, tmp_path)


def read(path):
    reader = SqliteStorage(path, read_only=True)
    try:
        return reader.settings(), reader.history(), list(reader.runs())
    finally:
        reader.close()


def after_repair(trial):
    """What becomes of a trial of the intact study: the driver is gone."""
    return trial.requeued(interrupted=True) if trial.state == "running" else trial


def assert_true(copy, intact):
    """Every trial of the copy is one of the intact study, whole but for its curve's end, and in the old order."""
    settings, history, _ = read(copy)
    assert settings == intact[0]
    numbers = []
    for trial in history:
        number = trial.notes.get("number_before_repair", trial.number)
        numbers.append(number)
        was = after_repair(intact[1][number])
        assert (trial.arch, trial.outcome, trial.started) == (was.arch, was.outcome, was.started)
        assert was.curve[: len(trial.curve)] == trial.curve
    order = [t.notes.get("number_before_repair", t.number) for t in history.finished]
    assert order == [t.number for t in intact[1].finished if t.number in numbers]
    return numbers


# -- checking ----------------------------------------------------------------------------------------------------------


def test_an_intact_study(path):
    found = examine(path)
    assert found.is_intact
    assert (found.version, found.n_trials, found.n_runs) == (_schema.VERSION, N_TRIALS, 1)
    for golden in FOLDER.glob("*.sqlite"):
        assert examine(golden).is_intact


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE trials SET value = 0.5 WHERE number = 1", "trial 1 is damaged"),
        ("DELETE FROM trials WHERE number = 10", "missing: trial 10"),
        ("DELETE FROM trials WHERE number = 0", "ranks have gaps"),
        ("DELETE FROM points WHERE trial = 5 AND position = 2", "trial 5: point 2 of its curve is missing"),
        ("INSERT INTO points VALUES (99, 0, 0, 0.0, 0)", "points of a curve of trial 99"),
        ("UPDATE runs SET begun = 2.0", "run 0 is damaged"),
        ("UPDATE requests SET kind = 'stop'", "request 0 is damaged"),
        ("UPDATE settings SET crc = 0", "settings are damaged"),
        ("DELETE FROM settings", "no settings"),
        ("CREATE TABLE mine (x)", "tables are not those"),
    ],
)
def test_each_problem_is_named(path, statement, words):
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()
    assert any(words in problem for problem in examine(path).problems)


def test_all_problems_are_named_at_once(path):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE trials SET value = 0.5 WHERE value IS NOT NULL")
    db.close()
    assert len(examine(path).problems) == 6


def test_what_cannot_be_examined(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        examine(tmp_path / "absent.sqlite")
    (tmp_path / "text").write_text("dear diary")
    with pytest.raises(StorageError, match="not a nasbot study"):
        examine(tmp_path / "text")


# -- repairing ---------------------------------------------------------------------------------------------------------


def test_nothing_is_lost_of_an_intact_study(path, tmp_path):
    report = repair(path, tmp_path / "copy.sqlite")
    assert (report.n_trials, report.n_outcomes, report.lost, report.renumbered) == (N_TRIALS, 9, (), {})
    settings, history, runs = read(path)
    assert read(tmp_path / "copy.sqlite") == (
        settings,
        History((after_repair(trial) for trial in history), history.direction),
        runs,
    )
    assert examine(tmp_path / "copy.sqlite").is_intact


def test_lost_trials_are_named_and_the_others_move_up(path, tmp_path):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE trials SET value = 0.5 WHERE number = 1")
        db.execute("UPDATE points SET value = 9.0 WHERE trial = 6 AND position = 3")
    db.close()
    report = repair(path, tmp_path / "copy.sqlite")
    assert report.lost[0] == "trial 1"
    assert "the curve of trial 6 from its point 3 on" in report.lost
    assert report.renumbered == {n: n - 1 for n in range(2, N_TRIALS)}
    numbers = assert_true(tmp_path / "copy.sqlite", read_intact(path, tmp_path))
    assert numbers == [0, *range(2, N_TRIALS)]
    history = read(tmp_path / "copy.sqlite")[1]
    assert history[1].origin.parents == (0,)  # of (0, 1) one is lost
    assert history[1].promoted_from is None  # it was trial 1


def read_intact(path, tmp_path):
    with sqlite3.connect(path) as db:  # undo the damage above
        db.execute("UPDATE trials SET value = 0.3333333333333333 WHERE number = 1")
        db.execute("UPDATE points SET value = 0.42857142857142855 WHERE trial = 6 AND position = 3")
    db.close()
    return read(path)


def test_every_page_may_be_lost(whole, tmp_path):
    """Zeroed, one after the other: the copy holds the rest. Only the page of the settings is one too many."""
    content, intact = whole.read_bytes(), read(whole)
    size = 4096
    n_kept = []
    for page in range(len(content) // size):
        damaged = tmp_path / f"{page}.sqlite"
        damaged.write_bytes(content[: page * size] + bytes(size) + content[(page + 1) * size :])
        copy = tmp_path / f"{page}-copy.sqlite"
        try:
            report = repair(damaged, copy)
        except StorageError as error:
            assert "settings are lost" in str(error)  # noqa: PT017
            n_kept.append(-1)
            continue
        n_kept.append(len(assert_true(copy, intact)))
        if n_kept[-1] < N_TRIALS:
            assert report.lost
    assert n_kept.count(-1) == 1
    assert n_kept[0] == N_TRIALS  # without the schema, page by page
    assert max(n_kept) == N_TRIALS
    assert sum(n_kept) > 0.7 * N_TRIALS * len(n_kept)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_a_truncated_file(whole, tmp_path, share):
    content, intact = whole.read_bytes(), read(whole)
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(content[: int(share * len(content))])
    try:
        repair(damaged, tmp_path / "copy.sqlite")
    except StorageError as error:
        assert "settings are lost" in str(error)  # noqa: PT017
        return
    assert_true(tmp_path / "copy.sqlite", intact)


def test_a_log_without_its_file_is_read_too(tmp_path):
    """The driver died before its first checkpoint, and the file itself is gone but for its name."""
    storage = SqliteStorage(tmp_path / "study.sqlite")
    storage.create(SETTINGS, [sample_trial(n) for n in range(4)])
    (tmp_path / "damaged.sqlite").write_bytes(b"")
    shutil.copy(tmp_path / "study.sqlite-wal", tmp_path / "damaged.sqlite-wal")
    report = repair(tmp_path / "damaged.sqlite", tmp_path / "copy.sqlite")
    storage.close()
    assert report.n_trials == 4


def test_of_all_that_is_left_of_a_trial_the_latest_counts(tmp_path):
    """The log still holds each state that the trial was in: a repair neither forgets a try nor counts one twice."""
    storage = SqliteStorage(tmp_path / "study.sqlite")
    trial = sample_trial(0)
    storage.create(SETTINGS, [trial])
    life = (
        lambda t: t.begun(1.0),
        lambda t: t.requeued(interrupted=False),  # it failed, and is tried again
        lambda t: t.begun(2.0),
        lambda t: t.requeued(interrupted=True),
        lambda t: t.begun(3.0),
        lambda t: t.ended(Scored(0.5), at=4.0, rank=0),
    )
    for step in life:
        trial = step(trial)
        storage.save(trial)
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"study.sqlite{suffix}", tmp_path / f"damaged.sqlite{suffix}")
        repair(tmp_path / "damaged.sqlite", tmp_path / "copy.sqlite")
        left, expected = read(tmp_path / "copy.sqlite")[1][0], after_repair(trial)
        assert (left.state, left.attempts) == (expected.state, expected.attempts)
        assert (left.interruptions, left.outcome) == (expected.interruptions, expected.outcome)
        (tmp_path / "copy.sqlite").unlink()
    storage.close()


def test_what_is_not_repaired(path, tmp_path):
    driver = SqliteStorage(path)
    with pytest.raises(StudyError, match="being driven"):
        repair(path, tmp_path / "copy.sqlite")
    driver.close()
    with pytest.raises(FileError, match="never overwrites"):
        repair(path, path)
    with pytest.raises(FileError, match="No such file"):
        repair(tmp_path / "absent.sqlite", tmp_path / "copy.sqlite")
    (tmp_path / "text").write_text("dear diary\n" * 1000)
    with pytest.raises(StorageError, match="settings are lost"):
        repair(tmp_path / "text", tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_vocabulary_of_ones_own(tmp_path):
    labels = (
        Label(name="in", role=Role.INPUT),
        Label(name="dense", fixed_mass=1.0),
        Label(name="out", role=Role.OUTPUT),
    )
    toy = Vocabulary("toy", labels, LabelPenalties.from_pairs(("in", "dense", "out"), {}))
    storage = SqliteStorage(tmp_path / "toy.sqlite", vocabulary=toy)
    storage.create(SETTINGS, [Trial(number=0, candidate=Candidate(chain(toy, [Layer("dense")])))])
    storage.close()
    assert examine(tmp_path / "toy.sqlite").is_intact  # by its checksums
    with pytest.raises(NasbotError, match="unknown kind of network"):
        repair(tmp_path / "toy.sqlite", tmp_path / "copy.sqlite")
    assert repair(tmp_path / "toy.sqlite", tmp_path / "copy.sqlite", vocabulary=toy).n_trials == 1


def test_pages_give_the_rows_that_sqlite_gives(tmp_path):
    """The slow twin: any table, with cells that need overflow pages."""
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL, d BLOB)")
        rows = [(n * 1000 + 7, "é" * (n * n), n / 7 - 3, bytes(n)) for n in range(120)]
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        db.execute("UPDATE t SET c = -1e300, b = NULL WHERE a = 7")
    db.close()
    found = {row[0]: row[2:] for row in rows_in((tmp_path / "t.sqlite").read_bytes()) if len(row) == 5}
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        expected = {row[0]: row[1:] for row in db.execute("SELECT * FROM t")}
    db.close()
    assert {rowid: (b, float(c), d) for rowid, (b, c, d) in found.items() if rowid in expected} == expected


def test_a_page_of_the_log_that_was_not_written_to_its_end_counts_for_nothing(tmp_path):
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        db.execute("INSERT INTO t VALUES (7, ?)", ("text" * 4000,))
    db.close()
    content = (tmp_path / "t.sqlite").read_bytes()
    number, page = len(content) // 4096, content[-4096:]  # the end of the text
    log = bytes(32) + number.to_bytes(4, "big") + bytes(20) + page.replace(b"t", b"T")
    before, after = list(rows_in(content)), list(rows_in(content, log))
    assert before[-1][2] == "text" * 4000
    assert after[-1][2] != before[-1][2]
    for missing in (1, 100, 4095):
        assert list(rows_in(content, log[:-missing])) == before


def test_the_size_of_a_page_is_said_by_the_file_and_where_it_does_not_by_the_log(tmp_path):
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        db.execute("PRAGMA page_size = 512")
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        db.execute("INSERT INTO t VALUES (7, 'text')")
    db.close()
    content = (tmp_path / "t.sqlite").read_bytes()
    rows = list(rows_in(content))
    assert rows[-1] == (7, None, "text")
    damaged, said_by_log = content[:16] + b"??" + content[18:], bytes(8) + (512).to_bytes(4, "big") + bytes(20)
    assert list(rows_in(damaged)) == []
    assert list(rows_in(damaged, said_by_log)) == rows  # a log that has nothing but its header
    frames = b"".join((n + 1).to_bytes(4, "big") + bytes(20) + content[512 * n : 512 * (n + 1)] for n in range(2))
    assert list(rows_in(content[:100], bytes(32) + frames)) == rows  # a file that has nothing else either


def test_texts_that_are_no_utf_8_are_damage(path, tmp_path):
    """Python's own OperationalError, which has no code of SQLite's."""
    content = Path(path).read_bytes()
    at = content.index("☃".encode())
    Path(path).write_bytes(content[:at] + b"\xff\xfe\xfd" + content[at + 3 :])
    assert any("decode" in problem for problem in examine(path).problems)
    with pytest.raises(StorageError, match="decode"):
        read(path)
    report = repair(path, tmp_path / "copy.sqlite")
    assert report.lost


@pytest.mark.parametrize("page_size", [512, 4096])
def test_pages_give_the_rows_around_the_size_of_a_page(tmp_path, page_size):
    """Where a row just fits into a page, and where it just does not."""
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        db.execute(f"PRAGMA page_size = {page_size}")
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        lengths = {n * page_size + d for n in (1, 2) for d in range(-50, 10)}
        db.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * n) for n in lengths])
    db.close()
    found = {row[0]: row[2] for row in rows_in((tmp_path / "t.sqlite").read_bytes()) if len(row) == 3}
    assert {n: found.get(n) for n in lengths} == {n: "x" * n for n in lengths}


def test_records_that_json_has_no_words_for_are_never_written():
    with pytest.raises(ValueError, match="JSON"):
        encoded({"value": float("nan")})


@pytest.mark.parametrize(
    ("error", "has_them"),
    [
        (None, True),
        (sqlite3.OperationalError("no such column: params"), False),
        (sqlite3.OperationalError("disk I/O error"), True),
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (OverflowError("too large"), True),
    ],
)
def test_trials_are_taken_to_be_new_unless_it_is_seen_that_they_are_not(tmp_path, error, has_them):
    class Answering:
        def execute(self, _):
            if error is not None:
                raise error

    rows = integrity._Rows(tmp_path / "nothing.db")
    assert rows.has_candidates()  # there is nobody to ask
    rows = integrity._Rows(tmp_path / "nothing.db")
    rows._db = Answering()
    assert rows.has_candidates() is has_them
