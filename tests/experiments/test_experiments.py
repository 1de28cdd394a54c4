"""Every experiment runs, its page is drawn from its records alone, and without records nothing is claimed."""

import argparse
import re
from pathlib import Path

import pytest

import experiments.__main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.experiment import Body, Results, results_of
from experiments.markdown import hosted, page
from experiments.protocol import Protocol, read_protocol
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


TOGETHER = ("regression", "cifar10", "best-networks", "alternatives")  # each reads records of those before it
GROUPS = [TOGETHER, *((name,) for name in EXPERIMENTS if name not in TOGETHER)]


def written_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_it_runs_and_its_page_is_drawn_from_records(
    names: tuple[str, ...], tmp_path: Path, tiny_protocols: None, request: pytest.FixtureRequest
):
    data = request.getfixturevalue("shared_dir") / "data" if NEED_SHARED.intersection(names) else tmp_path
    out = tmp_path / "out"
    folders = ["--out", str(out), "--work", str(tmp_path / "work"), "--data", str(data)]
    assert command.main([*names, "--processes", "1", *folders]) == 0
    for name in names:
        text = (out / EXPERIMENTS[name].page).read_text(encoding="utf-8")
        assert EXPERIMENTS[name].do is None or "runs of the protocol are recorded." in text
        assert "What it shows, and what it does not" in text
        assert "Commit: " in text
        assert "Machine: " in text
        for link in LINK.findall(text):
            assert link.endswith(".md") or (out / link).is_file(), f"{name}: {link} is not there"
    before = written_files(out)
    assert command.main([*names, "--pages", "--out", str(out)]) == 0  # from the records, without data or studies
    assert written_files(out) == before


def test_every_experiment_is_in_the_tests_at_its_smallest():
    assert set(TINY) == set(EXPERIMENTS)


def test_a_page_written_by_hand_keeps_its_words_around_the_one_that_is_written():
    host = "# By hand\n\nbefore\n\n<!-- fcnet: begin -->\nold\n<!-- fcnet: end -->\n\nafter\n"
    text = "<!-- made -->\n\n# Title\n\n# not a title\n"
    expected = host.replace("old\n", "<!-- made -->\n\n## Title\n\n# not a title\n")
    assert hosted(host, "fcnet", text) == expected
    assert hosted(expected, "fcnet", text) == expected
    assert hosted("# By hand\n", "fcnet", text) == text


def test_remarks_of_a_protocol_are_on_its_page():
    remarks = "The machine was busy."
    results = Results(Protocol("fcnet", {}, {"seed": [0]}, 1.0, remarks), [])
    assert f"**About these records.** {remarks}" in page(EXPERIMENTS["fcnet"], results, Body("", ""))
    assert remarks not in page(EXPERIMENTS["fcnet"], results, None)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_without_records_a_page_claims_nothing(name: str, tmp_path: Path):
    options = argparse.Namespace(quick=False)
    places = Places(tmp_path / "out", tmp_path, tmp_path)
    command.write(EXPERIMENTS[name], options, places)
    written = (tmp_path / "out" / EXPERIMENTS[name].page).read_text(encoding="utf-8")
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
    written = page(experiment, results, experiment.write(results, places))
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


def test_missing_data_do_not_keep_other_experiments_from_running(
    tmp_path: Path, tiny_protocols: None, capsys: pytest.CaptureFixture[str]
):
    folders = ["--out", str(tmp_path), "--work", str(tmp_path), "--data", str(tmp_path), "--processes", "1"]
    assert command.main(["fcnet", "distance-map", *folders]) == 3
    assert "error: fcnet: " in capsys.readouterr().err
    assert "Nothing is claimed" in (tmp_path / "fcnet.md").read_text(encoding="utf-8")
    assert "What it shows" in (tmp_path / "distance-map.md").read_text(encoding="utf-8")


def test_every_figure_of_the_read_me_is_an_experiment():
    text = (Path(command.__file__).parent / "README.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"python -m experiments {name}" in text, f"experiments/README.md does not say how {name} is run"
