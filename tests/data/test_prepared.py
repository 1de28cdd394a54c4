"""What is prepared, told and written of data: images, stored descriptions, metrics of one's own, frames."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image

from nasbot.data import dataset as dataset_module
from nasbot.data import files as files_module
from nasbot.data import parts
from nasbot.data.comparing import differences
from nasbot.data.dataset import dataset_of
from nasbot.data.files import pictures_in, read_pictures
from nasbot.data.frames import frame_of, safe_text, write_frame
from nasbot.data.metrics import Metric, is_own, own_metric, unnamed_metric
from nasbot.data.named import _arrays, decoded, load
from nasbot.data.preprocessing import Preprocessing
from nasbot.errors import CodecError, DataError, FileError, OptionError, StudyError

RNG = np.random.default_rng(0)
LABELS = np.arange(40) % 2


def images(*shape, kind=np.uint8):
    return RNG.integers(0, 255, (40, *shape)).astype(kind)


# -- images ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        (images(4, 4), {}, (1, 4, 4)),
        (images(8, 9, 3), {}, (3, 8, 9)),
        (images(3, 8, 9), {}, (3, 8, 9)),
        (images(8, 9, 4), {}, (4, 8, 9)),
        (images(1, 8, 9), {}, (1, 8, 9)),
        (images(3, 8, 4), {"channels_last": False}, (3, 8, 4)),
        (images(4, 8, 3), {"channels_last": True}, (3, 4, 8)),
        (images(4, 4, 3), {}, (3, 4, 4)),  # not 4 channels of 4 x 3 pixels, which would be too small
        (images(3, 4, 4), {}, (3, 4, 4)),
    ],
)
def test_shapes_of_images(given, options, expected):
    data = dataset_of(given, LABELS, **options)
    assert (data.input_shape, data.has_images, data.kind) == (expected, True, "cnn")
    np.testing.assert_allclose(data.train.X.mean(axis=(0, 2, 3)), 0, atol=1e-3)
    np.testing.assert_allclose(data.train.X.std(axis=(0, 2, 3)), 1, atol=1e-3)
    channels = "1 channel" if expected[0] == 1 else f"{expected[0]} channels"
    assert data.summary()[1] == f"inputs: images of {expected[1]} x {expected[2]}, {channels}"


def test_images_that_are_none():
    broken = images(8, 8, 3, kind=float)
    broken[0, 0, 0, 0] = np.nan
    for given, options, words in (
        (images(8, 8, 5), {"channels_last": True}, "expected 1, 3 or 4 channels, got 5"),
        (images(3, 8, 3), {}, "does not tell which axis holds the channels"),
        (images(8, 8, 5), {}, "does not tell which axis holds the channels"),
        (images(3, 9, 3), {"channels_last": True}, "expected at least 4 x 4 pixels, got 3 x 9"),
        (images(3, 9), {}, "looks like sequences"),
        (images(4, 4 * dataset_module.LONGEST_SIDE), {}, "looks like sequences"),
        (broken, {}, "values that are not finite numbers"),
        (np.zeros((40, 8, 8)), {}, "all pixels of the training images are alike"),
        (images(8, 8, 3), {"kinds": {"a": "number"}}, "images have no columns; expected a table"),
        (images(8, 8, 3), {"groups": "a"}, "groups: images have no columns; expected a value for each image"),
        (images(8, 8, 3), {"task": "regression"}, "networks for images predict classes"),
    ):
        with pytest.raises((DataError, OptionError), match=words):
            dataset_of(given, LABELS, **options)
    less_oblong = images(4, 4 * dataset_module.LONGEST_SIDE - 1)
    assert dataset_of(less_oblong, LABELS).has_images


def test_a_channel_without_contrast_is_kept_as_it_is():
    given = images(8, 8, 3)
    given[..., 1] = 7
    data = dataset_of(given, LABELS)
    assert data.preprocessing.inputs.scales[1] == 1.0
    assert not data.train.X[:, 1].any()


def test_images_of_other_shapes_differ():
    small, large = dataset_of(images(8, 8, 3), LABELS), dataset_of(images(9, 9, 3), LABELS)
    assert differences(small, large) == ["inputs were of shape (3, 8, 8), now (3, 9, 9)"]
    assert any("rows differ" in line for line in differences(small, dataset_of(images(8, 8, 3), LABELS)))


def test_too_much_for_memory(monkeypatch):
    monkeypatch.setattr(parts, "MAX_BYTES", 4 * 40 * 3)
    X = RNG.normal(size=(40, 3))
    assert dataset_of(X, LABELS).input_shape == (3,)
    with pytest.raises(DataError, match="40 rows of 4 inputs need"):
        dataset_of(RNG.normal(size=(40, 4)), LABELS)


def test_pictures(tmp_path):
    with pytest.raises(DataError, match="no images; expected pictures"):
        pictures_in(tmp_path)
    Image.fromarray(images(6, 8, 3)[0]).save(tmp_path / "b.png")
    (tmp_path / "in").mkdir()
    Image.fromarray(images(6, 8)[0]).save(tmp_path / "in" / "a.png")
    files = pictures_in(tmp_path)
    assert sorted(file.name for file in files) == ["a.png", "b.png"]
    assert read_pictures(files, (3, 6, 8)).shape == (2, 6, 8, 3)
    assert read_pictures(files, (1, 6, 8)).shape == (2, 6, 8)
    assert read_pictures(files, (1, 5, 5)).shape == (2, 5, 5)  # a square is scaled to
    with pytest.raises(DataError, match="6 x 8 pixels; expected 8 x 6"):
        read_pictures(files, (3, 8, 6))
    with pytest.raises(DataError, match="expected 1 or 3 channels, the model looks at 4"):
        read_pictures(files, (4, 6, 8))


def test_what_is_transparent_is_white(tmp_path):
    seen = np.zeros((4, 4, 4), dtype=np.uint8)
    Image.fromarray(seen).save(tmp_path / "a.png")
    assert (read_pictures([tmp_path / "a.png"], (3, 4, 4)) == 255).all()


def test_planes_are_put_together():
    rgb = images(3, 6, 5)[:7]
    planes = np.stack([rgb[:, 0] - rgb[:, 1], rgb[:, 1], rgb[:, 2] - rgb[:, 1]])
    stored = np.diff(np.diff(planes, axis=2, prepend=0), axis=3, prepend=0).astype(np.uint8)
    np.testing.assert_array_equal(decoded(stored), rgb)


def test_sets_from_folders(tmp_path, monkeypatch):
    monkeypatch.delenv("NASBOT_DATA", raising=False)
    (tmp_path / "x.npz").write_bytes(b"no")
    with pytest.raises(DataError, match="not an NPZ file"):
        _arrays(tmp_path / "x.npz")
    with pytest.raises(FileError, match="cannot be read"):
        _arrays(tmp_path / "y.npz")
    with pytest.raises(OptionError, match="there is no set named 'digts', did you mean 'digits'"):
        load("digts")
    with pytest.raises(OptionError, match="there is no set named 'zzz' Known are"):
        load("zzz")


# -- torch -------------------------------------------------------------------------------------------------------------


class Items(torch.utils.data.Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_torch_datasets():
    X, y = torch.randn(40, 3), torch.arange(40) % 2
    whole = dataset_of(torch.utils.data.TensorDataset(X, y))
    one_by_one = dataset_of(Items([(X[i], y[i]) for i in range(40)]))
    np.testing.assert_array_equal(whole.train.X, one_by_one.train.X)
    for given, words in (
        (torch.utils.data.TensorDataset(X), "expected two tensors, inputs and target, got 1"),
        (torch.utils.data.TensorDataset(X, y, y), "got 3"),
        (torch.utils.data.Dataset(), "expected one of known length"),
        (Items([]), "expected items"),
        (Items([(X[0], y[0], 1)]), "expected items"),
        (Items([X[0]]), "expected items"),
        (Items([(X[0], y[0]), (X[0][:2], y[0])]), "expected inputs of one shape, one target each"),
        (np.zeros((4, 4)), "nothing is said about what to predict"),
    ):
        with pytest.raises(DataError, match=words):
            dataset_of(given)


# -- what is told ------------------------------------------------------------------------------------------------------


def test_a_summary_counts_columns_and_gaps():
    n = 40
    frame = pd.DataFrame(
        {
            "a": np.where(np.arange(n) % 5, RNG.normal(size=n), np.nan),
            "b": RNG.normal(size=n),
            "c": ["x", "y"] * 20,
            "d": pd.date_range("2020-01-01", periods=n),
            "same": 1.0,
            "y": RNG.normal(size=n),
        }
    )
    data = dataset_of(frame, "y", seed=1, drop=["b"])
    said = data.summary()
    assert said[0] == "data: 24 train, 8 valid, 8 test rows"
    assert said[1].startswith(
        "inputs: 5 columns, 1 of numbers, 1 of categories and 1 of dates, 1 with gaps; not used: "
    )
    assert "same (constant)" in said[1]
    assert said[2] == "target: y, a number: regression"
    assert len(said) == 3
    two = dataset_of(frame[["a", "b", "y"]], "y", sample_weight=np.linspace(1, 2, n))
    assert two.summary()[1] == "inputs: 2 columns, 2 of numbers, 1 with gaps"
    assert two.summary()[3].startswith("weights: rows count 1")
    classes = dataset_of(frame[["b", "c"]], "c", class_weight={"x": 3})
    assert classes.summary()[2] == "target: c, 2 classes ('x', 'y'): classification"
    assert classes.summary()[3] == "weights: classes count 'x 3', 'y 1' in the loss"


def test_targets_that_are_rates():
    counts = np.concatenate([np.zeros(30), np.full(10, 50.5)])
    data = dataset_of(RNG.normal(size=(40, 2)), RNG.permutation(counts), task="regression")
    assert data.is_heavy_tailed
    assert data.rate_scale[0] < 1
    even = dataset_of(RNG.normal(size=(40, 2)), np.linspace(10, 11, 40))
    assert not even.is_heavy_tailed
    assert even.rate_scale[0] > 1
    assert dataset_of(RNG.normal(size=(40, 2)), np.linspace(-1, 11, 40)).rate_scale is None
    assert dataset_of(RNG.normal(size=(40, 2)), LABELS).rate_scale is None


# -- stored descriptions -----------------------------------------------------------------------------------------------


def description(**changes):
    frame = pd.DataFrame({"a": RNG.normal(size=40), "c": ["x", "y"] * 20, "d": pd.date_range("2020-01-01", periods=40)})
    record = dataset_of(frame, RNG.normal(size=40)).preprocessing.to_dict()
    return {**record, **changes}


def test_descriptions_come_back():
    record = description()
    assert Preprocessing.from_dict(record).to_dict() == record
    pictures = dataset_of(images(8, 8, 3), LABELS).preprocessing
    assert Preprocessing.from_dict(pictures.to_dict()) == pictures


IMAGES = {"form": "images", "shape": [1, 8, 8], "channels_last": True, "centres": [0.0], "scales": [1.0]}
NUMBER = {"form": "number", "names": ["y"], "centres": [0.0], "scales": [1.0]}


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": {**IMAGES, "shape": [1, 8]}},
        {"inputs": {**IMAGES, "shape": [0, 8, 8]}},
        {"inputs": {**IMAGES, "centres": [0.0, 1.0]}},
        {"inputs": {**IMAGES, "scales": [0.0]}},
        {"inputs": {**IMAGES, "channels_last": 1}},
        {"inputs": {"form": "table", "columns": [{"form": "other"}]}},
        {"target": {**NUMBER, "names": []}},
        {"target": {**NUMBER, "centres": [0.0, 1.0]}},
        {"target": {"form": "class", "name": "y", "classes": ["a"]}},
        {"target": {"form": "class", "name": "y", "classes": ["a", "a"]}},
        {"target": {"form": "class", "name": "y", "classes": ["a", None]}},
    ],
    ids=str,
)
def test_descriptions_that_are_none(changes):
    with pytest.raises(CodecError):
        Preprocessing.from_dict(description(**changes))


def test_descriptions_that_are():
    for changes in (
        {"inputs": IMAGES},
        {"target": NUMBER},
        {"target": {"form": "class", "name": "y", "classes": [1, "1"]}},
    ):
        assert Preprocessing.from_dict(description(**changes))


@pytest.mark.parametrize("limits", [[], [[0.0]], [[1.0, 1.0]], [[2.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], ids=str)
def test_limits_that_are_none(limits):
    record = description()["target"]
    assert "limits" in record
    with pytest.raises(CodecError, match="limits: expected"):
        Preprocessing.from_dict(description(target={**record, "limits": limits}))


@pytest.mark.parametrize(
    "changes",
    [{"order": "ydm"}, {"parts": []}, {"parts": ["minute"]}, {"centres": [0.0]}, {"scales": [1.0] * 9}],
    ids=str,
)
def test_columns_of_dates_that_are_none(changes):
    record = description()
    columns = [c if c["form"] != "date" else {**c, **changes} for c in record["inputs"]["columns"]]
    with pytest.raises(CodecError, match="column 2: expected"):
        Preprocessing.from_dict({**record, "inputs": {"form": "table", "columns": columns}})


# -- metrics of one's own ----------------------------------------------------------------------------------------------

CODE = """
import numpy as np
def half_score(truth, predicted): return 0.5
def my_loss(truth, predicted, sample_weight=None):
    return float(len(truth) if sample_weight is None else sample_weight.sum())
def odd(truth, predicted, **more): return float("inf")
def said(truth, predicted): raise ValueError("no")
said.higher_is_better = True
"""


def test_metrics_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(CODE)
    truth, predicted, weights = np.zeros((4, 1)), np.zeros((4, 1)), np.full(4, 0.5)
    score, loss, said = (own_metric(f"{file}:{name}", "regression") for name in ("half_score", "my_loss", "said"))
    assert isinstance(score, Metric)
    assert (score.higher_is_better, loss.higher_is_better, said.higher_is_better) == (True, False, True)
    assert (score(truth, predicted), loss(truth, predicted), loss(truth, predicted, weights)) == (0.5, 4.0, 2.0)
    with pytest.raises(OptionError, match="does not take sample_weight"):
        score(truth, predicted, weights)
    with pytest.raises(DataError, match="ValueError: no"):
        said(truth, predicted)
    with pytest.raises(OptionError, match="is a high or a low odd good"):
        own_metric(f"{file}:odd", "regression")
    file.write_text(CODE + "odd.higher_is_better = False")
    odd = own_metric(f"{file}:odd", "regression")
    assert not odd.higher_is_better
    assert np.isnan(odd(truth, predicted, weights))
    assert is_own("a:b")
    assert not is_own("mse")


def test_a_metric_that_nobody_named_again():
    metric = unnamed_metric("mine:score", "regression", higher_is_better=True)
    assert metric.higher_is_better
    with pytest.raises(StudyError, match="judged by mine:score, a function that is not run unless it is named again"):
        metric(np.zeros(2), np.zeros(2))


# -- frames ------------------------------------------------------------------------------------------------------------


def test_frames_are_written_whole(tmp_path):
    frame = frame_of([{"n": 0, "a": "=1+1", "b": 2.5}, {"n": 1, "a": "text", "c": 1}], index="n")
    assert list(frame.columns) == ["a", "b", "c"]
    path = write_frame(frame, tmp_path / "t.csv", to="csv")
    assert path.read_text() == "n,a,b,c\n0,'=1+1,2.5,\n1,text,,1.0\n"
    with pytest.raises(FileError, match="is there already; --overwrite replaces it"):
        write_frame(frame, path, to="csv")
    write_frame(frame.iloc[:0], path, to="csv", overwrite=True)
    assert path.read_text() == "n,a,b,c\n"
    stored = write_frame(frame, tmp_path / "t.parquet", to="parquet")
    assert pd.read_parquet(stored)["a"].tolist() == ["=1+1", "text"]
    with pytest.raises(OptionError, match="to: expected csv or parquet, got 'xls'"):
        write_frame(frame, tmp_path / "t.xls", to="xls")
    with pytest.raises(FileError, match="cannot write"):
        write_frame(frame, tmp_path / "none" / "t.csv", to="csv")
    assert frame_of([], index="n").index.name == "n"
    assert [safe_text(text) for text in ("=x", "+x", "@x", "x")] == ["'=x", "'+x", "'@x", "x"]


# -- files of too many columns, or of none -----------------------------------------------------------------------------


def test_how_many_columns_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "MAX_COLUMNS", 3)
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "b": 2, "c": 3}\n' * 3)
    assert list(files_module.read_table(path).columns) == ["a", "b", "c"]
    path.write_text('{"a": 1, "b": 2, "c": 3, "d": 4}\n' * 3)
    with pytest.raises(DataError, match="4 columns; expected at most 3"):
        files_module.read_table(path)
    csv = tmp_path / "a.csv"
    csv.write_text("a,b,c,d\n1,2,3,4\n")
    with pytest.raises(DataError, match="columns"):
        files_module.read_table(csv)


def test_images_and_targets_of_another_shape():
    data = dataset_of(images(8, 8, 3), LABELS)
    with pytest.raises(DataError, match="images: expected 3 channels of 8 x 8, got 1 channel of 8 x 8"):
        data.preprocessing.inputs.prepared(images(8, 8))
    with pytest.raises(DataError, match="images: expected 3 or 4 axes"):
        data.preprocessing.inputs.prepared(images(8))
    numbers = dataset_of(RNG.normal(size=(40, 2)), RNG.normal(size=(40, 2)))
    with pytest.raises(DataError, match="target: expected 2 columns, got 3"):
        numbers.preprocessing.target.prepared(np.zeros((4, 3)))


def test_inputs_that_are_no_table():
    for given, words in (
        (np.zeros((40, 2, 2, 2, 2)), "array of 5 axes"),
        (scipy.sparse.eye(40, format="csr"), "a sparse matrix; expected a dense array"),
    ):
        with pytest.raises(DataError, match=words):
            dataset_of(given, LABELS)
    with pytest.raises(DataError, match="infinite values"):
        dataset_of(RNG.normal(size=(40, 2)), np.array([np.inf, 1] * 20, dtype=object), task="regression")
