"""Limits, defaults and last cases of what searchers are made of, one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from nasbot import Choice, Float, Integer, gp
from nasbot.architecture import Layer, chain, initial_pool
from nasbot.architecture.features import FeatureMap
from nasbot.candidate import Candidate
from nasbot.domain import Domain, Fidelity
from nasbot.errors import ExhaustedError, OptionError
from nasbot.evolution import one_step_edits
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO, again, boca, choosing, knowledge, memory
from nasbot.searchers import nasbot as nasbot_module
from nasbot.searchers.effect import N_NEAREST, Effect, Effects, Near, nearest
from nasbot.searchers.memory import DistanceMemory, FeatureMemory, NeighbourMemory
from nasbot.searchers.param_effects import changes_of, slice_values
from nasbot.searchers.pool import best_networks, member, shown
from nasbot.searchers.promotion import (
    Standing,
    by_rank,
    next_rung,
    promotable,
    promoted_as,
    remaining_cost,
    standing,
    standing_of,
    why,
)
from nasbot.searchers.tree_kernel import (
    JITTER,
    MAX_STEPS,
    PRIOR_MEAN,
    PRIOR_SPREAD,
    Chains,
    Comparison,
    TreeBelief,
    log_posterior,
    prior,
)
from nasbot.study import Study
from nasbot.trial import Cancelled, Failed, FailureCause, History, Provenance, Scored, Stopped, Trial
from tests.searchers.problems import MLP, follow, made, mlp_pool, of_outcomes, propose, scored, value_of
from tests.searchers.test_thousands import KNOWN

POOL = [Candidate(arch) for arch in initial_pool("mlp-reg")]
FIDELITY = Fidelity()
LOW, MIDDLE, HIGH = FIDELITY.rungs
STOPPED = Stopped(step=2, value=1.0, bar=2.0, expected=1.5, share=0.5, place=3, among=4)


def told(*entries):
    """(candidate, fidelity, value or outcome or None), with options of the trial where there is a fourth."""
    trials, rank = [], 0
    for number, (candidate, fidelity, outcome, *options) in enumerate(entries):
        trial = Trial(number=number, candidate=candidate, fidelity=fidelity, **(options[0] if options else {}))
        if outcome is not None:
            outcome = Scored(outcome) if isinstance(outcome, float) else outcome
            trial, rank = trial.begun(0.0).ended(outcome, at=1.0, rank=rank), rank + 1
        trials.append(trial)
    return History(tuple(trials))


# -- promotion ---------------------------------------------------------------------------------------------------------


def test_rungs_a_hair_apart_are_the_same():
    assert next_rung(FIDELITY, LOW * (1 + 1e-12)) == MIDDLE
    assert next_rung(FIDELITY, MIDDLE * (1 - 1e-12)) == HIGH
    assert next_rung(FIDELITY, 0.2) == MIDDLE
    assert remaining_cost(FIDELITY, MIDDLE * (1 - 1e-12)) == 1
    assert remaining_cost(FIDELITY, LOW) == pytest.approx(1 / 3 + 1)
    assert remaining_cost(FIDELITY, HIGH) == 0
    assert remaining_cost(Fidelity(0.9), 0.9) == 1  # however near the rungs are


def test_of_equals_the_one_recorded_first_is_promoted():
    history = told(*((POOL[i], LOW, 1.0) for i in range(3)))
    assert by_rank(history, FIDELITY).number == 0
    assert [trial.number for trial in promotable(history, FIDELITY)] == [0, 1, 2]


def test_what_is_pending_at_the_next_rung_is_not_promotable():
    history = told((POOL[0], LOW, 1.0), (POOL[1], LOW, 2.0), (POOL[1], MIDDLE, None))
    assert [trial.number for trial in promotable(history, FIDELITY)] == [0]


def test_stopped_ones_are_seen_but_are_no_better():
    history = told((POOL[0], LOW, 1.0), (POOL[1], LOW, 2.0), (POOL[2], LOW, STOPPED), (POOL[3], MIDDLE, 9.0))
    assert standing(history, history[0]) == (1, 3)
    assert standing(history, history[1]) == (0, 3)
    assert by_rank(history, FIDELITY).number == 1


@pytest.mark.parametrize(("n", "expected"), [(2, None), (3, 2), (5, 4)])
def test_a_third_rounded_down_goes_on(n, expected):
    history = told(*((POOL[i], LOW, float(i)) for i in range(n)))
    found = by_rank(history, FIDELITY)
    assert (None if found is None else found.number) == expected
    best = history[n - 1]
    assert standing_of(history, best, FIDELITY) is (Standing.DISCARDED if expected is None else Standing.PROMOTABLE)
    assert standing_of(history, history[0], FIDELITY) is Standing.DISCARDED


def test_what_became_of_a_training():
    final = {"origin": Provenance(searcher="final", of_trial=1)}
    history = told(
        (POOL[0], LOW, 1.0),
        (POOL[1], LOW, 3.0),
        (POOL[2], LOW, STOPPED),
        (POOL[3], LOW, Failed(FailureCause.OOM, "big")),
        (POOL[1], MIDDLE, 4.0, {"promoted_from": 1, "proposed_after": 2}),
        (POOL[4], HIGH, 4.0),
        (POOL[1], 2.0, 5.0, final),
        (POOL[5], LOW, None),
    )
    stands = [standing_of(history, trial, FIDELITY) for trial in history]
    assert stands == ["discarded", "promoted", "stopped", None, "promoted", "full", "final", None]
    assert promoted_as(history, history[1]) == 4
    said = [why(history, trial, FIDELITY) for trial in history]
    assert said[0] == "discarded: place 2 of 3 at 1/9 of a training, the best 1 go on"
    assert said[1] == "promoted as trial 4: place 1 of 3 at 1/9 of a training, the best 1 go on"
    assert said[2] == STOPPED.reason
    assert said[3] == said[5] == said[7] == ""
    assert said[4].startswith("promoted from trial 1 at 1/9 of a training, where it was place 1 of 2; ")
    assert said[6] == "final: the candidate of trial 1, trained again with another seed"
    assert why(history, history[0], None) == ""


def test_a_promotion_of_what_has_no_value_has_no_place():
    history = told((POOL[0], LOW, STOPPED), (POOL[0], MIDDLE, 1.0, {"promoted_from": 0, "proposed_after": 1}))
    assert why(history, history[1], None) == "promoted from trial 0 at 1/9 of a training"


def test_a_repeat_says_what_it_repeats():
    repeat = {"origin": Provenance(searcher="EA", of_trial=0)}
    history = told((POOL[0], 1.0, 1.0), (POOL[0], 1.0, 2.0, repeat))
    assert why(history, history[1], None) == "repeats trial 0"


# -- repeats -----------------------------------------------------------------------------------------------------------


def test_when_something_is_repeated():
    assert (again.LEAST, again.MOST_EACH, again.MOST_SHARE) == (10, 4, 0.2)
    plain = [(POOL[i], 1.0, float(i)) for i in range(10)]
    assert again.repeat_due(told(*plain)).of.number == 9
    # of equally many evaluations the better one is evaluated again, and a difference of just the error needs none
    twice = [*plain, (POOL[9], 1.0, 9.4), (POOL[8], 1.0, 8.4)]
    assert again.repeat_due(told(*twice)) is None
    close = [*plain, (POOL[9], 1.0, 8.0), (POOL[8], 1.0, 8.5)]
    due = again.repeat_due(told(*close))
    assert (due.of.number, due.rival.number) == (9, 8)
    assert due.error == pytest.approx(np.sqrt((0.5 + 0.125) / 2))


def test_equals_are_told_apart_no_further_where_there_is_no_noise():
    equals = [(POOL[i], 1.0, float(min(i, 8))) for i in (*range(10), 9, 8)]  # the best two, each twice the same
    assert again.repeat_due(told(*equals)) is None
    assert again.repeat_due(told(*equals[:-2], (POOL[9], 1.0, 8.2), (POOL[8], 1.0, 8.3))) is not None


@pytest.mark.parametrize(("n_candidates", "is_due"), [(12, False), (13, True)])
def test_repeats_are_less_than_a_fifth(n_candidates, is_due):
    networks = [Candidate(arch) for arch in KNOWN[:n_candidates]]
    repeated = [(networks[0], 1.0, 98.0), (networks[1], 1.0, 98.5), (networks[2], 1.0, 50.0)]  # 3 of 15, or of 16
    history = told(*((arch, 1.0, 100.0 - i) for i, arch in enumerate(networks)), *repeated)
    assert (again.repeat_due(history) is not None) is is_due


# -- BOCA --------------------------------------------------------------------------------------------------------------


def test_shares_by_hand():
    shares = boca.shares_of(FIDELITY)
    assert len(shares) == 9
    np.testing.assert_allclose(shares, [9 ** (i / 8 - 1) for i in range(9)])


def test_the_cheapest_informative_share_by_hand():
    shares = np.array([0.25, 0.5, 1.0])
    gap = np.array([[1.0, 0.5, 0.0]])
    sd, prior_sd = np.array([[0.6, 0.6, 0.6]]), np.array([1.0])
    # thresholds 0.25^q = 0.707 and 0.5 * 0.5^q = 0.42 for q = 1/4; the gap counts where 0.5 sqrt(beta) > 1
    few, many = 5, 3000  # beta is 1.2 and 4.35
    assert boca.informative_share(shares, sd, gap, prior_sd, n_evaluated=few) == 1.0
    assert boca.informative_share(shares, sd, gap, prior_sd, n_evaluated=many) == 0.5
    assert boca.informative_share(shares, sd + 0.2, gap, prior_sd, n_evaluated=few) == 0.25
    # With more params q is smaller and the threshold higher.
    near = np.full((1, 3), 0.72)
    assert boca.informative_share(shares, near, gap, prior_sd, n_evaluated=few) == 0.25
    assert boca.informative_share(shares, near, gap, prior_sd, n_evaluated=few, n_params=4) == 1.0


def test_what_is_open_must_exceed_what_a_share_leaves_open():
    shares, gap, prior_sd = np.array([0.0625, 1.0]), np.array([[1.0, 0.0]]), np.array([1.0])
    assert 0.0625**0.25 == 0.5  # the threshold, exactly
    assert boca.informative_share(shares, np.array([[0.5, 0.5]]), gap, prior_sd, n_evaluated=50) == 1.0
    above = np.nextafter(0.5, 1.0)
    assert boca.informative_share(shares, np.array([[above, 0.5]]), gap, prior_sd, n_evaluated=50) == 0.0625
    # Where all shares say the same as a full training, none is a detour worth making.
    assert boca.informative_share(shares, np.ones((1, 2)), 0 * gap, prior_sd, n_evaluated=50) == 1.0


def test_unfinished_keeps_the_highest_of_each():
    history = told(
        (POOL[0], LOW, 1.0), (POOL[0], MIDDLE, 2.0), (POOL[1], LOW, 1.0), (POOL[1], 1.0, 1.0), (POOL[2], LOW, 1.0),
        (POOL[2], MIDDLE, STOPPED), (POOL[3], LOW, 1.0), (POOL[3], MIDDLE, Failed(FailureCause.OOM, "")),
        (POOL[4], LOW, 1.0), (POOL[4], MIDDLE, Cancelled("no")),
    )  # fmt: skip
    assert [trial.number for trial in boca.unfinished(history)] == [1, 8]


# -- whom NASBOT trains longer -----------------------------------------------------------------------------------------


@pytest.fixture
def promising(monkeypatch):
    """Promises to be believed, by candidate, else 0; and of which candidates they were asked."""
    promises, asked = {}, []

    def effects(self, view, history, candidates):
        asked.extend(candidate for candidate, _ in candidates)
        return [SimpleNamespace(log_ei=promises.get(candidate, 0.0)) for candidate, _ in candidates]

    monkeypatch.setattr(knowledge.Knowledge, "effects", effects)
    return SimpleNamespace(promises=promises, asked=asked)


def decided(history, new, rule):
    """What is trained longer, and the share, where ``new`` is the best candidate found."""
    searcher = made(NASBOT, fidelity=Fidelity(rule=rule))
    view = searcher._knowledge.view(history, np.random.default_rng(0), knowledge.Stopwatch())
    return searcher._share_and_promotion(history, view, new), view


def test_with_nothing_to_compare_the_next_begins_at_the_least_share():
    history = told(*((POOL[i], HIGH, float(i)) for i in range(3)))
    assert decided(history, None, "boca")[0] == (None, LOW)
    assert decided(history, None, "promotion")[0] == (None, LOW)


def test_the_share_is_above_that_of_the_one_promoted_and_any_for_a_new_one(promising, monkeypatch):
    lowest = []
    monkeypatch.setattr(nasbot_module, "informative_share", lambda shares, *_, **__: lowest.append(shares[0]) or 0.9)
    history = told((POOL[0], HIGH, 3.0), (POOL[1], LOW, 1.0), (POOL[2], MIDDLE, 2.0))
    for better, promoted_from in ((POOL[5], None), (POOL[1], 1), (POOL[2], 2)):
        promising.promises.clear()
        promising.promises[better] = 1.0
        (proposal, share), _ = decided(history, POOL[5], "boca")
        assert share == 0.9
        assert (proposal and proposal.promoted_from) == promoted_from
        assert proposal is None or (proposal.candidate, proposal.fidelity) == (better, 0.9)
    shares = boca.shares_of(FIDELITY)
    assert lowest == [shares[0], shares[1], shares[5]]


@pytest.mark.parametrize("rule", ["boca", "promotion"])
def test_a_promotion_must_promise_more_than_the_new_one(rule, promising):
    """By BOCA of equals the new one is due; else promises are per cost, whose logarithms are never quite equal."""
    costs = np.log([remaining_cost(FIDELITY, at) for at in (None, LOW)])
    promising.promises[POOL[5]] = float(costs[0] - costs[1] + 1e-9) if rule == "promotion" else 0.0
    (proposal, _), _ = decided(told((POOL[0], LOW, 1.0), (POOL[1], LOW, 2.0)), POOL[5], rule)
    assert proposal is None
    promising.promises[POOL[0]] = 1e-6
    (proposal, _), _ = decided(told((POOL[0], LOW, 1.0), (POOL[1], LOW, 2.0)), POOL[5], rule)
    assert proposal.candidate == POOL[0]


@pytest.mark.parametrize("rule", ["boca", "promotion"])
def test_the_best_twenty_are_compared_with_the_new_one(rule, promising):
    known = [Candidate(arch) for arch in networks(23)]
    history = told(*((candidate, LOW, float(7 * i % 23)) for i, candidate in enumerate(known)))
    _, view = decided(history, POOL[5], rule)
    assert promising.asked[0] == POOL[5]
    assert len(promising.asked) == 1 + 20
    order = {"boca": view.belief.denoised.mean(axis=0), "promotion": history.evaluated.values}[rule]
    assert promising.asked[1:] == [known[i] for i in np.argsort(-order, kind="stable")[:20]]


# -- tables of a learned distance --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"), [(0, 0), (19, 0), (20, 20), (39, 20), (40, 40), (80, 80), (159, 80), (160, 160), (10**6, 160)]
)
def test_a_choice_is_made_of(n, expected):
    assert choosing.due(n) == expected


def test_the_expected_table_has_a_head_start(monkeypatch):
    values = iter([0.0, 1.99, 0.0, 2.01])
    monkeypatch.setattr(choosing, "log_evidence", lambda *args, **options: next(values))

    class Learned:
        tables = ("one", "two")

    for number in (0, 1):
        found = choosing.chosen(Learned(), [1, 2, 3], np.zeros(3), lambda table, known: None, options=None)
        assert (found.number, found.after) == (number, 3)
    assert found.log_evidence == (0.0, 2.01)
    assert found.to_dict(["a", "b"]) == {"chosen": "b", "after": 3, "log_evidence": {"a": 0.0, "b": 2.01}}


# -- params ------------------------------------------------------------------------------------------------------------

PARAMS = {
    "rate": Float(1e-4, 1e-1, log=True, default=1e-2),
    "plain": Float(0.0, 1.0),
    "width": Integer(1, 16, log=True),
    "kind": Choice("a", "b"),
}


def test_values_along_a_param():
    assert slice_values(PARAMS["kind"]) == ("a", "b")
    np.testing.assert_allclose(slice_values(PARAMS["plain"]), np.arange(13) / 12, atol=1e-4)
    rates = slice_values(PARAMS["rate"])
    assert (rates[0], rates[-1], len(rates)) == (pytest.approx(1e-4), pytest.approx(1e-1), 13)
    assert slice_values(Integer(1, 3)) == (1, 2, 3)  # each once


def test_changes_of_params_in_words():
    domain = Domain(MLP, PARAMS)
    said = [words for words, _ in changes_of(domain, {"rate": 0.05, "plain": 0.5, "width": 4, "kind": "a"})]
    assert [w for w in said if w.startswith("rate")] == ["rate x 0.25 (0.0125)", "rate x 0.5 (0.025)", "rate x 2 (0.1)"]
    assert [w for w in said if w.startswith("width")] == [
        "width x 0.25 (1)", "width x 0.5 (2)", "width x 2 (8)", "width x 4 (16)",
    ]  # fmt: skip
    assert [w for w in said if w.startswith("kind")] == ["kind a -> b"]
    assert all(w.startswith("plain 0.5 -> ") for w in said if w.startswith("plain"))
    one = [w for w, _ in changes_of(domain, {"rate": 0.05, "plain": 0.5, "width": 1, "kind": "a"})]
    assert [w for w in one if w.startswith("width")] == ["width x 2 (2)", "width x 4 (4)"]


def test_values_for_people():
    assert [shown(value) for value in (0.123456, 3, "x")] == ["0.1235", "3", "x"]


# -- pools -------------------------------------------------------------------------------------------------------------


def test_a_step_is_one_from_the_first_proposal_on():
    searcher = made(RandomSearch)
    histories = [scored([edit.arch for edit in list(one_step_edits(mlp_pool()[2], MLP))[:n]]) for n in (0, 3, 4, 5, 9)]
    assert [searcher.step(history) for history in histories] == [1, 1, 1, 2, 6]


def test_first_rungs():
    assert made(RandomSearch).first_rung == 1.0
    assert made(RandomSearch, fidelity=FIDELITY).first_rung == LOW


def test_anything_new_is_of_the_pool_then_one_step_away_then_with_other_params():
    searcher = made(RandomSearch)
    rng = np.random.default_rng(0)
    pool = mlp_pool()
    assert searcher.any_new(History(), rng=rng) == Candidate(pool[0])
    assert searcher.any_new(scored(pool[:2]), rng=rng) == Candidate(pool[2])
    near = searcher.any_new(scored(pool), rng=rng).arch
    assert near in {edit.arch for edit in one_step_edits(pool[0], MLP)}
    stuck = made(RandomSearch, modifiers=("remove_layer",), pool=pool[:1])
    smaller = stuck.any_new(scored(pool[:1]), rng=rng).arch
    with pytest.raises(ExhaustedError, match="all of the 2 networks that the modifiers lead to are"):
        stuck.any_new(scored([pool[0], smaller]), rng=rng)
    other = made(RandomSearch, modifiers=("remove_layer",), pool=pool[:1], params={"rate": PARAMS["rate"]})
    params = other.initial_pool()[0].params
    every = of_outcomes((Candidate(arch, params), Scored(1.0)) for arch in (pool[0], smaller))
    found = other.any_new(every, rng=rng)
    assert found.arch == pool[0]
    assert found.params != other.initial_pool()[0].params


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_repeats_best_is_yes_or_no(value):
    with pytest.raises(OptionError, match="repeats_best: expected True or False"):
        made(RandomSearch, repeats_best=value)


def test_an_empty_pool():
    with pytest.raises(OptionError, match="pool: expected at least one network, got none"):
        made(RandomSearch, pool=())


def test_the_best_networks_first():
    history = scored(mlp_pool(), [1.0, 3.0, 3.0])
    assert best_networks(history, 2) == [mlp_pool()[1], mlp_pool()[2]]


def test_members_by_their_names():
    assert member(nasbot_module.Maximiser, "paper", "maximiser") is nasbot_module.Maximiser.PAPER
    with pytest.raises(OptionError, match="maximiser: expected one of climbing, paper, got 'x"):
        member(nasbot_module.Maximiser, "x" * 80, "maximiser")


def test_lineage_of_what_was_retuned():
    searcher = made(RandomSearch, params=PARAMS)
    before = searcher.initial_pool()[0]
    history = of_outcomes([(before, Scored(1.0))])
    after = Candidate(before.arch, {**before.params, "rate": 0.02})
    found = nasbot_module.Found(before.arch, after.params, 0.0, before.arch, ())
    origin = searcher.lineage(history, after, found)
    assert (origin.parents, origin.modifiers, origin.changes) == ((0,), ("retune",), ("retune: rate 0.02",))
    assert searcher.lineage(history, before, found).modifiers == ()
    assert searcher.lineage((), after, found).parents == ()
    assert searcher.lineage(history, after, None).parents == ()


def test_the_parent_is_the_trial_with_the_same_params():
    searcher = made(RandomSearch, params=PARAMS)
    first = searcher.initial_pool()[0]
    second = Candidate(first.arch, {**first.params, "rate": 0.02})
    history = of_outcomes([(first, Scored(1.0)), (second, Scored(2.0))])
    found = nasbot_module.Found(first.arch, second.params, 0.0, first.arch, ())
    assert searcher.lineage(history, second, found).parents == (1,)


# -- EA with params ----------------------------------------------------------------------------------------------------


def test_half_of_the_mutations_change_the_network_alone_and_a_fifth_both():
    searcher = made(EvolutionSearch, params=PARAMS)
    history = of_outcomes((candidate, Scored(1.0)) for candidate in searcher.initial_pool())
    known = {trial.candidate.arch for trial in history}
    kinds = []
    for seed in range(400):
        candidate = propose(searcher, history, seed).candidate
        has_new_params = candidate.params != searcher.initial_pool()[0].params
        kinds.append((candidate.arch not in known, has_new_params))
    share = {kind: kinds.count(kind) / len(kinds) for kind in set(kinds)}
    assert share[True, False] == pytest.approx(0.5, abs=0.08)
    assert share[False, True] == pytest.approx(0.3, abs=0.08)
    assert share[True, True] == pytest.approx(0.2, abs=0.07)


def test_better_candidates_have_more_children_with_params_too():
    searcher = made(EvolutionSearch, params=PARAMS)
    values = [0.0, 0.0, 3.0]
    history = of_outcomes((c, Scored(v)) for c, v in zip(searcher.initial_pool(), values, strict=True))
    parents = [propose(searcher, history, seed).origin.parents[0] for seed in range(200)]
    weight = np.exp(3 / np.sqrt(2))
    assert parents.count(2) / 200 == pytest.approx(weight / (weight + 2), abs=0.1)


def test_without_any_value_parents_are_drawn_from_the_pool():
    searcher = made(EvolutionSearch, params=PARAMS)
    history = of_outcomes((candidate, None) for candidate in searcher.initial_pool())
    parents = {propose(searcher, history, seed).origin.parents[0] for seed in range(40)}
    assert parents == {0, 1, 2}


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_a_generation_has_at_least_one_network(n):
    with pytest.raises(OptionError, match="n_mutations"):
        made(EvolutionSearch, n_mutations=n)


# -- TreeBO ------------------------------------------------------------------------------------------------------------


def test_the_prior_of_the_tree_kernel():
    np.testing.assert_allclose(np.exp(PRIOR_MEAN), [1.0, 2.0, 0.7, 0.3, 5.0, 0.05])
    assert PRIOR_SPREAD.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 1.5]
    assert (JITTER, MAX_STEPS) == (1e-8, 20)
    mean, spread = prior(4)
    np.testing.assert_allclose(mean, [*PRIOR_MEAN[:5], *[np.log(0.25)] * 4, PRIOR_MEAN[5]])
    assert len(spread) == 10
    assert (spread[4], spread[9]) == (1.0, 1.5)


def test_the_search_for_the_mode_ends_where_little_is_left_to_gain():
    """As far as the tolerance and the steps let it come, against a search that is allowed more."""
    from scipy.optimize import minimize

    archs = [
        trial.arch for trial in follow(made(EvolutionSearch), 12) if len(trial.arch.edges) < len(trial.arch.layers)
    ]
    values = np.linspace(-1.0, 1.0, len(archs))
    belief = TreeBelief.fit(archs, values, 12)
    chains = Chains.of(archs, 12)
    comparison = Comparison.of(chains, chains, belief.typical_depth)

    def loss(theta):
        height, slope = log_posterior(comparison, values, theta)
        return -height, -slope

    same = minimize(loss, PRIOR_MEAN, jac=True, method="L-BFGS-B", options={"maxiter": 20, "ftol": 1e-3})
    np.testing.assert_array_equal(belief.theta, same.x)


def test_a_variance_is_never_below_a_ten_billionth_of_the_prior_one():
    arch = chain("mlp-reg", [Layer("relu", 16)])
    belief = TreeBelief.fit([arch, arch], np.array([0.0, 0.0]), 3)
    cross, at = np.full((2, 1), 1e9), np.array([4.0])
    _, sd = belief._given(cross, at)
    assert sd[0] == pytest.approx(np.sqrt(4e-10), rel=1e-9)


def test_depths_and_the_typical_one():
    chains = [chain("mlp-reg", [Layer("relu", 16)] * n) for n in (1, 2, 6)]
    packed = Chains.of(chains, 4)  # what is beyond is cut off
    assert packed.depths.tolist() == [1, 2, 4]
    assert packed.labels.shape == (3, 4)
    assert TreeBelief.fit(chains, np.array([0.0, 1.0, -1.0]), 4).typical_depth == 2.0
    deepest = Comparison.of(Chains.of(chains[:2], 4), packed, 1.0)
    assert deepest.shared.shape == (2, 3, 2)


def test_layers_without_units_have_none_in_the_kernel():
    arch = chain("cnn", [Layer("conv3", 16), Layer("max-pool"), Layer("fc", 16)])
    packed = Chains.of([arch], 5)
    assert packed.log_units[0].tolist() == [4.0, 0.0, 4.0, 0.0, 0.0]
    assert (packed.labels[0] >= 0).tolist() == [True, True, True, False, False]


def test_no_more_incumbents_than_ten():
    assert (nasbot_module.N_INCUMBENTS, nasbot_module.N_PROMOTABLE) == (10, 20)
    assert (nasbot_module.N_PER_ROUND, nasbot_module.N_COMPARED) == (25, 4)


def test_what_is_recommended_by_treebo_is_the_chain_of_the_highest_mean():
    history = follow(made(TreeBO), 8)
    searcher = made(TreeBO)
    chosen = searcher.recommend(history, rng=np.random.default_rng(0))
    values = {trial.number: value_of(trial.arch) for trial in history}
    assert values[chosen.number] >= sorted(values.values())[-3]
    assert searcher.recommend(History(), rng=np.random.default_rng(0)) is None


# -- what is remembered ------------------------------------------------------------------------------------------------


def networks(n):
    return [chain("mlp-reg", [Layer("relu", units)]) for units in range(8, 8 + n)]


def test_a_full_memory_begins_again_with_what_is_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "MOST_REMEMBERED", 4)
    remembering = DistanceMemory(Otmann())
    archs = networks(7)
    for n in (4, 5):  # more than four, of which two are asked for
        remembering.between(archs[:n])
    assert len(remembering._place) == 5
    d, d_bar = remembering.between(archs[5:7])
    assert list(remembering._place) == archs[5:7]
    expected = Otmann().pairwise(archs[5:7])
    np.testing.assert_allclose(d, expected.d, rtol=1e-12)
    np.testing.assert_allclose(d_bar, expected.d_bar, rtol=1e-12)
    kept = DistanceMemory(Otmann())
    kept.between(archs[:4])
    kept.between(archs[4:5])
    assert len(kept._place) == 5  # four were no more than may be remembered
    kept.between(archs[1:3])
    assert list(kept._place) == archs[1:3]
    np.testing.assert_allclose(kept.between(archs[1:3])[0], Otmann().pairwise(archs[1:3]).d, rtol=1e-12)


def test_what_is_asked_for_at_once_is_never_too_much(monkeypatch):
    monkeypatch.setattr(memory, "MOST_REMEMBERED", 2)
    remembering = DistanceMemory(Otmann())
    archs = networks(6)
    remembering.between(archs)
    remembering.between(archs[:3])  # six are not more than twice three
    assert len(remembering._place) == 6


@pytest.mark.parametrize(("keeps_d", "keeps_d_bar"), [(True, False), (False, True), (False, False)])
def test_what_no_term_looks_at_is_not_remembered(keeps_d, keeps_d_bar):
    whole, part = DistanceMemory(Otmann()), DistanceMemory(Otmann(), keeps_d=keeps_d, keeps_d_bar=keeps_d_bar)
    archs = networks(5)
    for asked in (archs[:3], archs):  # the second time the table grows
        all_of_it, some = whole.between(asked), part.between(asked)
        for expected, found, kept in zip(all_of_it, some, (keeps_d, keeps_d_bar), strict=True):
            assert np.array_equal(found, expected if kept else expected[:0])


@pytest.mark.parametrize(("terms", "sizes"), [("d_bar+features", (0, 4)), ("d", (4, 0)), ("both", (4, 4))])
def test_a_search_remembers_what_its_kernel_looks_at(terms, sizes):
    known = NASBOT(space=MLP, kernel_terms=terms)._knowledge
    rows = known.rows_among(POOL[:3])
    assert rows.sizes[:2] == sizes
    assert tuple(len(x) for x in known._memory.between([candidate.arch for candidate in POOL[:3]])) == sizes


def test_features_are_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(memory, "MOST_FEATURES", 3)
    remembering = FeatureMemory(FeatureMap(MLP.vocabulary, None, None))
    archs = networks(5)
    first = remembering.of(archs[:3])
    remembering.of(archs[3:4])
    assert len(remembering._known) == 4
    again_first = remembering.of(archs[:3])
    assert list(remembering._known) == archs[:3]
    for one, other in zip(first, again_first, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (memory.MOST_FEATURES, memory.MOST_REMEMBERED) == (3, 1500)


def test_neighbours_of_another_history_are_not_mixed_up():
    archs = networks(12)
    neighbours = NeighbourMemory(Otmann())
    assert neighbours.nearest(archs[:6], archs[:2], 1).tolist() == [[0], [1]]
    assert neighbours.nearest(archs[:9], archs[7:9], 1).tolist() == [[7], [8]]
    assert neighbours.nearest(archs[:4], archs[8:9], 1).tolist() == [[3]]  # the later ones are not known yet
    assert neighbours.nearest(archs[6:], archs[6:7], 1).tolist() == [[0]]
    assert neighbours.nearest(archs[:3], archs[:1], 32).shape == (1, 3)  # no more than there are


def test_neighbours_are_indexed_once_while_the_history_is_the_same(monkeypatch):
    indexed = []

    class Index(memory.NeighbourIndex):
        def append(self, networks):
            indexed.extend(networks)
            super().append(networks)

    monkeypatch.setattr(memory, "NeighbourIndex", Index)
    archs = networks(9)
    neighbours = NeighbourMemory(Otmann())
    for n in (6, 9, 4, 9):  # it grows, is asked for as it was before, and again
        assert neighbours.nearest(archs[:n], archs[:1], 1).tolist() == [[0]]
    assert indexed == archs
    neighbours.nearest(archs[1:6], archs[:1], 1)  # another one
    assert indexed[9:] == archs[1:6]


def test_the_nearest_are_by_the_middle_weight():
    assert N_NEAREST >= 2
    d_bar = np.array([[9.0, 1.0, 5.0], [3.0, 2.0, 1.0], [0.0, 5.0, 9.0]])
    found = nearest([10, 11, 12], d_bar * 2, d_bar)
    assert [(near.trial, near.d, near.d_bar) for near in found[:2]] == [(12, 2.0, 1.0), (11, 4.0, 2.0)]


# -- what is known -----------------------------------------------------------------------------------------------------


def test_which_terms_a_kernel_has():
    terms = knowledge.KernelTerms
    assert {t for t in terms if t.has_distance} == {"both", "d", "both+features", "d+features"}
    assert {t for t in terms if t.has_normalised} == {"both", "d_bar", "both+features", "d_bar+features"}
    assert {t for t in terms if t.has_features} == {"both+features", "d+features", "d_bar+features", "features"}


def test_time_inside_counts_once():
    clock = knowledge.Stopwatch()
    with clock("maximising"), clock("distances"):
        sum(range(10**6))
    assert clock.seconds["distances"] > 0
    assert 0 <= clock.seconds["maximising"] < clock.seconds["distances"]
    assert clock.seconds["fitting"] == 0


def test_landmarks_and_what_is_remembered(monkeypatch):
    monkeypatch.setattr(knowledge, "N_LANDMARKS", 6)
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0, -1.0, -2.0, -3.0, -4.0])
    # The best three, and of the ranks 3 to 9 the first, the middle and the last.
    assert knowledge._landmarks(values).tolist() == [0, 2, 3, 4, 6, 9]
    monkeypatch.setattr(knowledge, "N_BEST", 2)
    monkeypatch.setattr(knowledge, "N_REMEMBERED", 5)
    few = knowledge._remembered(POOL, values)
    assert {0, 2} <= set(few)
    rest = sorted(set(range(10)) - {0, 2}, key=lambda i: POOL[i].fingerprint)[:3]
    assert few.tolist() == sorted([0, 2, *rest])


def test_of_thousands_the_64_best_are_remembered_and_436_of_the_others():
    values = np.arange(2000.0)
    known = [SimpleNamespace(fingerprint=f"{i:04}") for i in range(2000)]  # the best would be last in a fair sample
    assert knowledge._remembered(known, values).tolist() == [*range(436), *range(2000 - 64, 2000)]


@pytest.mark.parametrize(("n_per_fit", "n_fitted"), [(4, 8), (16, 10)])
@pytest.mark.parametrize("fidelity", [None, FIDELITY])
def test_hyper_parameters_are_found_from_values_and_shares_up_to_the_last_time_due(
    n_per_fit, n_fitted, fidelity, monkeypatch
):
    fitted = []

    def fit_belief(rows, values, *, fidelities, **options):
        fitted.append((len(values), None if fidelities is None else fidelities.tolist()))
        return gp.fit_belief(rows, values, fidelities=fidelities, **options)

    monkeypatch.setattr(knowledge, "fit_belief", fit_belief)
    monkeypatch.setattr(knowledge, "N_PER_FIT", n_per_fit)
    shares = [HIGH if fidelity is None or i % 3 else LOW for i in range(10)]
    history = told(*((POOL[i], share, float(i)) for i, share in enumerate(shares)))
    for local_above, is_local in ((9, True), (10, False)):
        belief = gp.BeliefOptions(inference="map", n_restarts=1, local_above=local_above)
        known = made(NASBOT, belief=belief, fidelity=fidelity)._knowledge
        view = known.view(history, np.random.default_rng(0), knowledge.Stopwatch())
        assert view.is_local is is_local
        n = n_fitted if is_local else 10
        assert fitted.pop() == (n, None if fidelity is None else shares[:n])


def test_a_cost_needs_the_size_of_the_input():
    with pytest.raises(OptionError, match="cost_weight: the cost of a network needs the space's input_shape"):
        made(NASBOT, cost_weight=0.1)


@pytest.mark.parametrize("horizon", [0, -1.0, float("inf"), float("nan")])
def test_a_cost_cools_over_some_trainings(horizon):
    with pytest.raises(OptionError, match="cost_horizon: expected full trainings as a number > 0, or None, got"):
        made(NASBOT, cost_horizon=horizon)


# -- what is believed of params ----------------------------------------------------------------------------------------


def test_which_params_matter_and_what_they_would_give():
    params = {"rate": Float(0.0, 1.0), "idle": Float(0.0, 1.0)}
    searcher = made(NASBOT, params=params)
    study = Study.in_memory(searcher, seed=4).optimise(lambda arch, params: -abs(params["rate"] - 0.8), 16)
    first, second = study.param_effects()
    assert (first.name, second.name) == ("rate", "idle")
    assert 0 <= first.importance_low <= first.importance <= first.importance_high <= 1
    assert first.importance > second.importance
    assert first.at == study.best.candidate.params["rate"]
    assert (first.is_log, first.is_choice, len(first.points)) == (False, False, 13)
    assert [point.unit for point in first.points] == sorted(point.unit for point in first.points)
    spread = [np.ptp([point.median for point in effect.points]) for effect in (first, second)]
    assert spread[0] > spread[1]
    assert all(point.lower <= point.median <= point.upper for point in first.points)
    assert any(effect.change.startswith("retune: ") for effect in study.what_if())


def test_nothing_is_believed_of_params_where_there_are_none():
    rng = np.random.default_rng(0)
    with pytest.raises(OptionError, match="this search has no params"):
        made(NASBOT).param_effects(scored(mlp_pool()), rng=rng)
    with pytest.raises(OptionError, match="expected at least one evaluated network to start from"):
        made(NASBOT, params=PARAMS).param_effects(History(), rng=rng)
    with pytest.raises(OptionError, match="believed: expected a history with at least one evaluated network"):
        made(NASBOT).believed(History(), [(POOL[0], "")], rng=rng)


def test_a_table_of_effects_shows_the_nearest_network_of_each():
    numbers = {"median": 1.5, "lower": 1.0, "upper": 2.0, "mean": 0.0, "sd": 0.25, "observed_sd": 0.5, "log_ei": -3.0}
    near = (Near(7, 3.0, 0.125), Near(4, 1.0, 0.25))
    effects = [Effect(POOL[0], change, **numbers, feasible=1.0, nearest=n) for change, n in (("a", near), ("b", ()))]
    rows = [line.split() for line in str(Effects(effects)).splitlines()]
    assert rows[1] == ["a", "1.5", "1", "2", "0.25", "-3", "7", "(0.125)"]
    assert rows[2] == ["b", "1.5", "1", "2", "0.25", "-3"]
