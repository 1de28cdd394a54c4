"""Nothing is fitted on rows outside training: other values there, in every column, and all that is fitted is bit-equal.

For every way to divide rows and every preparation. ``LEAKS`` shows that the check would notice: each of them lets one
part of the preparing see all rows, and the check must fail.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from nasbot.data import dataset
from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.data.preparations import PREPARATIONS
from nasbot.data.splitting import split_groups, split_rows, split_time

N = 200
SHARES = (0.6, 0.2, 0.2)
INPUTS = ("size", "rooms", "city", "sold", "noted")


def table(*, classes=False):
    """Numbers with and without gaps, categories, dates; what to divide by; one or several targets."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 10, N), "rooms": rng.integers(1, 6, N).astype(float)})
    frame["city"] = rng.choice(["Ulm", "Kiel", "Jena"], N)
    frame["sold"] = pd.Timestamp("2019-03-04") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
    frame["noted"] = [f"{day:02d}.{month:02d}.2020" for day, month in rng.integers(1, 13, (N, 2))]
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(N), unit="D")
    frame["patient"] = rng.integers(40, size=N)
    frame["counts"] = rng.uniform(0.5, 2, N)
    price = 3 * frame["size"] + rng.normal(size=N)
    frame["price"] = np.where(price > 160, "dear", "cheap") if classes else price
    if not classes:
        frame["rent"] = price / 7 + rng.normal(size=N)
    return frame


def poisoned(frame, rows, *, keep=()):
    """Values in these rows that would change anything fitted on them: far off, unheard of, missing, other dates."""
    other, rows = frame.copy(), np.asarray(rows)
    changes = {
        "size": 1e6,
        "rooms": np.nan,
        "city": "Rom",
        "sold": pd.Timestamp("1955-05-05"),
        "noted": "31.01.1988",
        "counts": 1e4,
        **({name: -1e6 for name in ("price", "rent") if name in frame and frame[name].dtype.kind == "f"}),
    }
    for name, value in changes.items():
        if name not in keep:
            other.loc[rows, name] = value
    return other


@dataclass(frozen=True)
class Split:
    """How rows are divided: what is handed in, and which of the rows are not for training."""

    options: dict
    target: object = "price"
    files: tuple = ()
    classes: bool = False

    def frame(self):
        frame = table(classes=self.classes)
        return frame if self.target == ["price", "rent"] or self.classes else frame.drop(columns="rent")

    def outside(self):
        frame = self.frame()
        if self.files:
            n_train = {("valid",): 100, ("test",): None, ("valid", "test"): 100}[self.files]
            if n_train is None:  # validation rows are taken from the file itself
                return np.concatenate([split_rows(150, (0.75, 0.25, 0.0), seed=0)[1], np.arange(150, N)])
            return np.arange(n_train, N)
        if "groups" in self.options:
            parts = split_groups(frame["patient"].to_numpy(), SHARES, seed=0)
        elif "time" in self.options:
            parts = split_time(frame["when"].to_numpy().astype(np.int64), SHARES)
        elif "indices" in self.options:
            parts = self.options["indices"]
        else:
            labels = np.unique(frame["price"], return_inverse=True)[1] if self.classes else None
            parts = split_rows(N, SHARES, seed=0, classes=labels)
        return np.concatenate(parts[1:])

    def data(self, frame, folder):
        options = {"sample_weight": "counts", **({"class_weight": "balanced"} if self.classes else {}), **self.options}
        if not self.files:
            return dataset_of(frame, self.target, **options)
        ends = {("valid",): (100, N, N), ("test",): (150, 150, N), ("valid", "test"): (100, 150, N)}[self.files]
        parts = {"main": frame[: ends[0]], "valid": frame[ends[0] : ends[1]], "test": frame[ends[1] :]}
        paths = {name: folder / f"{name}.parquet" for name in parts}
        for name, part in parts.items():
            part.reset_index(drop=True).to_parquet(paths[name])
        return read_dataset(paths["main"], self.target, **{name: paths[name] for name in self.files}, **options)


SPLITS = {
    "random": Split({}),
    "stratified": Split({}, classes=True),
    "group": Split({"groups": "patient"}),
    "time": Split({"time": "when"}),
    "indices": Split({"indices": (np.arange(0, 120), np.arange(120, 160), np.arange(160, N))}),
    "valid file": Split({}, files=("valid",)),
    "test file": Split({}, files=("test",)),
    "valid and test file": Split({}, files=("valid", "test")),
    "several targets": Split({}, target=["price", "rent"]),
}


def equal(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def check(split, preparation, folder):
    """Everything fitted, and the training rows as networks see them, are the same whatever stands in other rows."""
    frame = split.frame()
    ours, theirs = (
        split.data(given, folder).prepared_as(preparation) for given in (frame, poisoned(frame, split.outside()))
    )
    assert ours.preprocessing == theirs.preprocessing
    assert ours.class_weights == theirs.class_weights
    for name in ("X", "y", "weights"):
        assert equal(getattr(ours.train, name), getattr(theirs.train, name)), name
    assert equal(ours.loss_weights(ours.train), theirs.loss_weights(theirs.train))
    assert len(ours.train) + len(ours.valid) + len(ours.test) == N
    for part in (ours.valid, ours.test):  # and the poison is there
        other = theirs.valid if part is ours.valid else theirs.test
        assert not len(part) or not equal(part.X, other.X)
    taken_for = {column.name: type(column).__name__ for column in ours.preprocessing.inputs.columns}
    assert [taken_for[name] for name in INPUTS] == [
        "NumberColumn",
        "NumberColumn",
        "CategoryColumn",
        "DateColumn",
        "DateColumn",
    ]


@pytest.mark.parametrize("preparation", PREPARATIONS)
@pytest.mark.parametrize("name", SPLITS)
def test_nothing_is_fitted_on_rows_outside_training(name, preparation, tmp_path):
    check(SPLITS[name], preparation, tmp_path)


def test_class_weights_do_not_count_rows_outside_training():
    frame = table(classes=True)
    rows = (np.arange(0, 120), np.arange(120, 160), np.arange(160, N))
    other = frame.copy()
    other.loc[120:, "price"] = "dear"
    ours, theirs = (dataset_of(f, "price", indices=rows, class_weight="balanced") for f in (frame, other))
    assert ours.class_weights == theirs.class_weights
    assert not equal(ours.valid.y, theirs.valid.y)


def test_images_are_standardised_by_training_images_only():
    images = np.random.default_rng(0).integers(0, 255, (60, 8, 8, 3)).astype(np.uint8)
    labels = np.arange(60) % 2
    rows = (np.arange(0, 36), np.arange(36, 48), np.arange(48, 60))
    other = images.copy()
    other[36:] = 255
    ours, theirs = (dataset_of(given, labels, indices=rows) for given in (images, other))
    assert ours.preprocessing == theirs.preprocessing
    assert equal(ours.train.X, theirs.train.X)


# -- the check itself --------------------------------------------------------------------------------------------------


def all_rows(function):
    """``function(raw, train, …)`` that sees all rows in the place of the training rows."""

    def leaking(raw, train, *others, **options):
        return function(raw, np.arange(len(raw)), *others, **options)

    return leaking


def leak_of_columns(monkeypatch):
    monkeypatch.setattr(dataset, "columns_of", all_rows(dataset.columns_of))


def leak_of_target(monkeypatch):
    monkeypatch.setattr(dataset, "target_of", all_rows(dataset.target_of))


def leak_of_preparation(monkeypatch):
    fitted = dataset.Dataset.prepared_as

    def leaking(self, name):
        if name == "standard":
            return self
        whole = np.concatenate([self.train.X, self.valid.X, self.test.X])
        seen = fitted(replace(self, train=replace(self.train, X=whole)), name).preprocessing
        parts = {
            part: replace(getattr(self, part), X=seen.preparation.applied(getattr(self, part).X))
            for part in ("train", "valid", "test")
        }
        return replace(self, **parts, preprocessing=seen)

    monkeypatch.setattr(dataset.Dataset, "prepared_as", leaking)


def leak_of_weights(monkeypatch):
    counted = dataset.Dataset._counted

    def leaking(self, part):
        found = counted(self, part)
        return found if part is not self.train else found * counted(self, self.valid).mean()

    monkeypatch.setattr(dataset.Dataset, "_counted", leaking)
    monkeypatch.setattr(
        dataset.Dataset,
        "loss_weights",
        lambda self, part: np.asarray(self._counted(part) / counted(self, self.train).mean(), dtype=np.float32),
    )


LEAKS = {
    "columns": (leak_of_columns, "standard"),
    "target": (leak_of_target, "standard"),
    "weights": (leak_of_weights, "standard"),
    **{f"preparation {name}": (leak_of_preparation, name) for name in PREPARATIONS if name != "standard"},
}


# Classes have no statistics that could leak.
LEAKS_OF_SPLITS = [(name, leak) for name in SPLITS for leak in LEAKS if leak != "target" or not SPLITS[name].classes]


@pytest.mark.parametrize(("name", "leak"), LEAKS_OF_SPLITS)
def test_the_check_notices_each_leak(name, leak, tmp_path, monkeypatch):
    let_in, preparation = LEAKS[leak]
    let_in(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check(SPLITS[name], preparation, tmp_path)


@pytest.mark.parametrize("column", [*INPUTS, "price", "counts"])
def test_the_check_notices_a_leak_by_any_one_column(column, tmp_path, monkeypatch):
    """The poison in each column alone is strong enough to be seen."""
    split = SPLITS["random"]
    frame = split.frame()
    keep = {*INPUTS, "price", "counts"} - {column}
    for let_in in (leak_of_columns, leak_of_target, leak_of_weights):
        let_in(monkeypatch)
    ours, theirs = (split.data(f, tmp_path) for f in (frame, poisoned(frame, split.outside(), keep=keep)))
    same_counts = equal(ours.loss_weights(ours.train), theirs.loss_weights(theirs.train))
    assert ours.preprocessing != theirs.preprocessing or not same_counts
