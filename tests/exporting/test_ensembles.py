"""Ensembles as one file: each form agrees with the model, and files that lie are refused."""

import json
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import nasbot
from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.data.dataset import dataset_of
from nasbot.data.preparations import PREPARATIONS
from nasbot.errors import OptionError, StorageError
from nasbot.exporting.export import READERS, export
from nasbot.exporting.model_file import Model, averaged, load_model
from nasbot.training.module import build
from tests.data.test_preparations import frame
from tests.exporting.test_export import imports_of, loaded
from tests.training.test_own_layer import vocabulary

WEIGHTS = (0.4, 0.3, 0.2, 0.1)


def member(data, name, seed, rate_scale=None):
    kind = "mlp-class" if data.is_classification else "mlp-reg"
    prepared = data.prepared_as(name)
    arch = chain(kind, [Layer("tanh", 8 + seed), Layer("relu", 6)])
    shape = prepared.input_shape
    network = build(arch, input_shape=shape, n_outputs=data.n_outputs, seed=seed, rate_scale=rate_scale).eval()
    return Model(network, prepared.preprocessing)


def ensemble(data, names=PREPARATIONS, weights=WEIGHTS):
    return averaged([member(data, name, seed) for seed, name in enumerate(names)], weights, {"trials": [3, 1, 4, 0]})


def numbers():
    raw = frame()
    return dataset_of(raw, "price"), raw.drop(columns=["price"])


def classes():
    raw = frame()
    raw["price"] = np.where(raw["price"] > raw["price"].median(), "dear", "cheap")
    return dataset_of(raw, "price"), raw.drop(columns=["price"])


@pytest.mark.parametrize("task", [numbers, classes])
def test_it_says_the_weighted_mean_of_what_its_members_say(task):
    data, X = task()
    parts = [member(data, name, seed) for seed, name in enumerate(PREPARATIONS)]
    model = averaged(parts, WEIGHTS, {})
    if data.is_classification:
        expected = sum(weight * part.predict_proba(X) for weight, part in zip(WEIGHTS, parts, strict=True))
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
        assert model.predict(X).tolist() == np.array(model.classes)[expected.argmax(axis=1)].tolist()
    else:
        expected = sum(weight * part.predict(X) for weight, part in zip(WEIGHTS, parts, strict=True))
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)
        with pytest.raises(OptionError, match="predicts numbers"):
            model.predict_proba(X)


@pytest.mark.parametrize("task", [numbers, classes])
@pytest.mark.parametrize("to", ["code", "onnx", "safetensors"])
def test_each_form_is_one_file_that_agrees(task, to, tmp_path):
    data, _ = task()
    model = ensemble(data)
    path, *others = export(model, tmp_path / "net", to=to)
    assert [other.name for other in others] == ["net.weights.safetensors"] * (to == "code")
    wild = np.concatenate([np.asarray(data.test.X), 50 * np.asarray(data.test.X)])
    with torch.no_grad():
        ours = model.network(torch.from_numpy(wild)).numpy()
    np.testing.assert_allclose(READERS[path.suffix](path, wild), ours, atol=1e-5)


@pytest.mark.parametrize("mixed", [True, False])
def test_the_code_predicts_from_raw_rows(mixed, tmp_path):
    raw = frame() if mixed else frame().drop(columns=["city"])
    data, X = dataset_of(raw, "price"), raw.drop(columns=["price"])
    model = ensemble(data, ("quantile", "quantile", "robust", "standard"))
    path, _ = export(model, tmp_path / "net.py")
    assert imports_of(path) - sys.stdlib_module_names == {"torch"}
    assert path.read_text().count("NUMBERS") == 4  # two tables, for members prepared alike share one
    module = loaded(path)
    rows = X.to_dict("records") if mixed else X.to_numpy(dtype=float)
    np.testing.assert_allclose(module.predict(module.load(), rows)[:, 0].numpy(), model.predict(X), atol=1e-6)


def test_images_are_averaged_too(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (30, 8, 8)).astype(np.uint8), rng.integers(0, 3, 30)
    data = dataset_of(X, y, task="classification")
    arch = chain("cnn", [Layer("conv3", 4, 1), Layer("fc", 8)])
    parts = [
        Model(build(arch, input_shape=data.input_shape, n_outputs=3, seed=seed).eval(), data.preprocessing)
        for seed in (0, 1)
    ]
    model = averaged(parts, (0.5, 0.5), {})
    expected = (parts[0].predict_proba(X) + parts[1].predict_proba(X)) / 2
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    for to in ("code", "onnx", "safetensors"):
        export(model, tmp_path / "net", to=to)


def test_it_comes_back_from_its_file_exactly(tmp_path):
    data, X = numbers()
    model = ensemble(data)
    (path,) = export(model, tmp_path / "net.safetensors")
    again = nasbot.load_model(path)
    assert (again.weights, again.details, again.preprocessing) == (WEIGHTS, model.details, model.preprocessing)
    assert [network.arch for network in again.networks] == [network.arch for network in model.networks]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_json_has_no_room_for_it(tmp_path):
    with pytest.raises(OptionError, match="several layer graphs"):
        export(ensemble(numbers()[0]), tmp_path / "net.json")


# -- predictions stay near what was seen -------------------------------------------------------------------------------


def wild(model):
    """The model with a network that says a million of every row."""
    with torch.no_grad():
        for parameter in model.networks[0].parameters():
            parameter.fill_(100.0)
    return model


def test_a_network_gone_wild_stays_within_a_tenth_beyond_the_training_targets(tmp_path):
    data, X = numbers()
    low, high = data.preprocessing.target.limits[0]
    truth = data.preprocessing.restored(data.train.y)
    spread = truth.max() - truth.min()
    np.testing.assert_allclose([low, high], [truth.min() - spread / 10, truth.max() + spread / 10], rtol=1e-5)

    model = wild(member(data, "standard", 0))
    said = model.predict(X)
    assert said.max() == pytest.approx(high)
    module = loaded(export(model, tmp_path / "one.py")[0])
    np.testing.assert_allclose(module.predict(module.load(), X.to_dict("records"))[:, 0].numpy(), said, rtol=1e-5)


def test_one_gone_wild_does_not_ruin_the_mean(tmp_path):
    data, X = numbers()
    tame, odd = member(data, "robust", 1), wild(member(data, "standard", 0))
    model = averaged([tame, odd], (0.5, 0.5), {})
    np.testing.assert_allclose(model.predict(X), (tame.predict(X) + odd.predict(X)) / 2, rtol=1e-6)
    for to in ("code", "onnx"):
        export(model, tmp_path / "net", to=to)


# -- files that lie ----------------------------------------------------------------------------------------------------


def forged(data, change):
    """A file whose description was changed by ``change(record)``, or whose tensors by ``change(record, state)``."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    record, state = json.loads(header["__metadata__"]["nasbot"]), load(data)
    change(record, state)
    return save(state, {"nasbot": json.dumps(record)})


def weight_of_first(value):
    return lambda record, state: record["members"][0].update(weight=value)


def huge(record, state):
    layers = record["members"][0]["architecture"]["layers"]
    for layer in layers:
        if layer.get("units"):
            layer["units"] = 100_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record, state: record.update(format=3), "format 1 or 2"),
        (lambda record, state: record.update(format=True), "format 1 or 2"),
        (lambda record, state: record.update(members=[]), "expected 1 to 100, got 0"),
        (lambda record, state: record.update(members=record["members"] * 30), "expected 1 to 100, got 120"),
        (lambda record, state: record.update(members={}), "expected a list"),
        (lambda record, state: record.update(members=[7]), "member 0: expected an object"),
        (lambda record, state: record["members"].pop(), "add up to 1"),
        (lambda record, state: record["members"][0].update(more=1), "member 0: expected an object"),
        (lambda record, state: record["members"][0].pop("preparation"), "member 0: expected an object"),
        (lambda record, state: record["members"][0].update(preparation={"form": "own"}), "expected a form among"),
        (lambda record, state: record["members"][0].update(input_shape=[3]), "different inputs"),
        (lambda record, state: record["members"][0].update(input_shape=[10**9]), "more weights than the file"),
        (huge, "more weights than the file"),
        (lambda record, state: record.update(n_outputs=10**9), "more weights than the file"),
        (weight_of_first(-0.4), "weights above 0"),
        (weight_of_first(0.5), "add up to 1"),
        (weight_of_first("0.4"), "expected a finite number"),
        (lambda record, state: record["preprocessing"]["target"].update(limits=[[1, 0]]), "ascending"),
        (lambda record, state: record["preprocessing"]["target"].update(limits=[]), "one pair for each"),
        (lambda record, state: record["preprocessing"]["inputs"]["columns"].pop(), "expected"),
        (lambda record, state: record.update(details=[]), "details: expected an object"),
        (lambda record, state: state.pop("members.0.layers.1.bias"), "more weights than the file|is in only one"),
        (lambda record, state: state.update(other=torch.zeros(2)), "other is in only one of them"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(change, message, tmp_path):
    path = tmp_path / "net.safetensors"
    path.write_bytes(forged(ensemble(numbers()[0]).to_bytes(), change))
    with pytest.raises(StorageError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert "net.safetensors" in str(caught.value)


def test_another_task_and_other_rows_are_refused(tmp_path):
    data, _ = numbers()
    record = classes()[0].preprocessing.to_dict()
    one = member(data, "standard", 0).to_bytes()
    for change, message in (
        (lambda r, _: r["preprocessing"].update(target=record["target"]), "outputs"),
        (lambda r, _: r["preprocessing"]["inputs"]["columns"].pop(), "preprocessing: expected"),
    ):
        path = tmp_path / "net.safetensors"
        path.write_bytes(forged(one, change))
        with pytest.raises(StorageError, match=message):
            load_model(path)


def many_members(record, state):
    """Each is as large as the file, all together fifty times as large."""
    first = record["members"][0]
    record["members"] = [{**first, "weight": 0.02} for _ in range(50)]
    state.clear()
    state["x"] = torch.zeros(400)


def test_nothing_is_built_of_a_file_that_announces_more_than_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("nasbot.exporting.model_file.build", lambda *_, **__: pytest.fail("a network was built"))
    path = tmp_path / "net.safetensors"
    path.write_bytes(forged(ensemble(numbers()[0]).to_bytes(), many_members))
    with pytest.raises(StorageError, match="more weights than the file"):
        load_model(path)
    own = vocabulary()
    arch = chain(own, [Layer("relu", 900_000), Layer("gated", 8), Layer("relu", 900_000)])
    record = {"format": 1, "architecture": arch.to_dict(), "input_shape": [5], "n_outputs": 2}
    path.write_bytes(
        save({"x": torch.zeros(3)}, {"nasbot": json.dumps(record | {"preprocessing": None, "details": {}})})
    )
    with pytest.raises(StorageError, match="more weights than the file"):
        load_model(path, vocabulary=own)


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("ending", READERS)
def test_networks_that_say_multiples_of_the_mean(ending, n_members, tmp_path):
    data, _ = numbers()
    scales = [(0.4,), None, (0.9,)]
    parts = [member(data, name, i, scales[i]) for i, name in enumerate(PREPARATIONS[:n_members])]
    model = parts[0] if n_members == 1 else averaged(parts, (0.5, 0.3, 0.2), {})
    path, *_ = export(model, tmp_path / f"net{ending}")
    x = np.array(data.test.X)
    with torch.no_grad():
        said = model.network(torch.from_numpy(x)).numpy()
    assert said.std() > 0
    np.testing.assert_allclose(READERS[ending](path, x), said, atol=1e-5)


def test_a_scale_that_lies_in_a_file_is_refused(tmp_path):
    data, _ = numbers()
    content = member(data, "standard", 0, (0.4,)).to_bytes()
    state, header = load(content), json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    (tmp_path / "m.safetensors").write_bytes(
        save({**state, "rate_scale": -state["rate_scale"]}, header["__metadata__"])
    )
    with pytest.raises(StorageError, match="rate_scale: expected 1 finite numbers > 0"):
        load_model(tmp_path / "m.safetensors")
