"""BOCA's two steps: a candidate by what it promises at full fidelity, then the cheapest share that is informative."""

import math

import numpy as np
import pytest

from nasbot import Fidelity, Float, Study
from nasbot._rng import Role, stream
from nasbot.candidate import Candidate
from nasbot.domain import fidelity_of
from nasbot.errors import OptionError
from nasbot.gp.kernel import otmann_kernel
from nasbot.searchers import NASBOT
from nasbot.searchers.boca import informative_share, shares_of, unfinished
from nasbot.searchers.knowledge import Stopwatch
from nasbot.study.rebuilding import searcher_from_settings
from nasbot.trial import Failed, FailureCause, History, Scored, Stopped, Trial
from tests.searchers.problems import SEARCHERS, made, mlp_pool, propose, value_of

BOCA = Fidelity(rule="boca")
RATE = {"learning_rate": Float(1e-4, 1e-1, log=True)}


def noisy_value(trial):
    """Shorter trainings are worse, and less to be relied on."""
    luck = np.random.default_rng(trial.number).standard_normal()
    return value_of(trial.arch) + trial.fidelity + 0.3 * (1 - trial.fidelity) * luck


def searched(n, *, n_pending=0, fails=lambda trial: False, **options):
    """A study after n trials, of which some fail, with so many pending all the time."""
    study = Study.in_memory(made(NASBOT, fidelity=BOCA, **options), seed=2)
    pending = []
    for _ in range(n):
        pending.append(study.ask())
        if len(pending) > n_pending:
            trial = pending.pop(0)
            outcome = Failed(FailureCause.EXCEPTION, "no") if fails(trial) else Scored(noisy_value(trial))
            study.tell(trial, outcome)
    return study


# -- the rule, by a slow twin ------------------------------------------------------------------------------------------


def slow_share(searcher, view, candidate, shares, n_evaluated):
    """Straight from the formulas, one share and one sample of the hyper-parameters at a time, with dense algebra."""
    belief = view.belief
    n_known = view.n_known
    rows, _ = searcher._knowledge.rows_to(view, [candidate])
    among = searcher._knowledge.rows_among(view.known[:n_known])
    own = searcher._knowledge.rows_among([candidate])
    fidelities = belief.posterior.fidelities
    tau, gamma, gap = np.zeros((3, len(shares)))
    for theta in belief.hyperparameters:
        kappa, c, g, omega = theta.fidelity
        raw = belief.scaling.in_distance_units(theta)

        def kernel(of, raw=raw):
            named = dict(of.kinds())
            return otmann_kernel(
                named.get("d"),
                named.get("d_bar"),
                raw,
                distance_power=belief.scaling.form.distance_power,
                normalised_power=belief.scaling.form.normalised_power,
                features=named.get("features"),
                params=named.get("params"),
            )

        def phi(s, g=g):
            return ((1 / s) ** g - 1) / (9**g - 1)

        plain, cross, at = kernel(among), kernel(rows[:n_known, :])[:, 0], float(kernel(own)[0, 0])
        gram = np.empty((n_known, n_known))
        for i, s in enumerate(fidelities):
            for j, z in enumerate(fidelities):
                gram[i, j] = plain[i, j] + phi(s) * phi(z) * (kappa * plain[i, j] + c)
            gram[i, i] += theta.noise_variance * (1 + omega * phi(s))
        for k, s in enumerate(shares):
            to_known = [x + phi(s) * phi(z) * (kappa * x + c) for x, z in zip(cross, fidelities, strict=True)]
            prior = at + phi(s) ** 2 * (kappa * at + c)
            variance = prior - np.array(to_known) @ np.linalg.solve(gram, to_known)
            correlation = at / math.sqrt(at * prior)
            n = len(belief.hyperparameters)
            tau[k] += math.sqrt(variance) / n
            gap[k] += math.sqrt(max(0.0, 1 - correlation**2)) / n
            q = 1 / (1 + (1 + len(searcher.params)) + 2)
            gamma[k] += math.sqrt(at) * math.sqrt(max(0.0, 1 - correlation**2)) * s**q / n
    root_beta = math.sqrt(0.5 * math.log(2 * n_evaluated + 1))
    for k, s in enumerate(shares):
        if tau[k] > gamma[k] and gap[k] > max(gap) / root_beta:
            return s
    return shares[-1]


@pytest.mark.parametrize("options", [{}, {"params": RATE}, {"n_pending": 2}])
def test_the_share_is_that_of_the_slow_twin(options):
    study = searched(16, **options)
    history, searcher = study.history, study.searcher
    chosen = set()
    for number in range(len(searcher.initial_pool()) + 1, len(history)):
        before, trial = history.at_proposal(number), history[number]
        if not any(t.fidelity < 1 for t in before.completed):
            continue
        for_belief, _, _ = stream(2, number, Role.PROPOSAL).spawn(3)
        view = searcher._knowledge.view(before, for_belief, Stopwatch())
        above = 0.0 if trial.promoted_from is None else before[trial.promoted_from].fidelity
        shares = [s for s in shares_of(BOCA) if s > above]
        assert trial.fidelity == slow_share(searcher, view, trial.candidate, shares, len(before.completed))
        chosen.add(trial.fidelity)
    assert len(chosen) > 1


def test_the_candidate_is_the_one_that_promises_most_at_full_fidelity():
    study = searched(18)
    history, searcher = study.history, study.searcher
    promoted = [trial for trial in history if trial.promoted_from is not None]
    assert promoted
    for trial in promoted:
        before = history.at_proposal(trial.number)
        known = [(other.candidate, "") for other in unfinished(before)]
        effects = searcher.believed(before, known, rng=stream(2, trial.number, Role.PROPOSAL))
        best = max(effects, key=lambda effect: effect.log_ei)
        assert best.candidate == trial.candidate


def test_what_is_known_well_is_not_evaluated_cheaply_again():
    shares, prior = shares_of(BOCA), np.ones(1)
    gap = np.linspace(0.6, 0.0, len(shares))[None]
    sure, unsure = np.full((1, len(shares)), 1e-3), np.ones((1, len(shares)))
    assert informative_share(shares, unsure, gap, prior, n_evaluated=50) == shares[0]
    assert informative_share(shares, sure, gap, prior, n_evaluated=50) == 1.0
    sure[0, 2:] = 1.0
    assert informative_share(shares, sure, gap, prior, n_evaluated=50) == shares[2]
    # Too close to a full training to be worth the detour.
    sure[0, :5] = 1e-3
    assert informative_share(shares, sure, gap, prior, n_evaluated=50) == 1.0


def test_shares_reach_from_the_least_to_1():
    shares = shares_of(BOCA)
    assert shares[[0, 4, 8]] == pytest.approx([1 / 9, 1 / 3, 1.0])
    assert np.all(np.diff(shares) > 0)
    assert shares[-1] == 1.0


# -- whose turn it is --------------------------------------------------------------------------------------------------


def test_unfinished_are_known_below_full_fidelity_alone_and_neither_pending_nor_failed():
    a, b, c = mlp_pool()
    entries = [(a, 0.2, 1.0), (a, 0.5, 2.0), (b, 0.2, 1.0), (b, 1.0, 3.0), (c, 0.2, 1.0)]
    trials = [
        Trial(number=i, candidate=Candidate(arch), fidelity=s).begun(0.0).ended(Scored(value), at=1.0, rank=i)
        for i, (arch, s, value) in enumerate(entries)
    ]
    assert [trial.number for trial in unfinished(History(trials))] == [1, 4]
    pending = Trial(number=5, candidate=Candidate(c), fidelity=0.5)
    assert [trial.number for trial in unfinished(History([*trials, pending]))] == [1]
    failed = pending.begun(0.0).ended(Failed(FailureCause.NAN), at=1.0, rank=5)
    assert [trial.number for trial in unfinished(History([*trials, failed]))] == [1]
    cut = Stopped(step=5, value=0.1, bar=0.5, expected=0.2, share=0.3, place=9, among=9)
    stopped = pending.begun(0.0).ended(cut, at=1.0, rank=5)
    assert [trial.number for trial in unfinished(History([*trials, stopped]))] == [1]


def test_what_a_pacer_has_stopped_shifts_nobodys_place():
    """Stopped trials are evaluated but not completed: numbers of the belief are those of the former."""
    study = searched(12)
    history = study.history
    cut = Stopped(step=5, value=0.1, bar=0.5, expected=0.2, share=0.3, place=9, among=9)
    first = Trial(number=0, candidate=history[0].candidate, fidelity=1.0).begun(0.0).ended(cut, at=1.0, rank=0)
    changed = History((first, *list(history)[1:]))
    assert unfinished(changed)
    proposal = propose(study.searcher, changed, seed=2)  # with numbers of completed trials one is out of range
    assert (proposal.candidate.fingerprint, proposal.fidelity) not in changed.seen_at
    assert len(changed.evaluated.trials) == len(changed.completed) + 1


@pytest.mark.parametrize(
    "options",
    [{}, {"params": RATE}, {"n_pending": 3, "fails": lambda trial: trial.number % 5 == 4}],
    ids=["alone", "params", "pending and failed"],
)
def test_every_trial_is_new_and_decided_alike_again(options):
    study = searched(20, **options)
    history = study.history
    assert {trial.fidelity for trial in history} > {1.0}
    pairs = [(trial.candidate.fingerprint, trial.fidelity) for trial in history]
    assert len(set(pairs)) == len(pairs)
    for trial in history:
        if trial.promoted_from is not None:
            before = history[trial.promoted_from]
            assert before.candidate == trial.candidate
            assert before.fidelity < trial.fidelity
    assert all((p.candidate, p.fidelity) == (t.candidate, t.fidelity) for t, p in study.replay())


def test_a_study_stores_the_rule_and_older_ones_know_none():
    by_boca, by_rungs = made(NASBOT, fidelity="boca"), made(NASBOT, fidelity="steps")
    assert Study.in_memory(by_boca).settings["fidelity"] == {
        "least": 1 / 9,
        "factor": 3.0,
        "of": "steps",
        "rule": "boca",
    }
    assert "rule" not in Study.in_memory(by_rungs).settings["fidelity"]
    again = searcher_from_settings(by_boca.settings(), by_boca.domain, by_boca.initial_pool())
    assert propose(again, History()).fidelity == propose(by_boca, History()).fidelity


def test_words_for_fidelities():
    assert fidelity_of("boca") == BOCA
    assert fidelity_of("rows") == Fidelity(of="rows")
    assert fidelity_of("none") is fidelity_of(None) is None
    with pytest.raises(OptionError, match="expected rule='promotion' or 'boca', got 'luck'"):
        Fidelity(rule="luck")


@pytest.mark.parametrize("kind", SEARCHERS[1:])
def test_searchers_without_a_belief_say_so(kind):
    with pytest.raises(OptionError, match="rule 'boca' asks a belief at every share"):
        made(kind, fidelity="boca")
