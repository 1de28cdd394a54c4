"""The bar "Never silent": 200 hostile kernels give finite predictions, and what had to be mended is counted."""

import numpy as np
import pytest

from nasbot.gp import BeliefOptions, Inference, Rows, Warp, fit_belief

# Rounding may need a floor here and there; a true, definite kernel on distinct points must need nothing at all.
KINDS = [
    "indefinite",
    "hub",
    "rank one",
    "constant",
    "duplicates",
    "asymmetric scales",
    "one observation",
    "equal values",
]


def _random_symmetric(n, rng):
    d = rng.random((4, n, n)) * rng.choice([0.0, 1.0, 10.0], size=(1, n, n))
    d = np.maximum(d, d.transpose(0, 2, 1))
    d[:, np.arange(n), np.arange(n)] = 0.0
    return d


def _hostile(kind, rng):
    """(d, values) of n + 5 points; the values of the first n."""
    n = 1 if kind == "one observation" else int(rng.integers(2, 25))
    total = n + 5
    d = _random_symmetric(total, rng)  # breaks the triangle inequality: indefinite as it is
    values = rng.standard_normal(n)
    if kind == "hub":
        d = np.full((4, total, total), 4.0)
        d[:, 0, :] = d[:, :, 0] = 0.1
        d[:, np.arange(total), np.arange(total)] = 0.0
    elif kind == "rank one":
        d = np.zeros((4, total, total))
    elif kind == "constant":
        d = np.broadcast_to(1.0 - np.eye(total), (4, total, total)).copy()
    elif kind == "duplicates":
        which = rng.integers(0, 3, total)
        d = d[:, which][:, :, which]
    elif kind == "asymmetric scales":
        d *= 10.0 ** rng.uniform(-150, 150, (4, 1, 1))
        values *= 10.0 ** rng.uniform(-150, 150)
    elif kind == "equal values":
        values = np.full(n, rng.choice([0.0, 0.93, -1e150, 1e-150]))
    return d, values


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_kernels_give_finite_predictions(kind):
    for seed in range(25):  # 8 kinds x 25 = 200
        rng = np.random.default_rng(seed)
        d, values = _hostile(kind, rng)
        n = len(values)
        options = BeliefOptions(
            inference=(Inference.SAMPLE, Inference.MAP)[seed % 2],
            warp=(Warp.RANK, Warp.NONE)[seed // 2 % 2],
            n_samples=2,
            distance_power=(1.0, 2.0)[seed // 4 % 2],
            normalised_power=(2.0, 1.0)[seed // 8 % 2],
        )
        rows = Rows.of(d, d / (1.0 + d))
        belief = fit_belief(rows[:n, :n], values, options=options, rng=rng)
        _check(belief, belief.predict(rows[:n, :]))
        told = belief.hallucinate(rows[:n, n:], rows[n:, n:])
        _check(told, told.predict(rows))
        calibration = belief.calibration()
        assert np.all(np.isfinite(calibration.log_density))
        assert np.all(calibration.variance > 0.0)


def _check(belief, prediction):
    assert np.all(np.isfinite(prediction.mean))
    assert np.all(np.isfinite(prediction.variance))
    assert np.all(prediction.variance > 0.0)
    # Shrunken towards 0 or thereabouts: an indefinite kernel must not make predictions explode.
    assert np.abs(prediction.mean).max() < 20.0 * max(1.0, np.abs(belief.values).max())
    for end in belief.interval(prediction):
        assert np.all(np.isfinite(end))


def _hub(n):
    d = np.full((1, n, n), 4.0)
    d[:, 0, :] = d[:, :, 0] = 0.1
    d[:, np.arange(n), np.arange(n)] = 0.0
    return d


@pytest.mark.parametrize("inference", list(Inference))
def test_an_indefinite_kernel_is_reported_as_such(inference):
    options = BeliefOptions(inference=inference, distance_power=2.0, n_samples=3)
    belief = fit_belief(Rows.of(_hub(15)), np.arange(15.0), options=options, rng=np.random.default_rng(0))
    assert belief.repairs.clipped_grams > 0
    assert belief.repairs.rejected_draws > 0
    assert "clipped" in str(belief.repairs)


def test_a_definite_kernel_needs_no_repair():
    x = np.random.default_rng(0).random((20, 3))
    d = np.abs(x[:, None] - x[None]).sum(axis=2)[None]
    options = BeliefOptions(distance_power=1.0)  # L1 distances, for which exp(-d) is a positive definite kernel
    belief = fit_belief(Rows.of(d), x[:, 0], options=options, rng=np.random.default_rng(0))
    assert not belief.repairs
    assert not belief.predict(Rows.of(d)).repairs


def test_repairs_of_pending_points_are_reported():
    rows = Rows.of(_hub(12))
    options = BeliefOptions(distance_power=2.0, n_samples=3)
    belief = fit_belief(rows[:1, :1], np.ones(1), options=options, rng=np.random.default_rng(0))
    told = belief.hallucinate(rows[:1, 1:], rows[1:, 1:])
    assert belief.repairs.clipped_grams == 0
    assert told.repairs.clipped_grams > 0


def test_predictions_report_floored_variances():
    rows = Rows.of(_hub(12))
    options = BeliefOptions(distance_power=2.0, n_samples=3)
    belief = fit_belief(rows[1:, 1:], np.arange(11.0), options=options, rng=np.random.default_rng(0))
    assert belief.predict(rows[1:, :1]).repairs.floored_variances > 0
