"""What a search shows while it runs, on a terminal and elsewhere."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.cli import _progress
from nasbot.cli._progress import _State, _table, described, duration, progress, sparkline
from nasbot.data.metrics import METRICS
from nasbot.study import Budget
from nasbot.trial import Failed, FailureCause, Point, Provenance, Scored, Trial

ARCHS = initial_pool("mlp-reg")


def trial(number, **changes):
    return replace(
        Trial(number=number, candidate=Candidate(ARCHS[number]), origin=Provenance(searcher="pool")), **changes
    )


def ended(number, outcome):
    return trial(number).begun(1.0).ended(outcome, at=3.5, rank=number)


class TestWords:
    def test_sparkline(self):
        assert sparkline([]) == ""
        assert sparkline([1.0]) == "▁"
        assert sparkline([3.0, 2.0, 1.0]) == "█▄▁" or sparkline([3.0, 2.0, 1.0]) == "█▅▁"
        long = sparkline([float(-i) for i in range(1000)])
        assert len(long) == 24
        assert (long[0], long[-1]) == ("█", "▁")

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(0.31, "0.3 s"), (42.4, "42 s"), (125, "2 min 5 s"), (7500, "2 h 5 min"), (3e5, "3 d 11 h")],
    )
    def test_duration(self, seconds, text):
        assert duration(seconds) == text

    def test_where_a_network_came_from(self):
        assert described(trial(0)) == "initial pool"
        made = Trial(
            number=1,
            candidate=Candidate(ARCHS[1]),
            origin=Provenance(searcher="NASBOT", parents=(0,), changes=("a", "b\x1b")),
        )
        assert described(made) == "from 0: a; b\\x1b"
        assert described(replace(made, fidelity=1 / 9)) == "1/9 of a training, from 0: a; b\\x1b"
        again = replace(made, origin=Provenance(searcher="NASBOT", parents=(0,)), promoted_from=0)
        assert described(replace(again, fidelity=1 / 3)) == "1/3 of a training, promoted from trial 0"
        assert described(again) == "a full training, promoted from trial 0"


class TestLines:
    def test_one_for_each_trial_that_ends(self, capsys):
        with progress(Budget(trials=3), elapsed=lambda: 0.0, trials=[], metric=METRICS["mse"]) as tell:
            running = trial(0).begun(0.5)
            tell(running)
            tell(running.with_points([Point(1, 0.5)]))
            tell(ended(0, Scored(0.25)))
            tell(ended(1, Failed(FailureCause.NAN, "diverged\nat step 3")))
            tell(trial(2).begun(4.0))
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("trial   0  begun")
        assert lines[1].startswith("trial   0  mse 0.25  2.5 s  initial pool")
        assert lines[1].endswith("best so far")
        assert lines[2] == "trial   1  failed (nan) after 2.5 s: diverged"
        assert len(lines) == 3

    def test_a_resumed_study_knows_its_best(self, capsys):
        with progress(
            Budget(trials=3), elapsed=lambda: 9.0, trials=[ended(0, Scored(0.25))], metric=METRICS["mse"]
        ) as tell:
            tell(ended(1, Scored(0.5)))
        assert "best so far" not in capsys.readouterr().err


class TestTable:
    def shown(self, state):
        console = Console(file=io.StringIO(), width=120, force_terminal=False)
        console.print(_table(state))
        return console.file.getvalue()

    def test_running_trials_have_curves_and_failures_have_causes(self):
        state = _State(Budget(seconds=600.0), lambda: 5.0, [], METRICS["mse"])
        assert "none yet" in self.shown(state)
        state.take(trial(3).begun(0.0).with_points([Point(i, 1.0 / (i + 1)) for i in range(5)]))
        state.take(ended(0, Scored(0.25)))
        state.take(ended(1, Failed(FailureCause.TIMEOUT, "slow")))
        text = self.shown(state)
        assert "█" in text
        assert "0.25 (trial 0: initial pool)" in text
        assert "1 completed, 1 running; failures: 1 timeout" in text
        assert "9 min 55 s left" in text, "on the study's clock"
        assert "Ctrl-C" in text

    def test_a_long_description_takes_no_other_columns_room(self):
        state = _State(Budget(trials=9), lambda: 0.0, [], METRICS["mse"], width=90)
        origin = Provenance(searcher="NASBOT", parents=(3,), changes=("layer 7 is changed into another",) * 9)
        made = Trial(number=7, candidate=Candidate(ARCHS[7]), origin=origin).begun(1.0)
        state.take(made.with_points([Point(1, 0.5), Point(2, 0.25)]).ended(Scored(0.25), at=3.5, rank=0))
        console = Console(file=io.StringIO(), width=90, force_terminal=False)
        console.print(_table(state))
        row = next(line for line in console.file.getvalue().splitlines() if "█▁" in line)
        assert row.split()[:3] == ["7", "*", "0.25"]
        assert "2.5 s" in row
        assert "from 3: layer 7" in row

    def test_a_trial_that_waits_again_is_not_shown_as_running(self):
        state = _State(Budget(trials=9), lambda: 0.0, [], METRICS["mse"])
        running = trial(3).begun(0.0)
        state.take(running)
        state.take(running.requeued(interrupted=True))
        assert state.running == {}

    def test_on_a_terminal_it_is_live(self, monkeypatch):
        screen = io.StringIO()
        monkeypatch.setattr(
            "rich.console.Console", lambda **options: Console(file=screen, force_terminal=True, width=100)
        )
        with _progress.progress(Budget(trials=3), elapsed=lambda: 0.0, trials=[], metric=METRICS["mse"]) as tell:
            tell(trial(0).begun(0.0))
            tell(ended(0, Scored(0.25)))
        assert "0.25 (trial 0" in screen.getvalue()
