"""``nasbot export``: the best recorded network in every form, and what can be wrong."""

import errno
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nasbot
from nasbot import Architecture, Layer, RandomSearch, SearchSpace, Study
from nasbot.architecture.blocks import chain
from nasbot.automl import FoundStudy, search
from nasbot.automl.members import Members
from nasbot.automl.model import file_name
from nasbot.cli import main
from nasbot.data.frames import write_frame
from nasbot.errors import OptionError
from nasbot.exporting.onnx_file import onnx_outputs
from tests.exporting.test_export import imports_of, loaded

SMALL = [chain("mlp-reg", [Layer("relu", 16)]), chain("mlp-reg", [Layer("tanh", 8), Layer("elu", 8)])]


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(10, 3, (80, 3))
    return X, X[:, 0] * 2 + X[:, 1]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A folder with a study of two small networks."""
    folder = tmp_path_factory.mktemp("searched")
    X, y = data()
    options = {"budget": 2, "workers": 1, "start_from": SMALL, "task": "regression", "refit": False}
    search(X, y, name=folder / "my-study.sqlite", **options).close()
    return folder / "my-study.sqlite"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_best_recorded_network_in_every_form(searched, run, elsewhere):
    X, _ = data()
    with FoundStudy.open(searched) as study:
        expected = study.best.predict(X)
        arch, best = study.best.arch, study.best.number
    result = run("export", str(searched), "--to", "code", "--single")
    assert (result.code, result.err) == (0, "")
    assert result.out == "wrote my_study.py\nwrote my_study.weights.safetensors\n"
    assert imports_of(elsewhere / "my_study.py") - sys.stdlib_module_names == {"torch"}
    module = loaded(elsewhere / "my_study.py")
    assert "validation loss" in module.__doc__
    np.testing.assert_allclose(module.predict(module.load(), X)[:, 0].numpy(), expected, rtol=1e-5)

    assert run("export", str(searched), "--to", "onnx", "--single").code == 0
    assert run("export", str(searched), "--to", "onnx", "--single", "--raw", "--out", "raw").code == 0
    told = onnx_outputs(Path("raw.onnx").read_bytes(), np.asarray(X, np.float64))
    np.testing.assert_allclose(told[:, 0], expected, rtol=1e-5)
    refused = run("export", str(searched), "--to", "code", "--raw")
    assert (refused.code, refused.err) == (2, "nasbot: error: raw: expected --to onnx, got 'code'\n")
    result = run("export", str(searched), "--to", "safetensors", "--out", "whole", "--single", "--json")
    assert result.record == {"form": "safetensors", "files": ["whole.safetensors"]}
    model = nasbot.load_model("whole.safetensors")
    assert model.network.arch == arch
    assert model.details["trials"] == [best]
    assert run("export", str(searched), "--to", "json", "-o", "graph.json").code == 0
    assert Architecture.load("graph.json") == arch


def test_an_ensemble_is_one_file_and_single_takes_the_best_alone(searched, run, monkeypatch):
    chosen = Members((1, 0), (0.75, 0.25), 0.1)
    monkeypatch.setattr("nasbot.automl.model.members_of", lambda study: chosen)
    X, _ = data()
    with FoundStudy.open(searched) as study:
        expected = 0.75 * study.found(1).predict(X) + 0.25 * study.found(0).predict(X)
        arch = study.best.arch
        np.testing.assert_allclose(study.model().predict(X), expected, rtol=1e-5)
    for form in ("code", "onnx", "safetensors"):
        assert run("export", str(searched), "--to", form, "--out", "both").code == 0
    module = loaded(Path("both.py"))
    assert "The weighted mean of 2 of 2 networks" in module.__doc__
    np.testing.assert_allclose(module.predict(module.load(), X)[:, 0].numpy(), expected, rtol=1e-5)
    model = nasbot.load_model("both.safetensors")
    assert (model.weights, model.details["trials"]) == ((0.75, 0.25), [1, 0])
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)
    assert run("export", str(searched), "--to", "safetensors", "--out", "one", "--single").code == 0
    assert [network.arch for network in nasbot.load_model("one.safetensors").networks] == [arch]
    assert run("export", str(searched), "--to", "json", "--out", "graph").code == 0


def test_a_study_of_another_objective_gives_its_graph_and_nothing_else(run, elsewhere):
    with Study.open(elsewhere / "own.sqlite", RandomSearch(space=SearchSpace("mlp-reg")), seed=0) as study:
        best = study.ask()
        study.tell(best, 1.0)
    assert run("export", str(elsewhere / "own.sqlite"), "--to", "json").code == 0
    assert Architecture.load("own.json") == best.arch
    result = run("export", str(elsewhere / "own.sqlite"), "--to", "code")
    assert result.code == 3
    assert "data and weights of a search on data" in result.err


def test_weights_that_are_gone_are_one_line(searched, run, elsewhere):
    shutil.copy(searched, elsewhere / "copy.sqlite")
    shutil.copytree(searched.with_name("my-study.files") / "data", elsewhere / "copy.files" / "data")
    result = run("export", str(elsewhere / "copy.sqlite"), "--to", "code")
    assert (result.code, result.out) == (3, "")
    assert result.err.count("\n") == 1
    assert "no weights there" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--to", "pickle"), 2, "expected code, onnx, safetensors, json, got 'pickle'"),
        ((), 2, "--to"),
        (("--to", "code", "--out", "missing/net.py"), 3, "No such file or directory"),
        (("--to", "code", "--out", "there.py"), 3, "is there already"),
        (("--to", "onnx", "--out", "/proc/net.onnx"), 3, "cannot write /proc/net.onnx"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_each(arguments, code, message, searched, run, elsewhere):
    (elsewhere / "there.py").write_text("mine")
    result = run("export", str(searched), *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert (elsewhere / "there.py").read_text() == "mine"


def test_no_such_study_and_none_completed(run, elsewhere):
    result = run("export", "nothing", "--to", "code")
    assert (result.code, "nothing.sqlite" in result.err) == (3, True)
    Study.open(elsewhere / "new.sqlite", RandomSearch(space=SearchSpace("mlp-reg")), seed=0).close()
    result = run("export", str(elsewhere / "new.sqlite"), "--to", "json")
    assert (result.code, "no trial is completed" in result.err) == (8, True)


def test_a_full_disk_is_one_line_and_leaves_nothing(searched, run, elsewhere, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    result = run("export", str(searched), "--to", "code")
    assert (result.code, result.out) == (3, "")
    assert "No space left on device" in result.err
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("study", "name"), [("my-study.sqlite", "my_study"), ("3d.sqlite", "network_3d"), ("größe.sqlite", "gr__e")]
)
def test_names_that_python_can_import(study, name):
    assert file_name(Path(study)) == name


def test_json_output_is_one_value(searched, run):
    record = json.loads(run("export", str(searched), "--to", "code", "--json").out)
    assert record == {"form": "code", "files": ["my_study.py", "my_study.weights.safetensors"]}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_table_of_trials(tmp_path, monkeypatch, capsys, form):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nasbot.study.view.MOST_AT_ONCE", 3)  # a part at a time
    with Study.open("toy", RandomSearch(space=SearchSpace("mlp-reg")), seed=1) as study:
        study.optimise(_sometimes_failing, 8, max_consecutive_failures=None)
        expected = study.to_frame()
    assert main(["export", "toy", "--to", form]) == 0
    file = tmp_path / f"toy-trials.{form}"
    assert f"wrote toy-trials.{form}" in capsys.readouterr().out
    found = (pd.read_csv if form == "csv" else pd.read_parquet)(file).set_index("number")
    assert found["value"].tolist() == pytest.approx(expected["value"].tolist(), nan_ok=True)
    assert list(found.columns) == list(expected.columns)
    failed = found[found["state"] == "failed"]
    assert failed["message"].tolist() == ["ValueError: =1+1"] * 3
    assert main(["export", "toy", "--to", form]) == 3
    assert "is there already; --overwrite replaces it" in capsys.readouterr().err
    assert main(["export", "toy", "--to", form, "--overwrite"]) == 0


def test_no_cell_is_a_formula(tmp_path):
    frame = pd.DataFrame({"number": [0, 1], "message": ["=1+1", "plain"]}).set_index("number")
    write_frame(frame, tmp_path / "t.csv", to="csv")
    assert (tmp_path / "t.csv").read_text() == "number,message\n0,'=1+1\n1,plain\n"
    with pytest.raises(OptionError, match="to: expected csv or parquet, got 'xls'"):
        write_frame(frame, tmp_path / "t.xls", to="xls")


def _sometimes_failing(arch, trial):
    if trial.number % 3 == 1:
        raise ValueError("=1+1")
    return float(len(arch.layers))
