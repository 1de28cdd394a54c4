"""Which traits go with good values: planted ones are found, chance is not."""

from dataclasses import replace

import numpy as np
import pytest

from nasbot.candidate import Candidate
from nasbot.plots.traits import MOST_LINES, traits
from nasbot.trial import History, Scored, Trial
from tests.plots.studies import grown

NETWORKS = [trial.arch for trial in grown(40)]


def history(values, params):
    trials = [
        Trial(number=i, candidate=Candidate(NETWORKS[i % len(NETWORKS)], each)).begun(0.0)
        for i, each in enumerate(params)
    ]
    return History(t.ended(Scored(float(v)), at=1.0, rank=t.number) for t, v in zip(trials, values, strict=True))


def weights(found):
    return {trait.name: trait.weight for trait in found.traits}


def test_a_planted_trait_explains_the_order_and_chance_does_not():
    rng = np.random.default_rng(0)
    rates, noise = rng.uniform(size=400), rng.uniform(size=400)
    schedules = rng.choice(["flat", "cosine"], size=400)
    params = [
        {"rate": float(r), "noise": float(n), "schedule": str(s)}
        for r, n, s in zip(rates, noise, schedules, strict=True)
    ]
    found = traits(history(-((rates - 0.5) ** 2), params))  # best in the middle: no correlation would see it
    assert found.traits[0].name == "rate"
    assert found.traits[0].weight > 0.6
    assert weights(found)["noise"] < 0.05
    by_choice = traits(history((schedules == "cosine") + 0.01 * noise, params))
    assert by_choice.traits[0] == ("schedule", True, pytest.approx(0.75, abs=0.03))  # all between, ranks within


def test_lines_are_the_best_and_others_evenly():
    n = 3 * MOST_LINES
    found = traits(history(np.arange(n), [{}] * n))
    numbers = [line.trial for line in found.lines]
    assert numbers[: MOST_LINES // 2] == list(range(n - 1, n - 1 - MOST_LINES // 2, -1))
    assert len(numbers) == MOST_LINES
    assert numbers[-1] == 0
    assert found.n_all == n


def test_depth_and_sizes_are_those_of_the_network():
    trial = grown(12).best
    reported = replace(trial, number=0, rank=0, outcome=Scored(1.0, {"parameters": 77}))
    found = traits(History((reported,)))
    cells = dict(zip((trait.name for trait in found.traits), found.lines[0].cells, strict=True))
    assert cells["parameters"] == 77
    assert cells["layers"] == len(trial.arch.processing_layers)
    assert 1 <= cells["depth"] <= cells["layers"]
    assert all(trait.weight is None for trait in found.traits), "one trial says nothing"


def test_without_values_there_is_a_message():
    assert traits(History()).message == "no trial has a value yet"
