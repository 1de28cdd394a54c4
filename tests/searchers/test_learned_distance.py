"""A distance of which the data choose the numbers: which, when, and that a search says so."""

import numpy as np
import pytest

from nasbot.architecture import vocabulary_of
from nasbot.errors import OptionError
from nasbot.gp import BeliefOptions, Rows
from nasbot.gp.evidence import log_evidence
from nasbot.otmann import Otmann
from nasbot.otmann.learned import LearnedDistance
from nasbot.searchers import NASBOT
from nasbot.searchers.choosing import EXPECTED_MORE, chosen, due
from nasbot.study.rebuilding import searcher_from_settings
from nasbot.testing.networks import random_architecture
from tests.searchers.problems import made, propose, scored

MLPS = LearnedDistance.of(vocabulary_of("mlp-reg"))


def networks(n):
    return [random_architecture("mlp-reg", rng=np.random.default_rng(seed), n_layers=5 + seed % 6) for seed in range(n)]


def test_the_tables_differ_and_the_expected_one_is_first():
    assert MLPS.names[0] == "paper"
    assert LearnedDistance.of(vocabulary_of("cnn")).names[0] == "log-mass"
    archs = networks(6)
    found = {name: table.pairwise(archs).d_bar for name, table in zip(MLPS.names, MLPS.tables, strict=True)}
    for name, d_bar in found.items():
        for other, theirs in found.items():
            assert name == other or not np.allclose(d_bar, theirs), (name, other)
    assert np.array_equal(MLPS.pairwise(archs).d, MLPS.tables[0].pairwise(archs).d)


def test_tables_need_names_and_equally_many_weights():
    with pytest.raises(OptionError, match="different names, got paper, paper"):
        LearnedDistance((Otmann(), Otmann()))
    with pytest.raises(OptionError, match="equally many structural weights"):
        LearnedDistance((Otmann(), Otmann(preset="figure")))


def test_a_distance_by_another_word_is_refused():
    with pytest.raises(
        OptionError, match=r"distance: expected an object such as Otmann\(\), or 'learned', got 'lerned'"
    ):
        made(NASBOT, distance="lerned")


def test_the_choice_is_made_when_the_number_of_networks_has_doubled():
    assert [due(n) for n in (0, 19, 20, 39, 40, 159, 160, 1000)] == [0, 0, 20, 20, 40, 80, 160, 160]


@pytest.mark.parametrize("true", ["paper", "log-mass"])
def test_values_that_follow_a_table_choose_it(true):
    """Values drawn from the kernel of one table are most likely under it, or one that is nearly the same."""
    archs, pair = networks(40), LearnedDistance((Otmann(preset="paper"), Otmann(preset="log-mass")))
    names = pair.names
    d_bar = pair.tables[names.index(true)].pairwise(archs).d_bar[0]
    sizes, axes = np.linalg.eigh(np.exp(-((d_bar / np.median(d_bar)) ** 1.5)))
    values = axes @ (np.sqrt(np.maximum(sizes, 0.0)) * np.random.default_rng(1).standard_normal(len(archs)))

    def rows_under(table, some):
        among = table.pairwise(some)
        return Rows.of(among.d, among.d_bar)

    choice = chosen(pair, archs, values, rows_under, options=BeliefOptions())
    assert names[choice.number] == true
    assert choice.after == len(archs)
    again = [log_evidence(rows_under(t, archs), values, options=BeliefOptions()) for t in pair.tables]
    assert choice.log_evidence == pytest.approx(again, abs=0)
    assert (choice.number == 1) == (again[1] > again[0] + EXPECTED_MORE)


def test_a_search_says_which_table_it_went_by_and_can_be_made_again():
    searcher = made(NASBOT, distance="learned")
    few, many = scored(networks(5)), scored(networks(22))
    assert propose(searcher, few).notes["distance"] == {"chosen": "paper", "after": 0, "log_evidence": {}}
    proposal = propose(searcher, many)
    said = proposal.notes["distance"]
    assert said["after"] == 20
    assert set(said["log_evidence"]) == set(MLPS.names)
    rebuilt = searcher_from_settings(searcher.settings(), searcher.domain, searcher.initial_pool())
    assert rebuilt.distance == searcher.distance
    again = propose(rebuilt, many)
    assert (again.arch, again.notes) == (proposal.arch, proposal.notes)
    under_it = made(NASBOT, distance=MLPS.tables[MLPS.names.index(said["chosen"])])
    assert propose(under_it, many).arch == proposal.arch
    rng = np.random.default_rng(0)
    assert searcher.recommend(many, rng=rng) is not None
    assert len(searcher.what_if(few, rng=rng)) > 10


def test_each_table_changes_what_its_name_says():
    by_name = dict(zip(MLPS.names, MLPS.tables, strict=True))
    paper = by_name["paper"].rules
    for name in ("wide", "log-mass wide"):  # from the paper's least weight on, each four times the one before
        wide = by_name[name].rules.structural_weights
        assert wide == pytest.approx([paper.structural_weights[0] * 4**k for k in range(4)])
    assert by_name["wide"].rules.mass_rules == paper.mass_rules
    assert by_name["root-mass"].rules.mass_rules.exponent == 0.5  # halfway from masses (1) to logarithms (0)
    heavy = by_name["log-mass heavy ends"].rules.mass_rules
    assert heavy.nonprocessing_mass == pytest.approx(3 * paper.mass_rules.nonprocessing_mass)
    strict = by_name["log-mass strict groups"].rules
    assert (strict.within_groups, strict.between_groups) == (by_name["log-mass"].rules.within_groups, 2.0)
    strict = by_name["log-mass strict labels"].rules
    assert (strict.within_groups, strict.between_groups) == (2.0, 2.0)


def test_it_is_itself_the_distance_of_its_first_table():
    archs, first = networks(3), MLPS.tables[0]
    assert MLPS.pack(archs).rules == first.pack(archs).rules
    assert np.array_equal(MLPS.cross(archs[:1], archs[1:]).d, first.cross(archs[:1], archs[1:]).d)
