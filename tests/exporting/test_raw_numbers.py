"""ONNX files that take numbers and images as people have them, and answer in people's units."""

import json

import numpy as np
import pandas as pd
import pytest

from nasbot.architecture import Layer, chain
from nasbot.data.dataset import dataset_of
from nasbot.errors import OptionError
from nasbot.exporting.export import export
from nasbot.exporting.model_file import Model
from nasbot.exporting.onnx_file import onnx_outputs
from nasbot.training.module import build
from tests.exporting.test_ensembles import ensemble

RNG = np.random.default_rng(0)


def houses(n=80):
    size = RNG.normal(100, 30, n)
    frame = pd.DataFrame(
        {"size": size, "stamp": 1.7e9 + RNG.integers(0, 10**6, n), "age": RNG.integers(0, 90, n) * 1.0}
    )
    frame.loc[::7, "age"] = np.nan
    frame["one"] = 1.0  # says nothing, and is dropped
    frame["price"] = 3000 * size - 500 * frame["age"].fillna(40) + frame["stamp"] % 1000
    return frame


def single(data, preparation="standard"):
    prepared = data.prepared_as(preparation)
    arch = chain(data.kind, [Layer("relu" if data.kind.startswith("mlp") else "fc", 8)])
    network = build(arch, input_shape=prepared.input_shape, n_outputs=data.n_outputs, seed=3)
    return Model(network.eval(), prepared.preprocessing)


def fed(frame, path):
    import onnx

    said = {prop.key: json.loads(prop.value) for prop in onnx.load(path).metadata_props}
    return frame[said["columns"]].to_numpy(dtype=np.float64)


@pytest.mark.parametrize("preparation", ["standard", "robust", "quantile", "ple"])
def test_a_network_takes_the_columns_of_the_table_and_gaps(preparation, tmp_path):
    frame = houses()
    model = single(dataset_of(frame, "price", task="regression"), preparation)
    path, *_ = export(model, tmp_path / "net.onnx", raw=True)
    rows = fed(frame, path)
    assert rows.shape[1] == 3
    assert np.isnan(rows).any()
    told = onnx_outputs(path.read_bytes(), rows)
    np.testing.assert_allclose(told[:, 0], model.predict(frame.drop(columns="price")), rtol=1e-5)


def test_so_does_an_ensemble_of_several_preparations(tmp_path):
    frame = houses()
    model = ensemble(dataset_of(frame, "price", task="regression"), ("quantile", "robust", "standard", "standard"))
    path, *_ = export(model, tmp_path / "net.onnx", raw=True)
    told = onnx_outputs(path.read_bytes(), fed(frame, path))
    np.testing.assert_allclose(told[:, 0], model.predict(frame.drop(columns="price")), rtol=1e-5)


def test_classes_have_probabilities(tmp_path):
    frame = houses().assign(price=lambda f: np.where(f["price"] > f["price"].median(), "dear", "cheap"))
    model = single(dataset_of(frame, "price"))
    path, *_ = export(model, tmp_path / "net.onnx", raw=True)
    told = onnx_outputs(path.read_bytes(), fed(frame, path))
    np.testing.assert_allclose(told, model.predict_proba(frame.drop(columns="price")), atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 8, 8, 3), (40, 3, 8, 8), (40, 8, 8)])
def test_images_are_taken_as_they_lie(shape, tmp_path):
    images = RNG.integers(0, 256, shape).astype(np.uint8)
    data = dataset_of(images, RNG.integers(0, 3, 40), task="classification")
    arch = chain("cnn", [Layer("conv3", 4, 1), Layer("fc", 8)])
    network = build(arch, input_shape=data.input_shape, n_outputs=3, seed=0).eval()
    model = Model(network, data.preprocessing)
    path, *_ = export(model, tmp_path / "net.onnx", raw=True)
    raw = (images if images.ndim == 4 else images[..., None]).astype(np.float32)
    np.testing.assert_allclose(onnx_outputs(path.read_bytes(), raw), model.predict_proba(images), atol=1e-5)


def test_what_onnx_cannot_take_is_named_and_nothing_is_left(tmp_path):
    frame = houses().assign(city=lambda f: np.where(f["age"] > 40, "Oslo", "Bergen"))
    with pytest.raises(OptionError, match=r"^raw: .*column 'city' holds categories or dates; leave raw out"):
        export(single(dataset_of(frame, "price", task="regression")), tmp_path / "net.onnx", raw=True)
    with pytest.raises(OptionError, match=r"^raw: expected onnx"):
        export(single(dataset_of(houses(), "price", task="regression")), tmp_path / "net.py", raw=True)
    bare = build(chain("mlp-reg", [Layer("relu", 4)]), input_shape=(3,), n_outputs=1, seed=0)
    with pytest.raises(OptionError, match=r"^raw: this network has no preprocessing"):
        export(bare, tmp_path / "net.onnx", raw=True)
    assert not list(tmp_path.iterdir())
