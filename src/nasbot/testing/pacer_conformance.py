"""The promises of ``nasbot.pacing.Pacer`` as tests. Inherit, say how to make one, and let pytest collect it.

class TestMyPacer(PacerConformance):
    def make_pacer(self) -> Pacer:
        return MyPacer()
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from nasbot._json import plain_json
from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.pacing import Pacer
from nasbot.trial import (
    ADDED,
    FINAL,
    FORK,
    POOL,
    RETRY,
    Direction,
    Failed,
    FailureCause,
    History,
    Point,
    Provenance,
    Scored,
    Trial,
)

STEPS = (100, 200, 300, 400, 500, 600)


class PacerConformance:
    """Tests for any Pacer; ``make_pacer`` gives equal ones at every call."""

    def make_pacer(self) -> Pacer:
        """A new pacer; any two made here have the same settings."""
        raise NotImplementedError

    def test_it_says_what_it_is(self) -> None:
        pacer = self.make_pacer()
        assert pacer.name
        assert pacer.name.isprintable()
        settings = plain_json(pacer.settings())
        assert json.loads(json.dumps(settings, allow_nan=False)) == settings
        assert plain_json(self.make_pacer().settings()) == settings

    def test_any_history_is_answered_in_order(self) -> None:
        for direction in Direction:
            for history in histories(direction):
                bars = self.make_pacer().bars(history, proposed(history))
                assert [bar.step for bar in bars] == sorted(bar.step for bar in bars)
                assert all(math.isfinite(bar.value) and bar.direction is direction for bar in bars)

    def test_the_same_question_has_the_same_answer(self) -> None:
        pacer = self.make_pacer()
        history = trained(40)
        first = tuple(pacer.bars(history, proposed(history)))
        pacer.bars(trained(3), proposed(trained(3)))  # another question in between
        assert tuple(pacer.bars(history, proposed(history))) == first
        assert tuple(self.make_pacer().bars(history, proposed(history))) == first

    def test_what_nobody_proposed_is_trained_to_its_end(self) -> None:
        history = trained(40)
        for searcher in ("", POOL, FORK, RETRY, FINAL, ADDED):
            assert not self.make_pacer().bars(history, proposed(history, searcher=searcher)), searcher

    def test_the_best_so_far_is_never_stopped(self) -> None:
        for direction in Direction:
            history = trained(40, direction=direction)
            assert history.best is not None
            for bar in self.make_pacer().bars(history, proposed(history)):
                for point in history.best.curve:
                    assert bar.stopped(point.step, point.value) is None or point.step < bar.step


def histories(direction: Direction) -> Sequence[History]:
    """Of all kinds: empty, pending, failed, without curves, equal values, huge ones."""
    networks = [Candidate(arch) for arch in initial_pool("mlp-reg")]
    failure = Failed(FailureCause.NAN, "diverged")
    waiting = tuple(Trial(number=n, candidate=one) for n, one in enumerate(networks))
    failed = tuple(t.begun(0.0).ended(failure, at=1.0, rank=t.number) for t in waiting)
    bare = tuple(t.begun(0.0).ended(Scored(t.number), at=1.0, rank=t.number) for t in waiting)
    return (
        History((), direction),
        History(waiting, direction),
        History(failed, direction),
        History(bare, direction),
        trained(1, direction=direction),
        trained(40, direction=direction),
        trained(40, direction=direction, scale=0.0),
        trained(40, direction=direction, scale=1e300),
        trained(40, direction=direction, fidelity=1 / 9),
    )


def trained(n: int, *, direction: Direction = Direction.MAXIMISE, scale: float = 1.0, fidelity: float = 1.0) -> History:
    """``n`` completed trainings whose curves rise (or fall) side by side, the last one the best."""
    networks = [Candidate(arch) for arch in initial_pool("mlp-reg")]
    history = History((), direction)
    for number in range(n):
        ends = [direction.turned(scale * (number / n + step / STEPS[-1])) / 2 for step in STEPS]
        trial = Trial(
            number=number,
            candidate=networks[number % len(networks)],
            fidelity=fidelity,
            origin=Provenance(searcher="a searcher"),
            proposed_after=number,
        )
        points = [Point(step, value) for step, value in zip(STEPS, ends, strict=True)]
        trial = trial.begun(float(number)).with_points(points)
        history = history.with_trial(trial.ended(Scored(ends[-1]), at=number + 0.5, rank=number))
    return history


def proposed(history: History, *, searcher: str = "a searcher", fidelity: float = 1.0) -> Trial:
    """The next trial."""
    return Trial(
        number=len(history),
        candidate=Candidate(initial_pool("mlp-reg")[0]),
        fidelity=fidelity,
        origin=Provenance(searcher=searcher),
        proposed_after=len(history.finished),
    )
