"""Two hundred hostile names: whatever they are used for, nothing is written outside the folder that is meant."""

from types import SimpleNamespace

import pytest

from nasbot.errors import NasbotError
from nasbot.study import Study, StudyView, study_path
from nasbot.study.optimise import _name_of
from tests.study.objectives import score
from tests.study.searchers import Sensitive

SEEDS = (
    "..",
    ".",
    "...",
    "../x",
    "../../etc/passwd",
    "/etc/passwd",
    "/tmp/nasbot-hostile",
    "a/../../x",
    "a/b",
    "~/x",
    "~root",
    "a\0b",
    "a\nb",
    "a\rb",
    "a\tb",
    "$(touch x)",
    "`touch x`",
    "x; touch y",
    "x|y",
    "x>y",
    "x<y",
    "*",
    "?",
    "[a]",
    "-rf",
    "--out=x",
    "con",
    "NUL",
    "aux.txt",
    "x:y",
    "C:\\x",
    "\\\\server\\x",
    "..\\x",
    "%2e%2e%2fx",
    "%00",
    "\u202ex",
    "\u2025/x",
    "\uff0e\uff0e\uff0fx",
    "x\u0000.sqlite",
    ".hidden",
    "x.sqlite-wal",
    "x.lock",
    "x" * 300,
    "é" * 130,
    "🦆",
    "\ud800",
    " ",
    "",
    "{x}",
    "'; DROP TABLE trials; --",
)


def names():
    """The seeds, and each in three disguises."""
    forms = [form for seed in SEEDS for form in (seed, f"x{seed}", f"{seed}x", f"x-{seed}-x", f"{seed}{seed}")]
    return list(dict.fromkeys(forms))[:200]


def test_there_are_two_hundred():
    assert len(set(names())) == 200


@pytest.fixture
def nest(tmp_path, monkeypatch):
    """The folder that is meant; nothing may appear beside it."""
    nest = tmp_path / "nest"
    nest.mkdir()
    monkeypatch.chdir(nest)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NASBOT_STUDIES", str(nest))
    yield nest
    assert [path.name for path in tmp_path.iterdir()] == ["nest"]


def test_names_of_studies(nest):
    """A name that is no path stays in the folder or is refused; what has a separator is a path that somebody chose."""
    opened = []
    for name in names():
        if "/" in name:
            continue
        try:
            path = study_path(name)
        except NasbotError:
            continue
        assert path.parent.absolute() == nest
        with Study.open(name, Sensitive(n_pool=1)):
            opened.append(path.name)
        with StudyView.read(name) as view:
            assert len(view.history) == 1
    assert len(opened) > 10


def test_names_of_objectives(nest):
    """``maximise`` names a study after its objective: also of a function that somebody named oddly."""
    for name in names():

        def objective(arch):
            return score(arch)

        objective.__name__ = name
        path = study_path(_name_of(objective))
        assert path.parent == nest
        assert path.name.isascii()


def test_names_of_data(nest):
    """``nasbot run`` and ``search`` name a study after its data."""
    from nasbot.automl.going_on import default_name

    for name in names():
        for target in ("y", name):
            preprocessing = SimpleNamespace(target=SimpleNamespace(names=(target,)))
            data = SimpleNamespace(name=name, fingerprint="0123456789abcdef", preprocessing=preprocessing)
            assert study_path(default_name(data, 0)).parent == nest
