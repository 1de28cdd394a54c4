"""A searcher made again from what a study stores (tests/cli/test_beliefs.py has the settings that must be refused)."""

import json
import math

import pytest

from nasbot.architecture import SearchSpace
from nasbot.architecture.vocabularies import OWN
from nasbot.domain import Domain, Fidelity, Float
from nasbot.errors import StudyError
from nasbot.gp import BeliefOptions, Prior
from nasbot.otmann import Otmann, RuleSet
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.study import Study
from nasbot.study.rebuilding import domain_from_settings, searcher_of_study
from nasbot.study.settings import domain_settings
from nasbot.trial import History
from tests.searchers.problems import made, mlp_pool, value_of
from tests.study.searchers import Sensitive

SHAPED = SearchSpace(
    "cnn", max_layers=40, max_mass=math.inf, max_parameters=1e9, input_shape=(3, 32, 32), n_outputs=10, max_edges=99
)


class Constant:
    """A distance of a user's own, without a repr."""

    def pack(self, archs):
        return archs

    def cross(self, a, b):
        return Otmann().cross(a, b)

    def pairwise(self, archs):
        return Otmann().pairwise(archs)


def rebuilt(searcher):
    study = Study.in_memory(searcher, seed=5)
    settings = json.loads(json.dumps(study.settings))  # as a file has them
    return searcher_of_study(settings, study.history)


@pytest.mark.parametrize(
    "searcher",
    [
        NASBOT(space=SearchSpace("cnn")),
        NASBOT(space=SHAPED, acquisition="ucb", maximiser="paper", kernel_terms="d_bar", name="mine"),
        NASBOT(space=SHAPED, cost_weight=0.5, cost_horizon=12.0, name="cooled"),
        made(NASBOT, modifiers=("skip", "inc_single")),
        made(
            NASBOT, belief=BeliefOptions(warp="none", n_samples=3, normalised_power=2.0, prior=Prior(noise_median=0.1))
        ),
        made(NASBOT, distance=Otmann(preset="release", structural_weights=(0.5, 1.0))),
        made(RandomSearch, modifiers=("inc_single",)),
        made(EvolutionSearch, n_mutations=4),
        made(TreeBO, warp="none"),
    ],
    ids=lambda searcher: searcher.name,
)
def test_it_is_the_same_searcher(searcher):
    again = rebuilt(searcher)
    assert type(again) is type(searcher)
    assert again.settings() == searcher.settings()
    assert again.space == searcher.space
    assert again.initial_pool() == searcher.initial_pool()


def test_it_proposes_the_same():
    study = Study.in_memory(made(NASBOT), seed=5).optimise(value_of, 5)
    again = Study.in_memory(searcher_of_study(study.settings, study.history), seed=5).optimise(value_of, 5)
    assert [t.arch for t in again.history] == [t.arch for t in study.history]


@pytest.mark.parametrize(
    ("searcher", "words"),
    [
        (Sensitive(), "it is not one of NASBOT, RandomSearch, EvolutionSearch, TreeBO"),
        (made(NASBOT, distance=Constant()), "its distance is not a preset of OTMANN"),
        (made(NASBOT, distance=Otmann(preset=RuleSet(name="paper", structural_weights=(1.0,)))), "its distance is not"),
        (made(NASBOT, "cells"), "its networks are of a vocabulary of somebody's own"),
    ],
)
def test_what_is_not_built_in_cannot_be_made_again(searcher, words):
    with pytest.raises(StudyError, match=f"cannot be made again from its settings: {words}"):
        rebuilt(searcher)


def test_a_distance_without_a_repr_does_not_change_from_run_to_run():
    one, other = (made(NASBOT, distance=Constant()).settings() for _ in range(2))
    assert one == other
    assert "0x" not in json.dumps(one)


def test_a_pool_that_is_not_in_the_study():
    study = Study.in_memory(made(NASBOT), pool=mlp_pool()[:1])
    with pytest.raises(StudyError, match=r"pool network .* is not in the study"):
        searcher_of_study(study.settings, History())


def test_a_vocabulary_of_ones_own_is_found_by_its_name_while_it_is_in_use(monkeypatch):
    searcher = made(NASBOT, "cells")
    study = Study.in_memory(searcher, seed=5)
    settings = json.loads(json.dumps(study.settings))
    with pytest.raises(StudyError, match="vocabulary"):
        searcher_of_study(settings, study.history)
    vocabulary = searcher.space.vocabulary
    monkeypatch.setitem(OWN, vocabulary.name, vocabulary)
    again = searcher_of_study(settings, study.history)
    assert (again.space, again.settings()) == (searcher.space, searcher.settings())


DOMAIN = Domain(SHAPED, {"lr": Float(1e-4, 1.0, log=True)}, Fidelity(0.25, of="rows", rule="boca"))


def test_the_domain_is_the_same():
    for domain in (DOMAIN, Domain(SHAPED), Domain(SHAPED, {}, Fidelity())):
        assert domain_from_settings(json.loads(json.dumps(domain_settings(domain)))) == domain


@pytest.mark.parametrize("option", ["least", "factor", "of", "rule"])
def test_what_a_fidelity_leaves_out_is_not_filled_in(option):
    """The defaults may have been others when the study was begun; only the first rule is never written."""
    settings = json.loads(json.dumps(domain_settings(DOMAIN)))
    del settings["fidelity"][option]
    if option == "rule":
        assert domain_from_settings(settings).fidelity.rule == "promotion"
        return
    with pytest.raises(StudyError, match="domain: what is stored does not describe one"):
        domain_from_settings(settings)
