"""One file per study: what it survives, what it refuses, and that it says so."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from itertools import count

import pytest

from nasbot.architecture import Label, LabelPenalties, Layer, Role, Vocabulary, chain, initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import FileError, NasbotError, StorageError, StudyError
from nasbot.storage import SqliteStorage, _schema, examine
from nasbot.storage._rows import decoded, settings_row, trial_of
from nasbot.storage.sqlite import _changed_rows
from nasbot.study import StudyView
from nasbot.testing.storage_conformance import SETTINGS, StorageConformance, every_kind_of_trial, sample_trial
from nasbot.trial import Point, Scored, Trial


class TestSqliteStorage(StorageConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self._paths = (tmp_path / f"{n}.sqlite" for n in count())

    def make_storage(self) -> SqliteStorage:
        return SqliteStorage(next(self._paths))

    def reopened(self, storage: SqliteStorage) -> SqliteStorage:
        storage.close()
        return SqliteStorage(storage.path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


@pytest.fixture
def filled(path):
    """A study of three trials, one of them completed; closed."""
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0), sample_trial(1)])
    done = sample_trial(0).begun(1.0)
    storage.save(done)
    storage.save(done.ended(Scored(0.75), at=2.0, rank=0))
    storage.close()
    return path


@pytest.mark.parametrize(
    ("n_finished", "trials", "points"), [(0, [0, 1, 2, 3], [0, 1, 2]), (1, [0, 2, 3], [0, 2]), (2, [2, 3], [2])]
)
def test_a_reader_reads_again_what_was_not_finished_last_time(path, n_finished, trials, points):
    """Finished in another order than begun: trial 1 first, then trial 0; trial 2 runs and trial 3 waits."""
    storage = SqliteStorage(path)
    begun = [sample_trial(n).begun(1.0).with_points([Point(0, n + 0.5)]) for n in range(3)]
    storage.create(SETTINGS, [*begun, sample_trial(3)])
    for rank, n in enumerate((1, 0)):
        storage.save(begun[n].ended(Scored(float(n)), at=2.0, rank=rank))
    rows, curves = _changed_rows(storage._db, "number", n_finished)
    assert ([row[0] for row in rows], [row[0] for row in curves]) == (trials, points)
    storage.close()


# -- readers and drivers -----------------------------------------------------------------------------------------------


def test_readers_see_each_save_while_the_driver_goes_on(path):
    driver = SqliteStorage(path)
    driver.create(SETTINGS)
    readers = [SqliteStorage(path, read_only=True) for _ in range(3)]
    for n in range(5):
        driver.save(sample_trial(n))
        assert [len(reader.history()) for reader in readers] == [n + 1] * 3
    for reader in readers:
        assert reader.history() == driver.history()
        with pytest.raises(StudyError, match="reading only"):
            reader.save(sample_trial(5))
        reader.close()
    driver.close()


def test_a_second_driver_is_refused_and_the_holder_named(path):
    first = SqliteStorage(path)
    with pytest.raises(StudyError, match=rf"driven by process {os.getpid()} on .* since 20"):
        SqliteStorage(path)
    first.close()
    SqliteStorage(path).close()


def test_a_killed_driver_frees_the_study_and_loses_nothing(path):
    program = f"""
import os, signal
from nasbot.storage import SqliteStorage
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
storage = SqliteStorage({str(path)!r})
storage.create(SETTINGS)
for n in range(20):
    storage.save(sample_trial(n))
print("acknowledged", flush=True)
signal.pause()
"""
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "acknowledged\n"
    with pytest.raises(StudyError, match=f"driven by process {holder.pid} on"):
        SqliteStorage(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    storage = SqliteStorage(path)
    assert len(storage.history()) == 20
    storage.close()


def test_a_copy_made_while_the_driver_works_is_readable(path, tmp_path):
    driver = SqliteStorage(path)
    driver.create(SETTINGS, [sample_trial(0)])
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{tmp_path}/copy.sqlite{suffix}")
    reader = SqliteStorage(tmp_path / "copy.sqlite", read_only=True)
    assert reader.history() == driver.history()
    reader.close()
    driver.close()


def test_a_study_in_a_folder_that_may_not_be_written_is_readable(filled):
    folder = filled.parent
    folder.chmod(0o555)
    try:
        reader = SqliteStorage(filled, read_only=True)
        assert len(reader.history()) == 2
        reader.close()
    finally:
        folder.chmod(0o755)


def test_acknowledged_means_synced(path):
    storage = SqliteStorage(path)
    modes = [storage._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert modes == ["wal", 2]  # 2: FULL
    storage.close()


# -- bad files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_no_study_is_refused(tmp_path, read_only):
    text = tmp_path / "text.sqlite"
    text.write_text("dear diary\n" * 100)
    with pytest.raises(StorageError, match="not a nasbot study"):
        SqliteStorage(text, read_only=read_only)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE people (name TEXT)")
    db.close()
    with pytest.raises(StorageError, match="not a nasbot study"):
        SqliteStorage(foreign, read_only=read_only)
    with pytest.raises(FileError, match="cannot open"):
        SqliteStorage(tmp_path, read_only=read_only)


def test_reading_makes_no_file(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        SqliteStorage(tmp_path / "absent.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot open"):
        SqliteStorage(tmp_path / "file" / "study.sqlite")


def test_a_newer_version_is_refused(filled):
    with sqlite3.connect(filled) as db:
        db.execute(f"PRAGMA user_version = {_schema.VERSION + 1}")
    db.close()
    with pytest.raises(StorageError, match="newer nasbot"):
        SqliteStorage(filled)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END",
        "CREATE VIEW v AS SELECT load_extension('evil')",
        "DROP TABLE points",
        "CREATE INDEX i ON trials (value)",
    ],
)
def test_tables_of_somebody_elses_making_are_refused(filled, statement):
    with sqlite3.connect(filled) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(StorageError, match="tables are not those"):
        SqliteStorage(filled)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE trials SET value = 0.76 WHERE number = 0", "trial 0 is damaged"),
        ("UPDATE trials SET notes = '{}' WHERE number = 1", "trial 1 is damaged"),
        ("UPDATE trials SET arch = '' WHERE number = 1", "trial 1 is damaged"),
        ("UPDATE trials SET started = 1.5 WHERE number = 0", "trial 0 is damaged"),
        ("UPDATE settings SET record = '{}'", "settings are damaged"),
        ("DELETE FROM trials WHERE number = 0", "trials are missing"),
    ],
)
def test_a_changed_value_is_noticed(filled, statement, words):
    with sqlite3.connect(filled) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(StorageError, match=words) as raised:
        read_everything(filled)
    assert str(filled) in str(raised.value)


@pytest.mark.parametrize(
    "forged", [{"seed": "x"}, {"seed": -4}, {"seed": 2**64}, {}, {"seed": 3, "direction": "up"}], ids=str
)
def test_forged_settings_are_refused_by_name(filled, forged):
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE settings SET record = ?, crc = ?", settings_row(forged)[1:])
    db.close()
    word = "direction" if "direction" in forged else "seed"
    with pytest.raises(StorageError, match=f"the settings: {word}: expected .* got") as raised:
        StudyView.read(filled)
    assert str(filled) in str(raised.value)
    assert any(f"the settings: {word}" in problem for problem in examine(filled).problems)


@pytest.mark.parametrize("column", ["value", "cause", "state", "rank"])
def test_the_tables_themselves_are_strict(filled, column):
    with sqlite3.connect(filled) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(f"UPDATE trials SET {column} = 'nonsense' WHERE number = 0")
    db.close()


def read_everything(path):
    storage = SqliteStorage(path, read_only=True)
    try:
        return storage.settings(), storage.history()
    finally:
        storage.close()


def test_flipped_and_lost_bytes_are_noticed_or_harmless(filled, tmp_path):
    """300 damages, spread over the file: the same study comes back, or an error of ours."""
    content = filled.read_bytes()
    intact = read_everything(filled)
    damaged = tmp_path / "damaged.sqlite"
    n_refused = 0
    for i in range(300):
        at = (i * len(content)) // 300
        broken = content[:at] if i % 3 == 0 else content[:at] + bytes([content[at] ^ (1 << i % 8)]) + content[at + 1 :]
        damaged.write_bytes(broken)
        try:
            assert read_everything(damaged) == intact or not broken
        except NasbotError:
            n_refused += 1
        for suffix in ("-wal", "-shm"):
            damaged.with_name(damaged.name + suffix).unlink(missing_ok=True)
    assert n_refused > 100


# -- content -----------------------------------------------------------------------------------------------------------


def test_the_file_is_readable_without_nasbot(filled):
    with sqlite3.connect(filled) as db:
        rows = db.execute("SELECT number, state, value, arch FROM trials").fetchall()
        applied = db.execute("SELECT version FROM migrations").fetchall()
        version = db.execute("PRAGMA user_version").fetchone()
    db.close()
    assert [row[:3] for row in rows] == [(0, "completed", 0.75), (1, "waiting", None)]
    assert json.loads(rows[0][3])["kind"] == "mlp-reg"
    assert (applied, version) == ([(1,), (2,), (3,)], (3,))


def test_a_vocabulary_of_ones_own_is_needed_to_read_it(path):
    labels = (
        Label(name="in", role=Role.INPUT),
        Label(name="dense", fixed_mass=1.0),
        Label(name="out", role=Role.OUTPUT),
    )
    toy = Vocabulary("toy", labels, LabelPenalties.from_pairs(("in", "dense", "out"), {}))
    arch = chain(toy, [Layer("dense"), Layer("dense")])
    storage = SqliteStorage(path, vocabulary=toy)
    storage.create(SETTINGS, [Trial(number=0, candidate=Candidate(arch))])
    storage.close()
    with pytest.raises(NasbotError, match="trial 0: unknown kind of network"):
        read_everything(path)
    reader = SqliteStorage(path, vocabulary=toy, read_only=True)
    assert reader.history()[0].arch == arch
    reader.close()


def test_a_failed_write_leaves_everything_before_it(path):
    storage = SqliteStorage(path, patience=0)
    storage.create(SETTINGS, [sample_trial(0)])
    storage._db.execute("PRAGMA max_page_count = 8")  # a full disk, as far as SQLite can tell
    with pytest.raises(FileError, match="full"):
        save_many(storage)
    n_saved = len(read_everything(path)[1])
    assert 1 <= n_saved < 200
    assert len(storage.history()) == n_saved
    storage._db.execute("PRAGMA max_page_count = 100000")
    storage.save(sample_trial(n_saved))
    storage.close()
    assert len(read_everything(path)[1]) == n_saved + 1


def test_a_write_waits_for_room_on_a_full_disk(path, monkeypatch, caplog):
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0)])
    storage._db.execute("PRAGMA max_page_count = 8")
    waits = []

    def make_room(seconds):
        waits.append(seconds)
        if len(waits) % 3 == 0:  # somebody deletes a few files while it sleeps
            pages = storage._db.execute("PRAGMA page_count").fetchone()[0]
            storage._db.execute(f"PRAGMA max_page_count = {pages + 10}")

    monkeypatch.setattr("nasbot.storage.sqlite.time.sleep", make_room)
    for n in range(1, 40):
        storage.save(sample_trial(n))
    assert waits
    assert "waiting for room" in caplog.text
    storage.close()
    assert len(read_everything(path)[1]) == 40


def test_patience_ends(path, monkeypatch):
    storage = SqliteStorage(path, patience=2.5)
    storage.create(SETTINGS, [sample_trial(0)])
    storage._db.execute("PRAGMA max_page_count = 8")
    waits = []
    monkeypatch.setattr("nasbot.storage.sqlite.time.sleep", waits.append)
    with pytest.raises(FileError, match="full"):
        save_many(storage)
    assert waits == [1.0, 1.0, 0.5]
    storage.close()


def save_many(storage):
    for n in range(1, 200):
        storage.save(sample_trial(n))


def test_every_state_is_read_by_another_process(path):
    storage = SqliteStorage(path)
    trials = every_kind_of_trial()
    storage.create(SETTINGS, [trial for trial in trials if trial.rank is None])
    storage.close()
    program = f"""
from nasbot.storage import SqliteStorage
print([str(t.state) for t in SqliteStorage({str(path)!r}, read_only=True).history()])
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "['waiting', 'running', 'running']"


def test_pool_networks_survive(path):
    arch = initial_pool("cnn")[9]
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [Trial(number=0, candidate=Candidate(arch))])
    storage.close()
    assert read_everything(path)[1][0].arch.to_json() == arch.to_json()


# -- reading while it grows --------------------------------------------------------------------------------------------


def test_a_reader_that_polls_decodes_only_what_may_have_changed(path, monkeypatch):
    driver, decoded = SqliteStorage(path), []

    def decode(row, *others):
        decoded.append(row[0])
        return trial_of(row, *others)

    monkeypatch.setattr("nasbot.storage._rows.trial_of", decode)
    driver.create(SETTINGS, [sample_trial(n) for n in range(20)])
    for n in range(15):
        running = sample_trial(n).begun(1.0)
        driver.save(running)
        driver.save(running.ended(Scored(float(n)), at=2.0, rank=n))
    decoded.clear()
    reader = SqliteStorage(path, read_only=True)
    assert reader.history() == driver.history()
    assert len(decoded) == 20
    decoded.clear()
    assert reader.history() is reader.history()
    assert decoded == []
    running = sample_trial(17).begun(3.0)
    for state in (running, running.with_points([Point(1, 0.5)]), running.with_points([Point(1, 0.5), Point(2, 0.25)])):
        driver.save(state)
        assert reader.history() == driver.history()
    driver.save(state.ended(Scored(9.0), at=4.0, rank=15), sample_trial(20))
    assert reader.history() == driver.history()
    assert decoded == [17, 17, 17, 17, 20]
    reader.close()
    driver.close()


def test_a_file_of_a_single_byte_is_somebodys_file(tmp_path):
    """Only an empty file may become a study."""
    path = tmp_path / "mine.sqlite"
    path.write_bytes(b"x")
    with pytest.raises(StorageError, match="not a nasbot study"):
        SqliteStorage(path)
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("text", ["[]", "3", '"text"', "null"])
def test_what_should_be_an_object_and_is_not(text):
    with pytest.raises(StorageError, match="trial 7: its notes, details or settings are not an object"):
        decoded("trial 7", text)
