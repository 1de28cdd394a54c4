"""Ways to prepare numbers: fitted on training rows, bounded, exact in JSON, and taken along by exports."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from nasbot.architecture import Layer
from nasbot.architecture.blocks import chain
from nasbot.data.dataset import Dataset, Part, Preprocessing, dataset_of
from nasbot.data.preparations import MAX_BIN_INPUTS, PREPARATIONS, Preparation, preparation_of
from nasbot.errors import CodecError, DataError, OptionError
from nasbot.exporting.export import export
from nasbot.exporting.model_file import Model, load_model
from nasbot.training.module import build

OTHERS = PREPARATIONS[1:]


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "tail": np.exp(2 * rng.normal(size=n)),
            "city": rng.choice(["Ulm", "Kiel", "Bonn"], n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(5, 2, n)),
            "flag": rng.random(n) < 0.1,
            "rare": np.where(rng.random(n) < 0.03, rng.integers(1, 9, n), 0),
            "price": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def data():
    return dataset_of(frame(), "price")


def test_standard_is_the_data_themselves(data):
    assert data.prepared_as("standard") is data
    assert data.preprocessing.preparation_name == "standard"
    assert "preparation" not in data.preprocessing.to_dict()
    assert data.preprocessing.to_dict()["version"] == 1


@pytest.mark.parametrize("name", OTHERS)
def test_more_rows_are_prepared_like_the_first(data, name):
    prepared = data.prepared_as(name)
    raw = frame()
    everything = prepared.preprocessing.X(raw)
    parts = np.concatenate([prepared.train.X, prepared.valid.X, prepared.test.X])
    assert everything.dtype == parts.dtype == np.float32
    assert everything.shape[1:] == prepared.input_shape == prepared.preprocessing.input_shape
    assert sorted(map(tuple, everything)) == sorted(map(tuple, parts))
    assert prepared.preprocessing.preparation_name == name
    assert prepared.fingerprint != data.fingerprint
    assert prepared.train.y is data.train.y


@pytest.mark.parametrize("name", OTHERS)
def test_only_training_rows_decide(data, name):
    other = Dataset(data.kind, "", data.train, Part(data.valid.X * 9, data.valid.y), data.test, 1, data.preprocessing)
    assert other.prepared_as(name).preprocessing == data.prepared_as(name).preprocessing


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_a_number_passes_and_numbers_are_bounded(data, name):
    prepared = data.prepared_as(name)
    numbers = set(data.preprocessing.inputs.number_inputs)
    assert numbers == {0, 4, 6, 7}, "tail, gaps, flag, rare: between them a mark and three cities"
    for at, end, part in prepared.preprocessing.preparation.parts():
        if isinstance(part, range):
            assert not numbers & set(part)
            np.testing.assert_array_equal(prepared.train.X[:, at:end], data.train.X[:, part.start : part.stop])
    wild = np.full((1, *data.input_shape), 1e6, dtype=np.float32)
    for rows in (wild, -wild):
        out = prepared.preprocessing.preparation.applied(rows)
        assert (np.abs(out) <= 3.0001).sum() == out.size - (data.input_shape[0] - len(numbers))


def test_quantiles_are_normal_scores_and_ties_share_one():
    x = np.random.default_rng(0).exponential(size=(5000, 1)).astype(np.float32)
    scores = preparation_of("quantile", x, [0]).applied(x)[:, 0]
    ranks = (np.argsort(np.argsort(x[:, 0])) + 0.5) / len(x)
    inside = (ranks > 0.01) & (ranks < 0.99)
    np.testing.assert_allclose(scores[inside], norm.ppf(ranks[inside]), atol=0.03)
    tied = np.repeat(np.float32([0, 1]), [60, 40])[:, None]
    np.testing.assert_allclose(
        np.unique(preparation_of("quantile", tied, [0]).applied(tied)), norm.ppf([0.3, 0.8]), atol=0.02
    )


def test_robust_ignores_what_lies_far_out():
    x = np.random.default_rng(0).normal(size=(1000, 1)).astype(np.float32)
    far = x.copy()
    far[:5] = 1e4
    (near,), (same,) = (preparation_of("robust", rows, [0]).numbers for rows in (x, far))
    assert (same.centre, same.scale) == pytest.approx((near.centre, near.scale), abs=0.03)
    constant_but_one = np.float32([0] * 99 + [4])[:, None]
    assert preparation_of("robust", constant_but_one, [0]).numbers[0].scale == 2


def test_bins_tell_how_far_a_number_is_through_each():
    x = np.linspace(0, 16, 17, dtype=np.float32)[:, None]
    preparation = preparation_of("ple", x, [0])
    assert preparation.shape == (16,)
    np.testing.assert_allclose(preparation.applied(np.float32([[2.5]]))[0], [1, 1, 0] + [-1] * 13)
    wide = np.random.default_rng(0).normal(size=(50, 400)).astype(np.float32)
    assert preparation_of("ple", wide, range(400)).shape[0] <= MAX_BIN_INPUTS
    few = np.float32([0] * 98 + [1, 2])[:, None]
    assert preparation_of("ple", few, [0]).numbers[0].edges == (0, 1, 2), "by distinct values"


@pytest.mark.parametrize("name", OTHERS)
def test_a_folder_and_json_give_it_back(data, name, tmp_path):
    prepared = data.prepared_as(name)
    record = json.loads(json.dumps(prepared.preprocessing.to_dict(), allow_nan=False))
    assert Preprocessing.from_dict(record) == prepared.preprocessing
    data.save(tmp_path / "standard")
    again = Dataset.load(tmp_path / "standard").prepared_as(name)
    assert again.fingerprint == prepared.fingerprint
    prepared.save(tmp_path / "prepared")
    assert Dataset.load(tmp_path / "prepared").preprocessing == prepared.preprocessing


def test_one_value_and_gaps_is_no_number_to_prepare():
    x = np.float32([[1, 0], [1, 2], [1, 3]])
    assert [number.input for number in preparation_of("ple", x, [0, 1]).numbers] == [1]


def test_mistakes(data):
    with pytest.raises(OptionError, match="preparation: expected one of standard, robust, quantile, ple, got 'rank'"):
        data.prepared_as("rank")
    with pytest.raises(OptionError, match="prepare as 'ple', got inputs prepared as 'robust'"):
        data.prepared_as("robust").prepared_as("ple")
    images = dataset_of(np.random.default_rng(0).random((40, 5, 5)), ["a", "b"] * 20)
    with pytest.raises(OptionError, match="prepare as 'quantile', got images"):
        images.prepared_as("quantile")
    with pytest.raises(DataError, match="expected rows of 8 standardised inputs"):
        data.prepared_as("robust").preprocessing.preparation.applied(np.zeros((2, 3), dtype=np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "rank"}, "expected a form among"),
        ({"n_inputs": 0}, "expected a whole number"),
        ({"n_inputs": 1}, "expected ascending inputs below 1"),
        ({"numbers": [{"input": 0, "knots": [0, 1], "scores": [0]}]}, "a score for each of 2 knots"),
        ({"numbers": [{"input": 0, "knots": [0, 0], "scores": [0, 1]}]}, "at least 2 ascending numbers"),
        ({"numbers": [{"input": 0, "knots": [0, 1, 1], "scores": [0, 1, 2]}]}, "at least 2 ascending numbers"),
        ({"numbers": [{"input": -1, "knots": [0, 1], "scores": [0, 1]}]}, "the number of an input"),
        ({"numbers": [{"input": 0, "edges": [0, 1]}]}, "expected an object with input, knots, scores"),
        ({"more": 1}, "expected an object with form, n_inputs, numbers"),
    ],
)
def test_json_is_read_strictly(data, change, message):
    record = data.prepared_as("quantile").preprocessing.preparation.to_dict()
    with pytest.raises(CodecError, match=message):
        Preparation.from_dict({**record, **change})


def test_it_belongs_to_its_table(data):
    record = data.prepared_as("robust").preprocessing.to_dict()
    record["preparation"] = {**record["preparation"], "n_inputs": 99}
    with pytest.raises(CodecError, match="inputs, got 99"):
        Preprocessing.from_dict(record)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("mixed", [True, False])
def test_exports_take_it_along(name, mixed, tmp_path):
    raw = frame() if mixed else frame().drop(columns=["city"])
    prepared = dataset_of(raw, "price").prepared_as(name)
    network = build(chain("mlp-reg", [Layer("tanh", 8)]), input_shape=prepared.input_shape, n_outputs=1, seed=0).eval()
    model = Model(network, prepared.preprocessing)
    (tmp_path / "model.safetensors").write_bytes(model.to_bytes())
    assert load_model(tmp_path / "model.safetensors").preprocessing == prepared.preprocessing
    path, *_ = export(model, tmp_path / "net", to="code")
    spec = importlib.util.spec_from_file_location("exported", path)
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    inputs = raw.drop(columns=["price"])
    given = inputs.to_dict("records") if mixed else inputs.to_numpy(dtype=float)
    np.testing.assert_allclose(code.prepare(given).numpy(), prepared.preprocessing.X(inputs), atol=2e-5)
