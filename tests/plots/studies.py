"""Small histories made by hand, whose every series can be worked out on paper."""

from dataclasses import replace

from benchmarks.plots import study
from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.plots.snapshot import Snapshot
from nasbot.trial import (
    Cancelled,
    Direction,
    Failed,
    FailureCause,
    Forecast,
    History,
    Point,
    Provenance,
    Scored,
    Trial,
)

POOL = initial_pool("mlp-reg")
PROVIDED = Provenance(searcher="pool")


def completed(
    number, value, *, rank, started=None, finished=None, curve=(), details=None, arch=None, params=None, **more
):
    started = float(10 * number) if started is None else started
    return Trial(
        number=number,
        candidate=Candidate(arch or POOL[number % len(POOL)], params or {}),
        attempts=1,
        started=started,
        finished=started + 10.0 if finished is None else finished,
        rank=rank,
        outcome=Scored(value, details or {}),
        curve=tuple(Point(*point) for point in curve),
        **({"origin": PROVIDED} | more),
    )


def failed(number, cause, *, rank, started=None, finished=None, message="it broke\nat length", **more):
    started = float(10 * number) if started is None else started
    return Trial(
        number=number,
        candidate=Candidate(POOL[number % len(POOL)]),
        attempts=1,
        started=started,
        finished=started + 10.0 if finished is None else finished,
        rank=rank,
        outcome=Failed(FailureCause(cause), message),
        **({"origin": PROVIDED} | more),
    )


def by_hand():
    """Two workers. Values 1, 3, (nan), 2, 5, running, waiting, cancelled; trial 4 was made of 1, and 5 of 4."""
    origin = Provenance(
        searcher="NASBOT",
        parents=(1,),
        modifiers=("skip", "swap_label"),
        changes=("skip: 1 to 3", "swap_label: 2 to elu"),
        seconds={"distances": 0.5, "fitting": 0.25, "maximising": 1.0, "deciding": 2.0},
    )
    forecast = Forecast(
        median=4.0,
        lower=2.0,
        upper=4.5,
        mean=1.0,
        sd=0.5,
        feasible=0.8,
        utility=-1.5,
        n_utilities=120,
        utility_by_phase={"evolution": -2.0, "climbing": -1.5},
    )
    inside = {
        "origin": replace(origin, parents=(0,), modifiers=("skip",)),
        "forecast": replace(forecast, median=2.5, lower=1.5, upper=3.5),
    }
    return History(
        (
            completed(0, 1.0, rank=0, started=0.0, finished=10.0, curve=[(1, 0.5), (2, 1.0)]),
            completed(1, 3.0, rank=1, started=0.0, finished=20.0, curve=[(1, 2.0), (2, 3.5)]),
            failed(2, "nan", rank=2, started=10.0, finished=25.0),
            completed(3, 2.0, rank=3, started=20.0, finished=40.0, **inside, details={"parameters": 7}),
            completed(4, 5.0, rank=4, started=25.0, finished=45.0, origin=origin, forecast=forecast),
            Trial(
                number=5,
                candidate=Candidate(POOL[5]),
                origin=Provenance(searcher="NASBOT", parents=(4,), modifiers=("skip",)),
                attempts=1,
                started=40.0,
                curve=(Point(1, 1.0),),
            ),
            Trial(number=6, candidate=Candidate(POOL[6]), origin=Provenance(searcher="NASBOT", parents=(99,))),
            Trial(number=7, candidate=Candidate(POOL[7]), finished=45.0, rank=5, outcome=Cancelled()),
        )
    )


def as_minimised(history=None):
    """The same trials of an objective whose values have the other sign."""
    history = by_hand() if history is None else history
    return Snapshot(History(tuple(map(negated, history)), Direction.MINIMISE), "mine")


def negated(trial):
    changes = {"curve": tuple(Point(point.step, -point.value) for point in trial.curve)}
    if trial.value is not None:
        changes["outcome"] = Scored(-trial.value, trial.outcome.details)
    if (said := trial.forecast) is not None:
        changes["forecast"] = replace(said, median=-said.median, lower=-said.upper, upper=-said.lower)
    return replace(trial, **changes)


EMPTY = History()
WAITING = History((Trial(number=0, candidate=Candidate(POOL[0])),))
ONE = History((completed(0, 1.5, rank=0),))
ALL_FAILED = History((failed(0, "oom", rank=0), failed(1, "nan", rank=1, message=""), failed(2, "oom", rank=2)))
EXTREMES = {"no trials": EMPTY, "one waits": WAITING, "one value": ONE, "failures only": ALL_FAILED}


def grown(n, kind="mlp-reg"):
    """``n`` trials whose networks descend from the pool, with values, times and predictions; no search is run."""
    return study(n, kind).history
