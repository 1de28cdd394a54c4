"""Dividing rows by group, by time and by file: nothing is fitted on rows that it must not see."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.data.splitting import nested_rows, split_groups, split_rows, split_time
from nasbot.errors import DataError, OptionError

N = 120
SHARES = (0.6, 0.2, 0.2)


def table(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(50, 10, N), "city": rng.choice(["Ulm", "Kiel"], N)})
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(N), unit="D")
    frame["patient"] = rng.integers(25, size=N)
    frame["price"] = 3 * frame["size"] + rng.normal(size=N)
    frame["rent"] = frame["price"] / 7 + rng.normal(size=N)
    return frame


@pytest.mark.parametrize("seed", range(5))
def test_groups_stay_together_and_parts_have_about_their_shares(seed):
    groups = np.random.default_rng(seed).integers(40, size=400)
    parts = split_groups(groups, SHARES, seed=seed)
    assert sorted(np.concatenate(parts)) == list(range(400))
    sets = [set(groups[part]) for part in parts]
    assert sum(map(len, sets)) == len(set.union(*sets))
    np.testing.assert_allclose([len(part) / 400 for part in parts], SHARES, atol=0.06)
    assert all(np.array_equal(a, b) for a, b in zip(parts, split_groups(groups, SHARES, seed=seed), strict=True))


def test_time_goes_forward_and_one_moment_is_not_divided():
    times = np.random.default_rng(0).integers(30, size=300)
    train, valid, test = split_time(times, SHARES)
    assert times[train].max() < times[valid].min()
    assert times[valid].max() < times[test].min()
    train, valid, test = split_time(times, (0.8, 0.2, 0.0))
    assert (len(train) + len(valid), len(test)) == (300, 0)
    with pytest.raises(DataError, match="too many rows have the same time"):
        split_time(np.zeros(50), SHARES)


def scrambled(frame, rows):
    """Other values in these rows, in every column that something could be fitted on."""
    other = frame.copy()
    other.loc[rows, "size"] = 1e6
    other.loc[rows, "city"] = "Rom"
    other.loc[rows, "price"] = -1e6
    return other


@pytest.mark.parametrize("how", [{"groups": "patient"}, {"time": "when"}], ids=str)
def test_nothing_is_fitted_on_rows_outside_training(how):
    frame = table().drop(columns="rent")
    if "groups" in how:
        rows = split_groups(frame["patient"].to_numpy(), SHARES, seed=0)
    else:
        rows = split_time(frame["when"].to_numpy().astype(np.int64), SHARES)
    outside = np.concatenate(rows[1:])
    ours, theirs = (dataset_of(given, "price", **how) for given in (frame, scrambled(frame, outside)))
    assert ours.preprocessing == theirs.preprocessing
    assert np.array_equal(ours.train.X, theirs.train.X)
    assert not np.array_equal(ours.valid.X, theirs.valid.X)
    for name in ("robust", "quantile", "ple"):
        assert ours.prepared_as(name).preprocessing == theirs.prepared_as(name).preprocessing


def test_the_group_is_no_input_and_values_may_stand_beside_the_table():
    frame = table().drop(columns="rent")
    named = dataset_of(frame, "price", groups="patient")
    assert "patient (left out)" in named.summary()[1]
    beside = dataset_of(frame.drop(columns="patient"), "price", groups=frame["patient"])
    assert np.array_equal(named.train.X, beside.train.X)


def test_files_for_validation_and_test(tmp_path):
    frame = table().drop(columns="rent")
    main, valid, test = (tmp_path / name for name in ("main.csv", "valid.csv", "test.parquet"))
    frame[:80].to_csv(main, index=False)
    frame[80:100].to_csv(valid, index=False)
    frame[100:].to_parquet(test)
    both = read_dataset(main, "price", valid=valid, test=test)
    assert [len(part) for part in (both.train, both.valid, both.test)] == [80, 20, 20]
    expected = frame["price"][80:100]
    np.testing.assert_allclose(both.preprocessing.restored(both.valid.y), expected, rtol=1e-4)
    only_test = read_dataset(main, "price", test=test)
    assert [len(part) for part in (only_test.train, only_test.valid, only_test.test)] == [60, 20, 20]
    scrambled(frame, range(80, 120))[80:100].to_csv(valid, index=False)
    assert read_dataset(main, "price", valid=valid, test=test).preprocessing == both.preprocessing
    frame[80:].drop(columns="city").to_csv(valid, index=False)
    with pytest.raises(DataError, match=r"valid\.csv: no column 'city'; expected the columns of"):
        read_dataset(main, "price", valid=valid)
    with pytest.raises(OptionError, match="expected no indices, groups or time"):
        read_dataset(main, "price", test=test, groups="patient")


def test_several_targets_are_predicted_together_and_are_no_inputs(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    data = read_dataset(tmp_path / "t.csv", ("price", "rent"))
    assert data.n_outputs == 2
    assert data.preprocessing.target.names == ("price", "rent")
    assert {"price", "rent"}.isdisjoint(column.name for column in data.preprocessing.inputs.columns)
    assert dataset_of(table(), ["price", "rent"]).n_outputs == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"groups": "patent"}, DataError, "did you mean 'patient'"),
        ({"time": "city"}, DataError, "expected a column of dates or numbers"),
        ({"groups": [1, 2]}, DataError, "one value for each of 120 rows, got 2"),
        ({"groups": ["a"] * N}, DataError, "groups: 1 different; expected at least 3"),
        ({"groups": [None, *range(N - 1)]}, DataError, "groups: 1 of 120 rows have no value"),
        ({"groups": "patient", "time": "when"}, OptionError, "at most one of"),
    ],
)
def test_mistakes(options, error, message):
    with pytest.raises(error, match=message):
        dataset_of(table(), "price", **options)


@pytest.mark.parametrize("n_rows", [3, 4, 7])
def test_what_small_classes_are_owed_by_rounding_evens_out(n_rows):
    classes = np.repeat(np.arange(50), n_rows)
    parts = split_rows(len(classes), SHARES, seed=0, classes=classes)
    for part, share in zip(parts, SHARES, strict=True):
        assert abs(len(part) - share * len(classes)) <= 2


@given(st.integers(2, 300), st.integers(1, 5), st.floats(1e-3, 1.0), st.floats(1e-3, 1.0))
def test_shares_of_the_rows_hold_one_another_and_every_class(n, n_classes, one, other):
    classes = np.arange(n) % n_classes
    for labels in (None, classes):
        small, large = (nested_rows(n, share, classes=labels) for share in sorted((one, other)))
        assert set(small) <= set(large) <= set(range(n))
        assert np.all(np.diff(small) > 0)
        assert len(small) >= 2
    np.testing.assert_array_equal(nested_rows(n, 1.0, classes=classes), np.arange(n))
    taken = np.bincount(classes[nested_rows(n, one, classes=classes)], minlength=n_classes)
    given_rows = np.bincount(classes, minlength=n_classes)
    assert np.all(taken[given_rows > 0] >= 1)
    assert np.all(taken <= np.maximum(2, np.ceil(one * given_rows)))


def test_the_smallest_share_of_the_past_is_one_row():
    train, valid, test = split_time(np.arange(10), (0.01, 0.5, 0.49))
    assert [len(train), len(valid), len(test)] == [1, 4, 5]
