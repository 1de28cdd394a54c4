"""The benchmark of deciding measures what it says, on histories of the right kind."""

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
