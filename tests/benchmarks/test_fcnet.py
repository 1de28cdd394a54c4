"""The table's rows and candidates correspond, the methods search it as they say, and the command speaks plainly."""

import json
import math
from itertools import product

import numpy as np
import pytest

from benchmarks import fcnet
from benchmarks.fcnet import METHODS, Table, ratios, read_table, summary
from nasbot.errors import FileError, OptionError
from nasbot.trial import Failed

GRIDS = {
    "activation_fn_1": ["relu", "tanh"],
    "n_units_1": [16, 64],
    "init_lr": [0.1, 0.01, 0.0005],
    "n_units_2": [16, 32, 64],
    "activation_fn_2": ["relu"],
    "batch_size": [8, 32],
    "epochs": [100],
}


def error(row):
    """Wide relu layers and small learning rates are good."""
    width = row["n_units_1"] * row["n_units_2"] * (2 if row["activation_fn_1"] == "relu" else 1)
    return (1 + 10 * row["init_lr"] + 0.01 * row["batch_size"]) / width


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A small table with other grids in another order, one of a single value; one configuration never trained."""
    codes = np.array(list(product(*(range(len(grid)) for grid in GRIDS.values()))), dtype=np.uint8)
    rows = [{name: GRIDS[name][code] for name, code in zip(GRIDS, row, strict=True)} for row in codes]
    values = np.array([error(row) for row in rows])[:, None] * np.array([0.9, 1.1])
    values[7] = np.nan
    file = tmp_path_factory.mktemp("table") / "tiny.npz"
    np.savez(file, space_json=np.array(json.dumps(GRIDS)), config=codes, tiny_val_mse=values, other_val_mse=-values)
    return file


@pytest.fixture(scope="module")
def table(path) -> Table:
    return read_table(path, "tiny")


def test_every_row_is_a_candidate_of_the_domain(table):
    assert list(table.domain.params) == ["batch_size", "init_lr"]
    assert table.recipe == {"init_lr": 0.0005, "batch_size": 32, "epochs": 100}
    assert len(table.error) == 71
    for row in (dict(zip(GRIDS, values, strict=True)) for values in table.error):
        candidate = table.candidate(row)
        table.domain.check(candidate)
        assert table.error_of(candidate.arch, candidate.params) == pytest.approx(error(row))
        assert table(candidate.arch, candidate.params).value == pytest.approx(math.log(error(row)))


def test_what_was_never_trained_is_refused(table):
    missing = [row for row in product(*GRIDS.values()) if row not in table.error]
    candidate = table.candidate(dict(zip(GRIDS, missing[0], strict=True)))
    assert len(missing) == 1
    assert isinstance(table(candidate.arch, candidate.params), Failed)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_descends_and_repeats_itself(table, method):
    first, again, other = (next(ratios(table, method, [seed], 12)) for seed in (1, 1, 2))
    assert len(first) == 12
    assert (np.diff(first) <= 0).all()
    assert (first >= 1).all()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_all_but_chance_begin_with_the_same_networks_under_the_recipe(table):
    pool = [table.error_of(c.arch, c.params) for c in map(table.candidate, table.pool(3))]
    for method in ("nasbot", "architecture", "tpe"):
        assert [e for e, _ in zip(METHODS[method](table, 3, 5), pool, strict=True)] == pytest.approx(pool)


def test_a_wrong_prior_is_wrong_by_a_factor_of_ten(table):
    assert table.wrong == {"init_lr": 0.01}  # of 0.0005: the nearest that the grid has


def test_architecture_alone_stays_at_the_recipe_and_stops_where_all_is_known(table):
    lowest = min(
        e for row, e in table.error.items() if dict(zip(GRIDS, row, strict=True)).items() >= table.recipe.items()
    )
    run = next(ratios(table, "architecture", [0], 15))
    assert run[-1] == pytest.approx(lowest / table.lowest)
    assert run[-1] > 0.999


def test_medians_over_runs_at_the_marks():
    runs = [np.linspace(start, 1.0, 120) for start in (2.0, 3.0, 9.0)]
    found = summary(runs, 120)
    assert list(found["best_over_lowest"]) == list(found["se"]) == ["50", "100"]
    assert found["best_over_lowest"]["50"] == pytest.approx(runs[1][49], abs=1e-4)
    assert found["se"]["50"] > 0
    assert list(summary([run[:12] for run in runs], 12)["se"]) == ["12"]


def test_the_last_line_is_the_summary(path, capsys, tmp_path):
    arguments = ["--table", str(path), "--dataset", "tiny", "--method", "random", "--seeds", "3", "--queries", "50"]
    assert fcnet.main([*arguments, "--json", "--out", str(tmp_path / "runs.jsonl")]) == 0
    assert set(json.loads(capsys.readouterr().out.splitlines()[-1])) == {"best_over_lowest", "se"}
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 3
    assert fcnet.main(arguments) == 0
    assert "50 look-ups: 1." in capsys.readouterr().out


def test_mistakes_are_one_line(path, capsys, tmp_path):
    good = {"--table": str(path), "--dataset": "tiny", "--method": "random"}
    for change, said in (
        ({"--dataset": "huge"}, "has tiny, other; got 'huge'"),
        ({"--method": "luck"}, "invalid choice: 'luck'"),
        ({"--seeds": "0"}, "--seeds: expected a whole number >= 1"),
    ):
        given = [word for pair in (good | change).items() for word in pair]
        assert fcnet.main(given) == OptionError.exit_code
        assert said in capsys.readouterr().err
    with pytest.raises(FileError, match="expected errors above 0"):
        read_table(path, "other")
    for content in (b"", b"no archive"):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(FileError, match="expected tables like"):
            read_table(tmp_path / "bad.npz", "tiny")
