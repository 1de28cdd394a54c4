"""What the server sees of a study: revisions, the state at every look, and a pace."""

import json
import urllib.request
from dataclasses import replace

import pytest

from nasbot.candidate import Candidate
from nasbot.page import watching
from nasbot.page.server import LivePage, name_of
from nasbot.page.watching import WatchedStudy
from nasbot.storage import SqliteStorage
from nasbot.storage.records import Run, RunState
from nasbot.trial import Point, Scored, Trial
from tests.page.conftest import PATIENCE, SETTINGS, serving, write_study
from tests.plots.studies import POOL, grown


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Read at every look; how often the server looks is its own matter."""
    monkeypatch.setattr(watching, "MIN_PACE", 0.0)
    monkeypatch.setattr(watching, "SHARE", 0)


@pytest.fixture
def driver(tmp_path):
    storage = SqliteStorage(tmp_path / "s.sqlite")
    storage.create(SETTINGS, [Trial(number=n, candidate=Candidate(POOL[n])) for n in range(3)])
    yield storage
    storage.close()


@pytest.fixture
def watched(driver):
    study = WatchedStudy(driver.path, "s")
    study.pace = 0.0
    yield study
    study.close()


def changed_since(seen, revision):
    return [n for n, at in enumerate(seen.changed) if at > revision]


def test_only_what_changed_has_a_new_revision(driver, watched):
    first = watched.look()
    assert (first.revision, changed_since(first, 0)) == (1, [0, 1, 2])
    assert watched.look().revision == 1
    running = Trial(number=1, candidate=Candidate(POOL[1])).begun(1.0)
    driver.save(running)
    second = watched.look()
    assert (second.epoch, second.revision, changed_since(second, 1)) == (first.epoch, 2, [1])
    driver.save(running.with_points([Point(1, 0.5)]))
    assert changed_since(watched.look(), 2) == [1]
    driver.save(
        running.with_points([Point(1, 0.5)]).ended(Scored(2.0), at=3.0, rank=0),
        Trial(number=3, candidate=Candidate(POOL[3])),
    )
    third = watched.look()
    assert changed_since(third, 3) == [1, 3]
    assert json.loads(third.records[1])["value"] == 2.0
    assert third.strip()["best"] == {"trial": 1, "value": 2.0, "at": 3.0}


def test_the_state_is_looked_up_at_every_look_although_nothing_is_written(driver, watched, monkeypatch):
    run = Run(number=0, begun=1.0, record={"pid": None, "workers": 2, "budget": {"trials": 10, "seconds": None}})
    driver.save_run(run)
    seen = watched.look()
    assert seen.strip()["state"] == "running"
    assert seen.strip()["workers"] == 2
    assert seen.strip()["budget"] == "10 trials"
    monkeypatch.setattr(watching, "SETTLED_SECONDS", -1.0)
    watched.look()
    monkeypatch.setattr(WatchedStudy, "_read", lambda *_: pytest.fail("nothing has changed"))
    driver._lock.release()  # as its process's death does, which writes nothing
    assert watched.look().strip()["state"] == "died"


def test_the_ending_is_seen(driver, watched):
    run = Run(number=0, begun=1.0, record={})
    driver.save_run(run)
    assert watched.look().strip()["state"] == "running"
    driver.save_run(run.now(RunState.PAUSED))
    assert watched.look().strip()["state"] == "paused"
    driver.save_run(run.over("finished", at=2.0))
    assert watched.look().strip()["state"] == "idle"


def test_a_file_that_cannot_be_read_is_said_and_read_again_when_it_can(tmp_path):
    study = WatchedStudy(tmp_path / "x.sqlite", "x")
    study.pace = 0.0
    assert "x.sqlite" in study.look().strip()["problem"]
    (tmp_path / "x.sqlite").write_bytes(b"no study at all, but long enough")
    assert "not a nasbot study" in study.look().strip()["problem"]
    (tmp_path / "x.sqlite").unlink()
    write_study(tmp_path / "x.sqlite", grown(5))
    seen = study.look()
    assert (seen.problem, len(seen.records)) == ("", 5)
    study.close()


def test_another_study_under_the_same_name_is_another_epoch(tmp_path):
    file = write_study(tmp_path / "x.sqlite", grown(5))
    study = WatchedStudy(file, "x")
    study.pace = 0.0
    first = study.look()
    for each in tmp_path.iterdir():
        each.unlink()
    write_study(file, grown(4), seed=9)
    second = study.look()
    assert second.epoch != first.epoch
    assert len(second.records) == 4
    study.close()


def test_the_pace_grows_with_what_a_reading_costs(driver, watched, monkeypatch):
    monkeypatch.setattr(watching, "SHARE", 50)
    watched.look()
    clock = iter([10.0, 10.2])
    monkeypatch.setattr(watching.time, "thread_time", lambda: next(clock))
    watched.look()
    assert watched.pace == pytest.approx(10.0)


def test_values_are_shown_as_they_are(tmp_path):
    file = write_study(tmp_path / "m.sqlite", grown(12), direction="minimise")
    study = WatchedStudy(file, "m")
    seen = study.look()
    trial = seen.snapshot.history[5]
    record = json.loads(seen.records[5])
    assert record["value"] == trial.value
    made = next(t for t in seen.snapshot.history if t.forecast is not None)
    predicted = json.loads(seen.records[made.number])["predicted"]
    assert predicted["lower"] == made.forecast.lower
    assert predicted["lower"] <= predicted["median"] <= predicted["upper"]
    study.close()


def test_names_in_addresses_need_no_escaping(tmp_path):
    assert name_of(tmp_path / "a b<c>ü.sqlite") == "a_b_c__"
    assert name_of(tmp_path / "nas-bot_1.2.sqlite") == "nas-bot_1.2"
    for name in ("one", "two"):
        write_study(tmp_path / f"{name}.sqlite", grown(3))
    (tmp_path / "notes.txt").write_text("not a study")
    assert set(LivePage(tmp_path)._studies) == {"one", "two"}


def test_a_curve_alone_is_news(driver, watched):
    running = Trial(number=0, candidate=Candidate(POOL[0])).begun(1.0)
    driver.save(running)
    before = watched.look().revision
    driver.save(replace(running, curve=(Point(1, 0.25),)))
    after = watched.look()
    assert after.revision == before + 1
    assert json.loads(after.records[0])["latest"] == 0.25


def test_a_study_that_began_after_the_server_is_found_by_its_address(tmp_path):
    write_study(tmp_path / "old.sqlite", grown(3))
    with serving(tmp_path) as served:
        write_study(tmp_path / "new.sqlite", grown(3))
        with urllib.request.urlopen(f"{served.url}s/new/", timeout=PATIENCE / 1000) as answer:
            assert answer.status == 200
