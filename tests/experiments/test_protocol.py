"""Protocols: TOML files that say what is run, and of which a result's settings are part."""

from pathlib import Path

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.protocol import Protocol, read_protocol
from nasbot.errors import FileError, OptionError

FILE = """
minutes = 5
remarks = "The machine\\n was busy."
[settings]
seconds = 10.0
recipe = "fast"
[runs]
seed = 2
method = ["NASBOT", "EA"]
[quick]
minutes = 1
[quick.settings]
seconds = 1.0
[quick.runs]
seed = [0]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.toml").write_text(FILE)
    (tmp_path / "two.toml").write_text('like = "one"\n[runs]\nseed = [7]\n[settings]\nmore = 1\n')
    return tmp_path


def test_runs_are_crossed_the_first_axis_outermost(folder: Path):
    protocol = read_protocol("one", folder=folder)
    assert protocol.runs() == [
        {"seed": 0, "method": "NASBOT"},
        {"seed": 0, "method": "EA"},
        {"seed": 1, "method": "NASBOT"},
        {"seed": 1, "method": "EA"},
    ]
    assert (protocol.settings, protocol.minutes) == ({"seconds": 10.0, "recipe": "fast"}, 5.0)


def test_quick_replaces_what_it_names(folder: Path):
    protocol = read_protocol("one", quick=True, folder=folder)
    assert protocol.settings == {"seconds": 1.0, "recipe": "fast"}
    assert protocol.runs() == [{"seed": 0, "method": "NASBOT"}, {"seed": 0, "method": "EA"}]
    assert protocol.minutes == 1.0


def test_settings_may_be_those_of_another(folder: Path):
    assert read_protocol("two", folder=folder).settings == {"seconds": 10.0, "recipe": "fast", "more": 1}
    assert read_protocol("two", quick=True, folder=folder).settings["seconds"] == 1.0


def test_remarks_are_about_the_records_of_the_full_protocol(folder: Path):
    assert read_protocol("one", folder=folder).remarks == "The machine was busy."
    assert read_protocol("one", quick=True, folder=folder).remarks == ""
    assert read_protocol("two", folder=folder).remarks == ""


def test_the_digest_stands_for_the_settings_and_not_for_the_runs(folder: Path):
    full, quick = (read_protocol("one", quick=quick, folder=folder) for quick in (False, True))
    more_seeds = Protocol("one", full.settings, {"seed": [0, 1, 2, 3]}, 5.0)
    assert full.digest == more_seeds.digest
    assert full.digest != quick.digest


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, FileError, "cannot be read"),
        ("seed = [", FileError, "not a TOML file"),
        ("[setting]\n", OptionError, "unknown entry 'setting'"),
        ("[runs]\nseed = 0\n", OptionError, "runs.seed: expected a list"),
        ("[runs]\nseed = true\n", OptionError, "runs.seed: expected a list"),
        ("[runs]\nseed = []\n", OptionError, "runs.seed: expected a list"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str | None, error: type[Exception], words: str):
    if text is not None:
        (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(error, match=words):
        read_protocol("wrong", folder=tmp_path)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_protocol(name: str, quick: bool):
    protocol = read_protocol(name, quick=quick)
    assert protocol.runs() or EXPERIMENTS[name].do is None
    assert EXPERIMENTS[name].name == name
