"""Repeated cross-validation of small tables: records, resumed and summed up."""

import json
import sys

import pytest

from experiments import small


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["small", *map(str, arguments)])
    small.main()
    return capsys.readouterr().out


def test_each_fold_is_recorded_once_and_a_stopped_run_goes_on(tmp_path, monkeypatch, capsys):
    place = tmp_path / "small.jsonl"
    options = ("--sets", "wine,diabetes", "--methods", "linear,boosting", "--records", place)
    run(monkeypatch, capsys, *options, "--divisions", "3")
    lines = place.read_text().splitlines()
    assert len(lines) == 2 * 2 * 3
    kept = lines[:5]
    place.write_text("\n".join(kept) + "\n")
    out = run(monkeypatch, capsys, *options, "--divisions", "3")
    again = place.read_text().splitlines()
    assert again[:5] == kept

    def what(found):
        return sorted((r["set"], r["fold"], r["method"], r["error"]) for r in map(json.loads, found))

    assert what(again) == what(lines)
    assert "| diabetes | linear | 1 |" in out


def test_errors_of_numbers_are_shares_of_the_variance():
    X, y = small.table_of("diabetes", 0, "")

    class Constant:
        def predict(self, X):
            return [y.mean()] * len(X)

    assert small.error_of(Constant(), X, y, float(y.var())) == pytest.approx(1.0)


def test_the_table_pairs_divisions():
    rows = [
        {"set": "s", "division": d, "fold": 0, "method": m, "error": e}
        for d, m, e in (
            (0, "nasbot", 1.0),
            (1, "nasbot", 2.0),
            (0, "linear", 1.5),
            (1, "linear", 2.1),
            (2, "linear", 9),
        )
    ]
    line = next(line for line in small.table(rows).splitlines() if "linear" in line)
    assert line == "| s | linear | 3 | 4.2 | 2.4 | -0.3 | 0.2 |"


def test_divisions_by_ranges():
    assert small._numbers("0-2,7") == [0, 1, 2, 7]
