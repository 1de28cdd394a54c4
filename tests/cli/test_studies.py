"""Commands on studies: list, status, show, pause, resume, stop, cancel, retry."""

import sqlite3
import threading
import time

import pytest

from nasbot import Float, RandomSearch, SearchSpace
from nasbot.study import Study, StudyState, StudyView
from nasbot.study import loop as loop_module
from tests.study.objectives import score
from tests.study.searchers import Sensitive


def objective(arch, trial):
    if trial.number == 2:
        raise ValueError("too wide\x1b[2J\nsecond line")
    trial.report(1, 0.5)
    return score(arch)


@pytest.fixture
def studies(tmp_path, monkeypatch):
    """The studies' folder, with one study in it that nobody drives, of six trials, one of them failed."""
    monkeypatch.setenv("NASBOT_STUDIES", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    with Study.open("toy", Sensitive(), direction="minimise") as study:
        study.optimise(objective, 6)
    return tmp_path / "studies"


def test_list(studies, run):
    (studies / "broken.sqlite").write_bytes(b"dear diary")
    (studies / "note.txt").write_text("not a study")
    records = run("list", "--json").record
    assert [record["study"] for record in records] == ["broken", "toy"]
    assert records[0]["state"] == "unreadable"
    assert "not a nasbot study" in records[0]["error"]
    assert records[1]["state"] == "idle"
    assert (records[1]["trials"], records[1]["states"]) == (6, {"completed": 5, "failed": 1})
    with StudyView.read("toy") as view:
        assert records[1]["best"]["value"] == view.best_value
    shown = run("list")
    assert shown.code == 0
    assert "toy" in shown.out
    assert "unreadable" in shown.out
    assert run("list", str(studies)).out.count("\n") == shown.out.count("\n")
    assert "no studies in" in run("list", "elsewhere").out


def test_status(studies, run):
    record = run("status", "toy", "--json").record
    assert {
        "study",
        "file",
        "state",
        "seen",
        "silence",
        "workers",
        "budget",
        "command",
        "n_runs",
        "pid",
        "host",
    } <= set(record)
    assert record["state"] == "idle"
    assert record["ending"] == "finished"
    assert record["budget"] == {"trials": 6, "seconds": None}
    shown = run("status", str(studies / "toy.sqlite"))
    assert "idle" in shown.out
    assert "5 completed, 1 failed" in shown.out
    assert "6 trials" in shown.out
    assert run("status", "toy", "--watch").out.count("5 completed") == 1  # nobody drives it: nothing to watch


def test_show(studies, run):
    table = run("show", "toy")
    assert table.out.count("completed") == 5 + 1  # and in the title
    assert "failed (exception)" not in table.out
    assert "failed (exception)" in run("show", "toy", "--all").out
    assert len(run("show", "toy", "--top", "2").out.splitlines()) == len(table.out.splitlines()) - 3
    record = run("show", "toy", "--json").record
    assert [trial["number"] for trial in record["list"]] == list(range(6))
    one = run("show", "toy", "2")
    assert "trial 2: failed (exception)" in one.out
    assert "ValueError: too wide" in one.out
    assert "Traceback (most recent call last)" in one.out
    assert "\x1b" not in one.out
    assert run("show", "toy", "2", "--json").record["cause"] == "exception"
    assert run("show", "toy", "0").out.count("1 points, the last 0.5 at step 1") == 1


def test_show_and_explain_say_with_which_params_and_how_long_a_candidate_was_trained(studies, run):
    params = {"learning_rate": Float(1e-3, 1e-1, log=True, default=2e-2)}
    searcher = RandomSearch(space=SearchSpace("mlp-reg"), params=params, fidelity="steps")
    with Study.open("both", searcher) as study:
        study.optimise(lambda arch, params, trial: params["learning_rate"] * trial.fidelity, 18)
        first = study.history[0]
        short = next(trial for trial in study.history if trial.promoted_from is not None)
    assert f"learning_rate {first.candidate.params['learning_rate']:.4g}" in run("show", "both", "--all").out
    assert "fingerprint" in run("show", "toy").out
    shown = run("show", "both", str(short.number)).out
    assert f"params       {short.candidate}\n" in shown
    assert "training     1/3 of a training\n" in shown
    assert f"promoted     from trial {short.promoted_from}\n" in shown
    assert f"params      {short.candidate}\n" in run("explain", "both", str(short.number)).out
    assert run("explain", "both", str(short.number), "--json").record["params"] == short.candidate.params


def test_cancel_and_retry_without_a_driver(studies, run):
    assert run("retry", "toy", "2").out == "trial 2 will be tried again, as trial 6\n"
    assert run("cancel", "toy", "6", "--json").record == {
        "study": "toy",
        "request": "cancel",
        "trial": 6,
        "done": True,
        "message": "trial 6 is cancelled",
    }
    with StudyView.read("toy") as view:
        assert str(view.history[6].state) == "cancelled"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("status absent", 3, "No such file"),
        ("status ../../etc/passwd", 3, "cannot open"),
        ("status a%b", 2, "study: a name has"),
        ("show toy 6", 8, "there is no trial 6; the study has 6"),
        ("show toy -- -1", 8, "there is no trial -1"),
        ("show toy --top -1", 2, "--top"),
        ("show toy many", 2, "integer"),
        ("status toy --watch --every 0", 2, "--every"),
        ("pause toy", 8, "nobody drives this study, so there is nothing to pause"),
        ("resume toy", 8, "go on with it"),
        ("stop toy --now", 8, "nobody drives this study"),
        ("cancel toy 0", 8, "trial 0 is completed already"),
        ("cancel toy 77", 8, "there is no trial 77"),
        ("retry toy 0", 8, "only one that failed"),
        ("pause text.sqlite", 9, "not a nasbot study"),
    ],
)
def test_mistakes_are_one_line(studies, run, line, code, words):
    (studies.parent / "text.sqlite").write_text("dear diary\n" * 100)
    result = run(*line.split())
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_a_damaged_study_is_one_line(studies, run):
    with sqlite3.connect(studies / "toy.sqlite") as db:
        db.execute("UPDATE trials SET value = 1.0 WHERE number = 0")
    db.close()
    for command in (["status", "toy"], ["show", "toy"], ["cancel", "toy", "0"]):
        result = run(*command)
        assert result.code == 9
        assert "trial 0 is damaged" in result.err
        assert result.err.count("\n") == 1


def test_a_running_study_is_paused_watched_and_stopped(studies, run, monkeypatch):
    """The driver is a thread here; commands see it through its file only."""
    monkeypatch.setattr(loop_module, "REQUEST_SECONDS", 0.01)
    began = threading.Event()

    def drive():
        with Study.open("live", Sensitive()) as study:
            study.optimise(slowly, 500, on_change=lambda trial: began.set())

    driver = threading.Thread(target=drive, daemon=True)
    driver.start()
    try:
        assert began.wait(300)
        record = run("pause", "live", "--json").record
        assert record["done"] is False
        assert record["message"].startswith("asked process ")
        wait_for(lambda: state("live") is StudyState.PAUSED)
        paused = run("status", "live")
        assert "live: paused" in paused.out
        assert "driver" in paused.out
        assert run("list", "--json").record[0]["state"] == "paused"
        run("resume", "live")
        wait_for(lambda: state("live") is StudyState.RUNNING)
    finally:
        stopped = run("stop", "live")
    assert stopped.code == 0
    watched = run("status", "live", "--watch", "--every", "0.02", "--json")
    assert '"state": "idle"' in watched.out.splitlines()[-1]
    driver.join(300)
    assert not driver.is_alive()


def slowly(arch):
    time.sleep(0.01)
    return score(arch)


def state(study):
    with StudyView.read(study) as view:
        return view.status().state


def wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- check and repair --------------------------------------------------------------------------------------------------


def test_check_a_study(studies, run):
    assert "a study that is whole" in run("check", "toy").out
    assert run("check", str(studies / "toy.sqlite"), "--json").record["valid"] is True
    with sqlite3.connect(studies / "toy.sqlite") as db:
        db.execute("UPDATE trials SET value = 1.0 WHERE number IN (0, 1)")
    db.close()
    result = run("check", "toy")
    assert result.code == 9
    assert result.out.count("is damaged") == 2
    assert result.err.count("\n") == 1
    record = run("check", "toy", "--json").record
    assert (record["valid"], len(record["problems"])) == (False, 2)


def test_check_what_is_neither(studies, run):
    assert run("check", "absent.json").code == 3
    (studies.parent / "text").write_text("dear diary")
    assert run("check", "text").code == 4


def test_repair_a_study(studies, run):
    with sqlite3.connect(studies / "toy.sqlite") as db:
        db.execute("UPDATE trials SET value = 1.0 WHERE number = 1")
    db.close()
    result = run("repair", "toy")
    assert result.code == 0
    assert "5 trials, 5 of them with an outcome" in result.out
    assert "lost: trial 1" in result.out
    assert run("check", "toy-repaired").code == 0
    assert run("repair", "toy").code == 3  # nothing is overwritten
    record = run("repair", "toy", "--out", str(studies / "second.sqlite"), "--json").record
    assert record["renumbered"] == {"2": 1, "3": 2, "4": 3, "5": 4}
    assert "nothing" in run("repair", "toy-repaired", "--out", "third.sqlite").out
