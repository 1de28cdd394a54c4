"""NASBOT beyond ``local_above`` networks, made small: a belief that knows some of them, and those near a finalist."""

import numpy as np
import pytest

from nasbot.candidate import Candidate
from nasbot.domain import Float
from nasbot.evolution import Mutation, MutationOperator
from nasbot.gp import BeliefOptions
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT
from nasbot.searchers import knowledge as module
from nasbot.trial import Failed, FailureCause, History, Scored, Trial
from tests.searchers.problems import MLP, made, mlp_pool, of_outcomes, propose, scored, value_of


def networks(n: int, seed: int = 0) -> list:
    rng, operator = np.random.default_rng(seed), MutationOperator(MLP)
    found = dict.fromkeys(mlp_pool())
    while len(found) < n:
        mutation = operator(list(found)[rng.integers(len(found))], rng=rng)
        if isinstance(mutation, Mutation):
            found[mutation.arch] = None
    return list(found)


NETWORKS = networks(140)
ASKED, KNOWN = NETWORKS[-20:], NETWORKS[:110]


def searcher(local_above: int, **options) -> NASBOT:
    belief = BeliefOptions(inference="map", n_restarts=1, local_above=local_above)
    return made(NASBOT, belief=belief, **options)


@pytest.fixture
def history():
    return scored(KNOWN)


@pytest.fixture
def few(monkeypatch):
    """The belief knows 40 networks and the 3 nearest of a finalist."""
    for name, value in {"N_REMEMBERED": 40, "N_BEST": 10, "N_CLOSER": 3, "N_PER_FIT": 32}.items():
        monkeypatch.setattr(module, name, value)


def means(searcher, history, asked=ASKED) -> np.ndarray:
    effects = searcher.believed(history, [(Candidate(arch), "") for arch in asked], rng=np.random.default_rng(1))
    return np.array([(effect.mean, effect.sd) for effect in effects]).T


def test_what_is_believed_goes_on_where_networks_become_many(history, monkeypatch):
    """All are among the 500: only the hyper-parameters are a little older on the far side, of 96 and not of 110."""
    monkeypatch.setattr(module, "N_PER_FIT", 32)  # in a search of 801 they are of 768
    (before, _), (after, _) = (means(searcher(above), history) for above in (110, 109))
    assert np.corrcoef(before, after)[0, 1] > 0.98
    monkeypatch.setattr(module, "N_PER_FIT", 10)  # and where they are not, nothing differs
    (before, sd_before), (after, sd_after) = (means(searcher(above), history) for above in (110, 109))
    assert after == pytest.approx(before, abs=1e-6)
    assert sd_after == pytest.approx(sd_before, rel=1e-6)


@pytest.mark.usefixtures("few")
def test_few_networks_say_nearly_what_all_do(history):
    (exact, _), (local, _) = (means(searcher(above), history) for above in (110, 20))
    assert np.corrcoef(exact, local)[0, 1] > 0.9


@pytest.mark.usefixtures("few")
def test_a_proposal_does_not_depend_on_what_was_asked_before(history):
    going_on = searcher(20)
    for _ in range(3):
        proposal = propose(going_on, history)
        assert proposal.candidate == propose(searcher(20), history).candidate
        assert proposal.arch not in KNOWN
        trial = proposal.trial(history).begun(0.0)
        history = history.with_trial(trial)
    means(going_on, scored(KNOWN[:60]))  # of an earlier time, as ``explain`` asks
    assert propose(going_on, history).candidate == propose(searcher(20), history).candidate


@pytest.mark.usefixtures("few")
def test_the_forecast_is_what_is_explained(history):
    proposal = propose(searcher(20), history)
    effect = searcher(20).believed(history, [(proposal.candidate, "")], rng=np.random.default_rng(9))[0]
    assert (effect.mean, effect.sd) == pytest.approx((proposal.forecast.mean, proposal.forecast.sd))


@pytest.mark.usefixtures("few")
def test_the_nearest_are_known_wherever_they_are(history):
    distances = Otmann().cross(ASKED, KNOWN).d.mean(axis=0)
    one = searcher(20)
    view = one._knowledge.view(history, np.random.default_rng(0), module.Stopwatch())
    assert view.n_evaluated == 40 + 110 % 32
    for arch, row in zip(ASKED, distances, strict=True):
        closer = one._knowledge.closer(view, history, [arch])
        assert set(np.argsort(row, kind="stable")[:3]) <= set(closer.numbers)


@pytest.mark.usefixtures("few")
def test_pending_networks_are_known(history):
    one = searcher(20)
    waiting = history.with_trial(Trial(number=len(history), candidate=Candidate(ASKED[0])))
    (_, before), (_, after) = means(one, history, ASKED[:1]), means(one, waiting, ASKED[:1])
    assert after[0] < 0.9 * before[0]


@pytest.mark.usefixtures("few")
def test_failed_networks_are_known(history):
    trial = Trial(number=len(history), candidate=Candidate(ASKED[0])).begun(0.0)
    failing = history.with_trial(trial.ended(Failed(FailureCause.OOM), at=1.0, rank=len(history)))
    asked = [(Candidate(ASKED[0]), ""), (Candidate(KNOWN[5]), "")]
    near, far = searcher(20).believed(failing, asked, rng=np.random.default_rng(0))
    assert near.feasible < 0.97 < far.feasible


class Own:
    """A distance of one's own, without bounds."""

    def __init__(self):
        self.pack, self.cross, self.pairwise = Otmann().pack, Otmann().cross, Otmann().pairwise


@pytest.mark.usefixtures("few")
def test_a_distance_of_ones_own_has_neighbours_too(history):
    own, ours = (means(searcher(20, distance=distance), history) for distance in (Own(), Otmann()))
    assert own == pytest.approx(ours)


@pytest.mark.usefixtures("few")
def test_a_best_network_is_recommended(history):
    recommended = searcher(20).recommend(history, rng=np.random.default_rng(0))
    assert recommended in history.ranked[:10]


def with_rungs(networks) -> History:
    """Three in four only at a ninth of the effort, where all is worse by 6, and one in four at both."""
    trials = []
    for i, arch in enumerate(networks):
        for share in (1 / 9, 1.0) if i % 4 == 0 else (1 / 9,):
            trial = Trial(number=len(trials), candidate=Candidate(arch), fidelity=share).begun(0.0)
            worse = 6.0 if share < 1 else 0.0
            trials.append(trial.ended(Scored(value_of(arch) - worse), at=1.0, rank=len(trials)))
    return History(tuple(trials))


@pytest.mark.usefixtures("few")
def test_rungs_are_told_apart_among_many():
    history = with_rungs(KNOWN)
    exact, local, blind = (
        searcher(above, **options)
        for above, options in ((200, {"fidelity": "steps"}), (20, {"fidelity": "steps"}), (20, {}))
    )
    view = local._knowledge.view(history, np.random.default_rng(0), module.Stopwatch())
    shares = [history.evaluated.trials[i].fidelity for i in view.numbers]
    np.testing.assert_array_equal(view.belief.posterior.fidelities, shares)
    assert set(shares) == {1 / 9, 1.0}
    (mean, _), (few_mean, _), (blind_mean, _) = (means(each, history) for each in (exact, local, blind))
    assert np.corrcoef(mean, few_mean)[0, 1] > 0.9 > np.corrcoef(mean, blind_mean)[0, 1]


@pytest.mark.usefixtures("few")
def test_params_are_told_apart_among_many():
    """Networks hardly matter, the rate does: a belief of few networks must know which rate each of them had."""
    rng = np.random.default_rng(0)
    tried = [Candidate(arch, {"rate": float(rate)}) for arch, rate in zip(KNOWN, rng.random(len(KNOWN)), strict=True)]
    value = [0.01 * value_of(each.arch) - (each.params["rate"] - 0.6) ** 2 for each in tried]
    history = of_outcomes(zip(tried, map(Scored, value), strict=True))
    joint = searcher(20, params={"rate": Float(0.0, 1.0)})
    good, bad = ([(Candidate(arch, {"rate": rate}), "") for arch in ASKED[:5]] for rate in (0.6, 0.05))
    ours = joint.believed(history, [*good, *bad], rng=np.random.default_rng(0))
    assert min(effect.mean for effect in ours[:5]) > max(effect.mean for effect in ours[5:]) + 1.0
