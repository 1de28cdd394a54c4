"""The report as a file: whole, small, and with commands that work."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace

import pytest

from nasbot import RandomSearch, SearchSpace, Study, StudyView
from nasbot.cli import main
from nasbot.errors import FileError
from nasbot.page.html import report_html, static_file, write_report
from nasbot.page.payload import SERIES, _command_of, as_json
from nasbot.plots.snapshot import Snapshot
from nasbot.storage.records import Run
from nasbot.trial import History
from tests.plots.studies import EXTREMES, as_minimised, by_hand, grown


def data_of(html):
    data = json.loads(html.split('id="nasbot-data">')[1].split("</script>")[0])
    return data | json.loads(gzip.decompress(base64.b64decode(data["packed"])))


@pytest.fixture(scope="module")
def html():
    return report_html(Snapshot.of(by_hand(), name="by-hand"), file="by-hand.sqlite")


def test_it_holds_everything(html):
    data = data_of(html)
    n = len(by_hand())
    assert [len(data[part]) for part in ("trials", "whole", "drawings", "near")] == [n] * 4
    assert set(data["series"]) == set(SERIES)
    assert set(data["figures"]) == {"map", "surrogate", "params"}
    assert all(drawing.startswith("<svg") for drawing in data["drawings"].values())
    assert data["strip"]["states"] == {"waiting": 1, "running": 1, "completed": 4, "failed": 1, "cancelled": 1}
    assert data["strip"]["best"]["trial"] == 4
    why = data["whole"]["4"]
    assert why["predicted"] == {"lower": 2.0, "median": 4.0, "upper": 4.5}
    assert why["changes"] == ["skip: 1 to 3", "swap_label: 2 to elu"]
    assert data["near"]["4"]["diff"]["parent"] == 1
    assert data["near"]["4"]["diff"]["drawing"].startswith("<svg")


def test_near_are_only_those_known_when_it_was_chosen():
    history = grown(30)
    near = data_of(report_html(Snapshot.of(history)))["near"]
    for trial in history:
        known = {t.number for t in history.completed if t.rank < trial.proposed_after}
        columns = near[str(trial.number)].get("nearest", {"rows": []})
        assert {row[0] for row in columns["rows"]} <= known
        distances = [row[2] for row in columns["rows"]]
        assert distances == sorted(distances)


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(html):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    assert not re.search(r"""(src|href)=["'](https?:)?//""", html)


def test_nothing_in_the_pages_own_files_makes_html_of_data():
    for name in ("dom.js", "charts.js", "source.js", "pages.js", "main.js"):
        code = re.sub(r"//.*", "", static_file(name))
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", code)
        assert not found, (name, found)


@pytest.mark.parametrize("name", EXTREMES)
def test_studies_with_little_in_them_have_a_report(name):
    assert len(data_of(report_html(Snapshot(EXTREMES[name])))["trials"]) == len(EXTREMES[name])


def test_minimised_values_are_turned():
    data = data_of(report_html(as_minimised()))
    assert data["strip"]["best"]["value"] == -5.0
    assert data["whole"]["4"]["predicted"] == {"lower": -4.5, "median": -4.0, "upper": -2.0}


def test_numbers_that_are_not_finite_are_null():
    assert as_json({"x": [float("nan"), float("inf"), 1.0]}) == '{"x":[null,null,1.0]}'


@pytest.mark.parametrize("n", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_it_is_small(n):
    """Less than 5 MB for 200 trials."""
    size = len(report_html(Snapshot.of(grown(n, kind="cnn"), name="cnn")).encode())
    assert size < 25_000 * n, f"{size / 1e6:.1f} MB"


def test_it_is_written_whole_or_not_at_all(tmp_path):
    path = write_report("x", tmp_path / "r.html")
    assert path.read_text() == "x"
    with pytest.raises(FileError, match="cannot write"):
        write_report("x", tmp_path / "missing" / "r.html")
    with pytest.raises(FileError, match="cannot write"):
        write_report("x", tmp_path / "r\0.html")
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("one", 1), ("two", 2)):
        with Study.open(name, RandomSearch(space=SearchSpace("mlp-reg")), seed=seed, context={"data": "x"}) as study:
            study.optimise(lambda arch: float(len(arch.layers)), 12)
    return tmp_path


def test_the_command_writes_it(studies, capsys):
    assert main(["report", "one", "--compare", "two", "-o", "out.html"]) == 0
    assert "wrote out.html" in capsys.readouterr().out
    data = data_of((studies / "out.html").read_text())
    assert [study["name"] for study in data["compare"]["studies"]] == ["one", "two"]
    assert data["about"]["seed"] == 1
    assert main(["report", "nowhere"]) == 3
    assert main(["report", "one", "-o", "missing/out.html"]) == 3


def test_the_commands_in_it_go_on_with_the_study_and_do_it_again(studies):
    with StudyView.read("one") as view:
        before = [trial.arch for trial in view.history]
        html = report_html(Snapshot.of(view, name="one"), file="studies/one.sqlite", status=view.status())
    commands = [command for _, command in data_of(html)["about"]["commands"] if "Study.open" in command]
    assert len(commands) == 2
    names = {"objective": lambda arch: float(len(arch.layers))}
    again = next(command for command in commands if "one-again" in command)
    exec(again, dict(names))  # noqa: S102  the text that people are told to run
    with StudyView.read("one-again") as view:
        assert [trial.arch for trial in view.history] == before
    further = next(command for command in commands if "one-again" not in command).replace("62)", "14)")
    exec(further, dict(names))  # noqa: S102
    with StudyView.read("one") as view:
        assert len(view.history) == 14


def test_a_study_of_nasbot_run_is_gone_on_with_and_repeated_by_its_command(studies):
    run = Run(number=0, begun=1.0, record={"command": "nasbot run x.csv --target 'a b'", "folder": "/some where"})
    with StudyView.read("one") as view:
        status = replace(view.status(), run=run)
        html = report_html(Snapshot.of(view, name="one"), file="one.sqlite", status=status)
    commands = [command for _, command in data_of(html)["about"]["commands"]]
    assert commands[0] == "cd '/some where' && nasbot run x.csv --target 'a b'"
    assert commands[1] == f"{commands[0]} --name one-again"
    assert not any("Study.open" in command for command in commands)


def test_an_empty_history_has_a_report_too():
    assert data_of(report_html(Snapshot(History())))["strip"]["best"] is None


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("nasbot demo --budget 40s", "demo"),
        ("python -m nasbot run 'my data.csv'", "run"),
        ("python train.py run", ""),
        ("nasbot", ""),
        ("nasbot 'run", ""),
    ],
)
def test_which_command_drove_a_study(line, command):
    assert _command_of(line) == command
