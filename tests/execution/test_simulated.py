import pytest

from nasbot.errors import OptionError
from nasbot.execution import Finished, Limits, SimulatedExecutor
from nasbot.testing.executor_conformance import ExecutorConformance, count_layers, sample_job
from nasbot.trial import Failed, FailureCause, Scored


class TestSimulatedExecutor(ExecutorConformance):
    most_slots = 3

    def make_executor(self, slots: int = 1) -> SimulatedExecutor:
        return SimulatedExecutor(slots, duration=lambda arch: float(len(arch.layers)))


def started(objective, slots=1, **options) -> SimulatedExecutor:
    executor = SimulatedExecutor(slots, **options)
    executor.start(objective)
    return executor


def test_arrivals_follow_the_durations_and_ties_the_numbers():
    seconds = {0: 30.0, 1: 10.0, 2: 20.0, 3: 10.0}
    executor = started(lambda arch, trial: (1.0, seconds[trial.number]), slots=4)
    for n in range(4):
        executor.submit(sample_job(n))
    ends = [executor.wait()[-1] for _ in range(4)]
    assert [(end.number, end.at) for end in ends] == [(1, 10.0), (3, 10.0), (2, 20.0), (0, 30.0)]
    assert executor.now() == 30.0


def test_a_freed_slot_begins_at_the_moment_it_was_freed():
    executor = started(count_layers, slots=1, duration=lambda arch: 5.0)
    for n in range(3):
        executor.submit(sample_job(n))
        executor.wait()
    assert executor.now() == 15.0


def test_a_wait_that_is_too_short_moves_the_clock():
    executor = started(count_layers, duration=lambda arch: 5.0)
    executor.submit(sample_job(0))
    assert executor.wait(2.0) == ()
    assert executor.now() == 2.0
    (end,) = executor.wait(3.0)
    assert end.at == 5.0


def test_too_long_is_a_timeout_at_the_limit():
    executor = started(lambda arch: (1.0, 100.0), limits=Limits(seconds=7.0))
    executor.submit(sample_job(0))
    (end,) = executor.wait()
    assert isinstance(end, Finished)
    assert isinstance(end.outcome, Failed)
    assert (end.outcome.cause, end.at) == (FailureCause.TIMEOUT, 7.0)


def test_a_pair_is_a_value_and_its_seconds():
    executor = started(lambda arch: (2.5, 4))
    executor.submit(sample_job(0))
    (end,) = executor.wait()
    assert (end.outcome, end.at) == (Scored(2.5), 4.0)


@pytest.mark.parametrize("returned", [1.0, (1.0,), (1.0, -1.0), (1.0, float("nan")), (1.0, "2s"), None])
def test_what_is_no_pair_fails_the_trial_and_says_why(returned):
    executor = started(lambda arch: returned)
    executor.submit(sample_job(0))
    (end,) = executor.wait()
    assert isinstance(end.outcome, Failed)
    assert "seconds" in end.outcome.message


def test_there_is_no_memory_to_limit():
    with pytest.raises(OptionError, match="memory"):
        SimulatedExecutor(limits=Limits(memory=10**9))


@pytest.mark.parametrize("slots", [0, -1, 1.5, "2", True])
def test_slots_are_counted_from_one(slots):
    with pytest.raises(OptionError, match="whole number >= 1"):
        SimulatedExecutor(slots)


def test_one_slot_if_nothing_is_said():
    assert SimulatedExecutor().slots == 1
