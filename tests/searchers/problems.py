"""Small spaces, quick searchers and cheap objectives for the tests of searchers."""

from nasbot._rng import Role, stream
from nasbot.architecture import Layer, SearchSpace, chain, initial_pool
from nasbot.candidate import Candidate
from nasbot.gp import BeliefOptions
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.trial import Failed, FailureCause, History, Scored, Trial
from tests.evolution.vocabularies import cell, cells

QUICK = BeliefOptions(inference="map", n_restarts=1)
SEARCHERS = (NASBOT, RandomSearch, EvolutionSearch, TreeBO)

MLP = SearchSpace("mlp-reg", max_layers=12)
CNN = SearchSpace("cnn", max_layers=25)
CELLS = SearchSpace(cells())


def mlp_pool():
    relus = [Layer("relu", units) for units in (16, 32, 64)]
    return (
        chain("mlp-reg", relus[:1]),
        chain("mlp-reg", [Layer("tanh", 64), Layer("logistic", 32)]),
        chain("mlp-reg", relus),
    )


def cell_pool():
    vocabulary = CELLS.vocabulary
    return tuple(cell(operations, vocabulary) for operations in ("aaaaaa", "bcdebc", "edcbab"))


POOLS = {"mlp": mlp_pool, "cnn": lambda: initial_pool("cnn")[:3], "cells": cell_pool}
SPACES = {"mlp": MLP, "cnn": CNN, "cells": CELLS}


def made(kind, problem="mlp", **options):
    """A searcher of this class on this problem, quick where there is something to be quick about."""
    if kind is NASBOT:
        options = {"belief": QUICK, **options}
    return kind(**{"space": SPACES[problem], "pool": POOLS[problem](), **options})


def value_of(arch):
    """Has its best at networks of about eight layers and many units; different for nearly all networks."""
    units = sum(layer.units or 0 for layer in arch.layers)
    return -abs(len(arch.layers) - 8) + 0.002 * units + int(arch.fingerprint[:6], 16) / 2**26


def propose(searcher, history, seed=3):
    """The next proposal as a study asks for it."""
    return searcher.propose(history, rng=stream(seed, len(history), Role.PROPOSAL))


def scored(networks, values=None):
    values = [value_of(arch) for arch in networks] if values is None else values
    return of_outcomes(zip(networks, map(Scored, values), strict=True))


def of_outcomes(pairs):
    """A history of (network or candidate, outcome), None for a pending one, recorded in this order."""
    trials, rank = [], 0
    for number, (given, outcome) in enumerate(pairs):
        trial = Trial(number=number, candidate=given if isinstance(given, Candidate) else Candidate(given))
        if outcome is not None:
            trial = trial.begun(float(number)).ended(outcome, at=number + 1.0, rank=rank)
            rank += 1
        trials.append(trial)
    return History(tuple(trials))


def timeout():
    return Failed(FailureCause.TIMEOUT, "too slow")


def follow(searcher, n, outcome=lambda arch: Scored(value_of(arch)), history=None, seed=3):
    """The history after n more proposals, each told at once what ``outcome`` says of it (None: left pending)."""
    if history is None:
        history = of_outcomes((one, outcome(one.arch)) for one in searcher.initial_pool())
    for _ in range(n):
        proposal = propose(searcher, history, seed)
        assert proposal.candidate.fingerprint not in history.seen
        trial = proposal.trial(history)
        ended = outcome(proposal.arch)
        if ended is not None:
            trial = trial.begun(0.0).ended(ended, at=1.0, rank=len(history.finished))
        history = history.with_trial(trial)
    return history


def fingerprints(history):
    return [trial.arch.fingerprint for trial in history]
