"""The names of a package are written once, in its stub, and importing it costs next to nothing."""

import ast
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nasbot

STUBBED = ("nasbot", "nasbot.searchers", "nasbot.study")


@pytest.mark.parametrize("name", STUBBED)
def test_every_name_is_written_once_and_is_what_the_stub_says(name):
    package = import_module(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    written = Counter(alias.asname for node in imports for alias in node.names)
    assert written
    assert set(written.values()) == {1}
    assert set(package.__all__) - {"__version__"} == set(written)
    for node in imports:
        for alias in node.names:
            assert alias.asname == alias.name, "only so is it exported"
            assert getattr(package, alias.name) is getattr(import_module(node.module), alias.name)


def test_rooms_load_when_they_are_asked_for():
    code = """
import sys, nasbot
assert not {"numpy", "scipy", "torch", "numba"} & set(sys.modules), "importing nasbot loads none of them"
assert nasbot.architecture.chain is not None
assert nasbot.initial_pool is nasbot.architecture.initial_pool
try:
    nasbot.architectures
except AttributeError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "module 'nasbot' has no attribute 'architectures'\n"
    assert "architecture" in dir(nasbot)
    assert getattr(nasbot, "architecture.graph", None) is None


# -- what is of the wrong type -----------------------------------------------------------------------------------------

MLPS = nasbot.SearchSpace("mlp-reg")
NETWORK = nasbot.initial_pool("mlp-reg")[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nasbot.Candidate(NETWORK, [0.1]), "params: expected values by name"),
        (lambda: nasbot.Candidate(NETWORK, {1: 0.1}), "params: expected values by name"),
        (lambda: nasbot.Candidate(NETWORK, {"dropout": [0.1]}), "param dropout: expected a number or a text, got list"),
        (lambda: nasbot.Domain("mlp-reg"), "networks of a domain: expected a SearchSpace, got str"),
        (lambda: nasbot.Domain(MLPS, (nasbot.Float(0, 1),)), "params of a domain: expected a Mapping, got tuple"),
        (lambda: nasbot.Domain(MLPS, {}, 3), "fidelity: expected none, steps"),
        (lambda: nasbot.NASBOT(space="mlp-reg"), r"space: expected a SearchSpace.* got 'mlp-reg' \(str\)"),
        (lambda: nasbot.RandomSearch(space=None), "space: expected a SearchSpace"),
        (lambda: nasbot.NASBOT(space=MLPS, belief="map"), r"belief: expected BeliefOptions\(\.\.\.\), got 'map'"),
        (lambda: _study().add("net", 0.1), "expected a network as an Architecture, got str"),
        (lambda: _study().report(0, "first", 0.1), "step: expected a whole number, got 'first'"),
        (lambda: nasbot.export(_study(), "a.onnx"), r"model: expected a Model.* got Study; .* study\.model\(\)"),
        (lambda: _study().ask("2"), "n: expected at least 1 trial to ask for, as a whole number, got '2'"),
        (lambda: _study().optimise(lambda arch: 1.0, 1, executor="here"), "executor: expected an object such as"),
    ],
)
def test_what_is_of_the_wrong_type_is_said_in_one_line(call, said):
    with pytest.raises(nasbot.OptionError, match=said):
        call()


def _study():
    return nasbot.Study.in_memory(nasbot.RandomSearch(space=MLPS))


def test_a_domain_takes_a_word_for_its_fidelity():
    assert nasbot.Domain(MLPS, {}, "rows").fidelity == nasbot.Fidelity(of="rows")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tune": 3}, "tune: expected auto, none, names"),
        ({"searcher": 3}, r"searcher: expected an object such as NASBOT\(space=\.\.\.\), or one of nasbot"),
        ({"executor": 3}, "executor: expected an object such as"),
        ({"name": 3}, "study: expected a name or a path, got '3'"),
        ({"fork": "new"}, "fork: expected name= of the study to begin with"),
        ({"searcher": nasbot.RandomSearch(space=nasbot.SearchSpace("cnn"))}, "networks of cnn take images"),
        ({"space": nasbot.SearchSpace("mlp-reg", max_layers=5)}, "space: the searcher that is given has its own"),
        ({"tune": "dropout"}, "tune: the searcher that is given has its own params"),
        ({"fidelity": "steps"}, "fidelity: the searcher that is given has its own"),
        ({"pool": "paper"}, "pool: a searcher that is given has its own"),
        ({"start_from": [NETWORK]}, "start_from: a searcher that is given has its own"),
        ({"searcher": nasbot.RandomSearch(space=MLPS, params={"pace": nasbot.Float(0, 1)})}, "got 'pace'"),
    ],
)
def test_a_search_refuses_what_it_would_ignore_or_fail_by_in_every_trial(options, said):
    X = np.arange(180.0).reshape(60, 3)
    alone = {"searcher", "executor", "name", "fork"} & set(options) or options == {"tune": 3}
    own = {} if alone else {"searcher": nasbot.RandomSearch(space=MLPS)}
    with pytest.raises(nasbot.OptionError, match=said):
        nasbot.search(X, X[:, 0], **{"name": None, "budget": 1, "executor": "here", **own, **options})
