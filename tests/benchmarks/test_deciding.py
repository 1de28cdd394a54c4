"""The benchmark of deciding measures what it says, on histories of the right kind."""

import numpy as np
import pytest

from benchmarks import deciding
from nasbot.architecture import SearchSpace


def test_a_history_has_new_networks_of_the_space_and_of_mixed_sizes():
    history = deciding.evaluated("mlp-reg", 12)
    sizes = {len(trial.arch.layers) for trial in history}
    assert len(history.completed) == len(history.seen) == 12
    assert all(trial.arch in SearchSpace("mlp-reg") for trial in history)
    assert min(sizes) >= 10
    assert max(sizes) <= 60
    assert len(sizes) > 4
    assert history == deciding.evaluated("mlp-reg", 12)


def test_figures_and_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(deciding, "SIZES", (4,))
    monkeypatch.setattr(deciding, "P95_SECONDS", {4: 1e-9})
    monkeypatch.setattr(deciding, "WITH_PARAMS_AT", 3)
    monkeypatch.setattr(deciding, "N_HISTORIES", 1)
    monkeypatch.setattr(deciding, "N_ROUNDS", 1)
    figures, bars = deciding.run(1)
    assert set(figures) == {"mlp-reg 4", "cnn 4", "mlp-reg with params", "cnn with params"}
    assert not any(bar.passed for bar in bars if "params" not in bar.name)
    for kind in ("mlp-reg", "cnn"):
        joint = figures.pop(f"{kind} with params")
        assert joint["ratio p95"] == joint["joint p95"] / joint["networks p95"] > 0.2
    for row in figures.values():
        assert 0 < row["p50"] <= row["p95"]
        assert sum(row[purpose] for purpose in deciding.PURPOSES) <= 1.1 * 4 * row["p95"]
        assert row["utilities"] >= 50
    assert "n = 4" in capsys.readouterr().out


def test_params_are_timed_after_several_histories_and_what_else_runs_does_not_count(monkeypatch):
    asked = []

    def by_turns(kind, history, n_proposals):
        asked.append((kind, history, n_proposals))
        busy = 1.0 if asked.count(asked[-1]) == 1 else 0.0  # the first round
        return np.tile([[1.0 + history + busy], [1.2 + history + busy]], n_proposals)

    monkeypatch.setattr(deciding, "_by_turns", by_turns)
    figures = deciding.with_params("cnn", 18)
    assert asked == [("cnn", history, 5) for history in range(4) for _ in range(2)]
    assert figures == pytest.approx(
        {
            "networks p50": 2.5,
            "networks p95": 4.0,
            "joint p50": 2.7,
            "joint p95": 4.2,
            "ratio p50": 1.08,
            "ratio p95": 1.05,
        }
    )


def test_both_searches_know_the_same_networks_and_take_turns_at_being_first(monkeypatch):
    monkeypatch.setattr(deciding, "WITH_PARAMS_AT", 3)
    asked, decide = [], deciding.decide

    def remembered(searcher, history):
        asked.append((bool(searcher.params), [trial.arch for trial in history]))
        return decide(searcher, history)

    monkeypatch.setattr(deciding, "decide", remembered)
    assert deciding._by_turns("mlp-reg", 1, 2).shape == (2, 2)
    assert [has_params for has_params, _ in asked] == [True, False, False, True, True, False]
    for (_, first), (_, second) in zip(asked[::2], asked[1::2], strict=True):
        assert first == second
    assert asked[0][1] == [trial.arch for trial in deciding.evaluated("mlp-reg", 3, 1)]
    assert asked[0][1] != [trial.arch for trial in deciding.evaluated("mlp-reg", 3)]
