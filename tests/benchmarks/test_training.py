"""The benchmark of training compares the same steps, and its ratios mean what they say."""

import numpy as np
import pytest

from benchmarks import training
from nasbot.architecture import Layer
from nasbot.architecture.blocks import chain
from nasbot.data.dataset import dataset_of
from tests.training.test_loop import friedman

TINY = {
    "small MLPs": [chain("mlp-reg", [Layer("relu", 8)])],
    "CNNs": [chain("cnn", [Layer("conv3", 8), Layer("fc", 8)])],
}


def test_figures_and_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(training, "networks", lambda: TINY)
    monkeypatch.setattr(training, "BARS", {"small MLPs": 1e-9, "CNNs": 1e9})
    figures, bars = training.run(2)
    assert [bar.passed for bar in bars] == [True, False]
    for rows in figures.values():
        assert all(row["plain"] > 0 and row["ours"] > 0 and row["ratio"] > 0 for row in rows)
    assert "cnn, 5 layers" in capsys.readouterr().out


def test_every_network_of_the_bars_can_be_trained():
    found = training.networks()
    assert set(found) == set(training.BARS)
    for archs in found.values():
        for arch in archs:
            X, _ = training.samples(arch)
            assert training._network(arch, X).classifies == (arch.kind != "mlp-reg")


def test_the_variance_ratio_is_that_of_a_known_mixture():
    rng = np.random.default_rng(0)
    values = 3.0 * rng.standard_normal((4000, 1)) + rng.standard_normal((4000, 2))
    assert training.variance_ratio(values) == pytest.approx(9.0, rel=0.1)
    assert training.variance_ratio(rng.standard_normal((4000, 2))) < 0.1


def test_signal_of_a_data_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(training, "FAST", training.FAST.changed(n_steps=5))
    found = training.signal(dataset_of(*friedman(200)), 2, 2)
    assert set(found) == {"loss", "log loss"}
    assert all(value >= 0 for value in found.values())
