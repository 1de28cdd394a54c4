"""What is refused, in the words that a person reads, and what only just is not."""

import inspect
import struct
import zipfile
from importlib import import_module
from itertools import product

import numpy as np
import pandas as pd
import PIL.Image
import pyarrow as pa
import pyarrow.parquet
import pytest

from nasbot.data import arrow_files, bounds, dates, files, metrics, named, tables, targets, text_tables
from nasbot.data.columns import CategoryColumn, DateColumn, NumberColumn
from nasbot.data.comparing import differences
from nasbot.data.dataset import dataset_of
from nasbot.data.frames import write_frame
from nasbot.data.parts import Dataset, stored_array
from nasbot.data.preparations import Preparation, Quantile, Robust
from nasbot.data.preprocessing import NumberTarget, Preprocessing
from nasbot.data.splitting import nested_rows
from nasbot.errors import CodecError, DataError, FileError, OptionError, StorageError

# -- limits ------------------------------------------------------------------------------------------------------------

# What is refused, kept or shown depends on these: whoever chooses another changes it here too, and says why.
LIMITS = {
    "arrow_files": {"MAX_BATCHES": 100_000, "RECORD_BATCH": 3, "DICTIONARY_BATCH": 2},
    "bounds": {"ALWAYS": 2**27, "RATIO": 100, "BYTES_PER_CELL": 8},
    "dataset": {"SPLIT": (0.6, 0.2, 0.2), "CHANNELS": (1, 3, 4), "LONGEST_SIDE": 8},
    "dates": {"_LOOKED_AT": 200, "CENTURY": 70},
    "files": {
        "MAX_COLUMNS": 400_000,
        "SHARES": (0.6, 0.2, 0.2),
        "MAX_PIXELS": 2**31,
        "MAX_SHEET_ROWS": 2**20,
        "NPY_HEADER": 2**16,
        "MAX_TAG": 2**20,
    },
    "intervals": {"MOST_BINS": 5, "ROWS_OF_A_BIN": 200, "MOST_KEPT": 501},
    "inspecting": {"NEAR_COPY": 0.9999, "SHARES": (0.6, 0.2, 0.2)},
    "metrics": {"IMBALANCED": 0.8},
    "named": {"NOT_HEARD": 100, "WEAKER_THAN_ALL": -105, "CIFAR_BATCH": 10_000},
    "parts": {"FORMAT": 1, "MAX_BYTES": 2**33},
    "preparations": {"CLIP": 3.0, "MAX_KNOTS": 256, "MAX_BINS": 16, "MAX_BIN_INPUTS": 1024},
    "preprocessing": {"VERSION": 1, "VERSION_WITH_PREPARATION": 2, "COARSE": 1e-4},
    "splitting": {"MIN_ROWS": 10},
    "tables": {
        "MAX_INPUTS": 20_000,
        "MAX_CATEGORIES": 50,
        "FEW_CATEGORIES": 20,
        "MOST_SCALE": 1e100,
        "MOSTLY_NUMBERS": 0.1,
    },
    "targets": {"MAX_CLASSES": 1000, "BEYOND": 0.1, "CLASSES_OF_WHOLE_NUMBERS": 20},
    "text_tables": {"SAMPLE_BYTES": 65536, "SAMPLE_ROWS": 1000, "MAX_LINE": 2**25, "LONG_RUN": 4},
}


@pytest.mark.parametrize("module", LIMITS)
def test_limits_that_somebody_chose(module):
    found = import_module(f"nasbot.data.{module}")
    assert {name: getattr(found, name) for name in LIMITS[module]} == LIMITS[module]


DEFAULTS = {
    dataset_of: {"task": None, "seed": 0, "split": (0.6, 0.2, 0.2), "drop_unlabelled": False},
    files.read_images: {"size": None, "shares": (0.6, 0.2, 0.2), "seed": 0},
    write_frame: {"overwrite": False},
    stored_array: {"mapped": False},
    tables.listed: {"most": 12},
    tables._number_column: {"is_said": False},
    tables._category_column: {"is_said": False},
    NumberColumn: {"marks_gaps": False},
    CategoryColumn: {"marks_gaps": False},
    DateColumn: {"marks_gaps": False},
    arrow_files._check_parquet: {"whole": True},
    text_tables._dialect: {"lines": 0},
    text_tables.Dialect: {"decimal": ".", "skipped": 0, "codes": ()},
    Dataset: {"is_divided_at_random": True},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


# -- files -------------------------------------------------------------------------------------------------------------


def parquet(path, **columns):
    pd.DataFrame(columns).to_parquet(path)
    return path


def empty_sheet(path):
    pd.DataFrame().to_excel(path, index=False)
    return path


@pytest.mark.parametrize(
    ("name", "read", "error", "words"),
    [
        (
            "t.parquet",
            lambda path: arrow_files.read_arrow(parquet(path, a=[1], b=[2], c=[3]), most_columns=2),
            *(DataError, "t.parquet: 3 columns; expected at most 2$"),
        ),
        (
            "t.npz",
            lambda path: files.read(np.savez(path, X=[1], y=[1]) or path, ["y", "z"]),
            *(DataError, "t.npz: expected one target, an array of the file; it may have several columns$"),
        ),
        (
            "t.npz",
            lambda path: files.npz_arrays(path.mkdir() or path, ("X",)),
            *(FileError, "t.npz: cannot be read: not a file$"),
        ),
        (
            "t.xlsx",
            lambda path: files.read_table(empty_sheet(path)),
            *(DataError, "t.xlsx: the first sheet is empty; expected a row with the names of the columns, then rows$"),
        ),
        (
            "t.csv",
            lambda path: files.read_table(path.write_text("a\x01b,c\n1,2\n") and path),
            *(DataError, "t.csv: not text; save it as CSV in UTF-8$"),
        ),
    ],
    ids=["many columns", "two targets", "a folder", "an empty sheet", "control characters"],
)
def test_files(tmp_path, name, read, error, words):
    with pytest.raises(error, match=words):
        read(tmp_path / name)


def test_an_excel_file_with_much_beside_its_sheets(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_excel(path, index=False)
    assert files.read_table(path).shape == (2, 2)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image.bin", bytes(3_000_000))
    monkeypatch.setattr(bounds, "ALWAYS", 1000)
    with pytest.raises(DataError, match=r"t.xlsx: its unpacked contents take 3.02 MB in memory"):
        files.read_table(path)


def test_as_many_columns_as_may_be(tmp_path):
    assert arrow_files.read_arrow(parquet(tmp_path / "t.parquet", a=[1], b=[2]), most_columns=2).shape == (1, 2)
    nested = tmp_path / "n.parquet"  # one name, two columns
    pa.parquet.write_table(pa.table({"at": [{"x": 1, "y": 2}]}), nested)
    with pytest.raises(DataError, match=r"2 columns; expected at most 1$"):
        arrow_files.read_arrow(nested, most_columns=1)


def test_words_in_a_column_of_numbers_of_another_file(tmp_path):
    first, other = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("x,y\n" + "1,2\n" * 12)
    other.write_text("x,y\n1,2\nlow,3\n")
    words = r"b.csv: column 'x' holds '1'; expected numbers, as in .*a.csv \(--as x=category takes both for categories"
    with pytest.raises(DataError, match=words):
        files.read_parts(first, "y", other, None, {})
    X, _, name, parts = files.read_parts(first, "y", other, None, {"kinds": {"x": "category"}})
    assert (X["x"].tolist()[-2:], name, [part.tolist() for part in parts[1:]]) == (["1", "low"], "a", [[12, 13], []])


def test_a_picture_without_memory_for_it(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(PIL.Image, "open", full)
    with pytest.raises(DataError, match=r"a.png: there is not enough memory to read it; make it smaller first$"):
        files.read_pictures([tmp_path / "a.png"], (1, 4, 4))


def test_a_palette_with_a_transparent_colour_has_white_there(tmp_path):
    image = PIL.Image.new("P", (4, 4), 1)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((0, 0), 0)
    image.save(tmp_path / "a.png", transparency=0)
    image.save(tmp_path / "b.png")
    seen = files.read_pictures([tmp_path / "a.png", tmp_path / "b.png"], (3, 4, 4))
    assert seen[:, 0, 0].tolist() == [[255, 255, 255], [10, 20, 30]]
    assert seen[:, 1, 1].tolist() == [[200, 100, 50]] * 2


def test_parquet_without_its_package(tmp_path, monkeypatch):
    def absent(*_, **__):
        raise ImportError

    monkeypatch.setattr(pd.DataFrame, "to_parquet", absent)
    with pytest.raises(OptionError, match=r"^to: parquet needs pyarrow: install nasbot with its extra, nasbot\[parq"):
        write_frame(pd.DataFrame({"a": [1]}), tmp_path / "t.parquet", to="parquet")


# -- parquet and feather in parts --------------------------------------------------------------------------------------


def test_texts_of_parquet_come_as_texts_in_chunks_of_any_size(tmp_path):
    rows = {"n": [1, 2, 3, 4, 5], "s": ["a", "b", None, "a", "c"]}
    path = parquet(tmp_path / "t.parquet", **rows)
    whole = pd.concat(arrow_files.parquet_chunks(path, 5, most_columns=2))
    parts = list(arrow_files.parquet_chunks(path, 2, most_columns=2))
    assert [len(part) for part in parts] == [2, 2, 1]
    for found in (whole, pd.concat(parts)):
        assert not isinstance(found["s"].dtype, pd.CategoricalDtype)
        assert found["n"].tolist() == rows["n"]
        assert [None if pd.isna(text) else text for text in found["s"]] == rows["s"]


def test_a_feather_file_of_too_many_parts(tmp_path, monkeypatch):
    path = tmp_path / "t.feather"
    pd.DataFrame({"a": range(30)}).to_feather(path, chunksize=10)
    assert len(arrow_files.read_arrow(path, most_columns=2)) == 30
    monkeypatch.setattr(arrow_files, "MAX_BATCHES", 2)
    with pytest.raises(DataError, match=r"t.feather: more than 2 parts; save it again$"):
        arrow_files.read_arrow(path, most_columns=2)


def test_a_part_of_a_feather_file_that_says_nothing():
    record = arrow_files._Record(struct.pack("<HHi", 4, 8, 4), 4)
    assert (record.place(2), record.number(2, "<q"), record.structs(2, "<qq")) == (None, 0, [])
    with pytest.raises(DataError, match="not a Feather file: a part without its description"):
        record.record(2)


# -- tables ------------------------------------------------------------------------------------------------------------


class Lacking:
    def to_pandas(self):
        raise ImportError("no pyarrow here")


def test_tables(monkeypatch):
    with pytest.raises(DataError, match=r"^inputs: no pyarrow here; install nasbot with its extra, nasbot\[parquet\]$"):
        tables.as_pandas(Lacking())
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(DataError, match=r"^inputs: there are no columns 'c', 'd'; the columns are 'a', 'b'$"):
        tables.frame_of(frame, names=["c", "a", "d"])
    for given in (frame, frame.to_numpy()):
        assert len(tables.columns_of(tables.frame_of(given), np.arange(2))) == 2
    monkeypatch.setattr(tables, "MAX_INPUTS", 2)
    assert len(tables.columns_of(tables.frame_of(frame.to_numpy()), np.arange(2))) == 2
    monkeypatch.setattr(tables, "MAX_INPUTS", 1)
    for make in (lambda: tables.columns_of(frame, np.arange(2)), lambda: tables.frame_of(frame.to_numpy())):
        with pytest.raises(DataError, match=r"^2 inputs are more than the 1 that a search is fit for"):
            make()


@pytest.mark.parametrize("what", ["words", {"a": 1}, 3], ids=str)
def test_targets_that_are_no_array(what):
    with pytest.raises(DataError, match="expected an array, a data frame or a tensor, got "):
        targets.labelled(what)


@pytest.mark.parametrize(
    ("values", "first"), [([True, 2, 3], "True"), ([1, "two", "three"], "two"), (["one", "two"], "one")], ids=str
)
def test_targets_that_are_no_numbers(values, first):
    given = np.array(values, dtype=object)
    with pytest.raises(DataError, match=f"^target 'y': '{first}' is not a number, so it cannot be predicted as one"):
        targets.target_of(given, np.arange(2), task="regression", names=["y"])


def test_numbers_named_as_identifiers_that_are_none():
    """Whole numbers, all different, tell rows apart; where one is not whole or comes twice they are numbers."""
    kinds = []
    for change in (lambda n: n, lambda n: np.append(n[:-1], 0.5), lambda n: np.append(n[:-1], n[0])):
        columns = tables.columns_of(
            pd.DataFrame({"id": change(np.arange(30.0)), "x": np.arange(30.0) % 7}), np.arange(30)
        )
        kinds.append(type(columns[0]).__name__)
    assert kinds == ["DroppedColumn", "NumberColumn", "NumberColumn"]


@pytest.mark.parametrize(("n", "kind"), [(20, "NumberColumn"), (21, "DroppedColumn")])
def test_so_few_rows_may_have_a_number_each(n, kind):
    frame = pd.DataFrame({"id": np.arange(1.0 * n), "x": np.arange(1.0 * n) % 7})
    assert type(tables.columns_of(frame, np.arange(n))[0]).__name__ == kind


@pytest.mark.parametrize(("n", "kind"), [(20, "CategoryColumn"), (21, "DroppedColumn")])
def test_so_many_different_words_are_text(n, kind):
    frame = pd.DataFrame({"name": [f"word {i}" for i in range(n)], "x": np.arange(1.0 * n) % 7})
    assert type(tables.columns_of(frame, np.arange(n))[0]).__name__ == kind


@pytest.mark.parametrize(("n", "kind"), [(20, "O"), (21, "f")])
def test_so_many_different_prices_in_text_are_numbers(n, kind):
    assert (
        targets.checked_target(np.array([f"${i},000.50" for i in range(1, n + 1)] * 2, dtype=object)).dtype.kind == kind
    )


def test_spaces_between_values():
    assert text_tables._is_spaced(["a b", "1 2"])
    assert text_tables._is_spaced(["a b", "1 2", "3"])  # the last one may be cut
    assert not text_tables._is_spaced(["a b", "1"])
    assert not text_tables._is_spaced(["a b", "x y", "1 2"])
    assert not text_tables._is_spaced(["a", "1", "2"])
    for odd, separator in ((98, ","), (99, r"\s+")):  # lines that are looked at
        lines = ["a b", *["1 2"] * 150]
        lines[odd] = "1 2 3"
        assert text_tables._header(None, "\n".join(lines).encode(), "utf-8")[0].separator == separator


def test_rows_that_fit_into_half_of_what_is_allowed(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"a")
    monkeypatch.setattr(bounds, "ALWAYS", 1600)
    for width, rows in ((0, 100), (1, 100), (2, 50), (100, 1), (1000, 1)):
        assert text_tables._rows_that_fit(tmp_path / "t.csv", width) == rows


# -- what is prepared --------------------------------------------------------------------------------------------------


def dated(n=40):
    when = pd.Series(pd.date_range("2020-01-01", periods=n, freq="31D")).where(np.arange(n) % 5 > 0)
    return pd.DataFrame({"when": when, "x": np.linspace(0, 1, n), "y": np.arange(n) % 3 + 0.5})


def test_a_date_that_is_not_there_is_the_mean_of_those_that_are():
    data = dataset_of(dated(), "y", seed=0)
    column, *_ = data.preprocessing.inputs.columns
    rows = data.preprocessing.X(dated().drop(columns="y"))
    gaps = dated()["when"].isna().to_numpy()
    n = len(column.parts)
    assert n > 1
    np.testing.assert_array_equal(rows[:, n], gaps)
    np.testing.assert_array_equal(rows[gaps, :n], 0)
    assert (rows[~gaps, :n] != 0).any(axis=1).all()


def test_a_part_of_a_date_varies_where_it_differs_by_one():
    for other, parts in (("2021-01-05", {"year", "weekday"}), ("2020-02-05", {"month", "weekday"})):
        column = dates.date_column("when", pd.Series(["2020-01-05", other] * 5), np.arange(10))
        assert set(column.parts) == parts


def test_inputs_of_a_preparation():
    def of(*inputs, n=3, form=lambda i: Robust(i, 0.0, 1.0)):
        return Preparation("robust", n, tuple(form(i) for i in inputs))

    assert of(0, 2).shape == (3,)
    for wrong in ((0, 0), (1, 0), (3,), (-1,)):
        with pytest.raises(CodecError, match=r"^preparation: expected ascending inputs below 3$"):
            of(*wrong)
    assert of().shape == (3,)
    with pytest.raises(CodecError, match=r"^preparation: expected numbers of the form 'robust'$"):
        of(0, 1, form=lambda i: Quantile(i, (0.0, 1.0), (0.0, 1.0)) if i else Robust(i, 0.0, 1.0))


def test_shares_of_rows_are_the_same_rows_for_ever():
    """A study that goes on must train on the rows that it began with."""
    assert nested_rows(20, 0.3).tolist() == [1, 3, 5, 7, 11, 12]
    assert nested_rows(20, 0.3, classes=np.arange(20) % 2).tolist() == [1, 5, 6, 7, 8, 12]


def records(part, **changes):
    table = {"form": "table", "columns": [{"form": "number", "name": "x", "fill": 0, "centre": 0, "scale": 1}]}
    table["columns"][0]["marks_gaps"] = False
    given = {"inputs": table, "target": {"form": "number", "names": ["y"], "centres": [0], "scales": [1]}}
    return {"version": 1, **given, part: {**given[part], **changes}}


IMAGES = {"form": "images", "shape": [1, 8, 8], "channels_last": True, "centres": [0.0], "scales": [1.0]}
DATE = {"form": "date", "name": "d", "order": "ymd", "parts": ["year"], "centres": [0], "scales": [1]}
CLASSES = {"form": "class", "name": "y", "classes": ["a", "b"]}


@pytest.mark.parametrize(
    ("part", "record", "words"),
    [
        ("inputs", {**IMAGES, "shape": [8, 8]}, "shape: expected 3 numbers, got 2"),
        ("inputs", {**IMAGES, "shape": [1, 8, 0]}, "shape: expected a whole number"),
        ("inputs", {**IMAGES, "centres": []}, "centres and scales: expected one for each of 1 channels"),
        ("inputs", {**IMAGES, "scales": [1.0, 1.0]}, "centres and scales: expected one for each of 1 channels"),
        ("columns", {**DATE, "order": "ydm"}, "column 0: expected an order among ymd, dmy, mdy and parts among year, "),
        ("columns", {**DATE, "parts": []}, "column 0: expected an order among"),
        ("columns", {**DATE, "parts": ["minute"]}, "column 0: expected an order among"),
        ("columns", {**DATE, "centres": [0, 0]}, "column 0: expected a centre and a scale for each of 1 parts"),
        ("columns", {**DATE, "scales": []}, "column 0: expected a centre and a scale for each of 1 parts"),
        ("target", {**CLASSES, "classes": ["a"]}, "target: expected at least 2 classes, all different"),
        ("target", {**CLASSES, "classes": [1, 1.0]}, "target: expected at least 2 classes, all different"),
        ("target", {**CLASSES, "classes": ["a", None]}, "target, classes: expected a finite number, got None"),
        (
            "target",
            {"form": "number", "names": ["y"], "centres": [0], "scales": [1, 1]},
            "target: expected as many centres and scales as names, and at least one",
        ),
        (
            "target",
            {"form": "number", "names": [], "centres": [], "scales": []},
            "target: expected as many centres and scales as names, and at least one",
        ),
        (
            "target",
            {"form": "limited number", "names": ["y"], "centres": [0], "scales": [1], "limits": []},
            "limits: expected one pair for each of 1 names, got 0",
        ),
        (
            "target",
            {"form": "limited number", "names": ["y"], "centres": [0], "scales": [1], "limits": [[0, 0]]},
            r"limits: expected pairs of ascending numbers, got \(0.0, 0.0\)",
        ),
        (
            "target",
            {"form": "limited number", "names": ["y"], "centres": [0], "scales": [1], "limits": [[0, 1, 2]]},
            "limits: expected pairs of ascending numbers, got",
        ),
    ],
)
def test_stored_descriptions(part, record, words):
    if part == "columns":
        part, record = "inputs", {"form": "table", "columns": [{**record, "marks_gaps": False}]}
    with pytest.raises(CodecError, match=words):
        Preprocessing.from_dict({**records("inputs"), part: record})


def test_stored_descriptions_that_are_taken():
    for part, record in (
        ("inputs", IMAGES),
        ("inputs", {"form": "table", "columns": [{**DATE, "marks_gaps": True}]}),
        ("target", CLASSES),
        ("target", {**CLASSES, "classes": [True, 1, "1", 2.5]}),
        ("target", {"form": "limited number", "names": ["y"], "centres": [0], "scales": [1], "limits": [[0, 1]]}),
    ):
        whole = {**records("inputs"), part: record}
        assert Preprocessing.from_dict(whole).to_dict() == whole
    assert isinstance(Preprocessing.from_dict(records("inputs")).target, NumberTarget)


def test_predictions_of_older_data_have_no_limits():
    target = NumberTarget(("a", "b"), (1.0, 2.0), (2.0, 4.0))
    assert target.standard_limits.tolist() == [[-np.inf] * 2, [np.inf] * 2]
    assert target.predicted(np.array([[1e9, -1e9]])).tolist() == [[2e9 + 1, -4e9 + 2]]
    within = NumberTarget(("a",), (1.0,), (2.0,), ((0.0, 5.0),))
    assert within.standard_limits.tolist() == [[-0.5], [2.0]]
    assert within.predicted(np.array([[-9.0], [0.5], [9.0]])).tolist() == [0.0, 2.0, 5.0]


def test_a_class_that_is_neither_there_nor_predicted_is_in_no_mean():
    truth, predicted = np.array([0, 1, 1]), np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    for name in ("f1", "f1-weighted", "balanced-accuracy", "accuracy"):
        assert metrics.METRICS[name](truth, predicted) == metrics.METRICS[name](truth, predicted[:, :2])
    assert metrics.METRICS["f1"](truth, predicted) == pytest.approx(2 / 3)


# -- data sets ---------------------------------------------------------------------------------------------------------


def test_class_weights_that_belong_to_other_classes(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    data = dataset_of(X, np.arange(30) % 3, class_weight={"0": 2})
    data.save(tmp_path / "data")
    assert Dataset.load(tmp_path / "data").class_weights == (2.0, 1.0, 1.0)
    stored = tmp_path / "data/dataset.json"
    stored.write_text(stored.read_text().replace("[2.0, 1.0, 1.0]", "[2.0, 1.0]"))
    with pytest.raises(StorageError, match=r"data: 2 class weights for 3 classes$"):
        Dataset.load(tmp_path / "data")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"indices": [range(10), range(10, 20), range(20, 30)]},
        {"class_weight": {"0": 2}},
        {"sample_weight": np.linspace(1, 2, 30)},
    ],
    ids=lambda options: "".join(options) or "plain",
)
def test_data_come_back_from_their_folder(tmp_path, options):
    data = dataset_of(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3, **options)
    data.save(tmp_path / "data")
    found = Dataset.load(tmp_path / "data")
    for name in ("kind", "name", "n_outputs", "preprocessing", "class_weights", "is_divided_at_random", "fingerprint"):
        assert getattr(found, name) == getattr(data, name), name
    assert found.is_divided_at_random is ("indices" not in options)
    for part, array in product(("train", "valid", "test"), ("X", "y", "weights")):
        there, here = (getattr(getattr(of, part), array) for of in (found, data))
        assert (there is None) is (here is None)
        np.testing.assert_array_equal(there if there is not None else 0, here if here is not None else 0)


def test_data_without_test_rows_are_compared():
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) + 0.5})
    before, now = (dataset_of(frame, "y", split=(0.5, 0.5, 0.0), seed=0) for _ in range(2))
    assert differences(before, now) == []


def test_a_function_without_a_signature_takes_no_weights():
    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(max)
    assert not metrics._takes_weights(max)
    assert metrics._takes_weights(lambda truth, predicted, sample_weight: 0)
    assert metrics._takes_weights(lambda truth, predicted, **more: 0)
    assert not metrics._takes_weights(lambda truth, predicted, weights: 0)


def test_the_papers_images_are_divided_as_in_the_paper(tmp_path, monkeypatch):
    monkeypatch.setattr(named, "CIFAR_BATCH", 2)
    rng = np.random.default_rng(0)
    place = tmp_path / "cifar10"
    place.mkdir()
    stored = {name: rng.integers(0, 256, (3, 2, 32, 32), dtype=np.uint8) for name in named.CIFAR_BATCHES}
    for i, (name, differences_) in enumerate(stored.items()):
        np.savez(place / f"{name}.npz", r=differences_, y=[i, i])
    X, y, options = named.load("cifar10", tmp_path)
    assert (X.shape, X.dtype, y.tolist()) == ((12, 3, 32, 32), np.uint8, np.repeat(np.arange(6), 2).tolist())
    np.testing.assert_array_equal(X, np.concatenate([named.decoded(part) for part in stored.values()]))
    assert [part.tolist() for part in options["indices"]] == [list(range(8)), [8, 9], [10, 11]]
    assert options["channels_last"] is False


# -- just enough -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "is_taken"), [(1e-100, False), (1.01e-100, True), (1.0, True), (0.99e100, True), (1e100, False)]
)
def test_targets_whose_squares_can_just_be_computed(unit, is_taken):
    values = np.tile([-unit, unit], 20)
    assert values.std() == pytest.approx(unit, rel=1e-12, abs=0)
    X = np.arange(40.0)[:, None]
    if is_taken:
        assert dataset_of(X, values, task="regression").preprocessing.target.scales == pytest.approx(
            (unit,), rel=1e-9, abs=0
        )
    else:
        with pytest.raises(DataError, match="its standard deviation is"):
            dataset_of(X, values, task="regression")


def test_a_table_that_is_as_long_as_a_line_may_be(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("size,price\n1,2\n3,4\n")
    monkeypatch.setattr(text_tables, "MAX_LINE", 19)
    assert text_tables._dialect(path, 2)[1] == 2
    monkeypatch.setattr(text_tables, "MAX_LINE", 18)
    with pytest.raises(DataError, match="the first line has more than 18 bytes"):
        text_tables._dialect(path, 2)
