"""What NASBOT believes, says of it, and makes of it: pending and failed networks, lineage, notes, explanations."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nasbot._rng import Role, stream
from nasbot.acquisition.choices import ACQUISITIONS, Acquisition
from nasbot.architecture import Layer, SearchSpace, chain
from nasbot.architecture.resources import resources
from nasbot.candidate import Candidate
from nasbot.errors import OptionError, OutsideSpaceError, VocabularyError
from nasbot.evolution import CNN_MODIFIERS, MLP_MODIFIERS, MODIFIERS, Edit, one_step_edits
from nasbot.evolution.modifiers import modifiers_of
from nasbot.gp import BeliefOptions
from nasbot.gp.calibration import widening
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT, Effects, EvolutionSearch, KernelTerms, Maximiser, RandomSearch, TreeBO
from nasbot.searchers.knowledge import N_LANDMARKS, _landmarks
from nasbot.study import Study
from nasbot.testing.networks import random_architecture
from nasbot.trial import Failed, FailureCause, Forecast, History, Provenance, Scored
from tests.architecture.cells import cell_vocabulary
from tests.searchers.problems import (
    CNN,
    MLP,
    SEARCHERS,
    follow,
    made,
    mlp_pool,
    of_outcomes,
    propose,
    scored,
    timeout,
    value_of,
)


def rng(history, seed=3):
    return stream(seed, len(history), Role.PROPOSAL)


def believed(searcher, history, *networks):
    return searcher.believed(history, [(Candidate(arch), "") for arch in networks], rng=rng(history))


def with_outcome(history, arch, outcome):
    return of_outcomes([*((trial.arch, trial.outcome) for trial in history), (arch, outcome)])


@pytest.fixture(scope="module")
def searcher():
    return made(NASBOT)


@pytest.fixture(scope="module")
def history(searcher):
    return follow(searcher, 8)


# -- pending -----------------------------------------------------------------------------------------------------------


def test_a_pending_network_lowers_the_utility_around_it(searcher, history):
    wanted = propose(searcher, history).arch
    around = [edit.arch for edit in one_step_edits(wanted, MLP, limit=20)]
    before = believed(searcher, history, wanted, *around)
    after = believed(searcher, with_outcome(history, wanted, None), wanted, *around)
    for a, b in zip(before, after, strict=True):
        assert b.mean == pytest.approx(a.mean, abs=1e-6)  # what is hallucinated is what was expected anyway
        assert b.sd <= a.sd + 1e-9
        assert b.log_ei <= a.log_ei + 1e-9
    assert after[0].sd < 0.8 * before[0].sd
    assert after[0].log_ei < before[0].log_ei - 0.1


def test_workers_asking_at_once_are_sent_to_different_places(searcher, history):
    """Four proposals in a row, all left pending, spread more than four seeds of one proposal."""
    in_flight = [t.arch for t in follow(searcher, 4, lambda arch: None, history).pending]
    assert len(set(in_flight)) == 4
    first = in_flight[0]
    blind = {propose(searcher, history, seed).arch for seed in (3, 4, 5, 6)}
    spread, crowd = (
        searcher.distance.pairwise(sorted(group, key=lambda a: a.fingerprint)).d_bar[2].mean()
        for group in (in_flight, blind)
    )
    assert first in blind
    assert spread > crowd


# -- failed ------------------------------------------------------------------------------------------------------------


def test_p_feasible_falls_near_failures_and_rises_near_successes(searcher, history):
    """Two networks about which nothing is known; then the one's neighbour fails and the other's is evaluated."""
    bad, good = chain("mlp-reg", [Layer("relu", 70)] * 3), chain("mlp-reg", [Layer("logistic", 80)] * 2)
    near_bad, near_good = chain("mlp-reg", [Layer("relu", 72)] * 3), chain("mlp-reg", [Layer("logistic", 82)] * 2)
    assert [effect.feasible for effect in believed(searcher, history, bad, good)] == [1.0, 1.0]  # nothing has failed
    failed = with_outcome(history, near_bad, timeout())
    after_failure = believed(searcher, failed, bad, good)
    assert after_failure[0].feasible < 0.5
    assert after_failure[1].feasible > after_failure[0].feasible + 0.2
    after_success = believed(searcher, with_outcome(failed, near_good, Scored(1.0)), bad, good)
    assert after_success[1].feasible > after_failure[1].feasible
    assert after_success[1].feasible > 0.9
    assert after_success[0].feasible < 0.5


@pytest.mark.parametrize(("cause", "is_seen"), [(FailureCause.KILLED, True), (FailureCause.ENVIRONMENT, False)])
def test_an_end_from_outside_says_nothing_about_the_network(searcher, history, cause, is_seen):
    arch = chain("mlp-reg", [Layer("relu", 1000)] * 3)
    ended = with_outcome(history, arch, Failed(cause, "by somebody"))
    assert believed(searcher, ended, arch)[0].feasible == 1.0
    assert (Candidate(arch).fingerprint in ended.seen) is is_seen
    assert not is_seen or propose(searcher, ended).arch != arch


def test_networks_that_fail_are_avoided():
    """The wider the better, until it fails. A searcher to which failures say nothing keeps running into them."""
    widening = ("inc_single", "dec_single", "inc_en_masse", "dec_en_masse", "wedge_layer", "remove_layer")

    def late_failures(cause, seed):
        def outcome(arch):
            units = [layer.units for layer in arch.layers if layer.units] or [0]
            return Scored(np.mean(units)) if max(units) <= 100 else Failed(cause, "too wide")

        history = follow(made(NASBOT, modifiers=widening), 30, outcome, seed=seed)
        return sum(isinstance(trial.outcome, Failed) for trial in history[-15:])

    learning, blind = (sum(late_failures(c, seed) for seed in (1, 2)) for c in (FailureCause.OOM, FailureCause.KILLED))
    assert blind >= 20  # of 30
    assert learning <= 0.6 * blind


def test_all_failures_of_its_own_count_alike(history):
    timed_out, out_of_memory, crashed = (
        with_outcome(history, wide(), Failed(cause))
        for cause in (FailureCause.TIMEOUT, FailureCause.OOM, FailureCause.CRASHED)
    )
    proposal = propose(made(NASBOT), timed_out)
    assert proposal.arch == propose(made(NASBOT), out_of_memory).arch == propose(made(NASBOT), crashed).arch
    assert proposal.forecast.feasible < 1


def test_nothing_but_failures_is_answered_by_chance():
    searcher = made(NASBOT)
    history = of_outcomes((arch, timeout()) for arch in searcher.initial_pool())
    proposal = propose(searcher, history)
    assert proposal.forecast is None or proposal.forecast.mean is None
    assert proposal.arch.fingerprint not in history.seen


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximiser", list(Maximiser))
@pytest.mark.parametrize("acquisition", list(ACQUISITIONS))
def test_all_acquisitions_and_maximisers_propose(history, acquisition, maximiser):
    """With a pending and a failed network, so that every branch is taken."""
    known = with_outcome(with_outcome(history, mlp_pool()[0].with_units({1: 40}), None), wide(), timeout())
    searcher = made(NASBOT, acquisition=acquisition, maximiser=str(maximiser))
    proposal = propose(searcher, known)
    assert proposal.arch in MLP
    assert proposal.arch.fingerprint not in known.seen
    assert math.isfinite(proposal.forecast.utility)
    phases = proposal.forecast.utility_by_phase
    assert list(phases) == (["evolution"] if maximiser is Maximiser.PAPER else ["evolution", "climbing"])
    assert list(phases.values()) == sorted(phases.values())
    assert proposal.forecast.utility == list(phases.values())[-1]


def wide():
    return chain("mlp-reg", [Layer("relu", 512)])


def test_an_acquisition_of_ones_own_that_leaves_samples_apart_is_told_so():
    class Mean(Acquisition):
        def __call__(self, outlook, *, rng):
            return outlook.mean  # (samples, candidates)

    searcher = NASBOT(space=SearchSpace("mlp-reg"), acquisition=Mean())
    study = Study.in_memory(searcher)
    for value in (1.0, 2.0, 3.0):
        study.tell(study.ask(), value)
    with pytest.raises(OptionError, match=r"acquisition: expected of Mean a utility for each .* averages over samples"):
        searcher.propose(study.history, rng=np.random.default_rng(0))


@pytest.mark.parametrize("terms", list(KernelTerms))
def test_each_term_of_the_kernel_can_be_left_out(history, terms):
    known = with_outcome(with_outcome(history, mlp_pool()[0].with_units({1: 40}), None), wide(), timeout())
    searcher = made(NASBOT, kernel_terms=terms, belief=BeliefOptions(n_samples=2))
    assert propose(searcher, known).arch in MLP
    effect = believed(searcher, known, wide())[0]
    assert effect.sd > 0
    assert effect.feasible < 0.8  # 1 before anything has failed


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (NASBOT, {"acquisition": "eii"}, "acquisition: expected one of log-ei, ei, ucb, thompson, uniform, got 'eii'"),
        (NASBOT, {"maximiser": "grid"}, "maximiser: expected one of climbing, paper, got 'grid'"),
        (NASBOT, {"kernel_terms": "none"}, "kernel_terms: expected one of both, d, d_bar, both.features"),
        (NASBOT, {"modifiers": ("skipp",)}, "modifiers: unknown modifier 'skipp'; known: dec_single"),
        (RandomSearch, {"modifiers": "skip"}, "modifiers: expected a list of names, got the text 'skip'"),
        (RandomSearch, {"modifiers": ()}, "modifiers: expected at least one, got none"),
        (EvolutionSearch, {"n_mutations": 0}, "n_mutations: expected a whole number >= 1, got 0"),
        (TreeBO, {"warp": "square"}, "warp: expected one of rank, best, log, none, got 'square'"),
        (TreeBO, {"modifiers": ("skip",)}, "modifiers: TreeBO searches chains; expected some of dec_single"),
        *((kind, {"pool": ()}, "pool: expected at least one network, got none") for kind in SEARCHERS),
        *((kind, {"pool": ["relu"]}, "pool network 0: expected an Architecture, got str") for kind in SEARCHERS),
    ],
)
def test_options_that_cannot_be_meant(kind, options, words):
    with pytest.raises(OptionError, match=f"^{words}"):
        made(kind, **options)


@pytest.mark.parametrize("kind", SEARCHERS)
def test_a_pool_outside_the_space(kind):
    with pytest.raises(OutsideSpaceError, match=r"^pool network 1: .*max_units"):
        made(kind, space=SearchSpace("mlp-reg", max_units=20))
    with pytest.raises(VocabularyError, match="cnn"):
        made(kind, space=CNN, pool=mlp_pool())


# -- lineage and notes -------------------------------------------------------------------------------------------------


def reached(arch, changes):
    """All networks that these changes, in words, can lead to."""
    networks = [arch]
    for change in changes:
        name, description = change.split(": ", 1)
        edits = [edit for network in networks for edit in modifiers_of([name])[0].edits(network)]
        networks = [edit.arch for edit in edits if isinstance(edit, Edit) and edit.description == description]
    return networks


@pytest.mark.parametrize("kind", SEARCHERS)
def test_the_lineage_leads_from_its_trial_to_the_proposal(kind):
    history = follow(made(kind), 12)
    n_steps = []
    for trial in history[3:]:
        (parent,) = trial.origin.parents
        assert parent < trial.number
        assert trial.origin.modifiers == tuple(change.split(":")[0] for change in trial.origin.changes)
        assert trial.arch in reached(history[parent].arch, trial.origin.changes)
        n_steps.append(len(trial.origin.changes))
    assert max(n_steps) > 1


@pytest.mark.parametrize("kind", SEARCHERS)
def test_origin_and_forecast_are_plain_data(kind):
    for known in (History(), follow(made(kind), 2)):
        proposal = propose(made(kind), known)
        assert (
            Provenance.from_dict(json.loads(json.dumps(proposal.origin.to_dict(), allow_nan=False))) == proposal.origin
        )
        if proposal.forecast is not None:
            record = json.loads(json.dumps(proposal.forecast.to_dict(), allow_nan=False))
            assert Forecast.from_dict(record) == proposal.forecast
        assert not proposal.notes


def test_the_forecast_says_what_was_predicted_and_where_the_time_went(searcher, history):
    proposal = propose(searcher, history)
    effect = believed(searcher, history, proposal.arch)[0]
    told = proposal.forecast
    assert (told.mean, told.sd) == (effect.mean, effect.sd)
    assert (told.median, told.lower, told.upper) == (effect.median, effect.lower, effect.upper)
    assert proposal.forecast.utility == pytest.approx(effect.log_ei, rel=1e-6)
    assert set(proposal.origin.seconds) == {"distances", "fitting", "maximising"}
    assert all(seconds > 0 for seconds in proposal.origin.seconds.values())
    assert proposal.forecast.n_utilities >= 50


def test_among_many_networks_the_exact_belief_has_the_last_word():
    """Evolution asks a rough one then, that knows some of them only; pending and failed networks count in both."""
    history = follow(made(EvolutionSearch), 80)
    history = with_outcome(with_outcome(history, mlp_pool()[0].with_units({1: 40}), None), wide(), timeout())
    assert len(history.completed) > N_LANDMARKS
    searcher = made(NASBOT)
    proposal = propose(searcher, history)
    effect = believed(searcher, history, proposal.arch)[0]
    assert proposal.forecast.utility == pytest.approx(effect.log_ei + math.log(effect.feasible), rel=1e-6)
    assert proposal.arch.fingerprint not in history.seen


# -- what depends on the kind of networks ------------------------------------------------------------------------------


def pool_of(kind):
    return None if isinstance(kind, str) else [random_architecture(kind, rng=np.random.default_rng(0), n_layers=5)]


@pytest.mark.parametrize(
    ("kind", "modifiers"),
    [
        ("mlp-reg", MLP_MODIFIERS),
        ("mlp-class", MLP_MODIFIERS),
        ("cnn", CNN_MODIFIERS),
        (cell_vocabulary(), MLP_MODIFIERS),
    ],
)
def test_networks_are_changed_in_leaps_too_unless_it_is_said_otherwise(kind, modifiers):
    space, pool = SearchSpace(kind), pool_of(kind)
    assert NASBOT(space=space, pool=pool).modifiers == modifiers
    assert NASBOT(space=space, pool=pool, modifiers=["skip"]).modifiers == ("skip",)
    assert EvolutionSearch(space=space, pool=pool).modifiers == tuple(MODIFIERS), "rivals are as the paper has them"


@pytest.mark.parametrize(
    ("kind", "preset"),
    [("mlp-reg", "paper"), ("mlp-class", "paper"), ("cnn", "log-mass"), (cell_vocabulary(), "paper")],
)
def test_networks_of_images_are_compared_by_logarithms_of_masses_unless_it_is_said_otherwise(kind, preset):
    space, pool = SearchSpace(kind), pool_of(kind)
    assert NASBOT(space=space, pool=pool).distance == Otmann(preset=preset)
    assert NASBOT(space=space, pool=pool, distance=Otmann(preset="release")).distance.rules.name == "release"


# -- explanations ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    return Study.in_memory(NASBOT(space=MLP, pool=mlp_pool()), seed=3).optimise(value_of, 11)


def test_a_trial_is_explained_as_it_was_believed_when_it_was_proposed(study):
    for number in (3, 10):
        trial = study.history[number]
        effect = study.explain(number)
        assert effect.arch == trial.arch
        assert trial.forecast.median == effect.median
        assert trial.forecast.mean == effect.mean


def test_what_if_lists_every_edit_of_the_best_by_its_median(study):
    effects = study.what_if()
    edits = one_step_edits(study.best.arch, MLP, modifiers=study.searcher.modifiers)
    assert {effect.arch for effect in effects} == {edit.arch for edit in edits}
    assert {effect.change for effect in effects} == {f"{edit.modifier}: {edit.description}" for edit in edits}
    medians = [effect.median for effect in effects]
    assert medians == sorted(medians, reverse=True)
    assert all(e.lower < e.median < e.upper and e.sd > 0 for e in effects)


def test_medians_and_intervals_are_those_of_the_belief():
    """With one set of hyper-parameters and no warp the belief is Gaussian in the objective's own units."""
    searcher = made(NASBOT, belief=BeliefOptions(inference="map", warp="none"))
    history = follow(searcher, 8)
    values = history.evaluated.values
    centre, spread = values.mean(), values.std()
    inside = [trial.forecast.lower <= trial.value <= trial.forecast.upper for trial in history if trial.forecast]
    far = 1.6448536 * widening(inside)
    for effect in believed(searcher, history, wide(), *(edit.arch for edit in one_step_edits(wide(), MLP, limit=5))):
        assert effect.median == pytest.approx(centre + spread * effect.mean)
        assert effect.observed_sd > effect.sd
        assert effect.upper == pytest.approx(centre + spread * (effect.mean + far * effect.observed_sd), rel=1e-6)
        assert effect.lower == pytest.approx(centre + spread * (effect.mean - far * effect.observed_sd), rel=1e-6)


def test_what_was_evaluated_is_predicted_to_be_what_it_was(study):
    """The objective has no noise, so the belief at an evaluated network is near its value, and its interval narrow."""
    trial = study.history[5]
    effect = study.searcher.believed(study.history, [(trial.candidate, "")], rng=rng(study.history))[0]
    assert effect.lower - 0.5 < trial.value < effect.upper + 0.5
    assert effect.nearest[0] == (5, pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))


def test_the_nearest_networks_are_those_by_otmann(study):
    effect = study.explain(10)
    history = study.history.at_proposal(10)
    between = Otmann(structural_weights=(0.4,)).cross([trial.arch for trial in history], [effect.arch])
    order = np.argsort(between.d_bar[0, :, 0], kind="stable")[:5]
    assert [near.trial for near in effect.nearest] == order.tolist()
    np.testing.assert_allclose([near.d for near in effect.nearest], between.d[0, order, 0])
    np.testing.assert_allclose([near.d_bar for near in effect.nearest], between.d_bar[0, order, 0])


def test_in_a_minimised_study_predictions_have_the_objectives_sign(study):
    turned = Study.in_memory(NASBOT(space=MLP, pool=mlp_pool()), seed=3, direction="minimise")
    turned.optimise(lambda arch: -value_of(arch), 11)
    assert [t.arch for t in turned.history] == [t.arch for t in study.history]
    one, other = study.explain(10), turned.explain(10)
    assert (other.lower, other.median, other.upper) == (-one.upper, -one.median, -one.lower)
    assert (other.mean, other.log_ei) == (one.mean, one.log_ei)
    assert [e.change for e in turned.what_if()] == [e.change for e in study.what_if()]


def test_effects_are_printed_in_aligned_columns(study):
    effects = study.what_if().top(6)
    assert isinstance(effects, Effects)
    lines = str(effects).splitlines()
    assert len(lines) == 7
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["change", "median", "lower", "upper", "sd", "log", "EI", "nearest"]
    assert lines[1].startswith(effects[0].change)
    assert f"{effects[0].median:.4g}" in lines[1]
    assert str(Effects()).split()[0] == "change"
    assert effects[0].change in effects._repr_html_().replace("&gt;", ">")
    assert Effects()._repr_html_().startswith("<pre>change")
    assert f"{effects[0].median:.6g}" in str(effects[0])
    assert f"trial {effects[0].nearest[0].trial}:" in str(effects[0])
    record = json.loads(json.dumps(effects[0]._replace(upper=math.inf).to_dict(), allow_nan=False))
    assert record["log_ei"] == effects[0].log_ei
    assert record["upper"] is None
    assert record["nearest"][0]["trial"] == effects[0].nearest[0].trial


def test_nothing_is_believed_before_anything_is_known():
    study = Study.in_memory(made(NASBOT))
    with pytest.raises(OptionError, match="what_if: expected at least one evaluated network to start from, got none"):
        study.what_if()
    assert "part of the pool, before any network was evaluated" in str(study.explain(1))


def test_equal_values_and_one_network(searcher):
    for history in (scored(mlp_pool(), [1.0, 1.0, 1.0]), scored(mlp_pool()[:1])):
        effects = searcher.what_if(history, rng=rng(history))
        assert all(math.isfinite(effect.median) and math.isfinite(effect.log_ei) for effect in effects)


# -- recommendations ---------------------------------------------------------------------------------------------------


def lucky_history():
    """Wide networks have values of about 1, narrow ones about 0, but for one of them that was lucky."""
    rng = np.random.default_rng(0)
    wide_ones = [chain("mlp-reg", [Layer("relu", units)] * 3) for units in range(100, 116)]
    narrow = [chain("mlp-reg", [Layer("tanh", units)]) for units in range(8, 24)]
    values = [*(1 + 0.1 * rng.standard_normal(16)), *(0.1 * rng.standard_normal(16))]
    values[20] = 1.3
    assert max(values) == 1.3
    return scored([*wide_ones, *narrow], values)


@pytest.mark.parametrize("kind", [NASBOT, TreeBO])
def test_luck_is_not_recommended(kind):
    history = lucky_history()
    assert history.best.number == 20
    assert made(kind).recommend(history, rng=rng(history)).number < 16


def test_the_recommended_network_is_that_of_the_highest_believed_mean():
    searcher, history = made(NASBOT), lucky_history()
    means = [effect.mean for effect in believed(searcher, history, *(trial.arch for trial in history.completed))]
    assert searcher.recommend(history, rng=rng(history)).number == int(np.argmax(means))


def test_all_samples_of_hyper_parameters_recommend_together(monkeypatch):
    """The first sample alone would name trial 0."""
    searcher, history = made(NASBOT), lucky_history()
    denoised = np.zeros((3, len(history.evaluated)))
    denoised[:, 0], denoised[:, 1] = (5.0, -1.0, -1.0), (4.0, 2.0, 2.0)
    seen = SimpleNamespace(numbers=np.arange(denoised.shape[1]), belief=SimpleNamespace(denoised=denoised))
    monkeypatch.setattr(type(searcher._knowledge), "view", lambda *_: seen)
    assert searcher.recommend(history, rng=rng(history)) == history.evaluated.trials[1]


def test_landmarks_are_the_best_and_a_spread_of_all_others():
    values = np.random.default_rng(0).permutation(1000.0 * np.arange(10 * N_LANDMARKS))
    chosen, n_best = _landmarks(values), N_LANDMARKS // 2
    assert len(set(chosen)) == N_LANDMARKS
    assert set(np.argsort(-values)[:n_best]) <= set(chosen)
    assert values.argmin() in chosen


def test_what_is_pending_or_failed_is_not_recommended():
    searcher = made(NASBOT)
    history = with_outcome(with_outcome(lucky_history(), wide(), None), chain("mlp-reg", [Layer("elu", 9)]), timeout())
    assert searcher.recommend(history, rng=rng(history)) in history.completed


@pytest.mark.parametrize("kind", SEARCHERS)
def test_a_study_recommends_by_belief_or_else_its_best(kind):
    study = Study.in_memory(made(kind))
    assert study.recommend() is None
    study.optimise(value_of, 5)
    assert study.recommend() in study.history.completed
    if kind in (RandomSearch, EvolutionSearch):
        assert study.recommend() == study.best


def test_a_proposal_computes_no_leave_one_out(monkeypatch):
    """Only those who ask how well the belief is calibrated pay for it."""
    from nasbot.gp import belief, calibration

    for module in (belief, calibration):
        monkeypatch.setattr(module, "leave_one_out", lambda *_: pytest.fail("leave-one-out"))
    monkeypatch.setattr(calibration, "left_out", lambda *_: pytest.fail("leave-one-out"))
    history = of_outcomes([(arch, Scored(value_of(arch))) for arch in mlp_pool()])
    assert NASBOT(space=MLP, pool=mlp_pool()).propose(history, rng=rng(history)).arch not in mlp_pool()


def test_intervals_are_wider_after_forecasts_that_missed_and_nothing_else_changes():
    searcher = made(NASBOT)

    def after(lower, upper):
        forecast = Forecast(median=0.0, lower=lower, upper=upper)
        trials = (replace(trial, forecast=forecast) for trial in scored(mlp_pool()))
        return propose(searcher, History(tuple(trials)))

    held, missed = after(-1e9, 1e9), after(1e8, 1e9)
    assert held.candidate == missed.candidate
    assert held.forecast.lower > missed.forecast.lower
    assert held.forecast.upper < missed.forecast.upper
    kept = {"lower": None, "upper": None}
    assert replace(held.forecast, **kept) == replace(missed.forecast, **kept)


# -- cost --------------------------------------------------------------------------------------------------------------


def costly(**options):
    space = replace(MLP, input_shape=(8,))
    return made(NASBOT, space=space, **{"cost_weight": 0.6, "cost_horizon": 4.0, **options})


def flops(arch):
    return resources(arch, (8,), 1).flops


def test_what_costs_count_falls_with_the_flops_that_were_spent():
    searcher = costly()
    pool = searcher.pool_networks
    horizon = 4.0 * sum(map(flops, pool)) / len(pool)
    history = scored(pool)
    assert searcher.cost_weight_after(History()) == searcher.cost_weight_after(history) == 0.6
    cheap, dear = chain("mlp-reg", [Layer("relu", 24)]), chain("mlp-reg", [Layer("relu", 512)] * 4)
    history = with_outcome(history, cheap, None)  # what runs is spent
    assert searcher.cost_weight_after(history) == pytest.approx(0.6 * (1 - flops(cheap) / horizon))
    third = replace(history[-1], fidelity=1 / 3)
    shorter = History((*history[:-1], third))
    assert searcher.cost_weight_after(shorter) == pytest.approx(0.6 * (1 - flops(cheap) / 3 / horizon))
    assert searcher.cost_weight_after(with_outcome(history, dear, timeout())) == 0.0
    assert costly(cost_horizon=None).cost_weight_after(with_outcome(history, dear, None)) == 0.6


def test_a_cooled_cost_is_that_of_its_remaining_weight_and_at_last_none():
    searcher = costly()
    history = scored([*searcher.pool_networks, chain("mlp-reg", [Layer("relu", 48)] * 2)])
    left = searcher.cost_weight_after(history)
    assert 0 < left < 0.6
    for horizon, weight in ((4.0, left), (1e-3, 0.0)):
        cooled, constant = costly(cost_horizon=horizon), costly(cost_weight=weight, cost_horizon=None)
        one, other = propose(cooled, history), propose(constant, history)
        assert (one.arch, one.forecast.utility) == (other.arch, pytest.approx(other.forecast.utility))
        many, others = (s.propose_many(history, 4, rng=rng(history)) for s in (cooled, constant))
        assert [each.arch for each in many] == [each.arch for each in others]
    assert propose(costly(cost_weight=5.0), history).arch != propose(costly(cost_horizon=1e-3), history).arch
