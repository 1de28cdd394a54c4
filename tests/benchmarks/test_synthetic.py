"""Runs on the synthetic functions are repeatable, kept, summed up and drawn; the statistics are right."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks import synthetic
from benchmarks.runs import RunFile, average, paired, revision, sign_test
from benchmarks.synthetic import ABLATIONS, KINDS, Run, search
from nasbot.architecture import SearchSpace, initial_pool
from nasbot.errors import FileError
from nasbot.synthetic import SYNTHETIC

AUTHORS = {
    "runs": [
        {"method": "nasbot", "func": "mlp_syn_func1", "seed": seed, "n_init": 10, "best_so_far": [1.0] * n}
        for seed, n in enumerate((20, 15, 12, 5))
    ]
}


@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_begins_with_the_pool_and_repeats_itself(workers: int):
    run = Run("f2", "NASBOT", workers, 0)
    best, deciding = search(run, 12)
    assert (best, len(best), len(deciding)) == (search(run, 12)[0], 12, 2)
    assert best == sorted(best)
    assert best[-1] >= max(map(SYNTHETIC["f2"], initial_pool("mlp-reg")))


def test_four_workers_see_less_before_they_choose():
    one, four = (search(Run("f3", "EA", workers, 0), 30)[0] for workers in (1, 4))
    assert one != four


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_ablation_is_another_searcher(name: str):
    space = SearchSpace("cnn")
    assert ABLATIONS[name](space).settings() != synthetic.METHODS["NASBOT"](space).settings()


def test_runs_are_kept_summed_up_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    out, authors = tmp_path / "runs.jsonl", tmp_path / "authors.json"
    authors.write_text(json.dumps(AUTHORS))
    asked = ["--out", str(out), "--evaluations", "12", "--tag", "t", "--authors", str(authors)]
    runs = [*asked, "--functions", "f3,released_mlp", "--methods", "NASBOT,EA", "--workers", "1", "--seeds", "2"]
    assert synthetic.main(runs) == 0
    records = list(RunFile(out).records())
    assert len(records) == 8
    assert {record["revision"] for record in records} == {revision()}
    monkeypatch.setattr(synthetic, "record_of", None)  # whoever runs anything now fails
    assert synthetic.main(runs) == 0
    capsys.readouterr()
    assert synthetic.main([*asked, "--summary", "--figure", str(tmp_path / "figure.svg")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("| NASBOT | 2 |") == 2
    assert "| released_mlp | NASBOT | 12 | 1.000 ± 0.000 (3) |" in shown
    assert "authors" in (tmp_path / "figure.svg").read_text()


def test_each_record_is_kept_before_the_next_is_made(tmp_path, capsys):
    runs = RunFile(tmp_path / "runs.jsonl")
    kept = runs.keep({"n": n, "before": len(list(runs.records()))} for n in range(3))
    assert [record["before"] for record in kept] == [0, 1, 2]
    assert capsys.readouterr().out.splitlines()[-1] == '{"n": 2, "before": 2}'


def test_a_torn_last_line_is_passed_over_and_others_are_not(tmp_path: Path):
    runs = RunFile(tmp_path / "deep" / "runs.jsonl")
    assert list(runs.records()) == []
    runs.append({"a": 1})
    with runs.path.open("a") as file:
        file.write('{"a":')
    assert list(runs.records()) == [{"a": 1}]
    runs.append({"a": 2})
    assert list(runs.records()) == [{"a": 1}, {"a": 2}]
    runs.path.write_text('{"a":\n{"a": 1}\n')
    with pytest.raises(FileError, match="line 1"):
        list(runs.records())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--functions", "f9"], 2, "--functions: expected some of f1"),
        (["--methods", "guessing"], 2, "got 'guessing'"),
        (["--workers", "1,0"], 2, "--workers"),
        (["--seeds", "0"], 2, "--seeds"),
        (["--first-seed", "-1"], 2, "--first-seed"),
        (["--evaluations", "x"], 2, "invalid int"),
        (["--summary", "--authors", __file__], 3, "expected the authors' curves"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str):
    assert synthetic.main(arguments) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (5, 5), (20, 0), (3, 17), (16, 4)])
def test_the_sign_test_is_the_binomial_test(wins: int, losses: int):
    expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(expected)


def test_averages_and_pairs():
    mean, se = average(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert (mean.tolist(), se.tolist()) == ([2.0, 2.0], [1.0, 0.0])
    assert average(np.array([[1.0]])).se.tolist() == [0.0]
    result = paired(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 4.0]))
    assert (result.mean, result.wins, result.losses, result.p) == (0.0, 1, 1, 1.0)


def test_every_function_has_a_kind():
    assert set(KINDS) == set(SYNTHETIC)
