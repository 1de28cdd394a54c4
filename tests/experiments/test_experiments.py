"""Every experiment runs, its page is drawn from its records alone, and without records nothing is claimed."""

import argparse
import re
from pathlib import Path

import pytest

import experiments.__main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.experiment import results_of
from experiments.markdown import page
from experiments.protocol import read_protocol
from experiments.records import Places, run_missing
from experiments.summary import CLAIMS, summary_page
from tests.experiments.tiny import NEED_SHARED, TINY, tiny

LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "out", tmp_path / "work", tmp_path / "data")


@pytest.fixture
def tiny_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "read_protocol", lambda name, *, quick: tiny(name))


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name in TINY])
def test_it_runs_and_its_page_is_drawn_from_records(
    name: str, tmp_path: Path, tiny_protocols: None, request: pytest.FixtureRequest
):
    data = request.getfixturevalue("shared_dir") / "data" if name in NEED_SHARED else tmp_path
    folders = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work"), "--data", str(data)]
    assert command.main([name, "--processes", "1", *folders]) == 0
    written = (tmp_path / "out" / f"{name}.md").read_text(encoding="utf-8")
    assert "All " in written
    assert "runs of the protocol are recorded." in written
    assert "Commit: " in written
    assert "Machine: " in written
    for link in LINK.findall(written):
        if not link.endswith(".md"):
            assert (tmp_path / "out" / link).is_file(), f"{name}: {link} is not there"
    figures = {path.name: path.read_bytes() for path in (tmp_path / "out" / "figures").iterdir()}
    records = (tmp_path / "out" / "records" / f"{name}.jsonl").read_bytes()
    assert command.main([name, "--pages", *folders]) == 0  # from the records, without data or studies
    assert (tmp_path / "out" / f"{name}.md").read_text(encoding="utf-8") == written
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "figures").iterdir()} == figures
    assert (tmp_path / "out" / "records" / f"{name}.jsonl").read_bytes() == records


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_without_records_a_page_claims_nothing(name: str, tmp_path: Path):
    options = argparse.Namespace(quick=False)
    places = Places(tmp_path / "out", tmp_path, tmp_path)
    command.write(EXPERIMENTS[name], options, places)
    written = (tmp_path / "out" / f"{name}.md").read_text(encoding="utf-8")
    assert "Not run" in written
    assert "Nothing is claimed" in written
    assert "What it shows" not in written
    assert "figures/" not in written
    assert "Commit" not in written


def test_a_page_says_how_much_of_the_protocol_was_run(places: Places):
    experiment, protocol = EXPERIMENTS["distance-map"], tiny("distance-map")
    assert experiment.do is not None
    run_missing(protocol, experiment.do, places, processes=1, say=lambda text: None)
    full = read_protocol("distance-map")
    more = type(protocol)(protocol.name, protocol.settings, full.axes, 1.0)
    results = results_of(more, places)
    written = page(experiment, more, results.records, experiment.write(results, places))
    assert f"**1 of the {len(more.runs())} runs of the protocol are recorded**" in written


def test_the_summary_without_records_is_all_not_run(places: Places):
    nothing = {name: results_of(read_protocol(name), places) for name in EXPERIMENTS}
    written = summary_page(nothing)
    assert written.count("**not run**") == len(CLAIMS)
    assert "holds" not in written


def test_the_list_says_what_is_recorded(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert command.main(["list", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["everything"], 2, "experiments: expected some of all"),
        (["all", "--seeds", "0"], 2, "--seeds"),
        (["all", "--processes", "x"], 2, "invalid int"),
        (["fcnet", "--quick", "--data", "nowhere"], 3, "FCNet tables"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, words: str
):
    assert command.main([*arguments, "--out", str(tmp_path), "--work", str(tmp_path), "--processes", "1"]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_every_figure_of_the_read_me_is_an_experiment():
    text = (Path(command.__file__).parent / "README.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"python -m experiments {name}" in text, f"experiments/README.md does not say how {name} is run"
