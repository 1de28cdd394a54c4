"""Small problems and slow twins that the tests of gp/ share."""

import numpy as np

from nasbot.gp.hyperparameters import Hyperparameters, Prior
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.rows import Rows, RowScaling
from nasbot.gp.warping import Warp, warp_values


def points(n, seed=0):
    return np.random.default_rng(seed).random((n, 6))


def distances(left, right):
    """d (4, n, m): city-block distances in ever more coordinates, for which exp(-d) is positive definite."""
    gaps = np.abs(left[:, None, :] - right[None, :, :])
    return np.stack([gaps[:, :, :k].sum(axis=2) for k in (2, 3, 4, 6)])


def normalised_distances(left, right):
    """A d_bar (4, n, m) in [0, 1) that still gives a positive definite kernel: distances between saturated points."""
    return distances(np.tanh(left), np.tanh(right)) / 6.0


def objective(x):
    return np.sin(4.0 * x[:, 0]) + 2.0 * x[:, 1] - x[:, 2] * x[:, 3]


def problem(n, seed=0, noise=0.1):
    """(x, d, d_bar, values) of n points."""
    x = points(n, seed)
    values = objective(x) + noise * np.random.default_rng(seed + 1000).standard_normal(n)
    return x, distances(x, x), normalised_distances(x, x), values


def log_posterior(d, d_bar, values, *, warp=Warp.NONE, p=1.0, p_bar=1.0, **more):
    rows = Rows.of(d, d_bar, **more)
    form = rows.form(p, p_bar)
    scaling = RowScaling.of(rows, form)
    standardised = warp_values(values, warp).standardised
    return LogPosterior.of(scaling.powered(rows), standardised, form, Prior()), scaling


THETA = Hyperparameters(0.7, 0.4, (0.3, 0.5, 0.2, 0.9), (1.1, 0.6, 0.2, 0.4), 0.05)


def more_rows(n, seed=3):
    """Rows of two features and three params among n points, as keyword arguments of `Rows.of`."""
    rng = np.random.default_rng(seed)
    gaps = [np.abs(x[:, :, None] - x[:, None, :]) for x in (3.0 * rng.standard_normal((2, n)), rng.random((3, n)))]
    return {"features": gaps[0], "params": gaps[1]}
