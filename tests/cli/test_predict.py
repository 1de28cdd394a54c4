"""``nasbot predict``: a study's or a file's answers for new rows, in any of the files, and what can be wrong."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nasbot
from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.automl import FoundStudy, search
from nasbot.data.chunks import chunks
from nasbot.data.dataset import dataset_of
from nasbot.errors import DataError
from nasbot.exporting.export import export
from nasbot.exporting.model_file import Model
from nasbot.exporting.predicting import predict_file
from nasbot.testing.networks import random_architecture
from nasbot.training.module import build
from tests.tracing.models import narrow

SMALL = [chain("mlp-reg", [Layer("relu", 16)]), chain("mlp-reg", [Layer("tanh", 8), Layer("elu", 8)])]


def houses(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "size": rng.normal(50, 20, n),
        "zone": rng.choice(["1", "02", "b"], n),
        "rooms": rng.integers(1, 9, n).astype(float),
        "country": "here",
    })  # fmt: skip
    frame["price"] = frame["rooms"] * 1000 + frame["size"] + 500 * (frame["zone"] == "02")
    frame.loc[::7, "size"] = np.nan
    return frame


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A study of two small networks, averaged."""
    path = tmp_path_factory.mktemp("searched") / "houses.sqlite"
    frame = houses()
    search(
        frame.drop(columns="price"), frame["price"], budget=2, workers=1, name=path, start_from=SMALL, task="regression"
    ).close()
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    houses().drop(columns="price").to_csv("new.csv", index=False)
    return tmp_path


def read(path="out.csv"):
    return pd.read_csv(path)


def test_intervals_stand_beside_the_predictions(searched, run):
    for model in (searched, "houses.safetensors"):
        if model != searched:
            assert run("export", str(searched), "--to", "safetensors", "--out", "houses").code == 0
        found = run("predict", str(model), "new.csv", "-o", "out.csv", "--interval", "0.8", "--overwrite")
        assert found.code == 0, found.err
        assert list(read().columns) == ["prediction", "prediction_low", "prediction_high"]
        with FoundStudy.open(searched) as study:
            expected = study.model().predict_interval(pd.read_csv("new.csv"), coverage=0.8)
        np.testing.assert_allclose(read()[["prediction_low", "prediction_high"]], expected, rtol=1e-4)
        assert (read()["prediction_low"] < read()["prediction_high"]).all()


@pytest.mark.parametrize(
    ("share", "said"),
    [("90", "expected a share between 0 and 1, such as 0.9"), ("0.9999", "validation rows are too few for 0.9999")],
)
def test_coverages_that_cannot_be_had_are_refused(share, said, searched, run):
    found = run("predict", str(searched), "new.csv", "-o", "out.csv", "--interval", share)
    assert found.code == 2
    assert said in found.err
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("grey", [True, False])
def test_pictures_of_a_folder_are_predicted_by_name(grey, run):
    from PIL import Image

    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (20, 8, 8) if grey else (20, 8, 8, 3)).astype(np.uint8)
    data = dataset_of(X, np.array(["cat", "dog"])[np.arange(20) % 2])
    arch = narrow(random_architecture("cnn", rng=rng, n_layers=6))
    model = Model(build(arch, input_shape=data.input_shape, n_outputs=2, seed=0).eval(), data.preprocessing)
    export(model, "pets.safetensors")
    Path("new/more").mkdir(parents=True)
    Image.fromarray(X[0]).save("new/b.png")
    Image.fromarray(X[1]).save("new/more/a.png")
    Image.fromarray(X[2]).convert("RGBA").resize((16, 12)).save("new/c.png")
    found = run("predict", "pets.safetensors", "new", "-o", "out.csv")
    assert found.code == 0, found.err
    assert read()["file"].tolist() == ["b.png", "c.png", "more/a.png"]
    shares = read()[["probability_cat", "probability_dog"]]
    np.testing.assert_allclose(shares.iloc[[0, 2]], model.predict_proba(X[:2]), atol=1e-6)
    Path("empty").mkdir()
    assert "no images; expected pictures" in run("predict", "pets.safetensors", "empty", "-o", "out2.csv").err


def test_a_study_predicts_as_its_model_does(searched, run):
    with FoundStudy.open(searched) as study:
        X = houses().drop(columns="price")
        expected, alone = study.model().predict(X), study.model(single=True).predict(X)
    result = run("predict", str(searched), "new.csv", "-o", "out.csv")
    assert (result.code, result.out, result.err) == (0, "wrote out.csv (120 rows)\n", "")
    assert list(read().columns) == ["prediction"]
    np.testing.assert_allclose(read()["prediction"], expected, rtol=1e-6)
    assert run("predict", str(searched), "new.csv", "-o", "out.csv", "--single", "--overwrite").code == 0
    np.testing.assert_allclose(read()["prediction"], alone, rtol=1e-6)


def test_a_model_file_predicts_to_standard_output_from_each_kind_of_file(searched, run):
    with FoundStudy.open(searched) as study:
        study.export("houses.safetensors")
    text = run("predict", "houses.safetensors", "new.csv").out
    assert text.startswith("prediction\n")
    X = houses()  # with the target, which is not looked at
    X.to_parquet("new.parquet")
    assert run("predict", "houses.safetensors", "new.parquet").out == text
    X.to_csv("new.tsv", sep="\t", index=False)
    result = run("predict", "houses.safetensors", "new.tsv")
    assert (result.out, result.err) == (text, "")


def classifier(X, y, kind="mlp-class"):
    data = dataset_of(X, y, task="classification")
    layers = [Layer("conv3", 4, 1), Layer("fc", 8)] if kind == "cnn" else [Layer("relu", 8)]
    network = build(chain(kind, layers), input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0).eval()
    return Model(network, data.preprocessing)


def test_classes_have_a_probability_each(run):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.choice(["cat", "dog", "a,b"], 60)
    model = classifier(X, y)
    export(model, "animals.safetensors")
    np.savez("new.npz", X=X)
    assert run("predict", "animals.safetensors", "new.npz", "-o", "out.csv").code == 0
    assert list(read().columns) == ["prediction", "probability_a,b", "probability_cat", "probability_dog"]
    assert read()["prediction"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(read().iloc[:, 1:], model.predict_proba(X), rtol=1e-6)


def test_images_and_several_numbers(run):
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 256, (20, 6, 6)).astype(np.uint8), rng.integers(0, 2, 20)
    export(classifier(images, y, "cnn"), "images.safetensors")
    np.savez("images.npz", X=images)
    assert run("predict", "images.safetensors", "images.npz").out.startswith("prediction,probability_0,probability_1\n")
    frame = houses()
    data = dataset_of(frame[["size", "rooms"]], frame[["price", "rooms"]].to_numpy(), task="regression")
    network = build(SMALL[0], input_shape=data.input_shape, n_outputs=2, seed=0).eval()
    export(Model(network, data.preprocessing), "two.safetensors")
    assert run("predict", "two.safetensors", "new.csv").out.startswith("prediction_y0,prediction_y1\n")


def test_what_is_odd_is_said(searched, run):
    frame = houses().drop(columns=["price", "country"])  # a constant column is not missed
    frame.loc[:4, "zone"] = "moon"
    frame["colour"] = "red"
    frame.to_csv("odd.csv", index=False)
    result = run("predict", str(searched), "odd.csv", "-o", "out.csv")
    assert result.code == 0
    assert "nasbot: note: columns that the model does not know, ignored: 'colour'\n" in result.err
    assert "column 'zone': 5 of 120 rows hold values without an input of their own, such as 'moon'" in result.err
    assert result.err.count("\n") == 2


def test_columns_that_are_missing_may_be_taken_as_gaps(searched, run):
    houses().drop(columns=["size", "zone"]).to_csv("few.csv", index=False)
    result = run("predict", str(searched), "few.csv", "-o", "out.csv")
    assert result.code == 11
    assert "few.csv: no columns 'size', 'zone', which the model looks at" in result.err
    result = run("predict", str(searched), "few.csv", "-o", "out.csv", "--fill-missing")
    assert (result.code, "not there, taken as gaps: 'size', 'zone'" in result.err) == (0, True)
    with FoundStudy.open(searched) as study:
        expected = study.model().predict(houses().assign(size=np.nan, zone=None))
    np.testing.assert_allclose(read()["prediction"], expected, rtol=1e-6)


def test_chunks_do_not_change_what_categories_are(tmp_path):
    """A chunk with "1" and "02" alone looks like numbers, and with a gap like 1.0 and 2.0."""
    frame = pd.DataFrame({" zone": ["1", "02", "", "b"], "x": [1, 2, 3, 4]})
    frame.to_csv("zones.csv", index=False)
    first, second = chunks(tmp_path / "zones.csv", text=["zone"], rows=3)
    assert list(first.columns) == ["zone", "x"]
    assert first["zone"].tolist()[:2] == ["1", "02"]
    assert first["zone"].isna().tolist() == [False, False, True]
    assert second["zone"].tolist() == ["b"]


def test_many_chunks_are_one_table(searched, monkeypatch, elsewhere):
    with FoundStudy.open(searched) as study:
        model = study.model()
    texts = []
    for rows in (7, 1000):
        monkeypatch.setattr("nasbot.exporting.predicting.chunks", lambda *a, n=rows, **k: chunks(*a, **k, rows=n))
        stream = io.StringIO()
        assert predict_file(model, elsewhere / "new.csv", stream).rows == 120
        texts.append(stream.getvalue())
    together, apart = (pd.read_csv(io.StringIO(text)) for text in texts)
    np.testing.assert_allclose(together["prediction"], apart["prediction"], rtol=1e-6)


def spoiled(name, text):
    Path(name).write_text(text)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nothing", "new.csv"), 3, "nothing.sqlite"),
        (("nothing.safetensors", "new.csv"), 3, "cannot read nothing.safetensors"),
        (("new.csv", "new.csv"), 3, "new.csv.sqlite"),
        (("new.safetensors", "new.csv"), 9, "not a safetensors file"),
        (("net.onnx", "new.csv"), 2, "expected a study or a model file"),
        (("net.weights.safetensors", "new.csv"), 2, "expected a study or a model file"),
        (("plain.safetensors", "new.csv"), 2, "does not say what its data went through"),
        (("good.safetensors", "new.csv", "--single"), 2, "--single chooses among the networks of a study"),
        (("good.safetensors",), 2, "FILE"),
        (("good.safetensors", "missing.csv"), 3, "missing.csv: no such file"),
        (("good.safetensors", "new.xyz"), 11, "expected rows to predict from as CSV"),
        (("good.safetensors", "."), 11, "expected rows to predict from as CSV"),
        (("good.safetensors", "empty.csv"), 11, "empty.csv: empty"),
        (("good.safetensors", "header.csv"), 11, "no rows to predict from"),
        (("good.safetensors", "text.csv"), 11, "text.csv: column 'size': expected numbers, got 'large'"),
        (("good.safetensors", "endless.csv"), 11, "infinite values"),
        (("good.safetensors", "latin.csv"), 11, "text in an unknown encoding; save it as a table in UTF-8"),
        (("good.safetensors", "ragged.csv"), 11, "not a table"),
        (("good.safetensors", "other.csv"), 11, "no columns 'size', 'rooms'"),
        (("good.safetensors", "other.csv", "--fill-missing"), 11, "none of the columns"),
        (("good.safetensors", "false.parquet"), 11, "not a Parquet file"),
        (("good.safetensors", "false.npz"), 11, "not an NPZ file"),
        (("good.safetensors", "y.npz"), 11, "no array 'X'"),
        (("good.safetensors", "wide.npz"), 11, "expected 2 columns, got 5"),
        (("good.safetensors", "images.npz"), 11, "expected a table of rows and columns"),
        (("good.safetensors", "new.csv", "-o", "out.xlsx"), 2, "ends in .csv"),
        (("good.safetensors", "new.csv", "-o", "there.csv"), 3, "is there already"),
        (("good.safetensors", "new.csv", "-o", "missing/out.csv"), 3, "No such file or directory"),
        (("good.safetensors", "text.csv", "-o", "out.csv"), 11, "expected numbers"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_each(arguments, code, message, run, elsewhere):
    frame = houses()
    data = dataset_of(frame[["size", "rooms"]], frame["price"])
    network = build(SMALL[0], input_shape=data.input_shape, n_outputs=1, seed=0).eval()
    export(Model(network, data.preprocessing), "good.safetensors")
    nasbot.export(network, "plain.safetensors")
    for name, text in {
        "new.safetensors": "not one",
        "new.xyz": "a,b",
        "empty.csv": "",
        "header.csv": "size,rooms\n",
        "text.csv": "size,rooms\n1,2\nlarge,3\n",
        "endless.csv": "size,rooms\ninf,3\n",
        "ragged.csv": "size,rooms\n1,2\n1,2,3,4\n",
        "other.csv": "a,b\n1,2\n",
        "false.parquet": "size",
        "false.npz": "size",
        "there.csv": "mine",
    }.items():
        spoiled(name, text)
    (elsewhere / "latin.csv").write_bytes(b"size,rooms\n1,2\n\x81\xe4,3\n")
    np.savez("y.npz", y=np.zeros(3))
    np.savez("wide.npz", X=np.zeros((3, 5)))
    np.savez("images.npz", X=np.zeros((3, 5, 5)))
    before = sorted(path.name for path in elsewhere.iterdir())
    result = run("predict", *arguments)
    assert result.code == code, result.err
    assert message in result.err
    assert result.err.count("\n") == 1
    assert (elsewhere / "there.csv").read_text() == "mine"
    assert sorted(path.name for path in elsewhere.iterdir()) == before  # and nothing half-written


def test_frames_may_lack_what_the_model_does_not_look_at():
    frame = houses()
    data = dataset_of(frame.drop(columns="price"), frame["price"])
    assert data.preprocessing.X(frame[["zone", "rooms", "size"]]).shape == (120, data.input_shape[0])
    with pytest.raises(DataError, match="there are no columns 'size', 'rooms'"):
        data.preprocessing.X(frame[["zone"]])
