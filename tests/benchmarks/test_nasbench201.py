"""Cells and networks correspond one to one, the methods search as they say, and the command speaks plainly."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import nasbench201
from benchmarks.nasbench201 import (
    EDGES,
    METHODS,
    OPERATIONS,
    SPACE,
    HammingAndCounts,
    LocalSearch,
    Table,
    best_so_far,
    cell_of,
    network_of,
    read_table,
)
from benchmarks.runs import ROOT
from nasbot.architecture import Architecture, Layer
from nasbot.errors import FileError, InvalidArchitectureError, OptionError
from nasbot.evolution import one_step_edits
from nasbot.testing.networks import relabelled

SOME = ("nor_conv_3x3", "skip_connect", "none")  # 3^6 cells: a small table of the same kind


def worth(cell: Sequence[str]) -> float:
    """Convolutions are good, the more so early in the cell; an all-convolutional one is the best."""
    return sum({"nor_conv_3x3": 3.0, "skip_connect": 1.0}.get(name, 0.0) * (1 + 0.1 * k) for k, name in enumerate(cell))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose edges and operations are in another order than ours, with entries missing."""
    rng = np.random.default_rng(0)
    edges = rng.permutation(np.array(EDGES))
    names = np.array(SOME)
    arch = np.array(list(product(range(3), repeat=6)), dtype=np.uint8)
    column = [edges.tolist().index(list(edge)) for edge in EDGES]
    values = np.array([worth([SOME[row[c]] for c in column]) for row in arch])
    accuracy = values[:, None] + np.array([-0.5, 0.0, 0.5])
    accuracy[-1, :] = np.nan  # a cell that was never trained
    accuracy[1, 0] = accuracy[1, 2] = np.nan
    file = tmp_path_factory.mktemp("table") / "tiny.npz"
    np.savez(file, arch=arch, op_names=names, edges=edges, tiny_val_acc=accuracy)
    return file


@pytest.fixture(scope="module")
def table(path: Path) -> Table:
    return read_table(path, "tiny")


def test_the_table_is_read_by_name_and_averaged_over_what_is_there(table: Table):
    assert len(table.cells) == 3**6 - 1
    for cell in table.cells[::50]:
        assert table.accuracy[cell] == pytest.approx(worth(cell))
    assert table.optimum == pytest.approx(worth(("nor_conv_3x3",) * 6))


def test_cells_and_networks_correspond_one_to_one():
    rng = np.random.default_rng(1)
    cells = {tuple(str(name) for name in rng.choice(OPERATIONS, 6)) for _ in range(200)}
    networks = {network_of(cell) for cell in cells}
    assert len(networks) == len(cells)
    for arch in networks:
        other = relabelled(arch, rng=rng)
        assert other in SPACE
        assert network_of(cell_of(other)) == arch
        assert cell_of(other) == cell_of(arch)


def test_a_network_that_is_no_cell_cannot_be_built():
    arch = network_of((*OPERATIONS, "none"))
    layers = list(arch.layers)
    with pytest.raises(InvalidArchitectureError, match="line graph"):
        Architecture(arch.vocabulary, layers, arch.edges | {(1, 7)})
    with pytest.raises(InvalidArchitectureError, match="six operations"):
        Architecture(arch.vocabulary, [Layer("ip"), Layer("none"), Layer("op")], [(0, 1), (1, 2)])


def test_one_step_edits_are_the_24_neighbours():
    cell = (*OPERATIONS, "none")
    edits = [cell_of(edit.arch) for edit in one_step_edits(network_of(cell), SPACE, modifiers=("swap_label",))]
    assert len(set(edits)) == 24
    assert all(sum(a != b for a, b in zip(cell, edit, strict=True)) == 1 for edit in edits)


def test_the_plain_distance_counts():
    a, b = network_of((*OPERATIONS, "none")), network_of(("skip_connect", "none", *OPERATIONS[2:], "none"))
    between = HammingAndCounts().cross([a], [a, b])
    assert between.d.tolist() == [[[0.0, 2.0]]]
    assert between.d_bar.tolist() == [[[0.0, 0.0]]]
    assert HammingAndCounts().pairwise([]).d.shape == (1, 0, 0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_starts_from_the_same_pool_and_repeats_itself(table: Table, method: str):
    runs = [best_so_far(table, method, 3, 13) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][:10] == best_so_far(table, "uniform", 3, 10)
    assert len(runs[0]) == 13 or runs[0][-1] == pytest.approx(table.optimum)
    assert runs[0] != best_so_far(table, method, 4, 10)


def test_bayesian_optimisation_finds_the_best_of_a_simple_table(table: Table):
    assert best_so_far(table, "nasbot", 0, 25)[-1] == pytest.approx(table.optimum)


def test_local_search_climbs_and_starts_again(table: Table):
    """The optimum has 24 neighbours; once they are known a fresh start follows, and nothing is asked twice."""
    pool = (network_of(("nor_conv_3x3",) * 6),)
    searcher = LocalSearch(cells=table.cells, pool=pool)
    history = nasbench201.History()
    for number in range(27):
        history = history.with_trial(nasbench201._evaluated(table, searcher, history, 0, number))
    assert len(history.seen) == 27
    assert [trial.notes.get("around") for trial in history] == [None, *[0] * 24, None, 25]


def test_a_run_ends_where_it_finds_the_optimum_and_stays_there_in_the_summary(table: Table):
    few = Table("few", dict(list(table.accuracy.items())[:12]))
    best = best_so_far(few, "uniform", 0, 20)
    assert best[-1] == few.optimum
    assert max(best[:-1], default=0.0) < few.optimum
    record = nasbench201.record_of(few, "uniform", 50, "t", 0)
    summary = nasbench201.summary([record], 50)
    assert summary["best_mean"] == {"25": pytest.approx(few.optimum), "50": pytest.approx(few.optimum)}
    assert summary["at_optimum"] == 1.0


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = nasbench201.main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_the_last_line_is_json(path: Path):
    command = [sys.executable, "-m", "benchmarks.nasbench201", "--table", path, "--dataset", "tiny"]
    command += ["--method", "evolution", "--seeds", "2", "--queries", "30", "--workers-processes", "2", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    numbers = json.loads(done.stdout.splitlines()[-1])
    assert list(numbers["best_mean"]) == list(numbers["best_se"]) == ["25", "30"]
    assert 0 <= numbers["at_optimum"] <= 1


def test_runs_are_kept_and_not_repeated(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    where = ("--table", path, "--dataset", "tiny", "--out", tmp_path / "runs.jsonl", "--tag", "a", "--queries", 25)
    for method in ("uniform", "local"):
        assert run(capsys, *where, "--method", method, "--seeds", 2)[0] == 0
    monkeypatch.setattr(nasbench201, "best_so_far", None)  # whoever runs anything now fails
    code, shown, _ = run(capsys, *where, "--method", "local", "--seeds", 1, "--first-seed", 1)
    assert (code, "tiny, local, 1 runs" in shown) == (0, True)
    code, shown, _ = run(capsys, "--summary", "--out", tmp_path / "runs.jsonl", "--tag", "a", "--queries", 25)
    assert code == 0
    assert "| local | 2 |" in shown
    assert "| local |" not in run(capsys, "--summary", "--out", tmp_path / "runs.jsonl", "--queries", 25)[1]


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        (("--table", "nowhere.npz"), 3, "nowhere.npz: no such table"),
        (("--table", __file__), 3, "not an npz file"),
        (("--dataset", "imagenet"), 2, "has tiny; got 'imagenet'"),
        (("--method", "guessing"), 2, "expected one of nasbot, otmann, narrow, crude"),
        (("--seeds", "0"), 2, "--seeds: expected a whole number >= 1"),
        (("--queries", "many"), 2, "invalid int value"),
        (("--first-seed", "-1"), 2, "--first-seed"),
        (("--out", __file__), 3, "line 1: expected a JSON object"),
    ],
)
def test_mistakes_are_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], changed: tuple[str, str], code: int, words: str
):
    options = {"--table": str(path), "--dataset": "tiny", "--method": "uniform", "--seeds": "1", "--queries": "10"}
    arguments = [word for option in (options | dict([changed])).items() for word in option]
    got, shown, said = run(capsys, *arguments)
    assert (got, shown) == (code, "")
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"edges": np.zeros((6, 2), int)}, "edges"),
        ({"op_names": np.array(["none", "gelu", "relu"])}, "gelu, relu"),
        ({"arch": np.zeros((2, 6), int)}, "more than once"),
        ({"arch": np.full((2, 6), 7)}, "below 3"),
        ({"tiny_val_acc": np.full((3**6, 3), np.nan)}, "no finite entry"),
    ],
)
def test_other_files_are_refused(path: Path, tmp_path: Path, arrays: dict[str, np.ndarray], words: str):
    with np.load(path) as file:
        np.savez(tmp_path / "odd.npz", **({name: file[name] for name in file.files} | arrays))
    with pytest.raises((FileError, OptionError), match=words):
        read_table(tmp_path / "odd.npz", "tiny")
