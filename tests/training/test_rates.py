"""Targets that are nowhere negative: networks that say a multiple of the mean, and the Poisson loss."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_poisson_deviance

from nasbot.architecture import Layer, chain
from nasbot.data.dataset import dataset_of
from nasbot.errors import OptionError
from nasbot.training.loop import train
from nasbot.training.losses import training_loss
from nasbot.training.module import build
from nasbot.training.predictions import people_predictions, predictions
from nasbot.training.recipes import FAST, Settings

MLP = chain("mlp-reg", [Layer("relu", 24), Layer("relu", 24)])
RECIPE = FAST.changed(n_steps=300)


def counts(n=1500, seed=0):
    """Rates over three decades, and counts drawn from them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, rng.poisson(np.exp(1.5 * X[:, 0] + X[:, 1] - 0.5)).astype(float)


def data_of(y, X=None):
    return dataset_of(np.arange(len(y))[:, None] if X is None else X, y, task="regression", seed=1)


def test_which_targets_are_rates_and_which_are_heavy_tailed():
    X, y = counts()
    assert data_of(y, X).is_heavy_tailed
    assert data_of(y + 1, X).rate_scale is not None
    assert not data_of(y + 100, X).is_heavy_tailed, "its deviation is a small part of its mean"
    assert data_of(y + 100, X).rate_scale is not None
    assert data_of(y - 1, X).rate_scale is None
    assert not data_of(y - 1, X).is_heavy_tailed
    both = data_of(np.stack([y, y + 100], axis=1), X)
    assert not both.is_heavy_tailed, "one of two is not"
    assert len(both.rate_scale) == 2
    assert dataset_of(X, y > 1, seed=1).rate_scale is None


def test_the_scale_turns_standardised_numbers_into_multiples_of_the_mean():
    X, y = counts()
    data = data_of(y, X)
    (centre,), (scale,) = data.preprocessing.target.centres, data.preprocessing.target.scales
    raw = data.train.y[:, 0] * scale + centre
    np.testing.assert_allclose(1 + data.train.y[:, 0] / data.rate_scale[0], raw / raw.mean(), atol=1e-5)


def test_outputs_are_never_below_zero_and_grow_in_proportion_above_the_mean():
    network = build(MLP, input_shape=(4,), n_outputs=1, seed=0, rate_scale=(0.3,))
    decision = network.layers[str(MLP.decision_layers[0])]
    with torch.no_grad():
        decision.weight.zero_()
        said = []
        for z in (-50.0, -1.0, 0.0, 1.0, 3.0):
            decision.bias.fill_(z)
            said.append(float(network(torch.zeros(1, 4))))
    assert said == pytest.approx([-0.3, 0.3 * (np.exp(-1) - 1), 0.0, 0.3, 0.9], abs=1e-6)
    assert all(a < b for a, b in pairwise(said))


def test_the_loss_is_half_of_scikit_learns_deviance_but_for_a_constant():
    rng = np.random.default_rng(3)
    truth, one, other = rng.poisson(2.0, 50), *rng.uniform(0.1, 5.0, size=(2, 50))
    scale = torch.tensor([0.7])

    def loss(rates):
        out, y = (torch.tensor((values - 1)[:, None]) * scale for values in (rates, truth))
        return float(training_loss(out, y, Settings(loss="poisson"), classifies=False, rate_scale=scale))

    expected = (mean_poisson_deviance(truth, one) - mean_poisson_deviance(truth, other)) / 2
    assert loss(one) - loss(other) == pytest.approx(expected, rel=1e-5)


def test_rates_over_decades_are_learned_better_than_by_squares():
    X, y = counts(3000)
    data = data_of(y, X)
    ours, squared = (train(MLP, data, RECIPE.changed(loss=loss), seed=0) for loss in ("poisson", "squared"))
    assert ours.loss < 0.9 * squared.loss
    assert ours.network.rate_scale is not None
    assert squared.network.rate_scale is None
    assert people_predictions(ours.network, data, data.test).min() >= 0
    again = train(MLP, data, RECIPE.changed(loss="poisson"), seed=0)
    assert torch.equal(*(predictions(t.network, torch.from_numpy(np.array(data.test.X))) for t in (ours, again)))


def test_wild_inputs_do_not_end_a_training():
    X, y = counts()
    X[::50] *= 300.0
    data = data_of(y, X)
    assert np.isfinite(train(MLP, data, RECIPE.changed(loss="poisson", learning_rate=0.06), seed=0).loss)


def test_negative_targets_are_refused():
    X, y = counts()
    with pytest.raises(OptionError, match=r'^loss: expected a target that is nowhere negative for "poisson"; some of'):
        train(MLP, data_of(y - 3, X), RECIPE.changed(loss="poisson"))


@pytest.mark.parametrize("scale", [(0.0,), (-1.0,), (float("nan"),), (1.0, 2.0), (float("inf"),)])
def test_scales_that_are_none(scale):
    with pytest.raises(OptionError, match=r"^rate_scale: expected 1 finite numbers > 0, got"):
        build(MLP, input_shape=(4,), n_outputs=1, seed=0, rate_scale=scale)


def test_classes_have_none():
    arch = chain("mlp-class", [Layer("relu", 8)])
    with pytest.raises(OptionError, match=r"^rate_scale: expected none, for classes, got"):
        build(arch, input_shape=(4,), n_outputs=1, seed=0, rate_scale=(1.0,))
