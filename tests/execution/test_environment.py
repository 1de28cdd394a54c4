"""What the machine fails is not held against the network, and nothing of it is lost or leaked."""

import errno
import os
import resource
import socket
from contextlib import suppress

import pytest

from nasbot.architecture import initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.candidate import Candidate
from nasbot.errors import FailingError, FileError
from nasbot.execution import Job, LiveTrial, LocalExecutor, SerialExecutor, _supervisor, evaluate
from nasbot.execution._frames import FrameReader
from nasbot.execution.base import Finished, Limits
from nasbot.searchers import RandomSearch
from nasbot.study import Study, loop
from nasbot.trial import Cancelled, Failed, FailureCause, Scored, TrialState
from tests.execution.objectives import catching_interrupt, scored

ARCH = initial_pool("mlp-reg")[0]
JOB = Job(0, Candidate(ARCH), 0)


def raising(error):
    def objective(arch):
        raise error

    return objective


def with_words(number):
    """As nasbot's own functions say it: in words, from the system's error."""

    def objective(arch):
        try:
            raise OSError(number, os.strerror(number))
        except OSError as error:
            raise FileError(f"the weights cannot be written: {error.strerror}") from None

    return objective


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN])
def test_errors_of_the_machine(number):
    direct = raising(OSError(number, os.strerror(number)))
    for objective in (direct, with_words(number)):
        outcome = evaluate(objective, LiveTrial(JOB, print))
        assert outcome.cause is FailureCause.ENVIRONMENT
    library = RuntimeError(f"unable to open file: {os.strerror(number)}")
    expected = FailureCause.EXCEPTION if number == errno.EAGAIN else FailureCause.ENVIRONMENT
    assert evaluate(raising(library), LiveTrial(JOB, print)).cause is expected


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, "x"), RuntimeError("no"), PermissionError(13, "no")])
def test_errors_of_the_objective(error):
    assert evaluate(raising(error), LiveTrial(JOB, print)).cause is FailureCause.EXCEPTION


# -- no descriptors, no processes --------------------------------------------------------------------------------------


def n_open():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.parametrize("room", range(8))
def test_a_submit_without_descriptors_leaks_none_and_blames_nobody(room):
    executor = LocalExecutor(1)
    executor.start(scored)
    before, limits = n_open(), resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    fillers = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, limits[1]))
        with suppress(OSError):  # until there are no more
            while True:
                fillers.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(room):  # descriptors that can be had
            os.close(fillers.pop())
        executor.submit(JOB)
        n_left = 0
        with suppress(OSError):
            while True:
                fillers.append(os.open(os.devnull, os.O_RDONLY))
                n_left += 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for filler in fillers:
            os.close(filler)
    events = list(executor.wait(60))
    executor.close()
    (finished,) = events
    if isinstance(finished.outcome, Failed):
        assert finished.outcome.cause is FailureCause.ENVIRONMENT
        assert n_left == room
    assert n_open() <= before


def test_an_evaluation_costs_three_descriptors_while_it_runs():
    """Two pipes and a socket; the ends that the worker has, and the job, are closed here at once."""
    executor = LocalExecutor(1)
    try:
        executor.start(scored)
        before = n_open()
        for number in range(2):
            executor.submit(Job(number, Candidate(ARCH), 0))
            assert n_open() == before + 3
            (finished,) = executor.wait(60)
            assert isinstance(finished.outcome, Scored)
            assert n_open() == before
    finally:
        executor.close()


def test_a_supervisor_without_processes_says_so(monkeypatch):
    ours, theirs = socket.socketpair()

    def no_process():
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(_supervisor.os, "fork", no_process)
    monkeypatch.setattr(_supervisor._Watch, "_prepare", lambda self: None)
    watch = _supervisor._Watch(theirs, Limits(), os.getppid())
    watch.run(lambda: None)
    notes = FrameReader().feed(ours.recv(10_000))
    assert [note.get("reason") for note in notes] == [None, "environment"]
    for end in (watch._waking, watch._wake):
        os.close(end)
    ours.close()
    theirs.close()


def test_watching_works_above_1023_descriptors():
    """``select`` refuses those."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this machine allows no descriptor above 1,023")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    ours, theirs = socket.socketpair()
    high = os.dup2(theirs.fileno(), 1100)
    try:
        assert _supervisor._ready((high,), 0) == set()
        ours.close()
        assert _supervisor._ready((high,), 5) == {high}
    finally:
        os.close(high)
        theirs.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- in a study --------------------------------------------------------------------------------------------------------


class Flaky:
    """An executor whose machine fails so many times."""

    slots = 1

    def __init__(self, n_failures, outcome=None):
        self.n_failures = n_failures
        self.outcome = outcome or Failed(FailureCause.ENVIRONMENT, "No space left on device")
        self._serial = SerialExecutor()
        self.now, self.start, self.cancel, self.close = (
            getattr(self._serial, name) for name in ("now", "start", "cancel", "close")
        )
        self.submit = self._serial.submit

    def wait(self, timeout=None):
        return [self._failed(event) for event in self._serial.wait(timeout)]

    def _failed(self, event):
        if not isinstance(event, Finished) or self.n_failures == 0:
            return event
        self.n_failures -= 1
        return Finished(event.number, self.outcome, event.at)


@pytest.fixture
def naps(monkeypatch):
    taken = []
    monkeypatch.setattr(loop.time, "sleep", taken.append)
    return taken


def studied(executor, **options):
    study = Study.in_memory(RandomSearch(space=SearchSpace("mlp-reg")), pool=[ARCH])
    study.optimise(lambda arch: 1.0, 2, executor=executor, **options)
    return study.history


def test_the_machine_is_given_time_and_the_trial_another_try(naps, caplog):
    history = studied(Flaky(3))
    assert [trial.state for trial in history] == [TrialState.COMPLETED] * 2
    assert history[0].attempts == 4
    assert sum(naps) == pytest.approx(loop.RECOVERY_SECONDS * (1 + 2 + 3))
    assert "the machine failed it: No space left on device" in caplog.text


def test_a_network_that_the_machine_failed_for_good_may_be_proposed_again(naps):
    history = studied(Flaky(4))
    assert history[0].outcome.cause is FailureCause.ENVIRONMENT
    assert history[0].candidate.fingerprint not in history.seen
    assert history[1].candidate.fingerprint in history.seen


@pytest.mark.parametrize("executor", [SerialExecutor], ids=lambda kind: kind.__name__)
def test_an_outcome_that_is_too_large_is_a_failure_everywhere(executor):
    place = executor()
    place.start(lambda arch: Scored(1.0, {"log": "x" * 17_000_000}))
    place.submit(JOB)
    (finished,) = place.wait()
    assert finished.outcome.cause is FailureCause.EXCEPTION
    assert "at most 16,000,000 are taken" in finished.outcome.message


def test_interruptions_are_no_attempts():
    """One that was interrupted, and killed once after that, still has its second try."""
    study = Study.in_memory(RandomSearch(space=SearchSpace("mlp-reg")), pool=[ARCH])

    def interrupt(arch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimise(interrupt, 1)
    assert (study.history[0].attempts, study.history[0].interruptions) == (1, 1)
    study.optimise(lambda arch: 1.0, 1, executor=Flaky(1, Failed(FailureCause.KILLED, "ended from outside")))
    assert (study.history[0].state, study.history[0].attempts) == (TrialState.COMPLETED, 3)


class Scripted(Flaky):
    """An executor whose evaluations end as a list says."""

    def __init__(self, outcomes):
        super().__init__(0)
        self.outcomes = list(outcomes)

    def _failed(self, event):
        return Finished(event.number, self.outcomes.pop(0), event.at) if isinstance(event, Finished) else event


def test_a_cancelled_trial_is_no_success_between_failures():
    study = Study.in_memory(RandomSearch(space=SearchSpace("mlp-reg")), pool=[ARCH])
    failed = Failed(FailureCause.EXCEPTION, "broken")
    with pytest.raises(FailingError, match="3 trials in a row failed"):
        study.optimise(lambda arch: 1.0, 9, executor=Scripted([failed, failed, Cancelled(), failed]))
    assert len(study.history.finished) == 4


def test_an_objective_may_catch_an_interrupt_that_is_sent_to_it():
    executor = LocalExecutor(1)
    executor.start(catching_interrupt)
    executor.submit(JOB)
    (finished,) = executor.wait()
    executor.close()
    assert finished.outcome.value == 1.0
