"""The numbers behind the pictures, worked out by hand."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from nasbot.architecture.resources import resources
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.plots import series
from nasbot.plots.snapshot import Snapshot, plain
from nasbot.searchers import RandomSearch
from nasbot.study import Study
from nasbot.trial import Direction, Forecast, History, Provenance

from .studies import ALL_FAILED, EMPTY, EXTREMES, ONE, POOL, WAITING, as_minimised, by_hand, completed, failed

ALL = {
    name: getattr(series, name)
    for name in (
        "history",
        "timeline",
        "curves",
        "costs",
        "failures",
        "surrogate",
        "acquisition",
        "lineage",
        "ledger",
        "layer_use",
        "time_split",
        "architecture_map",
    )
}


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", ALL)
def test_every_series_copes_with_a_study_that_has_little_to_show(name, extreme):
    found = ALL[name](EXTREMES[extreme])
    json.dumps(plain(found), allow_nan=False)
    if extreme == "no trials":
        assert found.message


@pytest.mark.parametrize("name", ALL)
def test_every_series_is_plain_data_and_does_not_mind_where_it_comes_from(name):
    snapshot = as_minimised()
    assert plain(ALL[name](snapshot)) == plain(ALL[name](Snapshot.of(snapshot)))
    json.dumps(plain(ALL[name](snapshot)), allow_nan=False)
    assert ALL[name](by_hand()).message == ""


def test_a_study_is_shown_in_its_own_sense():
    study = Study.in_memory(RandomSearch(space=SearchSpace("mlp-reg")), direction="minimise", pool=POOL[:2])
    for value in (4.0, 3.0):
        study.tell(study.ask(), value)
    snapshot = Snapshot.of(study, name="mine")
    assert (snapshot.name, snapshot.searcher, snapshot.direction) == ("mine", "RAND", Direction.MINIMISE)
    assert [point.value for point in series.history(study).points] == [4.0, 3.0]
    assert [point.best for point in series.history(study).points] == [4.0, 3.0]
    assert series.history(study).n_pool == 2


# -- history ---------------------------------------------------------------------------------------------------------


def test_history():
    found = series.history(by_hand())
    assert [(p.trial, p.place, p.seconds) for p in found.points] == [
        (0, 1, 10.0),
        (1, 2, 20.0),
        (2, 3, 25.0),
        (3, 4, 40.0),
        (4, 5, 45.0),
        (7, 6, 45.0),
    ]
    assert [p.value for p in found.points] == [1.0, 3.0, None, 2.0, 5.0, None]
    assert [p.best for p in found.points] == [1.0, 3.0, 3.0, 3.0, 5.0, 5.0]
    assert [p.trial for p in found.records] == [0, 1, 4]
    assert [p.cause for p in found.points] == ["", "", "nan", "", "", ""]


def test_history_of_what_is_minimised():
    values = [p.best for p in series.history(as_minimised()).points]
    assert values == [-1.0, -3.0, -3.0, -3.0, -5.0, -5.0]


def test_failures_before_the_first_value_have_no_best():
    found = series.history(History((failed(0, "nan", rank=0), completed(1, 2.0, rank=1))))
    assert [p.best for p in found.points] == [None, 2.0]
    assert series.history(ALL_FAILED).message == "no trial has a value yet: 3 failed"


# -- timeline --------------------------------------------------------------------------------------------------------


def test_workers_are_made_out_from_the_times():
    found = series.timeline(by_hand())
    assert found.n_workers == 2
    assert [(s.trial, s.worker, s.start, s.end) for s in found.spans] == [
        (0, 0, 0.0, 10.0),
        (1, 1, 0.0, 20.0),
        (2, 0, 10.0, 25.0),
        (3, 1, 20.0, 40.0),
        (4, 0, 25.0, 45.0),
        (5, 1, 40.0, 45.0),
    ]
    assert [s.state for s in found.spans][-1] == "running"
    assert found.elapsed == 45.0
    assert found.busy == pytest.approx(1.0)
    assert [s.deciding for s in found.spans] == [0.0, 0.0, 0.0, 2.0, 2.0, 0.0]
    assert series.timeline(WAITING).message == "no trial has begun yet"


def test_no_two_trials_share_a_worker_at_a_time():
    trials = [completed(n, 1.0, rank=n, started=float(7 * n % 13), finished=20.0 + n) for n in range(10)]
    found = series.timeline(History(tuple(trials)))
    assert found.n_workers == 10
    for worker in range(found.n_workers):
        mine = sorted((s.start, s.end) for s in found.spans if s.worker == worker)
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))


# -- curves ----------------------------------------------------------------------------------------------------------


def test_curves():
    found = series.curves(as_minimised())
    assert [(c.trial, c.steps, c.values) for c in found.curves] == [
        (0, (1, 2), (-0.5, -1.0)),
        (1, (1, 2), (-2.0, -3.5)),
        (5, (1,), (-1.0,)),
    ]
    assert series.curves(ONE).message.startswith("no learning curves")


# -- costs -----------------------------------------------------------------------------------------------------------


def test_the_front_is_what_nothing_beats():
    def trial(n, seconds, value):
        return completed(n, value, rank=n, started=0.0, finished=seconds)

    found = series.costs(
        History(tuple(map(trial, range(5), (5.0, 1.0, 3.0, 3.0, 9.0), (2.0, 1.0, 4.0, 3.0, 4.0)))), "seconds"
    )
    assert [(p.cost, p.value) for p in found.front] == [(1.0, 1.0), (3.0, 4.0)]
    assert [p.trial for p in found.points] == [0, 1, 2, 3, 4]


def test_of_what_is_minimised_the_front_has_low_values():
    found = series.costs(as_minimised(), "seconds")
    assert [(p.trial, p.cost, p.value) for p in found.front] == [(0, 10.0, -1.0), (1, 20.0, -3.0), (4, 20.0, -5.0)][::2]


def test_parameters_are_reported_or_counted_or_else_the_mass_is_shown():
    assert series.costs(by_hand()).cost == "mass"
    assert series.costs(by_hand()).points[0].cost == POOL[0].total_mass
    reported = History((completed(0, 1.0, rank=0, details={"parameters": 7}),))
    assert (series.costs(reported).cost, series.costs(reported).points[0].cost) == ("parameters", 7.0)
    settings = {"space": {"input_shape": [9], "n_outputs": 2}}
    counted = series.costs(Snapshot(ONE, settings=settings))
    assert (counted.cost, counted.points[0].cost) == ("parameters", resources(POOL[0], (9,), 2).parameters)
    assert series.costs(Snapshot(ONE, settings={"space": {"input_shape": [9, "x"]}})).cost == "mass"
    with pytest.raises(OptionError, match="parameters, mass, seconds"):
        series.costs(ONE, "money")


# -- comparison ------------------------------------------------------------------------------------------------------


def values(*numbers, seconds=10.0):
    return History(
        tuple(
            failed(n, "nan", rank=n, started=seconds * n, finished=seconds * (n + 1))
            if value is None
            else completed(n, value, rank=n, started=seconds * n, finished=seconds * (n + 1))
            for n, value in enumerate(numbers)
        )
    )


def test_mean_and_standard_error_where_all_have_a_value():
    found = series.comparison({"a": [values(1.0, 3.0, 2.0, 9.0), values(None, 1.0, 5.0)], "b": [values(2.0)]})
    a, b = found.groups
    assert (a.x, a.mean, a.n_studies, a.final) == ((2.0, 3.0), (2.0, 4.0), 2, (3.0, 5.0))
    assert a.stderr == pytest.approx((1.0, 1.0))
    assert (b.x, b.mean, b.stderr) == ((1.0,), (2.0,), (0.0,))


def test_by_time_each_study_has_its_best_at_the_moment():
    found = series.comparison({"a": [values(1.0, 3.0, seconds=10.0), values(2.0, 2.0, 7.0, seconds=5.0)]}, by="seconds")
    (a,) = found.groups
    assert (a.x[0], a.x[-1], len(a.x)) == (10.0, 15.0, series.N_TIMES)
    assert a.mean[0] == 1.5
    assert a.mean[-1] == 4.0


def test_comparison_refuses_what_cannot_be_compared():
    with pytest.raises(OptionError, match="cannot be compared"):
        series.comparison({"a": [ONE], "b": [as_minimised()]})
    with pytest.raises(OptionError, match="trials or seconds"):
        series.comparison({"a": [ONE]}, by="weeks")
    assert series.comparison({"a": [EMPTY], "b": [ALL_FAILED]}).message
    assert series.comparison({}).message


def test_studies_that_differ_in_the_seed_alone_are_one_group():
    def of(name, seed, searcher="RAND", **more):
        return Snapshot(ONE, name=name, settings={"seed": seed, "searcher": {"name": searcher}, **more})

    groups = series.grouped([of("x0", 0), of("y", 0, "EA"), of("x1", 1)])
    assert {name: [s.name for s in members] for name, members in groups.items()} == {"RAND": ["x0", "x1"], "EA": ["y"]}
    groups = series.grouped([of("x0", 0), of("x1", 1), of("z", 0, context={"data": "other"})])
    assert {name: len(members) for name, members in groups.items()} == {"x0": 2, "z": 1}
    same = series.grouped([of("x", 0, context={"data": 1}), of("x", 0, context={"data": 2})])
    assert list(same) == ["x", "x (another)"]


# -- layers, failures, time ------------------------------------------------------------------------------------------


def test_layer_use():
    found = series.layer_use(by_hand(), n_best=1)
    best = [POOL[4].layers[u].label for u in POOL[4].processing_layers]
    everyone = [POOL[n].layers[u].label for n in (0, 1, 3, 4) for u in POOL[n].processing_layers]
    assert (found.n_best, found.n_all) == (1, 4)
    assert {row.label: row.share_best for row in found.rows} == pytest.approx(
        {label: best.count(label) / len(best) for label in set(everyone)}
    )
    assert {row.label: row.share_all for row in found.rows} == pytest.approx(
        {label: everyone.count(label) / len(everyone) for label in set(everyone)}
    )
    assert sum(row.share_all for row in found.rows) == pytest.approx(1.0)
    with pytest.raises(OptionError):
        series.layer_use(by_hand(), n_best=0)


def test_failures_by_cause():
    found = series.failures(ALL_FAILED)
    assert [(row.cause, row.n, row.trials, row.example, row.seconds) for row in found.rows] == [
        ("oom", 2, (0, 2), "it broke", 20.0),
        ("nan", 1, (1,), "", 10.0),
    ]
    assert (found.n_failed, found.n_finished) == (3, 3)
    assert series.failures(ONE).message == "no failures among 1 finished trials"


def test_time_split():
    found = series.time_split(by_hand())
    assert [row.trial for row in found.rows] == [0, 1, 2, 3, 4, 5, 7]
    row = found.rows[4]
    assert (row.distances, row.fitting, row.maximising, row.other, row.training) == (0.5, 0.25, 1.0, 0.25, 20.0)
    assert row.deciding == 2.0
    assert found.training == 10 + 20 + 15 + 20 + 20
    assert found.deciding.total == 4.0
    assert found.share_deciding == pytest.approx(4 / 89)
    assert found.cumulative_deciding[-1] == 4.0
    assert found.cumulative_training[2] == 45.0


# -- beliefs ---------------------------------------------------------------------------------------------------------


def test_surrogate_health():
    found = series.surrogate(by_hand())
    assert [(p.trial, p.observed, p.median, p.lower, p.upper, p.inside) for p in found.points] == [
        (3, 2.0, 2.5, 1.5, 3.5, True),
        (4, 5.0, 4.0, 2.0, 4.5, False),
    ]
    assert found.running_coverage == (1.0, 0.5)
    assert found.coverage == 0.5
    assert math.isnan(found.rank_correlation)


def test_of_what_is_minimised_lower_is_still_lower():
    found = series.surrogate(as_minimised())
    assert [(p.observed, p.lower, p.median, p.upper, p.inside) for p in found.points] == [
        (-2.0, -3.5, -2.5, -1.5, True),
        (-5.0, -4.5, -4.0, -2.0, False),
    ]


def test_log_density_is_that_of_the_standardised_value():
    """With the warp `none` values 1 and 3 have mean 2 and sd 1, so that 2 is 0 where mean 1 and sd 0.5 are: z = -2."""
    proposed = by_hand()[3]
    trials = (*by_hand()[:2], replace(by_hand()[2]), replace(proposed, proposed_after=2))
    settings = {"searcher": {"name": "NASBOT", "belief": {"warp": "none"}}}
    (point,) = series.surrogate(Snapshot(History(trials), settings=settings)).points
    assert point.z == pytest.approx(-2.0)
    assert point.log_density == pytest.approx(-0.5 * 4 - math.log(0.5) - 0.5 * math.log(2 * math.pi))


def test_what_was_not_known_yet_does_not_count():
    """Proposed after nothing was finished: there is no unit to standardise by."""
    assert [p.z for p in series.surrogate(by_hand()).points] == [None, None]


def test_searchers_without_predictions_say_so():
    origin = Provenance(searcher="RAND", parents=(0,), modifiers=("skip",))
    history = History((completed(0, 1.0, rank=0), completed(1, 2.0, rank=1, origin=origin)))
    assert series.surrogate(history).message == "RAND predicts nothing: searchers with a surrogate (NASBOT) do"
    assert "RAND maximises no acquisition" in series.acquisition(history).message
    assert "pool" in series.surrogate(ONE).message
    said = by_hand()[3]
    only_pending = History(
        (completed(0, 1.0, rank=0), failed(1, "nan", rank=1, origin=said.origin, forecast=said.forecast))
    )
    assert series.surrogate(only_pending).message == "no network that was predicted has a value yet"


@pytest.mark.parametrize(
    "more",
    [
        {"notes": {"predicted": 3, "mean": "x", "sd": None, "parents": "none", "seconds": 3.0}},
        {"forecast": Forecast(median=1.0, upper=2.0, sd=0.0), "origin": Provenance(seconds={"fitting": 9.0})},
        {"forecast": Forecast(utility=1.0), "origin": Provenance(parents=(1,), modifiers=("skip",))},
        {"forecast": Forecast(feasible=0.5, mean=math.nan), "origin": Provenance(searcher="mine", parents=(7, 0))},
    ],
)
def test_what_searchers_of_ones_own_leave_is_no_error(more):
    history = History((completed(0, 1.0, rank=0), completed(1, 2.0, rank=1, **more)))
    for make in ALL.values():
        json.dumps(plain(make(history)), allow_nan=False)
    assert series.lineage(history).nodes[1].parent is None


def test_acquisition_trace():
    found = series.acquisition(Snapshot(by_hand(), settings={"searcher": {"name": "N", "acquisition": "log-ei"}}))
    assert found.acquisition == "log-ei"
    assert [(p.trial, p.utility, p.n_utilities, p.feasible, p.is_record) for p in found.points] == [
        (3, -1.5, 120, 0.8, False),
        (4, -1.5, 120, 0.8, True),
    ]
    assert found.points[0].by_phase == (("evolution", -2.0), ("climbing", -1.5))


# -- lineage ---------------------------------------------------------------------------------------------------------


def test_lineage():
    found = series.lineage(by_hand())
    assert [node.parent for node in found.nodes] == [None, None, None, 0, 1, 4, None, None]
    assert [node.generation for node in found.nodes] == [0, 0, 0, 1, 1, 2, 0, 0]
    assert (found.winner, found.ancestry) == (4, (1, 4))
    assert [node.trial for node in found.nodes if node.is_ancestor] == [1, 4]
    assert [node.gain for node in found.nodes] == [None, None, None, 1.0, 2.0, None, None, None]
    assert [node.row for node in found.nodes] == [0, 1, 2, 0, 1, 1, 3, 4]
    assert found.n_rows == 5
    assert series.lineage(as_minimised()).nodes[4].gain == 2.0  # better is positive, also where less is better
    assert series.lineage(ALL_FAILED).winner is None


def test_a_parent_stands_in_the_middle_of_its_children():
    origin = Provenance(parents=(0,), modifiers=("skip",))
    history = History((completed(0, 1.0, rank=0), *(completed(n, 1.0, rank=n, origin=origin) for n in (1, 2, 3))))
    assert [node.row for node in series.lineage(history).nodes] == [1.0, 0.0, 1.0, 2.0]


def test_a_line_of_descent_may_be_as_long_as_the_study():
    trials = [completed(0, 0.0, rank=0)]
    trials += [completed(n, float(n), rank=n, origin=Provenance(parents=(n - 1,))) for n in range(1, 3000)]
    found = series.lineage(History(tuple(trials)))
    assert found.ancestry == tuple(range(3000))
    assert found.n_rows == 1


def test_modifier_ledger():
    rows = {row.modifier: row for row in series.ledger(by_hand()).rows}
    skip, swap = rows["skip"], rows["swap_label"]
    assert (skip.n_tries, skip.n_alone, skip.n_failed, skip.n_improved, skip.n_records) == (3, 2, 0, 2, 1)
    assert (skip.mean_gain, skip.best_gain, skip.in_ancestry) == (1.5, 2.0, 1)
    assert (swap.n_tries, swap.n_alone, swap.mean_gain, swap.n_records) == (1, 0, 2.0, 1)
    assert series.ledger(ONE).message == "no network was made by a modifier yet"
