"""Data: what is inferred, how rows are prepared and divided, and the folder they are shared from."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from nasbot.data.dataset import Dataset, Preprocessing, dataset_of, named_dataset
from nasbot.data.preprocessing import CategoryColumn, DroppedColumn, NumberColumn
from nasbot.data.splitting import split_rows
from nasbot.data.weighting import weights_lines
from nasbot.errors import CodecError, DataError, FileError, OptionError, StorageError


def table(n=100, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, n),
            "rooms": rng.integers(1, 6, n),
            "city": rng.choice(["Ulm", "Kiel", "Bonn"], n),
            "garden": rng.random(n) < 0.5,
        }
    )
    frame["price"] = 3 * frame["size"] + 10 * frame["rooms"] + rng.normal(0, 1, n)
    return frame


class TestInference:
    def test_columns_and_target_of_a_frame(self):
        data = dataset_of(table(), "price")
        assert data.kind == "mlp-reg"
        assert data.n_outputs == 1
        assert data.input_shape == (1 + 1 + 3 + 1,)
        assert [type(c).__name__ for c in data.preprocessing.inputs.columns] == [
            "NumberColumn",
            "NumberColumn",
            "CategoryColumn",
            "NumberColumn",
        ]
        assert "regression" in data.summary()[2]
        assert "price" in data.summary()[2]

    @pytest.mark.parametrize(
        ("target", "kind", "n_outputs"),
        [
            (["a", "b"] * 20, "mlp-class", 2),
            ([True, False] * 20, "mlp-class", 2),
            ([0, 1, 2, 3] * 10, "mlp-class", 4),
            ([0.0, 1.0] * 20, "mlp-class", 2),
            ([0.5, 1.0] * 20, "mlp-reg", 1),
            (list(range(40)), "mlp-reg", 1),
            (np.arange(80.0).reshape(40, 2), "mlp-reg", 2),
            (np.array([b"a", b"b"] * 20), "mlp-class", 2),
        ],
    )
    def test_kind_of_target(self, target, kind, n_outputs):
        data = dataset_of(np.random.default_rng(0).normal(size=(40, 3)), target)
        assert (data.kind, data.n_outputs) == (kind, n_outputs)

    def test_the_task_may_be_said(self):
        X, y = np.random.default_rng(0).normal(size=(40, 3)), [1, 2, 3, 4] * 10
        assert dataset_of(X, y, task="regression").kind == "mlp-reg"
        assert dataset_of(X, list(range(20)) * 2, task="classification").n_outputs == 20

    def test_numbers_kept_as_text_are_numbers(self):
        frame = table()
        frame["size"] = frame["size"].map(lambda value: f"{value:.2f}").astype(object)
        assert isinstance(dataset_of(frame, "price").preprocessing.inputs.columns[0], NumberColumn)

    @pytest.mark.parametrize(
        ("column", "kind", "width"),
        [
            (pd.Categorical(["x", "y", None] * 20), CategoryColumn, 3),
            (pd.Categorical([1, 2, 3] * 20), CategoryColumn, 3),
            (pd.array([1, None, 3] * 20, dtype="Int64"), NumberColumn, 2),
            (pd.array([True, None, False] * 20, dtype="boolean"), NumberColumn, 2),
            (pd.array(["u", None, "v"] * 20, dtype="string"), CategoryColumn, 3),
            (pd.array([1, 2, None] * 20, dtype="int64[pyarrow]"), NumberColumn, 2),
            (pd.array(np.arange(60, dtype=np.float16)), NumberColumn, 1),
            (["1", "x", 2] * 20, CategoryColumn, 3),
            ([True, None, False] * 20, NumberColumn, 2),
        ],
    )
    def test_columns_of_every_dtype(self, column, kind, width):
        frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60), "z": pd.Series(column)})
        found = dataset_of(frame, np.linspace(0, 1, 60)).preprocessing.inputs.columns[1]
        assert (type(found), found.width) == (kind, width)

    def test_constant_columns_are_not_used_and_it_is_said(self):
        frame = table().assign(same=1.0, town="x")
        data = dataset_of(frame, "price")
        assert sum(isinstance(c, DroppedColumn) for c in data.preprocessing.inputs.columns) == 2
        assert "same (constant)" in data.summary()[1]

    def test_rare_categories_share_none_of_these(self):
        frame = table(2000)
        frame["code"] = [f"c{i % 60}" for i in range(2000)]
        column = next(c for c in dataset_of(frame, "price").preprocessing.inputs.columns if c.name == "code")
        assert isinstance(column, CategoryColumn)
        assert len(column.values) == 50

    def test_columns_are_left_out_by_wish(self):
        assert dataset_of(table(), "price", drop=["city"]).input_shape == (3,)


class TestPreparing:
    def test_training_rows_are_standardised(self):
        data = dataset_of(np.random.default_rng(0).normal(5, 3, size=(200, 4)), np.arange(200.0))
        np.testing.assert_allclose(data.train.X.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(data.train.X.std(axis=0), 1, atol=1e-5)
        np.testing.assert_allclose(data.train.y.std(), 1, atol=1e-5)
        assert data.train.X.dtype == np.float32
        assert data.train.y.shape == (120, 1)
        assert abs(data.valid.X.mean()) > 1e-4  # by the training rows' scale, not by its own

    def test_gaps_are_filled_and_marked(self):
        frame = table()
        frame.loc[frame.index % 3 == 0, "size"] = np.nan
        frame.loc[frame.index % 4 == 0, "city"] = None
        data = dataset_of(frame, "price")
        assert data.input_shape == (2 + 1 + 4 + 1,)
        assert np.isfinite(data.train.X).all()
        raw = frame.drop(columns="price").head(2)
        prepared = data.preprocessing.X(raw)
        assert prepared[0, 1] == 1  # a gap
        assert prepared[1, 1] == 0
        assert prepared[0, 3:6].sum() == 0  # no city
        assert prepared[0, 6] == 1

    def test_a_category_never_seen_is_none_of_these(self):
        data = dataset_of(table(), "price")
        raw = table().drop(columns="price").head(1).assign(city="Rom")
        assert data.preprocessing.X(raw)[0, 2:5].sum() == 0

    def test_frames_are_read_by_name_and_arrays_by_position(self):
        frame = table().drop(columns="city")
        data = dataset_of(frame, "price")
        raw = frame.drop(columns="price")
        by_name = data.preprocessing.X(raw[["garden", "size", "rooms"]])
        by_position = data.preprocessing.X(raw.to_numpy(dtype=float))
        np.testing.assert_array_equal(by_name, by_position)
        with pytest.raises(DataError, match="no column 'rooms'"):
            data.preprocessing.X(raw.drop(columns="rooms"))
        with pytest.raises(DataError, match="expected 3 columns, got 2"):
            data.preprocessing.X(raw.to_numpy(dtype=float)[:, :2])

    def test_numbers_come_back_in_peoples_units(self):
        frame = table()
        data = dataset_of(frame, "price")
        y = data.preprocessing.y(frame["price"])
        np.testing.assert_allclose(data.preprocessing.restored(y), frame["price"], rtol=1e-5)

    @pytest.mark.parametrize("classes", [["no", "yes"], [3, 7], [False, True], [1.0, 2.0]])
    def test_classes_come_back_as_people_call_them(self, classes):
        y = np.array(classes * 20)
        data = dataset_of(np.random.default_rng(0).normal(size=(40, 2)), y)
        codes = data.preprocessing.y(y)
        assert codes.dtype == np.int64
        back = data.preprocessing.restored(np.eye(2)[codes])
        assert back.tolist() == y.tolist()
        with pytest.raises(DataError, match="was not among those trained on"):
            data.preprocessing.y(["maybe"])

    def test_tensors_and_torch_datasets_give_what_arrays_give(self):
        X, y = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32), np.arange(60) % 3
        wanted = dataset_of(X, y).fingerprint
        assert dataset_of(torch.tensor(X), torch.tensor(y)).fingerprint == wanted
        assert dataset_of(torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(y))).fingerprint == wanted

        class Items(torch.utils.data.Dataset):
            def __len__(self):
                return len(X)

            def __getitem__(self, i):
                return torch.tensor(X[i]), int(y[i])

        assert dataset_of(Items()).fingerprint == wanted


class TestImages:
    images = np.random.default_rng(0).integers(0, 256, size=(40, 8, 6, 3), dtype=np.uint8)
    labels = np.arange(40) % 4

    def test_channels_first_and_last_are_told_apart(self):
        last = dataset_of(self.images, self.labels)
        first = dataset_of(np.moveaxis(self.images, 3, 1), self.labels)
        assert last.kind == "cnn"
        assert last.input_shape == first.input_shape == (3, 8, 6)
        np.testing.assert_array_equal(last.train.X, first.train.X)
        np.testing.assert_allclose(last.train.X.mean(axis=(0, 2, 3)), 0, atol=1e-4)

    def test_grey_images_need_no_axis_of_channels(self):
        assert dataset_of(self.images[..., 0], self.labels).input_shape == (1, 8, 6)

    def test_a_shape_that_does_not_tell_needs_a_word(self):
        twice = np.zeros((40, 3, 8, 3)) + np.arange(40)[:, None, None, None]
        with pytest.raises(DataError, match="channels_last=True or False"):
            dataset_of(twice, self.labels)
        with pytest.raises(DataError, match="at least 4 x 4"):
            dataset_of(twice, self.labels, channels_last=True)
        assert dataset_of(np.zeros((40, 3, 8, 4)) + twice[:, :, :, :1], self.labels, channels_last=False).kind == "cnn"

    def test_numbers_are_not_predicted_from_images(self):
        with pytest.raises(DataError, match="reshape"):
            dataset_of(self.images, np.linspace(0, 1, 40))


class TestSplit:
    def test_shares_and_disjointness(self):
        parts = split_rows(1000, (0.6, 0.2, 0.2), seed=0)
        assert [len(part) for part in parts] == [600, 200, 200]
        assert sorted(np.concatenate(parts)) == list(range(1000))

    def test_the_seed_decides(self):
        a, b, c = (split_rows(100, (0.6, 0.2, 0.2), seed=seed)[0].tolist() for seed in (1, 1, 2))
        assert a == b
        assert a != c

    def test_each_class_is_divided_alike(self):
        classes = np.repeat([0, 1, 2], [700, 200, 100])
        for part, share in zip(
            split_rows(1000, (0.6, 0.2, 0.2), seed=3, classes=classes), (0.6, 0.2, 0.2), strict=True
        ):
            np.testing.assert_allclose(np.bincount(classes[part]), share * np.array([700, 200, 100]), atol=1)

    @pytest.mark.parametrize("n_classes", [2, 5, 30])
    def test_every_class_is_trained_on_and_choosing_has_rows(self, n_classes):
        classes = np.arange(60) % n_classes
        train, valid, test = split_rows(60, (0.6, 0.2, 0.2), seed=0, classes=classes)
        assert set(classes[train]) == set(range(n_classes))
        assert len(valid) > 0
        assert len(train) + len(valid) + len(test) == 60

    def test_without_a_test_part(self):
        data = dataset_of(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0), split=(0.8, 0.2, 0))
        assert (len(data.train), len(data.valid), len(data.test)) == (32, 8, 0)
        assert data.test.X.shape == (0, 3)

    @pytest.mark.parametrize("split", [(0.5, 0.5), (1, 0, 0), (0.6, 0.6, -0.2), (0.6, 0.2, 0.1), "abc", None])
    def test_shares_that_cannot_be_meant(self, split):
        with pytest.raises(OptionError, match="three shares"):
            dataset_of(np.zeros((40, 3)), np.arange(40.0), split=split)

    def test_parts_somebody_else_chose(self):
        X = np.random.default_rng(0).normal(size=(40, 3))
        rows = np.split(np.arange(40), [20, 30])
        data = dataset_of(X, np.arange(40.0), indices=rows)
        assert data.preprocessing.restored(data.valid.y).round(3).tolist() == list(range(20, 30))
        with pytest.raises(OptionError, match="indices"):
            dataset_of(X, np.arange(40.0), indices=[np.arange(30), np.arange(20), []])


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda f: f.assign(when=pd.Timedelta("3h")), "column 'when' holds durations"),
            (lambda f: f.assign(size=np.inf), "column 'size' has infinite values"),
            (lambda f: f.assign(size=np.where(f.index == 50, -np.inf, 1.0 * f.index)), "column 'size' has infinite"),
            (lambda f: f.assign(size=1j), "complex"),
            (lambda f: f.assign(size=[[1]] * len(f)), "column 'size' holds list values"),
            (lambda f: f.assign(price=np.nan), "100 of 100 rows have no value"),
            (lambda f: f.assign(price=np.inf), "infinite"),
            (lambda f: f.assign(price=np.where(f.index == 50, np.inf, 1.0 * f.index)), "infinite"),
            (lambda f: f.assign(price=7.5), "always 7.5"),
            (lambda f: f.assign(price="one"), "there is one class"),
            (lambda f: f.assign(price=[f"n{i}" for i in range(len(f))]), "is this the right column"),
            (lambda f: f.assign(price=pd.Timestamp("2024-01-01")), "dates cannot be predicted"),
            (lambda f: f.head(3), "3 rows: too few"),
            (lambda f: pd.concat([f, f[["size"]]], axis=1), "two columns are called 'size'"),
            (lambda f: f[["price"]].assign(a=1, b=2), "none of the 2 columns varies"),
        ],
    )
    def test_tables(self, change, message):
        with pytest.raises(DataError, match=message):
            dataset_of(change(table()), "price")

    @pytest.mark.parametrize(
        ("X", "y", "options", "message"),
        [
            (np.zeros((40, 3)), np.zeros(39), {}, "one value for each of 40 rows, got 39"),
            (np.zeros(40), np.zeros(40), {}, "one row of 40 values"),
            (np.zeros((2, 30_000)), np.zeros(2), {}, "30,000 inputs are more than"),
            (np.zeros((40, 3), dtype=complex), np.zeros(40), {}, "complex"),
            (object(), np.zeros(40), {}, "expected an array"),
            ([[1, 2], [3]], [0, 1], {}, "rows of one length"),
            (np.eye(40), ["a", "b"] * 20, {"task": "regression"}, "'a' is not a number"),
            (np.eye(40), np.linspace(0, 1, 40), {"task": "classification"}, "are no classes"),
            (np.eye(40), np.zeros((40, 2), dtype=int), {"task": "classification"}, "one column of classes"),
            (np.eye(40), None, {}, "nothing is said about what to predict"),
        ],
    )
    def test_arrays(self, X, y, options, message):
        with pytest.raises(DataError, match=message):
            dataset_of(X, y, **options)

    def test_options(self):
        with pytest.raises(OptionError, match="task"):
            dataset_of(np.eye(40), np.arange(40.0), task="guessing")
        with pytest.raises(OptionError, match="seed"):
            dataset_of(np.eye(40), np.arange(40.0), seed=-1)
        with pytest.raises(
            DataError, match=r"target: there is no column 'prize'; did you mean 'price'\? The columns are 'size', "
        ):
            dataset_of(table(), "prize")
        with pytest.raises(DataError, match="drop: there is no column 'town'; the columns are 'size', "):
            dataset_of(table(), "price", drop=["town"])

    @pytest.mark.parametrize("unit", [1e200, 1e-200])
    def test_numbers_whose_squares_no_computer_holds(self, unit):
        X = np.random.default_rng(0).normal(size=(60, 2))
        with pytest.raises(DataError, match=r"target 'y': its standard deviation is .*, expected 1e-100 to 1e100"):
            dataset_of(X, X[:, 0] * unit)
        if unit > 1:
            with pytest.raises(DataError, match=r"column 'x0': its standard deviation is .*; use another unit"):
                dataset_of(X * unit, X[:, 0])


class TestFolder:
    def test_what_was_saved_comes_back_as_maps(self, tmp_path):
        frame = table()
        frame.loc[3, "city"] = None
        data = dataset_of(frame, "price", name="houses")
        data.save(tmp_path / "data")
        loaded = Dataset.load(tmp_path / "data")
        assert isinstance(loaded.train.X, np.memmap)
        assert loaded.fingerprint == data.fingerprint
        assert loaded.preprocessing == data.preprocessing
        assert (loaded.name, loaded.kind, loaded.n_outputs) == ("houses", "mlp-reg", 1)
        for part in ("train", "valid", "test"):
            np.testing.assert_array_equal(getattr(loaded, part).X, getattr(data, part).X)
            np.testing.assert_array_equal(getattr(loaded, part).y, getattr(data, part).y)
        loaded.__dict__.pop("fingerprint")
        assert loaded.fingerprint == data.fingerprint, "computed again from the files"
        data.save(tmp_path / "data")  # the same again is no matter
        with pytest.raises(FileError, match="holds another data set"):
            dataset_of(table(seed=1), "price").save(tmp_path / "data")

    def test_without_a_test_part(self, tmp_path):
        data = dataset_of(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0), split=(0.8, 0.2, 0))
        data.save(tmp_path)
        assert len(Dataset.load(tmp_path).test) == 0

    def test_fingerprint_follows_content_not_name(self):
        X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
        one = dataset_of(X, y, name="a").fingerprint
        assert dataset_of(X, y, name="b").fingerprint == one
        assert dataset_of(X + 1e-3 * np.eye(40, 3), y).fingerprint != one
        assert dataset_of(X, y, seed=1).fingerprint != one

    def test_damage_is_noticed(self, tmp_path):
        with pytest.raises(FileError, match="no data set there"):
            Dataset.load(tmp_path)
        data = dataset_of(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0))
        data.save(tmp_path)
        (tmp_path / "valid_X.npy").write_bytes(b"nonsense")
        with pytest.raises(StorageError, match="valid_X"):
            Dataset.load(tmp_path)
        np.save(tmp_path / "valid_X.npy", np.zeros((2, 3)))
        with pytest.raises(StorageError, match="do not belong together"):
            Dataset.load(tmp_path)
        for text in ("{", "[" * 100_000, '{"format": NaN}'):
            (tmp_path / "dataset.json").write_text(text)
            with pytest.raises(StorageError, match=r"dataset.json: not JSON"):
                Dataset.load(tmp_path)
        (tmp_path / "dataset.json").write_text('{"format": 1}')
        with pytest.raises(StorageError, match="not a data set"):
            Dataset.load(tmp_path)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(FileError, match="cannot write the data"):
            dataset_of(np.eye(40), np.arange(40.0)).save(tmp_path / "file" / "data")


class TestDescription:
    def examples(self):
        frame = table().assign(same=1)
        frame.loc[3, "city"] = None
        return [
            dataset_of(frame, "price"),
            dataset_of(frame.dropna(), "city"),
            dataset_of(TestImages.images, TestImages.labels),
            dataset_of(np.random.default_rng(0).normal(size=(40, 3)), np.arange(80.0).reshape(40, 2)),
        ]

    def test_round_trips_through_json(self):
        for data in self.examples():
            record = json.loads(json.dumps(data.preprocessing.to_dict(), allow_nan=False))
            assert Preprocessing.from_dict(record) == data.preprocessing

    def test_any_change_of_shape_is_refused(self):
        for data in self.examples():
            for broken in broken_records(data.preprocessing.to_dict()):
                with pytest.raises(CodecError):
                    Preprocessing.from_dict(broken)


def broken_records(record):
    """The record with each of its fields taken out, and with each replaced by what it cannot be."""

    def paths(value, at=()):
        if isinstance(value, dict):
            for key, item in value.items():
                yield (*at, key)
                yield from paths(item, (*at, key))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                yield from paths(item, (*at, i))

    for path in paths(record):
        for new in (None, object(), float("nan")):
            copy = json.loads(json.dumps(record))
            place = copy
            for step in path[:-1]:
                place = place[step]
            if new is None:
                del place[path[-1]]
            else:
                place[path[-1]] = new
            yield copy


class TestNamed:
    @pytest.mark.parametrize(
        ("name", "kind", "shape"),
        [
            ("digits", "mlp-class", (61,)),
            ("digits-images", "cnn", (1, 8, 8)),
            ("diabetes", "mlp-reg", (10,)),
            ("breast-cancer", "mlp-class", (30,)),
            ("iris", "mlp-class", (4,)),
            ("wine", "mlp-class", (13,)),
            ("linnerud", "mlp-reg", (3,)),
        ],
    )
    def test_those_of_scikit_learn(self, name, kind, shape):
        data = named_dataset(name)
        assert (data.kind, data.input_shape, data.name) == (kind, shape, name)

    def test_classes_have_peoples_names(self):
        assert named_dataset("iris").preprocessing.classes == ("setosa", "versicolor", "virginica")

    def test_an_unknown_name(self):
        with pytest.raises(OptionError, match="did you mean 'digits'"):
            named_dataset("digit")

    def test_the_papers_sets_need_a_folder(self, tmp_path, monkeypatch):
        monkeypatch.delenv("NASBOT_DATA", raising=False)
        with pytest.raises(OptionError, match="is read from a folder"):
            named_dataset("protein")
        with pytest.raises(FileError, match="no such folder"):
            named_dataset("protein", folder=tmp_path / "nowhere")
        with pytest.raises(FileError, match=r"protein_casp\.npz"):
            named_dataset("protein", folder=tmp_path)

    def test_protein_and_naval(self, shared_dir, monkeypatch):
        protein = named_dataset("protein", folder=shared_dir / "data")
        assert (len(protein.train), len(protein.valid), len(protein.test)) == (27438, 9146, 9146)
        assert (protein.kind, protein.input_shape) == ("mlp-reg", (9,))
        monkeypatch.setenv("NASBOT_DATA", str(shared_dir / "data"))
        assert named_dataset("naval").input_shape == (14,)  # T1 and P1 are constant

    def test_indoor_says_not_heard_by_a_weak_signal(self, shared_dir):
        from nasbot.data.named import load

        X, _, _ = load("indoor", shared_dir / "data")
        assert X.min() == -105
        assert X.max() <= 0

    def test_cifar_is_decoded_exactly(self, shared_dir):
        from nasbot.data.named import decoded

        with np.load(shared_dir / "data" / "cifar10" / "test.npz") as stored:
            images = decoded(stored["r"][:, :100])
        assert images.shape == (100, 3, 32, 32)
        # A cat on a brown ground, the first image of the official test set.
        assert images[0, :, 0, 0].tolist() == [158, 112, 49]


def test_items_of_a_torch_dataset_are_pairs():
    class Triples(torch.utils.data.Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, i):
            return torch.ones(2) * i, i % 2, "more"

    class Bare(Triples):
        def __getitem__(self, i):
            return torch.ones(2)

    class OneTriple(Triples):
        def __getitem__(self, i):
            return super().__getitem__(i)[: 3 if i == 7 else 2]

    for items in (Triples(), Bare(), OneTriple()):
        with pytest.raises(DataError, match=r"torch dataset: expected items \(input, target\)"):
            dataset_of(items)


def test_amounts_are_multiples_of_their_mean_and_classes_are_not():
    X, counts = np.arange(120.0).reshape(60, 2), np.random.default_rng(0).poisson(3.0, 60).astype(float)
    data = dataset_of(X, counts, task="regression")
    (ratio,) = data.rate_scale
    assert ratio == pytest.approx(data.preprocessing.target.centres[0] / data.preprocessing.target.scales[0])
    assert ratio > 0
    assert dataset_of(X, counts - 100, task="regression").rate_scale is None
    assert dataset_of(X, np.arange(60) % 3, task="classification").rate_scale is None


def test_what_is_said_about_weights():
    X, y = np.arange(120.0).reshape(60, 2), np.arange(60.0)
    weighted = dataset_of(X, y, task="regression", sample_weight=np.linspace(1.0, 5.0, 60))
    low, high = weighted.train.weights.min(), weighted.train.weights.max()
    assert low < high
    assert weights_lines(weighted) == [f"weights: rows count {low:.3g} to {high:.3g}"]
    assert weights_lines(dataset_of(X, y, task="regression")) == []
