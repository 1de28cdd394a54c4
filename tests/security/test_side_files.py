"""Nobody else's file is touched: what may stand beside a study that somebody sends, and every way to open one."""

import os
import shutil
import sqlite3
import time
from contextlib import suppress

import numpy as np
import pytest

from nasbot._files import write_whole
from nasbot.automl import search
from nasbot.data.dataset import Dataset, dataset_of
from nasbot.errors import FileError, NasbotError, StorageError
from nasbot.storage import SqliteStorage, examine, post_request, repair
from nasbot.storage._lock import presence
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from tests.security.side_files import KINDS, forged_journal, journal, link

CONTENT = b"years of work\n" * 100


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "sent" / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0)])
    storage.close()
    for suffix in ("-wal", "-shm", ".lock"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return path


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "mine" / "thesis.tex"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def read(path):
    storage = SqliteStorage(path, read_only=True)
    storage.history()
    storage.close()


def drive(path):
    storage = SqliteStorage(path)
    storage.save(sample_trial(len(storage.history())))
    storage.close()


WAYS = {
    "read": read,
    "drive": drive,
    "post": lambda path: post_request(path, "pause"),
    "examine": examine,
    "presence": presence,
    "repair": lambda path: repair(path, path.with_name("copy.sqlite")),
}


def test_sqlite_itself_would_delete_the_file(study, victim):
    """The forged journal is a real attack: what the refusals below are for."""
    journal(study.with_name(study.name + "-journal"), victim)
    db = sqlite3.connect(study)
    with suppress(sqlite3.DatabaseError):  # the journal also cuts the file
        db.execute("SELECT count(*) FROM trials").fetchone()
    db.close()
    assert not victim.exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm", ".lock"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_file_beside_a_study_leads_elsewhere(study, victim, kind, suffix, way):
    place = study.with_name(study.name + suffix)
    place.unlink(missing_ok=True)
    kind(place, victim)
    began = time.monotonic()
    try:
        WAYS[way](study)
    except NasbotError as error:
        assert str(study.parent) in str(error)  # noqa: PT017  either is right; what counts is below
    assert time.monotonic() - began < 30  # instead of for ever
    assert list(victim.parent.iterdir()) == [victim]
    assert victim.read_bytes() == CONTENT


@pytest.mark.parametrize("way", ["read", "drive", "post", "examine", "repair"])
def test_a_rollback_journal_is_refused_by_name(study, victim, way):
    journal(study.with_name(study.name + "-journal"), victim)
    with pytest.raises(StorageError, match=r"study\.sqlite-journal, a rollback journal"):
        WAYS[way](study)


def test_a_journal_beside_the_file_that_a_link_names(study, victim, tmp_path):
    journal(study.with_name(study.name + "-journal"), victim)
    link(tmp_path / "alias.sqlite", study)
    with pytest.raises(StorageError, match="a rollback journal"):
        drive(tmp_path / "alias.sqlite")


def test_a_file_that_is_no_study_is_not_opened_for_writing(tmp_path, monkeypatch):
    """Its tables are looked at through a connection that cannot write."""
    foreign = tmp_path / "foreign.sqlite"
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE people (name TEXT)")
    db.close()
    before, modes = foreign.read_bytes(), []
    original = sqlite3.connect
    monkeypatch.setattr(
        "nasbot.storage.sqlite.sqlite3.connect",
        lambda address, **rest: modes.append(address) or original(address, **rest),
    )
    for way in (drive, WAYS["post"]):
        with pytest.raises(StorageError, match="not a nasbot study"):
            way(foreign)
    assert [address.partition("?")[2] for address in modes] == ["mode=ro"] * 2
    assert foreign.read_bytes() == before


def test_two_names_of_a_study_have_one_lock(study, tmp_path):
    link(tmp_path / "alias.sqlite", study)
    driver = SqliteStorage(study)
    assert presence(tmp_path / "alias.sqlite").is_held
    with pytest.raises(NasbotError, match="being driven"):
        SqliteStorage(tmp_path / "alias.sqlite")
    driver.close()


def test_a_lock_that_leads_elsewhere_is_refused_by_name(study, victim):
    link(study.with_name("study.sqlite.lock"), victim)
    with pytest.raises(FileError, match=r"study\.sqlite\.lock: a symbolic link"):
        drive(study)


def test_a_lock_of_another_user_is_refused(study):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    lock = study.with_name("study.sqlite.lock")
    lock.write_text("theirs")
    shutil.chown(lock, user=12345)
    with pytest.raises(FileError, match="another user's"):
        drive(study)
    assert lock.read_text() == "theirs"


def test_a_new_study_never_has_a_rollback_journal(tmp_path):
    """A driver that dies while it makes one must not leave what the next one refuses."""
    path = tmp_path / "new.sqlite"
    (tmp_path / "new.sqlite-journal").write_bytes(forged_journal("x"))
    with pytest.raises(StorageError, match="rollback journal"):
        SqliteStorage(path)
    (tmp_path / "new.sqlite-journal").unlink()
    db = sqlite3.connect(path)  # as of a driver that was killed right after it had made the file
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    SqliteStorage(path).close()


# -- files of results --------------------------------------------------------------------------------------------------


def test_whole_files_replace_links_and_leave_their_targets(tmp_path, victim):
    target = tmp_path / "report.html"
    for kind in (link, *(k for k in KINDS if k.__name__ in ("pipe", "second_name", "dangling_link"))):
        kind(target, victim)
        kind(tmp_path / f".report.html.{os.getpid()}.part", victim)
        write_whole(target, b"new")
        assert target.read_bytes() == b"new"
        assert not target.is_symlink()
        target.unlink()
    assert victim.read_bytes() == CONTENT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "report.html"
    target.write_bytes(b"old")

    def fail(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_whole(target, fail)
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"]


def test_data_are_not_written_through_links(tmp_path, victim):
    rng = np.random.default_rng(0)
    data = dataset_of(rng.normal(size=(40, 3)), rng.normal(size=40))
    place = tmp_path / "study.files" / "data"
    place.mkdir(parents=True)
    link(place / "train_X.npy", victim)
    data.save(place)
    assert Dataset.load(place).fingerprint == data.fingerprint
    assert victim.read_bytes() == CONTENT


@pytest.mark.parametrize("linked", ["study.files", "study.files/weights", "study.files/data"])
def test_a_search_does_not_work_in_linked_folders(tmp_path, victim, linked):
    """It removes the weights of networks that are not the best, which must not be another study's."""
    rng = np.random.default_rng(0)
    (tmp_path / linked).parent.mkdir(exist_ok=True)
    link(tmp_path / linked, victim.parent)
    with pytest.raises(FileError, match=f"{linked} is a symbolic link"):
        search(rng.normal(size=(40, 3)), rng.normal(size=40), budget=1, name=tmp_path / "study.sqlite", executor="here")
    assert list(victim.parent.iterdir()) == [victim]
