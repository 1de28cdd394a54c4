"""What becomes of columns: dates as parts, identifiers and text dropped, near-copies of the target flagged."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nasbot.data.chunks import chunks
from nasbot.data.dataset import dataset_of
from nasbot.data.dates import order_of, parts_of
from nasbot.data.inspecting import inspected
from nasbot.data.preprocessing import DateColumn, DroppedColumn, Preprocessing
from nasbot.errors import CodecError, DataError, OptionError

N = 100
ALL = ("year", "month", "day", "weekday", "hour")


def table():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01 06:00") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
    frame = pd.DataFrame({"size": rng.normal(50, 10, N), "sold": days, "city": rng.choice(["Ulm", "Kiel"], N)})
    frame["customer_id"] = rng.permutation(N) + 1000
    frame["comment"] = [f"house number {i}" for i in range(N)]
    frame["country"] = "DE"
    frame["empty"] = np.nan
    frame["price"] = 3 * frame["size"] + frame["sold"].dt.month
    frame["price_gross"] = 1.19 * frame["price"] + 2
    return frame


def column(data, name):
    return next(column for column in data.preprocessing.inputs.columns if column.name == name)


@pytest.mark.parametrize(
    ("values", "order", "expected"),
    [
        (["2024-03-05", "2024-12-31"], "ymd", [(2024, 3, 5, 1, 0), (2024, 12, 31, 1, 0)]),
        (["2024/3/5 17:30"], "ymd", [(2024, 3, 5, 1, 17)]),
        (["2024-03-05T08:15:00Z"], "ymd", [(2024, 3, 5, 1, 8)]),
        (["05.03.2024", "31.12.99"], "dmy", [(2024, 3, 5, 1, 0), (1999, 12, 31, 4, 0)]),
        (["3/5/2024", "12/31/2024"], "mdy", [(2024, 3, 5, 1, 0), (2024, 12, 31, 1, 0)]),
        (["3/5/2024 5:07 PM", "3/5/2024 12:07 am"], "mdy", [(2024, 3, 5, 1, 17), (2024, 3, 5, 1, 0)]),
        (["31/12/2024"], "dmy", [(2024, 12, 31, 1, 0)]),
        ([datetime.date(2024, 3, 5)], "ymd", [(2024, 3, 5, 1, 0)]),
        (["31.02.2024", None, "soon"], "dmy", [(np.nan,) * 5] * 3),
    ],
)
def test_dates_as_people_write_them(values, order, expected):
    series = pd.Series(values, dtype=object)
    assert order_of(series) == order
    np.testing.assert_array_equal(parts_of(series, order, ALL), np.array(expected, dtype=float))


def test_dates_become_parts_that_vary_and_survive_json():
    frame = table().drop(columns=["price_gross"])
    frame.loc[3:9, "sold"] = pd.NaT
    as_dates = dataset_of(frame, "price")
    found = column(as_dates, "sold")
    assert isinstance(found, DateColumn)
    assert found.parts == ("year", "month", "day", "weekday")  # sold at six, always
    assert found.marks_gaps
    as_text = dataset_of(frame.assign(sold=frame["sold"].dt.strftime("%d.%m.%Y %H:%M")), "price")
    assert np.array_equal(as_text.train.X, as_dates.train.X)
    record = as_dates.preprocessing.to_dict()
    assert Preprocessing.from_dict(record) == as_dates.preprocessing
    entry = next(item for item in record["inputs"]["columns"] if item["name"] == "sold")
    for name, value in (("order", "ydm"), ("parts", ["second"]), ("scales", [1.0]), ("parts", [])):
        before = entry[name]
        entry[name] = value
        with pytest.raises(CodecError):
            Preprocessing.from_dict(record)
        entry[name] = before


def test_date_parts_are_scaled_by_training_rows_alone():
    frame = table()[["sold", "size", "price"]]
    rows = np.split(np.arange(N), [60, 80])
    other = frame.copy()
    other.loc[60:, "sold"] = pd.Timestamp("1950-07-07 23:00")
    assert (
        dataset_of(frame, "price", indices=rows).preprocessing == dataset_of(other, "price", indices=rows).preprocessing
    )


def test_what_says_nothing_is_dropped_and_named():
    data = dataset_of(table(), "price")
    reasons = {c.name: c.reason for c in data.preprocessing.inputs.columns if isinstance(c, DroppedColumn)}
    assert reasons == {
        "customer_id": "identifier: a number of its own for each row",
        "comment": "text: 60 different values in 60 training rows",
        "country": "constant",
        "empty": "no values at all",
    }
    assert "not used: customer_id (identifier" in data.summary()[1]


def test_each_column_is_inspected():
    found = {line.column: line for line in inspected(table(), "price", drop=["size"])}
    assert list(found) == list(table().columns)
    assert found["size"].note == "left out"
    assert (found["sold"].taken_for, found["sold"].becomes) == ("date", "4 inputs: year, month, day, weekday")
    assert (found["city"].taken_for, found["city"].becomes) == ("category", "2 inputs")
    assert found["customer_id"].taken_for == "identifier"
    assert found["comment"].becomes == "nothing (dropped)"
    assert found["price"].becomes == "a number: regression"
    assert "nearly a copy of the target" in found["price_gross"].note
    assert not any("copy" in line.note for name, line in found.items() if name != "price_gross")


def test_a_copy_of_classes_is_flagged_and_problems_are_lines():
    frame = table().assign(code=lambda f: (f["city"] == "Ulm") + 7, bad=np.inf)
    found = {line.column: line for line in inspected(frame, "city")}
    assert "nearly a copy of the target" in found["code"].note
    assert (found["bad"].becomes, "infinite" in found["bad"].note) == ("refused", True)
    assert found["city"].becomes == "2 classes: classification"
    assert "% of the rows" in found["city"].note


# -- what people say of columns and rows -------------------------------------------------------------------------------


def houses(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": rng.integers(10, 14, n), "size": rng.normal(50, 10, n), "row_id": range(n)})
    frame["when"] = [f"2020-0{i % 9 + 1}-01" for i in range(n)]
    frame["price"] = 3 * frame["size"] + 10 * frame["zip"]
    return frame


def test_a_column_is_what_it_is_said_to_be(tmp_path):
    frame = houses()
    plain = dataset_of(frame, "price").preprocessing.inputs.columns
    assert [type(c).__name__ for c in plain] == ["NumberColumn", "NumberColumn", "DroppedColumn", "DateColumn"]
    kinds = {"zip": "category", "row_id": "number", "when": "category"}
    data = dataset_of(frame, "price", kinds=kinds)
    zips, _, rows, months = data.preprocessing.inputs.columns
    assert zips.values == ("10", "11", "12", "13")
    assert type(rows).__name__ == "NumberColumn"
    assert len(months.values) == 9
    taken_for = [column.taken_for for column in inspected(frame, "price", kinds=kinds)]
    assert taken_for[:4] == ["category", "number", "number", "category"]
    frame.loc[::7, "zip"] = np.nan  # with gaps pandas has them as 10.0
    with_gaps = dataset_of(frame, "price", kinds=kinds)
    assert with_gaps.preprocessing.inputs.columns[0].values == ("10", "11", "12", "13")
    frame.to_csv(tmp_path / "new.csv", index=False)
    (chunk,) = chunks(tmp_path / "new.csv", text=["zip", "when"])  # as predictions read it
    assert np.array_equal(with_gaps.preprocessing.X(chunk), with_gaps.preprocessing.X(frame))


@pytest.mark.parametrize(
    ("kinds", "error", "message"),
    [
        ({"zip": "colour"}, OptionError, "as: zip: expected one of number, category, date, got 'colour'"),
        ({"zap": "category"}, DataError, "as: there is no column 'zap'; did you mean 'zip'?"),
        ({"size": "date"}, DataError, "column 'size': said to be dates, but"),
        ({"when": "number"}, DataError, "column 'when': expected numbers, got '2020-"),
    ],
)
def test_what_a_column_cannot_be(kinds, error, message):
    with pytest.raises(error, match=message):
        dataset_of(houses(), "price", kinds=kinds)


def test_all_that_is_wrong_is_said_at_once():
    frame = houses().assign(size=np.inf, when=[["a"]] * 60)
    with pytest.raises(DataError, match=r"'size' has infinite values.*; column 'when' holds list values"):
        dataset_of(frame, "price")
    dataset_of(frame, "price", drop=["size,when"])


@pytest.mark.parametrize("as_lists", [False, True])
def test_rows_without_a_target_are_left_out_when_asked(as_lists):
    frame = houses()
    frame.loc[::6, "price"] = np.nan
    with pytest.raises(DataError, match="10 of 60 rows have no value; remove these rows, or say --drop-unlabelled"):
        dataset_of(frame, "price")
    X, y = frame.drop(columns="price"), frame["price"]
    given = (X, list(y)) if as_lists else (frame, "price")
    groups, counts = np.arange(60) // 4, np.linspace(1, 2, 60)
    data = dataset_of(*given, drop_unlabelled=True, groups=groups, sample_weight=counts)
    kept = frame["price"].notna().to_numpy()
    expected = dataset_of(X[kept], y[kept].to_numpy(), groups=groups[kept], sample_weight=counts[kept])
    assert data.fingerprint == replace(expected, preprocessing=data.preprocessing).fingerprint
    parts = (np.arange(40), np.arange(40, 50), np.arange(50, 60))
    divided = dataset_of(*given, drop_unlabelled=True, indices=parts)
    assert [len(part) for part in (divided.train, divided.valid, divided.test)] == [33, 8, 9]
    with pytest.raises(DataError, match="none of 60 rows has a value"):
        dataset_of(X, [np.nan] * 60, drop_unlabelled=True)
