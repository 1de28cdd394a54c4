"""The model card that an export writes: what it says is what the study says, and the hub can read it."""

import json
import runpy

import numpy as np
import pytest
import yaml

import nasbot
from nasbot import Layer
from nasbot.architecture import chain
from nasbot.cli import main
from nasbot.errors import FileError, OptionError
from nasbot.training.recipes import FAST

RNG = np.random.default_rng(0)
X = RNG.normal(10, 3, (200, 4))
CLASSES = np.array(["low", "high"])[(X[:, 0] > 10).astype(int)]


def searched(y, task, name=None, **options):
    kind = {"regression": "mlp-reg", "classification": "mlp-class"}[task]
    pool = [chain(kind, [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
    given = {"budget": 3, "workers": 1, "recipe": FAST.changed(n_steps=40), "pool": pool, "tune": None, "task": task}
    return nasbot.search(X, y, name=name, folds=1, **given | options)


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with searched(X[:, 0] * 2 + X[:, 1], "regression", name="numbers") as study:
        yield study


def head_of(text):
    start, head, body = text.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(head), body


def sections(body):
    return {part.splitlines()[0]: part for part in body.split("\n## ")[1:]}


def rows(section):
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_it_says_what_the_study_says(numbers, tmp_path):
    *files, path = numbers.export("price", to="safetensors", card=True)
    assert [file.name for file in files] == ["price.safetensors"]
    assert path.name == "price.md"
    text = path.read_text(encoding="utf-8")
    head, body = head_of(text)
    result = numbers.results().model
    assert head["pipeline_tag"] == "tabular-regression"
    entry = head["model-index"][0]
    assert entry["name"] == "price"
    assert entry["results"][0]["dataset"]["split"] == "test"
    assert entry["results"][0]["metrics"] == [{"type": result.metric, "value": float(f"{result.test:.6g}")}]
    told = sections(body)
    assert set(told) == {"Data", "Results", "Networks", "Use", "Limits"}
    for line in numbers.dataset.summary():
        assert line in told["Data"]
    assert "rows were divided at random, seed 0" in told["Data"]
    assert "trained once more" in told["Data"]
    assert rows(told["Results"])[-1] == ["this model", f"{result.validation:.5g}", f"{result.test:.5g}"]
    model = nasbot.load_model(files[0])
    networks = rows(told["Networks"])[1:]
    assert [float(row[1]) for row in networks] == pytest.approx(model.weights, abs=1e-3)
    counted = [sum(weight.numel() for weight in network.parameters()) for network in model.networks]
    assert [int(row[4].replace(",", "")) for row in networks] == counted
    assert "columns that matter" in told["Limits"]
    assert str(tmp_path) not in text


def test_what_it_says_of_use_works(numbers):
    """The lines of the section Use, run beside the files."""
    for form in ("safetensors", "code"):
        *_, path = numbers.export("use", to=form, card=True, overwrite=True)
        lines = sections(head_of(path.read_text())[1])["Use"].split("```python\n")[1].split("```")[0]
        head = "import sys, nasbot; sys.path.insert(0, '.')\n"
        source = path.with_suffix(".run.py")
        *before, last = lines.strip().splitlines()
        source.write_text("\n".join([head, *before, f"said = {last}"]))
        said = np.asarray(runpy.run_path(str(source), {"X": X})["said"], dtype=float)
        np.testing.assert_allclose(said.reshape(-1), numbers.model().predict(X).reshape(-1), rtol=1e-3, atol=1e-3)


def test_classes_without_test_rows_and_a_single_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with searched(CLASSES, "classification", split=(0.7, 0.3, 0)) as study:
        *_, path = study.export("which", to="onnx", single=True, card=True)
    head, body = head_of(path.read_text(encoding="utf-8"))
    assert head["pipeline_tag"] == "tabular-classification"
    assert head["model-index"][0]["results"][0]["dataset"]["split"] == "validation"
    told = sections(body)
    assert "there were no test rows" in told["Data"]
    assert rows(told["Results"])[-1][2] == "–"
    assert len(rows(told["Networks"])) == 2
    assert "which.onnx" in told["Use"]


def test_names_that_yaml_would_misread(numbers):
    *_, path = numbers.export('a: "b" # c', to="code", card=True)
    assert head_of(path.read_text(encoding="utf-8"))[0]["model-index"][0]["name"] == 'a: "b" # c'


def test_nothing_is_written_where_the_card_cannot_be(numbers, tmp_path):
    (tmp_path / "taken.md").write_text("mine")
    with pytest.raises(FileError, match=r"taken\.md is there already"):
        numbers.export("taken", to="safetensors", card=True)
    assert not (tmp_path / "taken.safetensors").exists()
    with pytest.raises(OptionError, match="a layer graph has no weights to describe"):
        numbers.export("graph", to="json", card=True)
    assert not (tmp_path / "graph.json").exists()


def test_from_the_shell(numbers, capsys):
    numbers.close()
    capsys.readouterr()
    assert main(["export", "numbers", "--to", "safetensors", "--card", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == ["numbers.safetensors", "numbers.md"]
