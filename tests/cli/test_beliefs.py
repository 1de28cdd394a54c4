"""``nasbot explain`` and ``nasbot what-if`` on studies on disk."""

import sqlite3

import pytest

from nasbot.searchers import NASBOT, RandomSearch
from nasbot.storage._rows import crc, encoded
from nasbot.study import Study, StudyView
from tests.searchers.problems import made, value_of


def cell_value(arch):
    return sum(layer.label == "a" for layer in arch.layers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="module")
def path(folder):
    """A study that is minimised, begun by one searcher and read without it."""
    where = folder / "mine.sqlite"
    with Study.open(where, made(NASBOT), direction="minimise", seed=1) as study:
        study.optimise(lambda arch: -value_of(arch), 6)
    return str(where)


def test_explain(run, path):
    with Study.open(path, made(NASBOT), direction="minimise", seed=1) as study:
        effect, value = study.explain(5), study.history[5].value
    record = run("explain", path, "5", "--json").record
    assert record["value"] == value
    assert (record["lower"], record["median"], record["upper"]) == (effect.lower, effect.median, effect.upper)
    assert [near["trial"] for near in record["nearest"]] == [near.trial for near in effect.nearest]
    shown = run("explain", path, "5")
    assert shown.code == 0
    assert shown.out.startswith(f"trial 5, completed, value {value:.6g}\n  made from   trial ")
    assert f"predicted   {effect.median:.6g}" in shown.out


def test_a_starting_network_is_explained_in_words(run, path):
    with StudyView.read(path) as view:
        history, starts = view.history, [view.explain(number) for number in range(3)]
    assert sorted(start.rank for start in starts) == sorted(
        1 + sum(other.value < history[number].value for other in history) for number in range(3)
    )  # the smaller the better
    for number, start in enumerate(starts):
        assert start.arch == history[number].arch
        assert all(number in history[child].origin.parents for child in start.children)
        record = run("explain", path, str(number), "--json").record
        assert (record["rank"], record["n_completed"]) == (start.rank, 6)
        shown = run("explain", path, str(number))
        assert shown.code == 0
        assert "a starting network, part of the pool, before any network was evaluated" in shown.out
        assert f"got         {start.value:.6g}, rank {start.rank} of 6 completed trials" in shown.out
    assert {child for start in starts for child in start.children} & {3, 4, 5}


def test_what_if(run, path):
    with StudyView.read(path) as view:
        effects = view.what_if()
    record = run("what-if", path, "--json", "--top", "3").record
    assert record["n_changes"] == len(effects)
    assert [change["change"] for change in record["changes"]] == [effect.change for effect in effects[:3]]
    medians = [change["median"] for change in record["changes"]]
    assert medians == sorted(medians)  # the smaller the better
    lines = run("what-if", path).out.splitlines()
    assert lines[0].startswith("change")
    assert len(lines) == 23
    assert "3 proposals in" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("explain", "{path}", "60"), 8, "there is no trial 60; the study has 6, numbered from 0"),
        (("explain", "{path}", "-1"), 2, "No such option: -1"),
        (("explain", "{path}", "five"), 2, "valid integer"),
        (("explain", "{folder}/absent.sqlite", "0"), 3, "No such file"),
        (("what-if", "{path}", "--top", "0"), 2, "--top must be at least 1, got 0"),
        (("what-if", "{folder}/fresh.sqlite"), 2, "what_if: expected at least one evaluated network"),
        (("what-if", "{folder}/random.sqlite"), 8, "RAND has no beliefs to explain"),
        (("what-if", "{folder}/cells.sqlite"), 6, "cells"),
    ],
)
def test_what_cannot_be_explained(run, path, folder, arguments, code, words):
    made_once = {"fresh": made(NASBOT), "random": made(RandomSearch), "cells": made(NASBOT, "cells")}
    for name, searcher in made_once.items():
        if not (folder / f"{name}.sqlite").exists():
            with Study.open(folder / f"{name}.sqlite", searcher) as study:
                if name != "fresh":
                    study.optimise(cell_value, 4)
    result = run(*(argument.format(path=path, folder=folder) for argument in arguments))
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_a_running_study_can_be_asked(run, path):
    with Study.open(path, made(NASBOT), direction="minimise", seed=1) as study:
        study.ask()
        assert run("what-if", path).code == 0


def stored(path, settings):
    """Write other settings into a study's file, with a checksum that fits."""
    cells = (1, encoded(settings))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE settings SET record = ?, crc = ?", (cells[1], crc(cells)))
    db.close()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("type",), "os.system"),
        (("type",), None),
        (("pool",), "x"),
        (("pool",), ["0" * 64]),
        (("pool",), []),
        (("modifiers",), ["skip; import os"]),
        (("acquisition",), "ei()"),
        (("acquisition",), ["ei"]),
        (("distance",), {"type": "builtins.eval", "repr": "eval('1')"}),
        (("distance", "preset"), "../paper"),
        (("distance", "structural_weights"), ["0.1"]),
        (("belief",), []),
        (("belief", "n_samples"), "10"),
        (("belief", "n_samples"), True),
        (("belief", "prior"), {"scale_spread": 1.0}),
        (("belief", "prior", "noise_median"), {"a": 1}),
        (("belief", "distance_power"), "__import__('os')"),
        (("__class__",), "x"),
        (("space",), "cnn"),
    ],
)
def test_settings_that_were_tampered_with_are_refused(run, folder, place, value):
    path = folder / "tampered.sqlite"
    if not path.exists():
        Study.open(path, made(NASBOT)).close()
    with StudyView.read(path) as view:
        settings = view.settings
    changed = inner = _copied(settings)
    for name in ("searcher", *place[:-1]):
        inner = inner[name]
    inner[place[-1]] = value
    stored(path, changed)
    try:
        result = run("what-if", str(path))
        assert (result.code, result.out) == (8, "")
        assert "cannot be made again from its settings" in result.err
    finally:
        stored(path, settings)


def _copied(value):
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value
