"""Studies of very many trials: counted whole, shown in part, their table sorted and cut by the server."""

import csv
import io
import json
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from nasbot.page import excerpt
from nasbot.page._worker import _answer
from nasbot.page.excerpt import Excerpt, ExcerptReader, chosen, shown, tally_of
from nasbot.page.html import report_html
from nasbot.page.payload import SERIES, series_json, strip_record
from nasbot.page.watching import WatchedStudy
from nasbot.plots.snapshot import Snapshot, records_of
from nasbot.storage import SqliteStorage, Tally
from nasbot.storage.tally import Line
from nasbot.trial import Direction, History
from tests.page.conftest import SETTINGS, serving, write_study
from tests.page.test_report import data_of
from tests.plots.studies import grown

HISTORY = grown(160)


@pytest.fixture
def few(monkeypatch):
    """Limits so low that a study of 160 trials is a large one."""
    monkeypatch.setattr(excerpt, "MOST_WHOLE", 50)
    monkeypatch.setattr("nasbot.page.watching.MOST_WHOLE", 50)
    for name, n in {"N_RECORDS": 50, "N_BEST": 5, "N_LATEST": 7, "N_FAILED": 3, "N_EVEN": 10}.items():
        monkeypatch.setattr(excerpt, name, n)


def test_the_excerpt_has_records_the_best_the_latest_failures_and_the_winners_line(few):
    snapshot = shown(Snapshot(HISTORY, "many"))
    history = snapshot.history
    assert isinstance(history, Excerpt)
    assert len(history) < 60
    numbers = {trial.number for trial in history}
    assert set(records_of(HISTORY)) <= numbers
    assert {trial.number for trial in HISTORY.ranked[:5]} <= numbers
    assert set(range(153, 160)) <= numbers
    assert {trial.number for trial in sorted(HISTORY.failed, key=lambda t: t.number)[-3:]} <= numbers
    at = HISTORY.best
    while at is not None:
        assert at.number in numbers
        at = HISTORY[at.origin.parents[0]] if at.origin.parents else None
    assert history.best == HISTORY.best
    assert all(history[n] == HISTORY[n] for n in numbers)
    assert records_of(history) == records_of(HISTORY)
    with pytest.raises(KeyError):
        history[next(n for n in range(160) if n not in numbers)]


def test_counts_are_of_all_trials(few):
    snapshot, whole = shown(Snapshot(HISTORY, "many")), Snapshot(HISTORY, "many")
    assert tally_of(snapshot.history).to_dict() == Tally.of_history(HISTORY).to_dict()
    assert strip_record(snapshot, None) == strip_record(whole, None)
    failures = json.loads(series_json("failures", snapshot))
    assert failures["n_failed"] == len(HISTORY.failed)
    assert failures["n_finished"] == len(HISTORY.finished)
    best = {
        name: [p[4] for p in json.loads(series_json("history", each))["points"]["rows"]][-1]
        for name, each in (("all", whole), ("some", snapshot))
    }
    assert best["all"] == best["some"]


@pytest.mark.parametrize("name", SERIES)
def test_every_series_can_be_made_of_an_excerpt(few, name):
    assert series_json(name, shown(Snapshot(HISTORY, "many", SETTINGS)))


def test_a_small_study_is_shown_whole():
    snapshot = Snapshot(HISTORY, "small")
    assert shown(snapshot) is snapshot


def test_a_reader_follows_a_study_that_grows(few, tmp_path):
    part = History(
        replace(t, outcome=None, rank=None, finished=None) if t.rank is not None and t.rank >= 100 else t
        for t in HISTORY[:120]
    )
    file = write_study(tmp_path / "many.sqlite", part)
    driver, reading = SqliteStorage(file), SqliteStorage(file, read_only=True)
    reader = ExcerptReader(reading)
    assert tally_of(reader.read(Direction.MAXIMISE)).to_dict() == Tally.of_history(part).to_dict()
    for trial in HISTORY.finished[100:]:
        driver.save(trial)
    driver.close()
    again = reader.read(Direction.MAXIMISE)
    now = SqliteStorage(file, read_only=True)
    assert again.tally.to_dict() == now.tally().to_dict()
    assert again.tally.ranked.tolist() == now.tally().ranked.tolist()
    assert reader.lines == now.lines()
    assert [line.number for line in now.lines(since=110)] == [
        t.number for t in HISTORY if t.rank is None or t.rank >= 110
    ]
    assert now.n_trials() == len(HISTORY)
    for storage in (reading, now):
        storage.close()


def test_what_is_near_to_a_trial_that_is_not_in_the_excerpt(few, tmp_path):
    study = WatchedStudy(write_study(tmp_path / "many.sqlite", HISTORY), "many")
    shown = {trial.number for trial in study.look().snapshot.history}
    number = next(t.number for t in HISTORY if t.number not in shown and t.number > 40 and t.origin.parents)
    near = json.loads(_answer(study, "near", str(number)))
    assert near["diff"]["parent"] == HISTORY[number].origin.parents[0]
    known = {t.number for t in HISTORY.completed if t.rank < HISTORY[number].proposed_after}
    assert {row[0] for row in near["nearest"]["rows"]} <= known
    assert json.loads(_answer(study, "figure", "map"))["points"]["rows"]
    study.close()


def test_choosing_is_bounded_however_many_there_are():
    lines = [Line(i, "completed", float(i), None, 1.0, "NASBOT", i, 0.0, 1.0) for i in range(20_000)]
    tally = Tally.of(lines, Direction.MAXIMISE)
    numbers = chosen(lines, tally, Direction.MAXIMISE)  # every trial is a record
    assert len(numbers) <= 2000
    assert {0, 19_999} <= set(numbers)
    assert np.diff(numbers).max() <= 20_000 / 799 + 1


@pytest.fixture
def pages(few, tmp_path):
    file = write_study(tmp_path / "many.sqlite", HISTORY)
    storage = SqliteStorage(file, read_only=True)
    reader = ExcerptReader(storage)
    reader.read(Direction.MAXIMISE)
    yield reader
    storage.close()


def test_the_table_is_sorted_filtered_and_cut(pages):
    n, first = pages.page({"sort": "value", "order": "down"}, 10)
    assert n == 160
    assert [t.value for t in first] == sorted((t.value for t in HISTORY.completed), reverse=True)[:10]
    n, failed = pages.page({"state": "failed", "from": "2"}, 100)
    assert [t.number for t in failed] == sorted(t.number for t in HISTORY.failed)[2:]
    assert n == len(HISTORY.failed)
    n, _ = pages.page({"q": "oom"}, 100)
    assert n == sum("oom" in str(t.outcome.cause) for t in HISTORY.failed) > 0
    n, last = pages.page({"sort": "value", "from": str(n - 1 + 159 - n + 1)}, 100)
    assert last[-1].value is None, "what is not known comes last"
    assert pages.page({"from": "-5", "sort": "'; DROP TABLE trials"}, 1)[1] == [HISTORY[0]]


def test_the_report_holds_the_excerpt(few):
    data = data_of(report_html(Snapshot(HISTORY, "many", SETTINGS), file="many"))
    assert data["about"]["excerpt"] == {"n_all": 160, "n_shown": len(data["trials"])}
    assert len(data["trials"]) < 60
    assert data["strip"]["trials"] == 160
    assert set(data["whole"]) == {str(trial["number"]) for trial in data["trials"]}


def test_the_page_of_a_large_study(watched, tmp_path, monkeypatch):
    history = grown(40)
    ended = list(history.finished)
    trials = [
        replace(ended[i % len(ended)], number=i, rank=i, started=float(i), finished=i + 0.5) for i in range(5_200)
    ]
    storage = SqliteStorage(tmp_path / "many.sqlite")
    storage.create(SETTINGS)
    for first in range(0, len(trials), 200):
        storage.save(*trials[first : first + 200])
    storage.close()
    whole = History(trials)
    with serving(tmp_path / "many.sqlite") as served:
        page = watched.page
        watched.show(f"{served.url}#/overview")
        assert "This study has 5,200 trials" in page.inner_text("main")
        assert "5,200" in page.inner_text("#strip") or "5200" in page.inner_text("#strip")
        page.evaluate("location.hash = '#/trials?sort=value&order=down'")
        watched.wait("document.querySelectorAll('#trials tbody tr').length === 100")
        assert int(page.locator("#trials tbody tr td").first.inner_text().replace(",", "")) in {
            t.number for t in whole.completed if t.value == whole.best.value
        }
        page.click("#further")
        watched.wait("document.querySelector('.pages span').textContent === '101 to 200'")
        in_no_excerpt = "[...Array(5200).keys()].find((n) => !source.trials[n])"
        number = page.evaluate(in_no_excerpt)
        page.evaluate(f"location.hash = '#/trial/{number}'")
        page.wait_for_selector(f"h2:has-text('Trial {number} ')")
        address = served.url + "s/many/api/"
        rows = list(csv.DictReader(io.StringIO(urllib.request.urlopen(address + "trials.csv").read().decode())))
        assert [int(row["number"]) for row in rows] == list(range(5_200))
        assert len(json.loads(urllib.request.urlopen(address + "trials.json").read())) == 5_200
        assert len(urllib.request.urlopen(address + "study").read()) < 2_500_000
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address + "trial/5200")


def test_the_first_look_is_a_glance_and_the_next_checks_and_shows_all(few, tmp_path, monkeypatch):
    monkeypatch.setattr("nasbot.page.watching.GLANCE_SECONDS", 0.0)
    file = write_study(tmp_path / "many.sqlite", HISTORY)
    study = WatchedStudy(file, "many", glances=True)
    first = study.look()
    unread = next(t.number for t in HISTORY if t.number not in {one.number for one in first.snapshot.history})
    second = study.look()
    assert 5 < len(first.records) < len(second.records)
    assert first.snapshot.history.tally.to_dict() == second.snapshot.history.tally.to_dict()
    assert first.snapshot.history.best == second.snapshot.history.best == HISTORY.best
    assert first.revision < second.revision
    study.close()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE trials SET notes = ? WHERE number = ?", ('{"a":"b"}', unread))
    study = WatchedStudy(file, "many", glances=True)
    assert not study.look().problem, "what is not shown is not checked at once"
    assert f"trial {unread}" in study.look().problem
    study.close()
