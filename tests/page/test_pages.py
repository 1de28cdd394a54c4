"""Every page, in the report and on the server, in a real browser: drawn, quiet, accessible, and its ways walked."""

import csv
import json
import os
import urllib.request
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.page.beside import Beside
from nasbot.page.html import report_html
from nasbot.plots.snapshot import Snapshot
from nasbot.study import StudyView
from nasbot.trial import Failed, History, Scored
from tests.page.conftest import SETTINGS, serving, write_study
from tests.plots.studies import EXTREMES, grown

PAGES = ("overview", "trials", "trial/0", "trial/23", "trial/30", "map", "lineage", "surrogate", "compare", "about")
SIZES = {"wide": (1440, 900), "phone": (390, 800)}


@pytest.fixture(scope="module")
def report_file(study_file):
    with StudyView.read(study_file) as view:
        html = report_html(Snapshot.of(view, name="forty"), file=str(study_file), status=view.status())
    path = study_file.with_suffix(".html")
    path.write_text(html, encoding="utf-8")
    return path


@pytest.mark.parametrize("size", SIZES)
def test_every_page_of_the_report_is_drawn_within_the_screen_and_asks_nothing(watched, report_file, size):
    width, height = SIZES[size]
    watched.page.set_viewport_size({"width": width, "height": height})
    for name in PAGES:
        watched.show(f"{report_file.as_uri()}#/{name}")
        too_wide = watched.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert too_wide <= 0, f"{name} is {too_wide} pixels wider than the screen"
        assert "could not be shown" not in watched.page.inner_text("main"), name
    elsewhere = [url for url in watched.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert not elsewhere


@pytest.mark.parametrize("size", SIZES)
def test_every_page_of_the_server_is_drawn_within_the_screen(watched, server, size):
    width, height = SIZES[size]
    watched.page.set_viewport_size({"width": width, "height": height})
    for name in PAGES:
        watched.show(f"{server.url}#/{name}")
        too_wide = watched.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert too_wide <= 0, f"{name} is {too_wide} pixels wider than the screen"
        assert "could not be shown" not in watched.page.inner_text("main"), name
    assert all(url.startswith((server.url, "data:", "blob:")) for url in watched.requests)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violations_of_accessibility(watched, report_file, scheme):
    from axe_playwright_python.sync_playwright import Axe

    watched.page.emulate_media(color_scheme=scheme)
    for name in ("overview", "trials", "trial/23", "map", "lineage", "surrogate", "compare", "about"):
        watched.show(f"{report_file.as_uri()}#/{name}")
        found = Axe().run(watched.page).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, (name, [(v["id"], v["nodes"][0]["html"][:200]) for v in serious])


def test_a_point_of_the_history_leads_to_its_network_and_why_it_was_proposed(watched, report_file):
    page = watched.page
    watched.show(f"{report_file.as_uri()}#/overview")
    plot = page.locator("figure.chart .plot").first
    plot.focus()
    for key in ("End", "ArrowLeft"):  # by keyboard, as a pointer does it too
        page.keyboard.press(key)
    assert "trial" in page.locator(".tip:not([hidden])").first.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('Why this network')")
    assert page.url.split("#/")[1].startswith("trial/")
    assert page.locator(".drawing img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 50


def test_a_failed_trial_shows_what_its_process_printed_and_where_it_raised(watched, tmp_path):
    history = grown(12)
    failed = history.failed[0]
    details = {"traceback": "line 7, in train", "process": {"output": "last words", "peak_memory": 5, "signal": 9}}
    told = replace(failed, outcome=Failed(failed.outcome.cause, "it died", details))
    told_of = History(tuple(told if trial.number == failed.number else trial for trial in history))
    with StudyView.read(write_study(tmp_path / "died.sqlite", told_of)) as view:
        html = report_html(Snapshot.of(view, name="died"), file="died", status=view.status())
    path = tmp_path / "died.html"
    path.write_text(html, encoding="utf-8")
    watched.show(f"{path.as_uri()}#/trial/{failed.number}")
    shown = watched.page.inner_text("main")
    assert "What it printed, its end" in shown
    assert all(text in shown for text in ("it died", "last words", "line 7, in train", "process.signal"))


def test_params_and_short_trainings_are_shown_and_downloaded(watched, tmp_path):
    params = [{"learning_rate": 0.0125, "schedule": "cosine"}, {"learning_rate": 0.5, "schedule": "step"}]
    found = [
        replace(trial, candidate=Candidate(trial.arch, params[trial.number % 2]), fidelity=1 / 3 if i == 5 else 1.0)
        for i, trial in enumerate(grown(12))
    ]
    found[7] = replace(found[7], promoted_from=5)
    path = write_study(tmp_path / "joint.sqlite", History(tuple(found)))
    with StudyView.read(path) as view:
        html = report_html(Snapshot.of(view, name="joint"), file="joint", status=view.status())
    report = path.with_suffix(".html")
    report.write_text(html, encoding="utf-8")
    page = watched.page
    watched.show(f"{report.as_uri()}#/trials")
    first = page.inner_text("#trials tbody tr:nth-child(1)")
    assert "learning_rate 0.0125, schedule cosine" in first
    assert "full" in first
    assert "1/3 of a training" in page.inner_text("#trials tbody tr:nth-child(6)")
    with page.expect_download() as download:
        page.click("#csv")
    mine = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert mine[5]["params.learning_rate"] == "0.5"
    assert mine[5]["fidelity"].startswith("0.333")
    watched.show(f"{report.as_uri()}#/trial/7")
    facts = page.inner_text("dl.facts")
    assert all(words in facts for words in ("learning_rate\n0.5", "schedule\nstep", "promoted from\ntrial 5"))
    with serving(path) as served:
        theirs = urllib.request.urlopen(served.url + "s/joint/api/trials.csv").read().decode()
    assert [row.keys() for row in csv.DictReader(theirs.splitlines())][5] == mine[5].keys()
    assert list(csv.DictReader(theirs.splitlines()))[5]["params.schedule"] == "step"


def test_a_click_on_the_map_opens_the_network_there(watched, report_file):
    page = watched.page
    watched.show(f"{report_file.as_uri()}#/map")
    page.locator("figure.chart circle.dot").nth(7).click(force=True)
    page.wait_for_selector("h2:has-text('Why this network')")
    assert "#/trial/" in page.url


def test_trials_are_sorted_filtered_linked_and_downloaded(watched, report_file):
    page = watched.page
    watched.show(f"{report_file.as_uri()}#/trials")
    numbers = "[...document.querySelectorAll('#trials tbody tr')].map(row => Number(row.cells[0].textContent))"
    assert page.evaluate(numbers) == list(range(40))
    page.click("#sort-value")
    page.click("#sort-value")
    watched.wait("document.getElementById('sort-value').parentNode.ariaSort === 'descending'")
    best = page.evaluate(numbers)[0]
    page.fill("#find", "oom")
    watched.wait(f"JSON.stringify({numbers}) === '[11,23,35]'")
    assert page.evaluate("document.activeElement.id") == "find", "typing goes on where it was"
    link = page.url
    watched.show(link + "&again=1")  # a permalink: the same rows when it is opened afresh
    assert page.evaluate(numbers) == [11, 23, 35]
    with page.expect_download() as waiting:
        page.click("#json")
    assert [row["number"] for row in json.loads(waiting.value.path().read_text())] == [11, 23, 35]
    with page.expect_download() as waiting:
        page.click("#csv")
    lines = waiting.value.path().read_text().splitlines()
    assert lines[0].startswith("number,state,value")
    assert [line.split(",")[0] for line in lines[1:]] == ["11", "23", "35"]
    watched.show(f"{report_file.as_uri()}#/overview")
    assert f"trial {best}" in page.inner_text("main")


def test_printed_it_is_one_document(watched, report_file, tmp_path):
    watched.show(f"{report_file.as_uri()}#/map")
    pdf = watched.page.pdf(path=tmp_path / "report.pdf")
    assert pdf.startswith(b"%PDF")
    watched.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    watched.wait("document.querySelectorAll('#trials tbody tr').length === 40")
    headings = watched.page.locator("main h2").all_inner_texts()
    assert {"Progress", "Trials", "Map of networks", "Lineage", "Do it again"} <= set(headings)


OVERLAPS = """() => {
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const found = [];
  let n = 0;
  for (const axes of document.querySelectorAll("g.axes")) {
    const texts = [...axes.querySelectorAll("text")].filter((text) => text.textContent.trim());
    for (const label of texts.filter((text) => text.classList.contains("label")))
      for (const tick of texts.filter((text) => !text.classList.contains("label"))) {
        n += 1;
        if (!apart(label.getBoundingClientRect(), tick.getBoundingClientRect()))
          found.push(`${label.textContent}: ${tick.textContent}`);
      }
  }
  return [n, found];
}"""


@pytest.mark.parametrize("size", SIZES)
def test_names_of_axes_stand_apart_from_their_numbers(watched, tmp_path, size):
    """With numbers of many digits, which differ in the last ones."""
    history = grown(20)
    trials = [
        replace(t, outcome=Scored(300_000.09128 + 0.00002 * t.number)) if isinstance(t.outcome, Scored) else t
        for t in history
    ]
    path = tmp_path / "digits.html"
    path.write_text(report_html(Snapshot(History(tuple(trials)), name="digits")), encoding="utf-8")
    width, height = SIZES[size]
    watched.page.set_viewport_size({"width": width, "height": height})
    for page in ("overview", "lineage", "compare"):
        watched.show(f"{path.as_uri()}#/{page}")
        n, found = watched.page.evaluate(OVERLAPS)
        assert n > 5, page
        assert not found, f"{page}: {found}"


@pytest.mark.parametrize("name", EXTREMES)
def test_studies_with_little_in_them_are_shown_too(watched, tmp_path, name):
    html = report_html(Snapshot(EXTREMES[name], name=name))
    path = tmp_path / "little.html"
    path.write_text(html, encoding="utf-8")
    for page in ("overview", "trials", "trial/0", "map", "lineage", "surrogate", "compare", "about"):
        watched.show(f"{path.as_uri()}#/{page}")
        assert "could not be shown" not in watched.page.inner_text("main"), page


def test_a_folder_of_studies_is_listed_by_time_and_compared(watched, tmp_path):
    write_study(tmp_path / "one.sqlite", grown(12))
    write_study(tmp_path / "two.sqlite", grown(14), searcher={"name": "RAND"})
    other_data = {"data": "f00d", "data_name": "wine", "metric": "auc"}
    write_study(tmp_path / "three.sqlite", grown(10), context=other_data)
    for age, name in enumerate(("two", "three", "one")):
        os.utime(tmp_path / f"{name}.sqlite", (1e9 - age, 1e9 - age))
    with serving(tmp_path) as served:
        page = watched.page
        page.goto(served.url)
        rows = [row.split("\t") for row in page.locator("main tbody tr").all_inner_texts()]
        assert [row[0] for row in rows] == ["two", "three", "one"]
        assert rows[1][2:5] == ["wine", "validation auc [0 to 1]", "10"]
        page.click("text=two")
        watched.settle()
        watched.show(page.url.split("#")[0] + "#/compare")
        assert page.locator(".legend li").all_inner_texts() == ["RAND", "NASBOT"]
        assert page.locator("path.step").count() == 2
        page.click("#curve-1")
        watched.wait("document.querySelectorAll('path.step').length === 1")
        page.click("#show-each")
        watched.wait("document.querySelector('.legend').textContent === 'twoone'")
        page.click("#axis-1")  # of other data: on an axis of its own
        watched.wait("document.querySelector('.legend').textContent === 'three'")
        assert "validation auc [0 to 1]" in page.locator("svg .label").nth(1).text_content()


def test_a_plot_is_zoomed_made_logarithmic_and_downloaded(watched, report_file):
    page = watched.page
    watched.show(f"{report_file.as_uri()}#/overview")
    figure = page.locator("figure.chart").first
    dots = "document.querySelector('figure.chart').querySelectorAll('circle.dot').length"
    before = page.evaluate(dots)
    box = figure.locator("svg").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 200, steps=4)
    page.mouse.up()
    watched.wait(f"{dots} < {before}")
    assert "#/overview" in page.url, "a drag is no click"
    figure.get_by_text("zoom out").click()
    watched.wait(f"{dots} === {before}")
    figure.get_by_text("log x").click()
    assert figure.get_by_text("log x").get_attribute("aria-pressed") == "true"
    with page.expect_download() as waiting:
        figure.get_by_text("SVG").click()
    assert waiting.value.suggested_filename == "best-so-far.svg"
    drawn = ElementTree.fromstring(waiting.value.path().read_text())
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}circle[@fill]")) >= before


MODEL = {
    "rows": "test", "n_rows": 10, "metric": "log-loss", "importance": [{"column": "age", "worse": 0.3}],
    "residuals": {}, "levels": [0.05, 0.25, 0.5, 0.75, 0.95], "classes": ["no", "yes"], "confusion": [[4, 1], [0, 5]],
    "calibration": [[0.9, 0.8, 10]], "calibration_error": 0.1,
    "results": {
        "single": {"metric": "log-loss", "validation": 0.2, "test": 0.3, "test_accuracy": 0.9},
        "gain": {"value": 0.1234, "noise": 0.0567},
    },
}  # fmt: skip
DATA = {
    "name": "wine", "rows": {"training": 6, "validation": 2, "test": 2}, "columns": ["age"], "n_columns": 1,
    "forms": {"number": 1}, "shape": [1], "target": ["sold"], "task": "classification", "classes": ["no", "yes"],
    "n_classes": 2,
}  # fmt: skip


def test_the_overview_has_the_data_and_the_recommended_model(watched, tmp_path):
    history = grown(12)
    best = history.best
    network = best.arch.to_dict()
    network["layers"][1] |= {"dropout": 0.2, "decay_factor": 2}
    told = replace(
        best,
        candidate=Candidate(Architecture.from_dict(network)),
        outcome=Scored(best.value, {"metrics": {"valid_accuracy": 0.875}, "training_curve": [[1, 0.9]]}),
    )
    history = History(tuple(told if trial.number == best.number else trial for trial in history))
    settings = SETTINGS | {"context": {"data": "f00d", "data_name": "wine", "metric": "log-loss", "folds": 5}}
    members = [[best.number, 0.75], [0, 0.25]]
    html = report_html(Snapshot(history, "wine", settings), beside=Beside(DATA, MODEL, members))
    path = tmp_path / "wine.html"
    path.write_text(html, encoding="utf-8")
    watched.show(f"{path.as_uri()}#/overview")
    page, words = watched.page, watched.page.inner_text("main")
    assert "validation log-loss [nats], higher is better" in words
    assert "5-fold cross-validation" in words
    assert "accuracy (validation)\n0.875" in words
    assert page.locator(".confusion td").all_inner_texts() == ["4", "1", "0", "5"]
    assert "0.9" in page.locator("tr", has_text="best network").inner_text()
    with page.expect_download() as waiting:
        page.click("#network-file")
    assert Architecture.load(waiting.value.path()) == told.arch != best.arch, "with the options of its layers"
    assert "Better than the baseline by 0.123 ± 0.057 on test rows" in words
    watched.show(f"{path.as_uri()}#/trial/{best.number}")
    assert "Training loss" in page.inner_text("main")
