"""``nasbot plot`` on studies on disk."""

import pytest

import nasbot
from nasbot.plots.plot import PLOTS
from nasbot.searchers import EvolutionSearch, RandomSearch
from nasbot.study import Study
from tests.searchers.problems import made, value_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three studies: two seeds of one search, and another searcher."""
    folder = tmp_path_factory.mktemp("studies")
    for name, searcher, seed in (("rand0", RandomSearch, 0), ("rand1", RandomSearch, 1), ("ea", EvolutionSearch, 0)):
        with Study.open(folder / f"{name}.sqlite", made(searcher), seed=seed) as study:
            study.optimise(value_of, 5)
    Study.open(folder / "fresh.sqlite", made(RandomSearch)).close()
    return folder


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NASBOT_STUDIES", str(folder))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_plot_writes_where_it_is_told(run, here):
    result = run("plot", "rand0", "history", "-o", "a.svg", "--by", "seconds")
    assert (result.code, result.out, result.err) == (0, "drew a.svg\n", "")
    assert "Best so far" in (here / "a.svg").read_text()
    assert "rand0" in (here / "a.svg").read_text()
    assert run("plot", "rand0", "layers", "--out", "a.png", "--best", "2").code == 0
    assert (here / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_plot_names_the_file_itself(run, here):
    assert run("plot", "rand0", "diff", "--trial", "1", "--other", "0").out == "drew rand0-diff.svg\n"
    assert "trial 0" in (here / "rand0-diff.svg").read_text()


def test_studies_are_compared(run, here):
    assert run("plot", "rand0", "compare", "--against", "rand1", "--against", "ea", "-o", "c.svg").code == 0
    text = (here / "c.svg").read_text()
    assert "RAND (2)" in text
    assert "EA" in text


@pytest.mark.parametrize("name", PLOTS)
def test_a_study_that_has_only_begun(run, here, name):
    result = run("plot", "fresh", name, "-o", "a.svg")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("rand0", "histoy"), 2, "expected one of history, timeline"),
        (("rand0", "history", "-o", "a.gif"), 2, "must end in .svg or .png"),
        (("rand0", "history", "-o", "absent/a.svg"), 3, "cannot write absent/a.svg"),
        (("rand0", "history", "--by", "weeks"), 2, "trials or seconds"),
        (("rand0", "costs", "--cost", "money"), 2, "parameters, mass, seconds"),
        (("rand0", "network", "--trial", "60"), 8, "there is no trial 60"),
        (("rand0", "history", "--against", "ea"), 2, "--against is for compare"),
        (("absent", "history"), 3, "No such file"),
        (("rand0", "compare", "--against", "absent"), 3, "No such file"),
    ],
)
def test_mistakes_are_one_line(run, here, arguments, code, words):
    result = run("plot", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_the_front_door_has_it(here, folder):
    with nasbot.StudyView.read("rand0") as view:
        assert nasbot.plot(view, "failures", "f.svg", title="mine").exists()
