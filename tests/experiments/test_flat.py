"""The flat space that people tune instead, as searchers that keep the promises of the seam."""

import numpy as np
import pytest

from experiments.flat import FlatRandom, FlatSpace, OptunaSearch, _known
from nasbot.architecture import SearchSpace
from nasbot.errors import ExhaustedError, OptionError
from nasbot.testing.searcher_conformance import SearcherConformance, scored
from nasbot.trial import Direction, Failed, FailureCause, History, Scored, Trial

SPACE = SearchSpace("mlp-reg")


class TestFlatRandom(SearcherConformance):
    def make_searcher(self):
        return FlatRandom(space=SPACE)


class TestOptunaTPE(SearcherConformance):
    def make_searcher(self):
        return OptunaSearch(space=SPACE, sampler="tpe", name="Optuna TPE")


class TestOptunaGP(SearcherConformance):
    n_in_a_row = 2

    def make_searcher(self):
        return OptunaSearch(space=SPACE, sampler="gp", name="Optuna GP")


def test_a_network_is_a_chain_of_one_activation():
    params = {"depth": 3, "activation": "tanh", **{f"width_{i}": 10 * (i + 1) for i in range(8)}}
    arch = FlatSpace().network("mlp-reg", params)
    assert [(layer.label, layer.units) for layer in arch.layers[1:-2]] == [("tanh", 10), ("tanh", 20), ("tanh", 30)]
    assert len(arch.edges) == len(arch.layers) - 1


def test_drawn_parameters_cover_the_space():
    flat, rng = FlatSpace(max_depth=3, min_width=8, max_width=10), np.random.default_rng(0)
    drawn = [flat.drawn(rng) for _ in range(300)]
    assert {params["depth"] for params in drawn} == {1, 2, 3}
    assert {params["width_0"] for params in drawn} == {8, 9, 10}
    assert {params["activation"] for params in drawn} == set(flat.activations)


def searched(searcher: OptunaSearch, n_trials: int) -> History:
    """A history in which the width of the first layer is the value."""
    history = History()
    for number in range(n_trials):
        proposal = searcher.propose(history, rng=np.random.default_rng(number))
        trial = proposal.trial(history)
        outcome = Scored(float(proposal.arch.layers[1].units))
        history = history.with_trial(trial.begun(float(number)).ended(outcome, at=number + 1.0, rank=number))
    return history


@pytest.mark.parametrize(("sampler", "n_trials"), [("tpe", 40), ("gp", 14)])
def test_optuna_learns_what_is_good(sampler: str, n_trials: int):
    """After its ten random trials it proposes wider layers than chance does."""
    history = searched(OptunaSearch(space=SPACE, flat=FlatSpace(max_depth=2), sampler=sampler), n_trials)
    widths = [trial.arch.layers[1].units for trial in history]
    assert np.mean(widths[-(n_trials - 10) // 2 :]) > 1.5 * np.mean(widths[:10])


def test_optuna_is_told_what_is_pending_and_not_what_failed():
    flat = FlatSpace(max_depth=2)
    history = searched(OptunaSearch(space=SPACE, flat=flat), 3)
    pending = Trial(number=3, candidate=history[0].candidate, notes=history[0].notes, proposed_after=3)
    failed = pending.begun(1.0).ended(Failed(FailureCause.NAN), at=2.0, rank=3)
    foreign = Trial(number=3, candidate=history[0].candidate)
    known = [_known(history, trial, flat.distributions()) for trial in (history[0], pending, failed, foreign)]
    assert [one and one.state.name for one in known] == ["COMPLETE", "RUNNING", None, None]
    assert known[0].value == history[0].value
    losses = History(history.trials, Direction.MINIMISE)
    assert _known(losses, history[0], flat.distributions()).value == -history[0].value  # Optuna maximises here


def test_a_space_that_is_used_up_is_said_to_be():
    searcher = FlatRandom(space=SPACE, flat=FlatSpace(max_depth=1, min_width=8, max_width=8, activations=("relu",)))
    first = searcher.propose(History(), rng=np.random.default_rng(0))
    with pytest.raises(ExhaustedError, match="known or outside"):
        searcher.propose(scored([first.candidate]), rng=np.random.default_rng(1))


def test_an_unknown_sampler_is_an_error():
    with pytest.raises(OptionError, match="sampler: expected one of tpe, gp"):
        OptunaSearch(space=SPACE, sampler="best")
