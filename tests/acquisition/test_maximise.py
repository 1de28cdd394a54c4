"""Looking for the best network: budgets, phases, lineage, and what may be proposed."""

import numpy as np
import pytest

from nasbot.acquisition import Settings, by_evolution, by_evolution_and_climbing
from nasbot.acquisition.maximise import CLIMBERS, EDITS_PER_STEP, _Candidates, _climb
from nasbot.candidate import Candidate
from nasbot.domain import Choice, Domain, Float
from nasbot.evolution import MutationOperator, mutation_schedule, one_step_edits
from nasbot.trial import History, Scored
from tests.searchers.problems import MLP, mlp_pool, of_outcomes, value_of


class Counted:
    """A utility that remembers what it was asked, batch by batch."""

    def __init__(self, of=value_of):
        self.of, self.batches = of, []

    def __call__(self, archs, settings):
        self.batches.append(list(archs))
        return np.array([[self.of(arch) for arch in archs] for _ in settings], dtype=float)

    @property
    def asked(self):
        return [arch for batch in self.batches for arch in batch]


def evolve(utility, *, seed=0, n_evaluations=60, seen=(), population=None):
    return by_evolution(
        utility,
        MutationOperator(MLP),
        mlp_pool() if population is None else population,
        settings=Settings(({},), seen),
        n_evaluations=n_evaluations,
        rng=np.random.default_rng(seed),
    )


def climb(utility, *, seed=0, n_evaluations=60, seen=(), incumbents=(), exact_utility=None):
    return by_evolution_and_climbing(
        utility,
        MutationOperator(MLP),
        mlp_pool(),
        incumbents=incumbents,
        exact_utility=exact_utility or utility,
        is_rough=exact_utility is not None,
        settings=Settings(({},), seen),
        n_evaluations=n_evaluations,
        rng=np.random.default_rng(seed),
    )


def test_evolution_asks_as_often_as_it_may_and_in_batches():
    utility = Counted()
    maximum = evolve(utility)
    assert len(utility.asked) == maximum.n_evaluations == len(mlp_pool()) + 60
    assert len(set(utility.asked)) == len(utility.asked)  # no network twice, up to numbering
    assert [len(batch) for batch in utility.batches] == [
        3,
        *[mutation_schedule(60)] * 2,
        60 - 2 * mutation_schedule(60),
    ]


def test_the_best_is_the_best_of_those_asked_about():
    utility = Counted()
    maximum = evolve(utility)
    assert max(map(value_of, utility.asked)) == value_of(maximum.best.arch) == pytest.approx(maximum.best.utility)
    assert maximum.by_phase == (("evolution", maximum.best.utility),)


@pytest.mark.parametrize("seed", range(8))
def test_climbing_never_ends_below_evolution(seed):
    """The same draws first; then it can only get better."""
    alone = evolve(Counted(), seed=seed)
    both = climb(Counted(), seed=seed)
    phases = dict(both.by_phase)
    assert phases["evolution"] == alone.best.utility
    assert both.best.utility == phases["climbing"] >= phases["evolution"]
    assert alone.n_evaluations < both.n_evaluations <= 2 * 60 + len(mlp_pool())


def test_climbing_is_worth_it():
    gains = [climb(Counted(), seed=s).best.utility - evolve(Counted(), seed=s).best.utility for s in range(8)]
    assert sum(gain > 0 for gain in gains) >= 4


@pytest.mark.parametrize("n_evaluations", [40, 1000])
def test_a_climber_moves_to_the_best_of_some_of_its_edits_until_none_is_better(n_evaluations):
    utility, start = Counted(), mlp_pool()[0]
    candidates = _Candidates(utility, Settings(({},), ()))
    candidates.look_at([(start, start, ())])
    _climb(candidates, MutationOperator(MLP), [start], n_evaluations, np.random.default_rng(0))
    (_, *batches), at, before = utility.batches, start, None
    assert len(batches) > 2
    for batch in batches:
        assert value_of(at) > (-np.inf if before is None else value_of(before))
        assert set(batch) <= {edit.arch for edit in one_step_edits(at, MLP)}
        assert len(batch) <= EDITS_PER_STEP
        before, at = at, max(batch, key=value_of)
    n = sum(map(len, batches))
    assert n == n_evaluations or (n < n_evaluations and value_of(at) <= value_of(before))


def test_climbing_starts_from_incumbents_too():
    """An incumbent beyond evolution's reach: what is found is one of its neighbours."""
    utility = Counted()
    far = evolve(Counted(), n_evaluations=400, seed=5).best.arch
    maximum = climb(utility, incumbents=[far], seen={far.fingerprint}, n_evaluations=20)
    assert maximum.best.origin == far
    assert far in utility.asked


def test_what_is_seen_is_looked_through_but_not_proposed():
    first = evolve(Counted()).best
    second = evolve(Counted(), seen={first.arch.fingerprint}).best
    assert second.arch != first.arch
    assert second.utility < first.utility


def test_what_must_not_be_proposed_is_not():
    """-inf marks it; where nothing else is found there is no proposal."""
    maximum = evolve(Counted(lambda arch: -np.inf))
    assert maximum.best is None
    assert maximum.by_phase == ()
    worse = evolve(Counted(lambda arch: -np.inf if len(arch.layers) > 4 else value_of(arch)))
    assert len(worse.best.arch.layers) <= 4


def test_of_equals_the_first_by_its_fingerprint():
    """And what differs in the last bits only is equal: they depend on the processor."""
    utility = Counted(lambda arch: 1.0 + len(arch.layers) * 1e-12)
    assert evolve(utility).best.arch == min(utility.asked, key=lambda arch: arch.fingerprint)


def test_lineage_goes_back_to_the_population():
    best = evolve(Counted(), n_evaluations=200).best
    assert best.origin in mlp_pool()
    assert len(best.steps) > 1
    assert all(step.description for step in best.steps)


def test_a_rough_utility_searches_and_the_exact_one_decides():
    rough, exact = Counted(lambda arch: len(arch.layers)), Counted()
    maximum = climb(rough, exact_utility=exact, incumbents=mlp_pool()[:1], seen={mlp_pool()[0].fingerprint})
    assert len(exact.asked) == 32
    assert mlp_pool()[0] not in exact.asked
    assert min(len(arch.layers) for arch in exact.asked) >= sorted(len(arch.layers) for arch in rough.asked)[-33]
    assert max(map(value_of, exact.asked)) == value_of(maximum.best.arch) == pytest.approx(maximum.best.utility)
    assert maximum.n_evaluations == len(rough.asked) + len(exact.asked)
    assert maximum.best.origin in mlp_pool()


# -- params ------------------------------------------------------------------------------------------------------------

DOMAIN = Domain(
    MLP,
    {
        "rate": Float(1e-4, 1e-1, log=True, default=1e-2),
        "batch": Choice(8, 16, 32, 64, 128, ordered=True, default=32),
        "schedule": Choice("cosine", "step", "constant"),
    },
)
POOL = tuple(Candidate(arch, DOMAIN.default()) for arch in mlp_pool())


def joint(of, *, history=None, prior=None, seed=0):
    """The best candidate for a utility of params alone."""

    def utility(archs, settings):
        return np.array([[of(params)] * len(archs) for params in settings], dtype=float)

    history = History() if history is None else history
    rng = np.random.default_rng(seed)
    return by_evolution_and_climbing(
        utility,
        MutationOperator(MLP),
        mlp_pool(),
        incumbents=(),
        exact_utility=utility,
        is_rough=False,
        settings=Settings.of(DOMAIN, history, POOL, rng, prior=prior),
        n_evaluations=20,
        rng=rng,
    ).best


@pytest.mark.parametrize("seed", range(4))
def test_params_are_tuned_one_by_one_to_where_the_utility_is_highest(seed):
    wanted = {"rate": 6e-4, "batch": 128, "schedule": "step"}
    best = joint(lambda params: -np.abs(DOMAIN.unit(params) - DOMAIN.unit(wanted)).sum(), seed=seed).params
    assert (best["batch"], best["schedule"]) == (128, "step")
    assert abs(DOMAIN.unit(best)[0] - DOMAIN.unit(wanted)[0]) < 0.1


def test_the_prior_decides_where_the_utility_does_not_and_fades():
    centre = {"rate": 1e-3, "batch": 64}
    assert joint(lambda params: 0.0, prior=centre).params["batch"] == 64
    histories = [of_outcomes((candidate, Scored(0.0)) for candidate in POOL * times) for times in (1, 20)]
    early, late = (Settings.of(DOMAIN, h, POOL, np.random.default_rng(0), prior=centre) for h in histories)
    assert early.log_prior.min() < 5 * late.log_prior.min() < 0
    assert not Settings.of(DOMAIN, histories[0], POOL, np.random.default_rng(0)).log_prior.any()


def test_known_candidates_are_passed_over_but_not_their_networks():
    history = of_outcomes((candidate, Scored(0.0)) for candidate in POOL)
    best = joint(lambda params: 5.0 * (params == DOMAIN.default()) + 0.0, history=history)
    assert Candidate(best.arch, best.params) not in POOL
    assert best.params == DOMAIN.default()


def test_climbers_that_gain_nothing_stay_where_they_are():
    utility = Counted(lambda arch: 0.0)
    maximum = climb(utility, n_evaluations=200)
    once = 2 * CLIMBERS * EDITS_PER_STEP
    assert maximum.n_evaluations <= len(mlp_pool()) + 200 + once < len(mlp_pool()) + 400


def test_settings_are_mostly_small_changes_of_known_ones():
    known = [*(candidate.params for candidate in POOL), DOMAIN.default()]
    settings = Settings.of(DOMAIN, History(), POOL, np.random.default_rng(0))
    changes = [min(sum(params[name] != other[name] for name in other) for other in known) for params in settings.values]
    assert sum(n == 1 for n in changes) > sum(n > 1 for n in changes) > 0


def test_a_network_that_is_known_with_its_best_params_is_looked_at_with_others():
    history = of_outcomes((candidate, Scored(0.0)) for candidate in POOL)
    favourite = POOL[0].arch

    def utility(archs, settings):
        return np.array([[10.0 * (a == favourite) + (p == DOMAIN.default()) for a in archs] for p in settings])

    rng = np.random.default_rng(0)
    best = by_evolution_and_climbing(
        utility,
        MutationOperator(MLP),
        mlp_pool(),
        incumbents=(),
        exact_utility=utility,
        is_rough=False,
        settings=Settings.of(DOMAIN, history, POOL, rng),
        n_evaluations=20,
        rng=rng,
    ).best
    assert best.arch == favourite
    assert best.params != DOMAIN.default()


def crowded(n=4):
    """A network known with several params, the best first, and a candidate right beside the second of them."""
    rates = (1e-2, 1e-3, 3e-2, 3e-3)[:n]
    arch, default = POOL[0].arch, DOMAIN.default()
    known = [Candidate(arch, default | {"rate": rate}) for rate in rates]
    history = of_outcomes((candidate, Scored(-float(i))) for i, candidate in enumerate(known))
    return known, history, Candidate(arch, known[1].params | {"schedule": "step"})


@pytest.mark.parametrize("n_first", [0, 5])
@pytest.mark.parametrize("seed", range(8))
def test_what_lies_beside_a_known_candidate_is_found_though_its_network_is_known_with_the_first_settings(seed, n_first):
    known, history, wanted = crowded()
    rng = np.random.default_rng(seed)
    settings = Settings.of(DOMAIN, history, POOL, rng)
    assert [Candidate(wanted.arch, params) for params in settings.few().values] == known

    def utility(archs, params):
        return np.array([[float(Candidate(arch, p) == wanted) for arch in archs] for p in params])

    best = by_evolution_and_climbing(
        utility,
        MutationOperator(MLP),
        mlp_pool(),
        incumbents=[trial.arch for trial in history.ranked],
        exact_utility=utility,
        is_rough=False,
        settings=settings,
        n_evaluations=20,
        n_first=n_first,
        rng=rng,
    ).best
    assert Candidate(best.arch, best.params) == wanted


def test_evolution_goes_on_from_a_network_that_is_known_with_all_it_is_looked_at_with():
    known, history, _ = crowded()
    favourite = known[0].arch
    utility = Counted(lambda arch: 10.0 * (arch == favourite))
    maximum = by_evolution(
        utility,
        MutationOperator(MLP),
        mlp_pool(),
        settings=Settings.of(DOMAIN, history, POOL, np.random.default_rng(0)).few(),
        n_evaluations=5,
        rng=np.random.default_rng(0),
    )
    assert maximum.best.arch != favourite  # it may not be proposed
    steps = [one_step_edits(arch, MLP) for arch in mlp_pool()]
    of_favourite, *of_others = ({edit.arch for edit in edits} for edits in steps)
    children = [arch for arch in utility.asked if arch not in mlp_pool()]
    assert sum(child in of_favourite for child in children) > sum(
        any(child in of for of in of_others) for child in children
    )


@pytest.mark.parametrize("seed", range(6))
def test_tuning_leaves_out_what_it_has_tried_and_chooses_the_same(seed, monkeypatch):
    wanted = DOMAIN.drawn(np.random.default_rng(seed))
    _, history, _ = crowded()
    asked = []

    def utility(archs, settings):
        asked.append([(arch, repr(params)) for params in settings for arch in archs])
        size = [len(arch.layers) + arch.total_mass / 1e3 for arch in archs]
        far = [np.abs(DOMAIN.unit(params) - DOMAIN.unit(wanted)).sum() for params in settings]
        return np.array([[np.sin(37 * n * f) - 3 * f for n in size] for f in far])

    def maximum():
        asked.clear()
        rng = np.random.default_rng(seed)
        found = by_evolution_and_climbing(
            utility,
            MutationOperator(MLP),
            mlp_pool(),
            incumbents=[trial.arch for trial in history.ranked],
            exact_utility=utility,
            is_rough=False,
            settings=Settings.of(DOMAIN, history, POOL, rng),
            n_evaluations=20,
            rng=rng,
        )
        return found, [pair for batch in asked for pair in batch]

    found, once = maximum()
    monkeypatch.setattr(Settings, "without", lambda settings, keys: settings)
    again, more = maximum()
    assert found == again
    assert set(once) == set(more)
    assert len(once) < len(more)


@pytest.mark.parametrize("with_params", [False, True])
def test_where_nothing_may_be_proposed_the_exact_utility_is_not_asked_and_there_is_no_best(with_params):
    rough, exact = Counted(), Counted()
    domain = Domain(MLP, {"rate": Float(1e-4, 1e-1, default=1e-2, log=True)} if with_params else {})
    default = domain.default()
    seen = {Candidate(arch, default).fingerprint for arch in mlp_pool()}
    maximum = by_evolution_and_climbing(
        rough,
        MutationOperator(MLP),
        mlp_pool(),
        incumbents=(),
        exact_utility=exact,
        is_rough=True,
        settings=Settings((default,), seen, domain=domain if with_params else None),
        n_evaluations=0,
        rng=np.random.default_rng(0),
    )
    assert maximum.best is None
    assert maximum.by_phase == ()
    assert maximum.n_evaluations == len(rough.asked) == len(mlp_pool())
    assert not exact.batches


@pytest.mark.parametrize(("n_finished", "weight"), [(0, 10.0), (3, 10.0), (4, 10.0), (5, 5.0), (8, 2.0)])
def test_what_is_known_beforehand_counts_for_ten_trials_after_the_pool(n_finished, weight):
    domain, pool = Domain(MLP, {"rate": Float(0.0, 1.0)}), [Candidate(arch, {"rate": 0.5}) for arch in mlp_pool()[:3]]
    rng = np.random.default_rng(0)
    history = of_outcomes(
        [
            (Candidate(arch, {"rate": 0.01 * i}), Scored(float(i)))
            for i, arch in enumerate((mlp_pool() * 9)[:n_finished])
        ]
    )
    assert Settings.of(domain, history, pool, rng).prior_weight == pytest.approx(weight)


def test_half_of_the_settings_are_those_of_the_pool():
    domain = Domain(MLP, {"rate": Float(0.0, 1.0)})
    pool = [Candidate(mlp_pool()[0], {"rate": i / 20}) for i in range(20)]
    settings = Settings.of(domain, History(), pool, np.random.default_rng(0))
    assert settings.values[:8] == (domain.default(), *(c.params for c in pool if c.params != domain.default()))[:8]
    assert settings.values[8] not in [candidate.params for candidate in pool]
    assert len(settings.values) == 16


@pytest.mark.parametrize(("search", "phases"), [(evolve, 1), (climb, 2)])
@pytest.mark.parametrize("n", [0, 1, 2, 11])
def test_the_last_evaluation_of_each_phase_is_spent_too(search, phases, n):
    assert search(Counted(), n_evaluations=n).n_evaluations == len(mlp_pool()) + phases * n


class Stubborn:
    """A domain that always gives the same params, and counts how often it was asked."""

    params = ("rate",)

    def __init__(self):
        self.n_changed = self.n_drawn = 0

    def default(self):
        return {"rate": 1.0}

    def changed(self, _, __):
        self.n_changed += 1
        return self.default()

    def drawn(self, _):
        self.n_drawn += 1
        return self.default()


def test_other_settings_are_given_up_after_eight_tries_for_each_a_quarter_of_them_draws():
    domain = Stubborn()
    settings = Settings.of(domain, History(), (), np.random.default_rng(0))
    assert settings.values == (domain.default(),)
    assert (domain.n_changed, domain.n_drawn) == (96, 32)
