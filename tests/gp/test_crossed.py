"""Networks that are each looked at with several settings: the product of the kernel gives what plain rows give."""

import numpy as np
import pytest

from nasbot.gp import BeliefOptions, Rows, fit_belief
from nasbot.gp import posterior as posteriors
from nasbot.gp.rows import InvalidDistancesError

N_KNOWN, N_NETWORKS, N_SETTINGS = 12, 5, 4


def _points(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), rng.random((n, 2))


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a.T[:, :, None] - b.T[:, None, :])


@pytest.fixture(scope="module")
def belief():
    networks, params = _points(0, N_KNOWN)
    far = _between(networks, networks)
    rows = Rows.of(None, far[:2], features=far[2:], params=_between(params, params))
    values = networks.sum(axis=1) + np.sin(4 * params[:, 0])
    return fit_belief(rows, values, options=BeliefOptions(n_samples=3), rng=np.random.default_rng(1))


@pytest.fixture(scope="module")
def crossed_and_plain():
    (networks, params), (asked, _), (_, settings) = _points(0, N_KNOWN), _points(2, N_NETWORKS), _points(3, N_SETTINGS)
    far = _between(networks, asked)
    crossed = Rows.of(None, far[:2], features=far[2:]).with_settings(_between(params, settings))
    every = np.tile(asked, (N_SETTINGS, 1))
    far = _between(networks, every)
    of_each = _between(params, settings.repeat(N_NETWORKS, axis=0))
    return crossed, Rows.of(None, far[:2], features=far[2:], params=of_each)


def test_predictions_are_those_of_every_pair(belief, crossed_and_plain):
    crossed, plain = crossed_and_plain
    fast, slow = belief.predict(crossed), belief.predict(plain)
    assert crossed.m == plain.m == N_NETWORKS * N_SETTINGS
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-10)
    np.testing.assert_allclose(fast.variance, slow.variance, rtol=1e-8)
    np.testing.assert_allclose(belief.correlation(crossed), belief.correlation(plain), rtol=1e-10)


def test_parts_of_a_long_list_are_put_together(belief, crossed_and_plain, monkeypatch):
    whole = belief.predict(crossed_and_plain[0])
    monkeypatch.setattr(posteriors, "CHUNK", 3 * N_KNOWN * N_NETWORKS + 1)  # one setting at a time
    np.testing.assert_allclose(belief.predict(crossed_and_plain[0]).mean, whole.mean, rtol=1e-12)


def test_some_of_the_known_points(crossed_and_plain):
    crossed, plain = crossed_and_plain
    some = crossed[np.array([3, 1]), :]
    assert some.n == 2
    np.testing.assert_array_equal(some.settings[:, 0], crossed.settings[:, 3])
    assert plain[np.array([3, 1]), :].n == 2


def test_settings_need_rows_without_params_about_the_same_points(crossed_and_plain):
    crossed, plain = crossed_and_plain
    with pytest.raises(InvalidDistancesError, match="without params"):
        plain.with_settings(crossed.settings)
    with pytest.raises(InvalidDistancesError, match=r"\(params, 12, s\), got .* and \(2, 11, 4\)"):
        Rows.of(crossed.array).with_settings(crossed.settings[:, 1:])


def test_params_take_their_share_of_the_hyper_parameters_off_the_samples():
    networks, params = _points(0, N_KNOWN)
    far, values = _between(networks, networks), networks.sum(axis=1)
    for given, n in ((None, 10), (_between(params, params), 7)):  # 1 scale, 3 decays, noise; and 2 decays of params
        belief = fit_belief(
            Rows.of(None, far, params=given), values, options=BeliefOptions(), rng=np.random.default_rng(1)
        )
        assert len(belief.hyperparameters) == n
