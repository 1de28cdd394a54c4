"""The search for the mode beside places without a density, and its deafness to last bits."""

import numpy as np
import pytest

from nasbot.gp.fit import feasible, posterior_mode


class Cliff:
    """-50 (x - 3)², and no density from x = 3.1 on; told with other last bits."""

    prior_mean, prior_spread = np.zeros(1), np.full(1, 10.0)

    def __init__(self, last_bits: float = 0.0) -> None:
        self.last_bits, self.asked = last_bits, []

    def __call__(self, place):
        return self.with_gradient(place)[0]

    def with_gradient(self, place):
        self.asked.append(float(place[0]))
        if place[0] > 3.1:
            return -np.inf, np.zeros(1)
        changed = 1.0 + self.last_bits * np.cos(1e6 * place[0])
        return -50.0 * float((place[0] - 3.0) ** 2) * changed, -100.0 * (place - 3.0) * changed


def test_a_place_without_a_density_does_not_end_the_search():
    target = Cliff()
    found = posterior_mode(target, np.array([[2.6]]), most_steps=15)
    assert found.n_rejected > 0, "the first step, of length 1, must lead beyond"
    assert found.n_evaluations == len(target.asked) - 1  # but for one look at the start
    assert found.n_rejected == sum(place > 3.1 for place in target.asked)
    assert abs(found.vectors[0, 0] - 3.0) < 0.01


def test_last_bits_lead_to_the_same_mode():
    modes = [posterior_mode(Cliff(bits), np.array([[-7.3]])).vectors for bits in (0.0, 1e-13, -1e-13)]
    assert (modes[0] == modes[1]).all()
    assert (modes[0] == modes[2]).all()


class NoisyEnough:
    """A density of 0 from so much log noise on."""

    values, prior_variance = np.ones(50), staticmethod(lambda _: 10.0)

    def __init__(self, least: float) -> None:
        self.least, self.n_asked, self.n_refused = least, 0, 0

    def __call__(self, place):
        self.n_asked += 1
        self.n_refused += place[-1] < self.least
        return -np.inf if place[-1] < self.least else 0.0


@pytest.mark.parametrize(("least", "noise"), [(0.5, 1.0), (1.5, 10.0), (150.0, 1000.0), (1e9, 1000.0)])
def test_noise_is_raised_tenfold_until_there_is_a_density_or_more_cannot_be_needed(least, noise):
    """Twice the number of values times their prior variance is more than enough: here 1,000."""
    target = NoisyEnough(np.log(least))
    found = feasible(target, np.array([[7.0, 0.0], [8.0, 9.0]]))
    raised = next(place for place in found.vectors if place[0] == 7.0)
    assert raised == pytest.approx([7.0, np.log(noise)])
    assert (found.n_evaluations, found.n_rejected) == (target.n_asked, target.n_asked - 2)


class Slope:
    """A density that rises for ever, one way."""

    prior_mean, prior_spread = np.ones(1), np.full(1, 10.0)

    def __init__(self, rise: float) -> None:
        self.rise = rise

    def __call__(self, place):
        return self.with_gradient(place)[0]

    def with_gradient(self, place):
        return self.rise * float(place[0]), np.full(1, self.rise)


@pytest.mark.parametrize(("start", "rise", "end"), [(0, 1, 61), (0, -1, -59), (80, 1, 80), (80, -1, -59), (-70, 1, 61)])
def test_the_mode_is_looked_for_within_six_spreads_of_the_prior_or_where_a_start_lies(start, rise, end):
    assert posterior_mode(Slope(rise), np.array([[float(start)]])).vectors[0, 0] == end
