import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.gp.hyperparameters import Hyperparameters, KernelForm, Prior
from nasbot.gp.kernel import ensemble_kernel, otmann_kernel
from nasbot.gp.rows import InvalidDistancesError, Rows, RowScaling, _typical_size
from tests.gp.problems import THETA, more_rows, problem


def test_kernel_is_equation_7_entry_by_entry():
    _, d, d_bar, _ = problem(5)
    gram = otmann_kernel(d, d_bar, THETA, distance_power=1.5, normalised_power=2.0)
    for i in range(5):
        for j in range(5):
            near = sum(beta * d[w, i, j] ** 1.5 for w, beta in enumerate(THETA.decay))
            near_bar = sum(beta * d_bar[w, i, j] ** 2 for w, beta in enumerate(THETA.normalised_decay))
            expected = THETA.scale * np.exp(-near) + THETA.normalised_scale * np.exp(-near_bar)
            assert gram[i, j] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kinds", ["both", "d", "d_bar"])
def test_fast_kernel_on_powered_is_the_formula_on_distances(p, kinds):
    _, d, d_bar, _ = problem(7)
    d, d_bar = (d if kinds != "d_bar" else None), (d_bar if kinds != "d" else None)
    rows = Rows.of(d, d_bar)
    form = rows.form(p, 1.0)
    scaling = RowScaling.of(rows, form)
    vectors = Prior().mean(form) + np.random.default_rng(3).standard_normal((3, form.n_hyperparameters))
    fast = ensemble_kernel(scaling.powered(rows)[:, :, :4], vectors, form)
    assert fast.shape == (3, 7, 4)
    for s, vector in enumerate(vectors):
        theta = scaling.in_distance_units(Hyperparameters.from_log(vector, form))
        slow = otmann_kernel(d, d_bar, theta, distance_power=p)[:, :4]
        np.testing.assert_allclose(fast[s], slow, rtol=1e-10)


@pytest.mark.parametrize("kinds", [(0, 1, 2, 3), (0, 1, 3), (0, 2), (1, 2, 3), (0, 3), (3,)])
def test_fast_kernel_with_features_and_params_is_the_formula(kinds):
    _, d, d_bar, _ = problem(7)
    given = {"d": d, "d_bar": d_bar, **more_rows(7)}
    given = {kind: array if i in kinds else None for i, (kind, array) in enumerate(given.items())}
    rows = Rows.of(**given)
    form = rows.form(1.5, 1.2)
    scaling = RowScaling.of(rows, form)
    vectors = Prior().mean(form) + np.random.default_rng(3).standard_normal((3, form.n_hyperparameters))
    fast = ensemble_kernel(scaling.powered(rows), vectors, form)
    for s, vector in enumerate(vectors):
        named = Hyperparameters.from_log(vector, form)
        np.testing.assert_allclose(named.to_log(), vector, rtol=1e-12, atol=1e-12)
        theta = scaling.in_distance_units(named)
        slow = otmann_kernel(theta=theta, distance_power=1.5, normalised_power=1.2, **given)
        np.testing.assert_allclose(fast[s], slow, rtol=1e-10)


def test_rows_of_params_stand_in_every_term_and_keep_their_scale():
    form = KernelForm(n_weights=2, n_normalised_weights=1, n_features=2, n_params=2)
    assert form.terms == ((0, 1, 5, 6), (2, 5, 6), (3, 4, 5, 6))
    assert KernelForm(n_weights=2, n_normalised_weights=1).terms == ((0, 1), (2,))
    assert form.n_hyperparameters == 3 + 7 + 1
    assert form.decays(Prior().mean(form))[-2:] == pytest.approx(np.log(0.5) - 0.5 * np.log(2))
    rows = Rows.of(params=np.array([[[0.0, 0.04], [0.04, 0.0]]]))
    assert RowScaling.of(rows, rows.form(1.0, 1.0)).powered(rows)[0, 0, 1] == pytest.approx(0.04**1.5)


def test_powered_stay_finite_when_distances_span_all_magnitudes():
    d = np.zeros((1, 3, 3))
    d[0, 0, 1] = d[0, 1, 0] = 1e-300
    d[0, 0, 2] = d[0, 2, 0] = d[0, 1, 2] = d[0, 2, 1] = 1e300
    rows = Rows.of(d)
    scaling = RowScaling(rows.form(2.0, 1.0), (1e-300,))
    powered = scaling.powered(rows)
    assert np.all(np.isfinite(powered))
    assert powered[0, 0, 1] == pytest.approx(1.0)
    vector = np.zeros((1, 3))
    np.testing.assert_allclose(
        ensemble_kernel(powered, vector, scaling.form)[0], [[1, 1 / np.e, 0], [1 / np.e, 1, 0], [0, 0, 1]]
    )


def test_typical_distance_is_the_median_of_positive_ones_between_different_points():
    d = np.zeros((1, 4, 4))
    d[0, 0, 1:] = d[0, 1:, 0] = [2.0, 4.0, 8.0]
    assert RowScaling.of(Rows.of(d), Rows.of(d).form(1.0, 1.0)).typical == (4.0,)
    nowhere = Rows.of(np.zeros((2, 3, 3)))
    assert RowScaling.of(nowhere, nowhere.form(1.0, 1.0)).typical == (1.0, 1.0)


def test_only_one_kind_of_distance_is_the_ablation_of_the_paper():
    _, d, d_bar, _ = problem(4)
    alone = otmann_kernel(d, None, THETA) + otmann_kernel(None, d_bar, THETA)
    np.testing.assert_allclose(alone, otmann_kernel(d, d_bar, THETA), rtol=1e-14)


def test_the_papers_kernel_has_eleven_hyperparameters():
    assert KernelForm().n_hyperparameters == 11
    assert KernelForm(n_normalised_weights=0).n_hyperparameters == 6


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_log_vectors_and_names_are_two_forms_of_one_thing(n_weights, n_normalised_weights, seed):
    if n_weights + n_normalised_weights == 0:
        with pytest.raises(ValueError, match="at least one distance"):
            KernelForm(n_weights=0, n_normalised_weights=0)
        return
    form = KernelForm(n_weights=n_weights, n_normalised_weights=n_normalised_weights)
    vector = np.random.default_rng(seed).normal(0.0, 3.0, form.n_hyperparameters)
    theta = Hyperparameters.from_log(vector, form)
    np.testing.assert_allclose(theta.to_log(), vector, rtol=1e-12, atol=1e-12)
    assert len(theta.decay) == n_weights
    assert (theta.scale > 0.0) == (n_weights > 0)
    assert (theta.normalised_scale > 0.0) == (n_normalised_weights > 0)


@pytest.mark.parametrize("power", [0.0, -1.0, np.inf, np.nan])
def test_powers_must_be_positive_and_finite(power):
    with pytest.raises(ValueError, match="normalised_power must be positive"):
        KernelForm(normalised_power=power)


def test_prior_median_splits_the_variance_and_reaches_one_over_e_at_the_typical_distance():
    form = KernelForm()
    gram = ensemble_kernel(np.ones((8, 1, 1)), Prior().mean(form)[None], form)
    assert gram[0, 0, 0] == pytest.approx(np.exp(-1.0))
    assert np.exp(form.scales(Prior().mean(form))).sum() == pytest.approx(1.0)
    assert Prior().spread(form).shape == (11,)


def test_prior_of_what_a_low_fidelity_adds():
    """Half of the variance, an offset of a tenth of it, g of a half, and the noise again."""
    plain, form = KernelForm(), KernelForm(has_fidelities=True)
    n = plain.n_hyperparameters
    assert np.exp(Prior().mean(form)[n - 1 :]) == pytest.approx([0.5, 0.1, 0.5, 1.0, 0.02])
    assert Prior().spread(form)[n - 1 :] == pytest.approx([1.0, 1.0, 0.5, 1.0, 2.0])
    assert Prior().mean(form)[: n - 1] == pytest.approx(Prior().mean(plain)[:-1])


def test_distances_that_are_all_zero_keep_their_scale():
    assert _typical_size(np.zeros((3, 3))) == 1.0
    assert _typical_size(np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [5.0, 0.0, 0.0]])) == 4.0


@pytest.mark.parametrize(("typical", "log_decay"), [(1e200, -700.0), (1e-200, 700.0), (1e150, -300.0 * np.log(10.0))])
def test_decays_in_distance_units_are_kept_within_what_can_be_represented(typical, log_decay):
    """A typical distance of 1e200 with power 2 calls for a decay of 1e-400, which is no number but 0."""
    scaling = RowScaling(KernelForm(n_weights=1, n_normalised_weights=1, distance_power=2.0), (typical, 4.0))
    theta = scaling.in_distance_units(Hyperparameters(1.0, 1.0, (1.0,), (2.0,), 0.1))
    assert theta.decay == pytest.approx((np.exp(log_decay),), rel=1e-12, abs=0.0)
    assert theta.normalised_decay == pytest.approx((0.5,))


@pytest.mark.parametrize(("place", "message"), [((0, 1), "must be symmetric"), ((2, 2), "from a point to itself")])
def test_rounding_up_to_1e_8_of_the_largest_distance_is_no_mistake(place, message):
    _, d, _, _ = problem(4)
    off, further = d.copy(), d.copy()
    off[(0, *place)] += 0.9e-8 * d.max()
    further[(0, *place)] += 1.1e-8 * d.max()
    Rows.of(off).check_among()
    with pytest.raises(InvalidDistancesError, match=message):
        Rows.of(further).check_among()
