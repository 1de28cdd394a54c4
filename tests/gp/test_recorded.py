"""Fits of every kind are the recorded ones: no prior, limit or number of steps changes by accident.

What a fit looks at is rounded (``fit.py``), so that these numbers are the same on any processor. Whoever means to
change them records them again.
"""

import numpy as np
import pytest

from nasbot.gp import BeliefOptions, Rows, belief, fit_belief
from nasbot.gp.evidence import log_evidence

RNG = np.random.default_rng(0)
PLACES = RNG.random((18, 3))
FAR = np.abs(PLACES[:, None] - PLACES)
VALUES = -((PLACES - 0.4) ** 2).sum(axis=1) + 0.05 * RNG.standard_normal(18) - 1.0
D = {"d": np.stack([FAR.sum(axis=2), 3 * FAR[..., 0] + FAR[..., 1]])}
D_BAR = {"d_bar": FAR[None, ..., 2] / 3, "features": FAR[None, ..., 0]}
PARAMS = {**D, "params": FAR[..., 1:].transpose(2, 0, 1)}
SHARES = {"fidelities": np.resize([1.0, 1 / 9, 1 / 3, 1.0], 18)}


@pytest.mark.parametrize(
    ("rows", "options", "more", "n_likelihoods", "shape", "vectors", "denoised", "evidence"),
    [
        (D, {}, {}, 235, (10, 4), -43.17274110838899, 2.0333547972301087, -20.6754867615307),
        (D_BAR, {}, {}, 288, (10, 5), -25.5688265414334, 0.5352718541122209, -20.99435678503566),
        (PARAMS, {}, {}, 268, (7, 6), -52.10462494384609, 0.9350642604733002, -20.75001144684678),
        (D, {"inference": "map"}, {}, 41, (1, 4), -4.046083802357316, 0.1373128611083756, -20.6754867615307),
        (
            *(PARAMS, {"n_samples": 3, "warp": "best", "distance_power": 1.0}, {}),
            *(126, (2, 6), -20.65910390182877, 0.0013026964576789979, -21.27062448007604),
        ),
        (D, {"warp": "none"}, SHARES, 481, (10, 8), -118.13789420103825, -13.080094684404033, -17.218009542884165),
        (
            *(D_BAR, {"sample_up_to": 17, "warp": "log"}, {}),
            *(32, (1, 5), -3.1423169849440455, 0.08165300271407816, -19.452575514391274),
        ),
    ],
    ids=["d", "d_bar and a feature", "params", "the mode", "few samples", "fidelities", "too many to sample"],
)
def test_fits_are_the_recorded_ones(rows, options, more, n_likelihoods, shape, vectors, denoised, evidence):
    rows, options = Rows.of(**rows), BeliefOptions(**{"warp": "rank", **options})
    found = fit_belief(rows, VALUES, options=options, rng=np.random.default_rng(1), **more)
    assert (found.n_likelihoods, found.posterior.vectors.shape) == (n_likelihoods, shape)
    assert found.posterior.vectors.sum() == pytest.approx(vectors, rel=1e-6)
    assert found.denoised.sum() == pytest.approx(denoised, rel=1e-6, abs=1e-6)
    assert log_evidence(rows, VALUES, options=options, **more) == pytest.approx(evidence, rel=1e-6)


@pytest.mark.parametrize(("size", "n_likelihoods"), [(8, 33), (9, 30)])
def test_with_more_than_twice_as_many_the_mode_is_sought_on_some_first(size, n_likelihoods, monkeypatch):
    monkeypatch.setattr(belief, "ROUGH_SIZE", size)
    options = BeliefOptions(inference="map", warp="rank")
    found = fit_belief(Rows.of(**PARAMS), VALUES, options=options, rng=np.random.default_rng(1))
    assert found.n_likelihoods == n_likelihoods


@pytest.mark.parametrize(("n", "n_samples"), [(18, 10), (180, 7), (240, 4)])
def test_samples_get_fewer_with_more_than_150_observations(n, n_samples):
    x = np.linspace(0.0, 1.0, n)
    rows = Rows.of(np.abs(x[:, None] - x))
    options = BeliefOptions(n_samples=10)
    target = belief.LogPosterior.of(rows.array, np.sin(9 * x), rows.form(1.0, 1.0), options.prior)
    at = belief.Chain((0.0, 0.0, -3.0))
    found = belief._estimate(target, target, options, at, np.random.default_rng(0))
    assert found.vectors.shape == (n_samples, 3)
