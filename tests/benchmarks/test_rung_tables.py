"""Searches by look-up in a table of short and full trainings."""

import json
import math

import pytest

from benchmarks import rung_tables
from benchmarks.rung_tables import BUDGETS, METHODS, SMALL, Table, name_of, networks, searched, summary
from nasbot.architecture import Layer, chain


@pytest.fixture
def table():
    lines = {}
    for name, arch in networks():
        loss = 1 + 1 / math.log(arch.total_mass) + int(arch.fingerprint[:4], 16) / 2**20
        curve = [[150 * k, loss * (1 + 1 / k)] for k in range(1, 10)]
        lines[name] = {"network": name, "losses": [1.5 * loss, 1.2 * loss, loss], "curve": curve}
    return Table(lines, 9)


def test_the_networks_are_those_of_the_space(table):
    found = dict(networks())
    assert len(found) == 6**3
    assert all(arch in table.space for arch in found.values())
    assert name_of(chain(SMALL, [Layer("relu", 32), Layer("tanh", 64), Layer("relu", 128)])) in found


def test_the_mean_training_costs_one(table):
    costs = [table.flops(arch) / table.mean_flops for _, arch in networks()]
    assert sum(costs) / len(costs) == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
def test_a_longer_search_finds_no_worse(table, method):
    over = searched(table, method, 1, "map")
    known = [value for value in over if not math.isnan(value)]
    assert len(over) == len(BUDGETS)
    assert known == sorted(known, reverse=True)
    assert known[-1] >= 0


def test_a_summary_compares_seed_by_seed():
    found = {"nasbot": [[0.03] * 5, [0.01] * 5], "random": [[0.05] * 5, [0.03] * 5]}
    lines = summary(found).splitlines()
    assert "| random | 4.00 ± 1.00 |" in lines[3]
    assert "| … less nasbot | +2.00 ± 0.00 |" in lines[4]


def test_an_unfinished_table_is_refused(table, tmp_path, capsys):
    path = tmp_path / "table.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in list(table.lines.values())[:-3]))
    assert rung_tables.main(["replay", "--table", str(path)]) == 1
    assert "3 networks are missing; record them first" in capsys.readouterr().err
