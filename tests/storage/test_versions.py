"""Files of every version of the tables, made by the code of their time: read, migrated, and never half-migrated."""

import json
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from nasbot.errors import FileError, StorageError
from nasbot.storage import Run, SqliteStorage, _schema, post_request
from nasbot.study import Study, StudyState, StudyView
from tests.storage.killed_migration import check_after, migrating, n_steps
from tests.storage.make_golden import FOLDER, as_record

NAMES = sorted(path.stem for path in FOLDER.glob("version-*.sqlite"))


@pytest.fixture(params=NAMES)
def golden(request, tmp_path) -> Path:
    """A copy of a golden file, with what it should say beside it."""
    for suffix in (".sqlite", ".json"):
        shutil.copy(FOLDER / f"{request.param}{suffix}", tmp_path)
    return tmp_path / f"{request.param}.sqlite"


def expected(golden):
    return json.loads(golden.with_suffix(".json").read_text())


def as_read(storage, golden):
    """What is read, in the words of the golden file: notes of versions 1 and 2 are origins and forecasts now."""
    history, known = storage.history(), expected(golden)["trials"]
    records = []
    for trial, before in zip(history, known, strict=True):
        record = as_record(trial)
        if "origin" not in before:
            assert trial.notes == {}
            said = {**trial.origin.to_dict(), **({} if trial.forecast is None else trial.forecast.to_dict())}
            assert set(before["notes"]) <= {*said, *trial.origin.seconds, "retry_of", "forked_from", "predicted"}
            record |= {"notes": before["notes"]}
            if direction_of(storage) == "minimise":  # version 2 kept what is to be maximised
                record["value"] = None if trial.value is None else (-trial.value).hex()
                record["curve"] = [[point.step, (-point.value).hex()] for point in trial.curve]
        records.append({name: record[name] for name in before})
    return {"settings": storage.settings(), "trials": records}


def direction_of(storage):
    return storage.settings()["direction"]


def test_there_is_a_golden_file_of_every_version():
    assert {int(name.split("-")[1]) for name in NAMES} == set(range(1, _schema.VERSION + 1))


def test_a_reader_reads_it_and_leaves_it_alone(golden):
    before = golden.read_bytes()
    reader = SqliteStorage(golden, read_only=True)
    assert as_read(reader, golden) == expected(golden)
    assert list(reader.requests()) == []
    reader.close()
    assert golden.read_bytes() == before


def test_a_driver_migrates_it_and_nothing_changes(golden):
    driver = SqliteStorage(golden)
    assert as_read(driver, golden) == expected(golden)
    n_runs = len(driver.runs())
    driver.save_run(Run(number=n_runs, begun=1.0))
    driver.close()
    with sqlite3.connect(golden) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
        assert [row[0] for row in db.execute("SELECT version FROM migrations")] == list(range(1, _schema.VERSION + 1))
    db.close()
    reader = SqliteStorage(golden, read_only=True)
    assert as_read(reader, golden) == expected(golden)
    assert len(reader.runs()) == n_runs + 1
    reader.close()


def test_a_study_goes_on_with_it(golden):
    with StudyView.read(golden) as view:
        assert view.status().state in (StudyState.IDLE, StudyState.DIED)
        options = {"seed": view.seed, "direction": view.direction, "context": {"data": "golden"}}
        searcher = view.searcher
    with Study.open(golden, searcher, **options) as study:
        n = len(study.history)
        study.optimise(lambda arch: 1.0, n + 1)
        assert len(study.history) == n + 1
        assert study.runs[-1].ending == "finished"


def test_a_migration_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = shutil.copy(FOLDER / "version-1.sqlite", tmp_path)
    monkeypatch.setattr(
        _schema, "MIGRATIONS", (*_schema.MIGRATIONS[:-1], (*_schema.TABLES_3, "CREATE TABLE nonsense ("))
    )
    with pytest.raises(FileError, match="incomplete input"):
        SqliteStorage(path)
    monkeypatch.undo()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    SqliteStorage(path).close()


@pytest.mark.parametrize("name", ["version-1", "version-2-cnn"])
def test_a_kill_during_migration_leaves_the_old_file_or_the_new_one(name, tmp_path):
    """At a few steps of SQLite's machine, the last of them after the commit; tests/faults has 200."""
    path, last = tmp_path / "study.sqlite", n_steps(name, tmp_path)
    assert last > 1000
    old = int(name.split("-")[1])
    for step, version in ((1, old), (last // 2, old), (last, _schema.VERSION)):
        shutil.copy(FOLDER / f"{name}.sqlite", path)
        with migrating(path, step) as process:
            assert process.wait() == -signal.SIGKILL
        assert check_after(path, name) == version, step


def test_a_tampered_old_file_is_not_migrated(tmp_path):
    path = shutil.copy(FOLDER / "version-1.sqlite", tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END")
    db.close()
    for read_only in (True, False):
        with pytest.raises(StorageError, match="tables are not those of a nasbot study of version 1"):
            SqliteStorage(path, read_only=read_only)


def test_requests_need_tables_for_them(tmp_path):
    path = shutil.copy(FOLDER / "version-1.sqlite", tmp_path)
    with pytest.raises(StorageError, match="knows no requests; resume the study"):
        post_request(path, "pause")
