"""Files of every version of the tables, made by the code of their time: read, migrated, and never half-migrated."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from nasbot.architecture.space import SearchSpace
from nasbot.errors import FileError, StorageError
from nasbot.searchers import RandomSearch
from nasbot.storage import Run, SqliteStorage, _schema, post_request
from nasbot.study import Study, StudyState, StudyView
from tests.storage.make_golden import FOLDER, as_record

VERSIONS = sorted(int(path.stem.split("-")[1]) for path in FOLDER.glob("version-*.sqlite"))


@pytest.fixture(params=VERSIONS)
def golden(request, tmp_path) -> Path:
    """A copy of a golden file, with what it should say beside it."""
    for suffix in (".sqlite", ".json"):
        shutil.copy(FOLDER / f"version-{request.param}{suffix}", tmp_path)
    return tmp_path / f"version-{request.param}.sqlite"


def expected(golden):
    return json.loads(golden.with_suffix(".json").read_text())


def as_read(storage):
    return {"settings": storage.settings(), "trials": [as_record(trial) for trial in storage.history()]}


def test_there_is_a_golden_file_of_every_version():
    assert list(range(1, _schema.VERSION + 1)) == VERSIONS


def test_a_reader_reads_it_and_leaves_it_alone(golden):
    before = golden.read_bytes()
    reader = SqliteStorage(golden, read_only=True)
    assert as_read(reader) == expected(golden)
    assert list(reader.requests()) == []
    reader.close()
    assert golden.read_bytes() == before


def test_a_driver_migrates_it_and_nothing_changes(golden):
    driver = SqliteStorage(golden)
    assert as_read(driver) == expected(golden)
    n_runs = len(driver.runs())
    driver.save_run(Run(number=n_runs, begun=1.0))
    driver.close()
    with sqlite3.connect(golden) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
        assert [row[0] for row in db.execute("SELECT version FROM migrations")] == list(range(1, _schema.VERSION + 1))
    db.close()
    reader = SqliteStorage(golden, read_only=True)
    assert as_read(reader) == expected(golden)
    assert len(reader.runs()) == n_runs + 1
    reader.close()


def test_a_study_goes_on_with_it(golden):
    with StudyView.read(golden) as view:
        assert view.status().state in (StudyState.IDLE, StudyState.DIED)
    with Study.open(golden, RandomSearch(space=SearchSpace("mlp-reg")), seed=5, context={"data": "golden"}) as study:
        n = len(study.history)
        study.optimise(lambda arch: 1.0, n + 1)
        assert len(study.history) == n + 1
        assert study.runs[-1].ending == "finished"


def test_a_migration_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = shutil.copy(FOLDER / "version-1.sqlite", tmp_path)
    monkeypatch.setattr(_schema, "MIGRATIONS", (_schema.TABLES_1, (*_schema.TABLES_2, "CREATE TABLE nonsense (")))
    with pytest.raises(FileError, match="incomplete input"):
        SqliteStorage(path)
    monkeypatch.undo()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    SqliteStorage(path).close()


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
