"""A study in a PostgreSQL database, against a real server."""

from itertools import count

import psycopg
import pytest

from nasbot.errors import FileError, OptionError, StorageError, StudyError
from nasbot.storage import RequestKind, Run, Tally, is_begun, open_storage, post_request
from nasbot.storage.addresses import Address, address_of, without_password
from nasbot.storage.opening import studies_in
from nasbot.storage.postgres import heartbeat, tables
from nasbot.storage.postgres import storage as storage_module
from nasbot.storage.postgres.storage import PostgresStorage
from nasbot.storage.records import Answer
from nasbot.testing.shared_storage_conformance import SharedStorageConformance
from nasbot.testing.storage_conformance import SETTINGS, StorageConformance, expect, sample_trial
from nasbot.trial import Failed, FailureCause, Point, Scored, TrialState


class TestPostgresStorage(StorageConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database):
        self._addresses = (f"{database}#study-{n}" for n in count())

    def make_storage(self) -> PostgresStorage:
        return PostgresStorage(next(self._addresses))

    def reopened(self, storage: PostgresStorage) -> PostgresStorage:
        storage.close()
        return PostgresStorage(storage.address)


class TestSharedPostgresStorage(SharedStorageConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database, monkeypatch):
        monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.1)
        monkeypatch.setattr(storage_module, "BEAT_SECONDS", 0.05)
        self._addresses = (f"{database}#study-{n}" for n in count())

    def make_drivers(self, n: int) -> list[PostgresStorage]:
        address = next(self._addresses)
        return [PostgresStorage(address, shared=True, grace=1.0) for _ in range(n)]

    def kill(self, driver: PostgresStorage) -> None:
        driver._heartbeat.stop()
        driver._disconnect()


@pytest.fixture
def address(database):
    return f"{database}#study"


@pytest.fixture
def filled(address):
    """A study of two trials, one of them completed with a curve; nobody drives it."""
    storage = PostgresStorage(address)
    storage.create(SETTINGS, [sample_trial(0), sample_trial(1)])
    running = sample_trial(0).begun(1.0).with_points([Point(1, 0.5), Point(2, 0.25)])
    storage.save(running)
    storage.save(running.ended(Scored(0.75), at=2.0, rank=0))
    storage.close()
    return address


def execute(address, *statements):
    with psycopg.connect(address.partition("#")[0], autocommit=True) as db:
        for statement in statements:
            db.execute(statement)


def read(address):
    storage = PostgresStorage(address, read_only=True)
    try:
        return storage.history()
    finally:
        storage.close()


# -- who drives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [(False, False), (False, True), (True, False)])
def test_one_that_is_alone_lets_nobody_in(filled, kinds):
    first = PostgresStorage(filled, shared=kinds[0])
    while not execute_one(filled, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"):
        pass  # until its heart beats
    error = expect(StudyError, lambda: PostgresStorage(filled, shared=kinds[1]))
    assert "is being driven by process" in str(error)
    assert len(read(filled)) == 2
    first.close()
    PostgresStorage(filled, shared=kinds[1]).close()


def execute_one(address, statement):
    with psycopg.connect(address.partition("#")[0], autocommit=True) as db:
        return db.execute(statement).fetchone()[0]


def test_a_death_frees_the_place(filled):
    first = PostgresStorage(filled, grace=0.5)
    first.save_run(Run(number=0, begun=1.0))
    first.save(sample_trial(1).begun(3.0))
    first._heartbeat.stop()
    first._disconnect()
    second = PostgresStorage(filled, grace=0.5)
    assert [run.ending for run in second.runs()] == ["died"]
    assert second.history()[1].state is TrialState.RUNNING  # the study lets it wait
    assert "was taken for dead" in str(expect(StudyError, lambda: first.save(sample_trial(2))))
    assert len(second.history()) == 2
    first.close()
    second.close()


def test_an_answer_that_is_lost_is_asked_for_again(filled, monkeypatch):
    """The commit was made, and the connection broke before the driver knew: the trial is there once."""
    storage = PostgresStorage(filled, shared=True)
    n_broken = 0
    real = psycopg.Transaction.__exit__

    def breaks(self, *error):
        nonlocal n_broken
        done = real(self, *error)
        if n_broken == 0 and error[0] is None:
            n_broken += 1
            raise psycopg.OperationalError("the connection broke")
        return done

    monkeypatch.setattr(psycopg.Transaction, "__exit__", breaks)
    begun = storage.change(lambda history: [sample_trial(len(history)).begun(3.0)])
    assert n_broken == 1
    assert [trial.number for trial in begun] == [2]
    assert storage.history()[2] == begun[0]
    assert len(storage.history()) == 3
    assert storage.is_ours(2)
    storage.close()


def test_the_server_is_waited_for(filled, postgres, caplog):
    storage = PostgresStorage(filled, shared=True)
    postgres.stop("immediate")
    postgres.start()
    storage.change(lambda history: [sample_trial(len(history))])
    assert "waiting for the server" in caplog.text
    assert len(read(filled)) == 3
    storage.patience = 0.0
    postgres.stop()
    expect(FileError, storage.history)
    expect(FileError, lambda: storage.change(lambda history: [sample_trial(len(history))]))
    postgres.start()
    assert len(storage.history()) == 3
    storage.close()


# -- what others ask ---------------------------------------------------------------------------------------------------


def test_every_driver_hears_what_is_asked_of_all(filled):
    first, second = (PostgresStorage(filled, shared=True) for _ in range(2))
    stop = post_request(filled, RequestKind.STOP)
    cancel = post_request(filled, RequestKind.CANCEL, 1)
    assert [request.number for request in first.requests()] == [0, 1]
    first.save(answers=[Answer(stop, "stopping"), Answer(cancel, "cancelled")])
    assert first.requests() == ()
    (heard,) = second.requests()
    assert (heard.kind, heard.answer) == (RequestKind.STOP, "stopping")
    second.save(answers=[Answer(heard, "mine too")])
    assert second.requests() == ()
    late = PostgresStorage(filled, shared=True)
    assert late.requests() == ()
    pause = post_request(filled, RequestKind.PAUSE)
    assert first.change(lambda history: [], answers=[Answer(pause, "paused")]) == ()
    assert first.requests() == ()  # what it heeded before stays heeded
    assert [request.kind for request in late.requests()] == [RequestKind.PAUSE]
    for storage in (first, second, late):
        storage.close()


def test_nobody_can_be_asked_of_a_study_that_is_not_there(filled):
    expect(FileError, lambda: post_request(filled + "-absent", RequestKind.STOP))


# -- what is in the database -------------------------------------------------------------------------------------------


def test_texts_that_postgresql_does_not_have(address):
    storage = PostgresStorage(address)
    failed = sample_trial(0).begun(1.0).ended(Failed(FailureCause.EXCEPTION, "a\0b ☃ \x1b[2J"), at=2.0, rank=0)
    storage.create(SETTINGS, [failed])
    assert read(address)[0].outcome.message == "a\0b ☃ \x1b[2J"
    storage.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nasbot.trials SET value = 0.5 WHERE number = 0",
        "UPDATE nasbot.trials SET arch = '{}' WHERE number = 1",
        "UPDATE nasbot.trials SET message = 'x' WHERE number = 1",
        "UPDATE nasbot.trials SET number = 7 WHERE number = 1",
        "UPDATE nasbot.trials SET rank = 3 WHERE number = 0",
        "DELETE FROM nasbot.trials WHERE number = 0",
        "UPDATE nasbot.points SET value = 0.5",
        "UPDATE nasbot.points SET position = position + 1 WHERE position = 1",
        "UPDATE nasbot.studies SET settings = '{}'",
    ],
)
def test_what_was_changed_by_somebody_else_is_never_a_value(filled, statement):
    execute(filled, statement)
    expect(StorageError, lambda: read(filled))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE nasbot.more (x int)",
        "CREATE VIEW nasbot.view AS SELECT 1",
        "ALTER TABLE nasbot.trials RENAME TO old; CREATE VIEW nasbot.trials AS SELECT * FROM nasbot.old",
        "CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON nasbot.trials FOR EACH ROW EXECUTE FUNCTION public.f()",
        "CREATE RULE r AS ON UPDATE TO nasbot.studies DO INSTEAD NOTHING",
        "ALTER TABLE nasbot.trials ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE nasbot.trials ALTER COLUMN notes SET DEFAULT lower('X')",
        "ALTER TABLE nasbot.trials ADD CHECK (number >= abs(0))",
        "CREATE INDEX odd ON nasbot.trials (lower(notes))",
        "CREATE INDEX partial ON nasbot.trials (number) WHERE number > abs(1)",
        "ALTER TABLE nasbot.trials ADD COLUMN more text",
        "CREATE TABLE public.child () INHERITS (nasbot.trials)",
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_nothing_that_computes_is_touched(filled, statement, read_only):
    execute(filled, statement)  # without values, several at once
    error = expect(StorageError, lambda: PostgresStorage(filled, read_only=read_only))
    assert "not those of nasbot studies" in str(error)


def test_a_newer_nasbot(filled):
    execute(filled, "INSERT INTO nasbot.versions VALUES (99, '', '')")
    assert "newer nasbot" in str(expect(StorageError, lambda: PostgresStorage(filled)))


def test_a_text_beyond_all_limits_is_not_fetched(filled, monkeypatch):
    monkeypatch.setattr(tables, "MAX_CELL_BYTES", 20_000)
    for n_bytes, is_too_long in ((20_001, True), (20_000, False)):  # the latter is read, and is no JSON
        execute(filled, f"UPDATE nasbot.trials SET notes = repeat('x', {n_bytes}) WHERE number = 1")
        assert ("more than 20000 bytes" in str(expect(StorageError, lambda: read(filled)))) is is_too_long


def test_a_trial_costs_its_own_rows_only(filled):
    """However many trials there are, recording one more writes and reads a constant number of rows."""
    storage = PostgresStorage(filled, shared=True)
    reader = PostgresStorage(filled, read_only=True)
    other = PostgresStorage(filled, shared=True)

    def rows_moved():
        storage.change(lambda history: [sample_trial(len(history))])
        before = other._copy.version, reader._copy.version
        assert len(other.history()) == len(reader.history())
        assert (other._copy.version - before[0], reader._copy.version - before[1]) == (1, 1)
        sql = f"SELECT count(*) FROM nasbot.trials WHERE changed > {before[0]}"
        return execute_one(filled, sql)

    other.history()
    reader.history()
    assert [rows_moved() for _ in range(20)] == [1] * 20
    for one in (storage, reader, other):
        one.close()


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://me:se#c:r@et@host:5/db?sslmode=require&password=x#toy", "postgresql://me@host:5/db?sslmode=require#toy"),
        ("postgres://me@/db?host=/tmp/a#toy", "postgres://me@/db?host=/tmp/a#toy"),
        ("postgresql://host/db#toy", "postgresql://host/db#toy"),
        ("--name=postgresql://me:secret@host/db#toy", "--name=postgresql://me@host/db#toy"),
        ("postgresql://host/db?password=secret#toy", "postgresql://host/db#toy"),
    ],
)  # fmt: skip
def test_what_is_shown_of_an_address(given, shown):
    assert without_password(given) == shown


@pytest.mark.parametrize("where", ["postgresql://me:se#cret@host/db", "postgresql://h/db#", "postgresql://h/db#a/b"])
def test_an_address_names_a_study(where):
    assert "cret" not in str(expect(OptionError, lambda: address_of(where)))


def test_an_address_shows_no_password():
    address = address_of("postgresql://me:secret@host/db#toy")
    assert address == Address("toy", "postgresql://me:secret@host/db")
    assert "secret" not in repr(address) + str(address)


def test_without_psycopg_there_is_advice(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nasbot.storage.postgres.storage", None)
    monkeypatch.delattr("nasbot.storage.postgres.storage")
    error = expect(OptionError, lambda: open_storage("postgresql://host/db#toy"))
    assert "pip install 'nasbot[postgres]'" in str(error)


def test_which_studies_a_database_has(database, filled):
    empty = PostgresStorage(f"{database}#not-begun")
    other = PostgresStorage(f"{database}#another")
    other.create(SETTINGS, [])
    expected = [Address("another", database), Address("study", database)]
    assert studies_in(filled) == studies_in(database) == expected
    assert [is_begun(f"{database}#{name}") for name in ("study", "another", "not-begun")] == [True, True, False]
    for storage in (empty, other):
        storage.close()


def test_a_database_without_studies(database):
    assert studies_in(database) == []
    assert not is_begun(f"{database}#study")
    expect(StorageError, lambda: PostgresStorage(f"{database}#study", read_only=True))


def test_trials_in_numbers_and_some_of_them(filled):
    reader = PostgresStorage(filled, read_only=True)
    history = reader.history()
    assert reader.some([1, 0]) == [history[1], history[0]]
    tally, expected = reader.tally(), Tally.of_history(history)
    assert (tally.states, tally.spent) == (expected.states, expected.spent)
    expect(StudyError, lambda: reader.save(sample_trial(2)))
    reader.close()
