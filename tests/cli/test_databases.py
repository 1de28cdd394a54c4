"""Commands on a study in a PostgreSQL database; no password is ever shown or stored."""

import json
import urllib.request

import psycopg
import pytest

from nasbot.study import Study, StudyView
from tests.cli.test_studies import objective
from tests.faults.watching import wait_until
from tests.page.conftest import serving
from tests.study.searchers import Sensitive

SECRET = "hunter2"


@pytest.fixture
def address(database, tmp_path, monkeypatch):
    """A study of six trials, one of them failed; its address has a password, which this server does not ask for."""
    monkeypatch.setenv("NASBOT_STUDIES", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    where = f"{database}&password={SECRET}#toy".replace("postgres@", f"postgres:{SECRET}@")
    monkeypatch.setattr("sys.argv", ["nasbot", "run", "x.csv", "--name", where])
    monkeypatch.setattr("sys.orig_argv", ["python", "nasbot", "run", "x.csv", "--name", where])
    with Study.open(where, Sensitive(), direction="minimise") as study:
        study.optimise(objective, 6)
    return where


def test_every_command_takes_an_address(address, run, tmp_path):
    status = run("status", address, "--json").record
    assert (status["state"], status["trials"], status["n_runs"], status["n_drivers"]) == ("idle", 6, 1, 0)
    assert status["command"].startswith("nasbot run x.csv --name")
    assert [record["trials"] for record in run("list", address.partition("#")[0], "--json").record] == [6]
    assert len(run("show", address, "--json").record["list"]) == 6
    assert run("show", address, "2").code == 0
    assert "tried again, as trial 6" in run("retry", address, "2").out
    assert run("plot", address, "history").code == 0
    assert run("report", address).code == 0
    assert run("export", address, "--to", "json").code == 0
    assert {"toy-history.svg", "toy-report.html", "toy.json"} <= {path.name for path in tmp_path.iterdir()}


def test_no_password_is_shown_or_stored(address, run, tmp_path, database):
    commands = (
        ["status", address], ["status", address, "--json"], ["list", address], ["list", address, "--json"],
        ["show", address], ["show", address, "--json"], ["report", address], ["pause", address, "--json"],
        ["cancel", address, "0"], ["retry", address, "2", "--json"], ["export", address, "--to", "json"],
        ["export", address], ["serve", f"{address}-absent"], ["repair", address], ["check", address],
        ["status", f"{address}-absent"],
        ["status", address.replace("nasbot", "absent", 1)], ["status", address.partition("#")[0]],
        ["status", address.replace("#toy", "&nonsense=1#toy")],
    )  # fmt: skip
    for command in commands:
        shown = run(*command)
        assert SECRET not in shown.out + shown.err, command
        assert "Traceback" not in shown.err, command
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file
    with StudyView.read(address) as view:
        assert SECRET not in repr((view.settings, view.runs, view.status()))
        assert "--name" in (view.runs[0].command or "")


def test_a_study_in_a_database_is_checked(address, run, database):
    assert "a study that is whole" in run("check", address).out
    record = run("check", address, "--json").record
    assert (record["valid"], record["n_trials"], record["n_runs"]) == (True, 6, 1)
    with psycopg.connect(database) as db:
        db.execute("UPDATE nasbot.trials SET value = value + 1 WHERE number = 3")
    shown = run("check", address)
    assert shown.code == 9
    assert "trial 3" in shown.err
    assert not run("check", address, "--json").record["valid"]


def asked(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


def test_a_database_is_served(address, database):
    """One study at its address, all of them at the database's; what is served shows no password."""
    with serving(address) as server:
        study = f"{server.url}s/toy/api/"
        assert len(json.loads(asked(f"{study}study"))["trials"]) == 6
        assert json.loads(asked(f"{study}trial/2"))["number"] == 2
        assert SECRET not in asked(f"{study}study")
        wait_until(lambda: "computing" not in asked(f"{study}figure/map"))
        assert len(json.loads(asked(f"{study}figure/map"))["points"]["rows"]) == 6
    with Study.open(f"{database}#other", Sensitive()), serving(address.partition("#")[0]) as server:
        shown = asked(server.url)
        assert ">toy</a>" in shown
        assert ">other</a>" in shown
        assert SECRET not in shown


def test_what_needs_a_file_says_so(address, run):
    shown = run("repair", address)
    assert shown.code == 2
    assert "needs a study in a file" in shown.err


def test_an_address_without_a_study_says_what_is_expected(database, run):
    shown = run("status", database)
    assert shown.code == 2
    assert "postgresql://user@host/database#study" in shown.err


def test_no_such_study(database, run):
    assert "no study was ever begun" in run("status", f"{database}#absent").err
    assert "no studies in" in run("list", database).out
    Study.open(f"{database}#there", Sensitive()).close()
    shown = run("status", f"{database}#absent")
    assert (shown.code, "no such study" in shown.err) == (3, True)


def test_a_server_that_is_not_there(run, tmp_path):
    shown = run("status", f"postgresql://me:{SECRET}@/db?host={tmp_path}#toy")
    assert shown.code == 3
    assert SECRET not in shown.err
