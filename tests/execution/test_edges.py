"""Limits, defaults and last cases of what executors are made of, one by one."""

import ctypes
import errno
import json
import math
import os
import signal
import socket
import struct
import sys
import time
import zlib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nasbot._rng import Role, derived_seed
from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import DivergedError, FileError, NasbotError, OptionError, RefusedError, StudyError
from nasbot.execution import (
    LocalExecutor,
    SerialExecutor,
    SimulatedExecutor,
    SpawnExecutor,
    _frames,
    _sending,
    _supervisor,
    _tree,
    interruption,
    local,
    spawned,
)
from nasbot.execution._exits import failure_of_exit
from nasbot.execution._fork_server import THREADS, ForkServer
from nasbot.execution._fork_server_process import _content, _enter
from nasbot.execution._frames import FrameError, FrameReader, FrameSender, outcome_from, outcome_record, packed
from nasbot.execution._sending import import_script, stop_at_study, told
from nasbot.execution._supervisor import _ready, _Watch, close_all_but
from nasbot.execution._transfer import Unpacked, keep, packed_folders
from nasbot.execution.base import Finished, Job, Limits, Reported, check_can_submit, check_slots
from nasbot.execution.evaluation import (
    LiveTrial,
    TrialStopped,
    as_number,
    evaluate,
    failure_of,
    is_of_machine,
    outcome_of,
    sees_fidelity,
    wanted,
    within_limit,
)
from nasbot.execution.processes import process_executor
from nasbot.execution.repeating import Repeated, repeats_shown
from nasbot.execution.simulated import checked_duration
from nasbot.pacing import Bar
from nasbot.trial import Cancelled, Direction, Failed, FailureCause, Point, Scored, Stopped
from tests.execution import objectives

POOL = initial_pool("mlp-reg")


def job(number=0, **options):
    return Job(number, Candidate(POOL[number]), **options)


def wait_for(executor, seconds=60.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if ended := [event for event in executor.wait(1.0) if isinstance(event, Finished)]:
            return ended
    raise AssertionError("nothing ended")


# -- frames ------------------------------------------------------------------------------------------------------------


def framed(body):
    return struct.pack(">II", len(body), zlib.crc32(body)) + body


def test_frames_come_in_any_pieces():
    content = packed({"a": 1}) + packed({"b": 2})
    reader, found = FrameReader(), []
    for i in range(len(content)):
        found += reader.feed(content[i : i + 1])
        assert len(found) == (i >= len(packed({"a": 1})) - 1) + (i == len(content) - 1)
    assert found == [{"a": 1}, {"b": 2}]
    assert FrameReader().feed(content) == found
    assert FrameReader().feed(b"") == []


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b'{"a": NaN}', b'{"a": Infinity}', b"", b"[" * 100_000])
def test_what_is_no_object_is_no_frame(body):
    with pytest.raises(FrameError, match=r"a frame: (not JSON|expected an object)"):
        FrameReader().feed(framed(body))


def test_the_largest_frame(monkeypatch):
    monkeypatch.setattr(_frames, "MAX_FRAME", 10)
    assert FrameReader().feed(framed(b'{"a": 123}')) == [{"a": 123}]
    assert len(packed({"a": 123})) == 18
    with pytest.raises(FrameError, match="a frame of 11 bytes is announced; at most 10 are taken"):
        FrameReader().feed(framed(b'{"a": 1234}'))
    with pytest.raises(FrameError, match="a result of 11 bytes; at most 10 are taken"):
        packed({"a": 1234})
    failure = within_limit(Scored(1.0))
    assert (failure.cause, failure.message[:28]) == (FailureCause.EXCEPTION, "the outcome cannot be taken:")


def test_how_large_results_may_be():
    assert _frames.MAX_FRAME == 16_000_000
    assert _frames.CANNOT_SEND == 70
    with pytest.raises(ValueError, match="JSON compliant"):
        packed({"a": math.nan})


STOPPED = Stopped(step=2, value=1.0, bar=2.0, expected=1.5, share=0.5, place=3, among=4)


@pytest.mark.parametrize(
    "outcome",
    [Scored(1.5, {"a": 1}), STOPPED, Failed(FailureCause.OOM, "big", {"b": 2}), Cancelled("asked")],
    ids=lambda outcome: type(outcome).__name__,
)
def test_outcomes_travel(outcome):
    assert outcome_from(json.loads(json.dumps(outcome_record(outcome)))) == outcome


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"value": 1.0},
        {"value": math.nan, "details": {}},
        {"cause": "luck", "message": "", "details": {}},
        {"stopped": {}},
    ],
    ids=str,
)
def test_what_is_no_outcome(record):
    with pytest.raises(FrameError, match="a frame is not an outcome"):
        outcome_from(record)


def test_a_sender_writes_frames_with_what_is_common():
    reading, writing = os.pipe()
    sender = FrameSender(writing)
    sender.report(Point(3, 0.5), trial=7)
    sender.end(Scored(1.0), trial=7)
    os.close(writing)
    frames = FrameReader().feed(os.read(reading, 10_000))
    os.close(reading)
    assert frames == [
        {"trial": 7, "step": 3, "value": 0.5},
        {"trial": 7, "outcome": {"value": 1.0, "details": {}}},
    ]


def test_a_sender_whom_nobody_hears_ends_its_process():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        reading, writing = os.pipe()
        os.close(reading)
        FrameSender(writing).report(Point(0, 1.0))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 70


# -- ends of processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "cause", "words"),
    [
        (0, "crashed", "its process ended with exit code 0 and no result"),
        (3, "crashed", "its process ended with exit code 3 and no result"),
        (-9, "killed", "its process was ended by SIGKILL"),
        (-15, "killed", "its process was ended by SIGTERM"),
        (-1, "killed", "its process was ended by SIGHUP"),
        (-11, "crashed", "its process crashed with SIGSEGV"),
        (-63, "crashed", "its process crashed with signal 63"),
    ],
)
def test_what_an_exit_code_means(code, cause, words):
    failure = failure_of_exit(code)
    assert (failure.cause, failure.message) == (cause, words)


def worker(**options):
    control, other = socket.socketpair()
    control.setblocking(False)
    pipes = os.pipe(), os.pipe()
    found = local._Worker(job(), control, pipes[0][0], pipes[1][0], **options)
    for reading, _ in pipes:
        os.set_blocking(reading, False)
    return found, other, pipes[0][1], pipes[1][1]


@pytest.mark.parametrize(
    ("options", "cause", "words"),
    [
        ({"never_began": True}, "environment", "not begun within 300 s: does importing the objective's module end?"),
        ({}, "environment", "its process could not be started"),
        ({"supervisor": 5}, "killed", "its processes were ended from outside"),
        ({"verdict": {"reason": "timeout", "ended": None}}, "timeout", "not finished within its limit of 2.5 s"),
        (
            {"verdict": {"reason": "oom", "ended": -9, "peak_memory": 12345}},
            "oom",
            "its processes held 12,345 bytes; its limit is 1,000 more than a fresh one has",
        ),
        (
            {"verdict": {"reason": "kernel", "ended": -9}},
            "oom",
            "the kernel ended its process, because the machine had no",
        ),
        (
            {"verdict": {"reason": "environment", "message": "no", "ended": None}},
            "environment",
            "could not be started: no",
        ),
        ({"verdict": {"reason": "unwanted", "ended": None}}, "killed", "the process it was forked from was ended"),
        ({"verdict": {"reason": None, "ended": -11}}, "crashed", "its process crashed with SIGSEGV"),
        ({"verdict": {"reason": None, "ended": None}}, "crashed", "its process ended with exit code 0 and no result"),
    ],
)
def test_what_the_death_of_a_process_means(options, cause, words):
    found, other, *writing = worker(**options)
    failure = found.final_outcome(Limits(seconds=2.5, memory=1000))
    assert failure.cause == cause
    assert words in failure.message
    found.release()
    other.close()
    for end in writing:
        os.close(end)


def test_what_is_known_of_a_process_is_kept_with_its_outcome():
    found, other, results, output = worker(verdict={"reason": None, "ended": 3, "peak_memory": 77})
    os.write(output, b"x" * 10_000 + b"last words")
    found.read_output()
    failed = found.final_outcome(Limits())
    assert failed.details["process"]["exit_code"] == 3
    assert failed.details["process"]["peak_memory"] == 77
    assert failed.details["process"]["output"] == "x" * 3990 + "last words"
    found.outcome = Scored(1.0, {"a": 1})
    assert found.final_outcome(Limits()) == Scored(1.0, {"a": 1, "process": {"peak_memory": 77, "exit_code": 3}})
    found.verdict = {"ended": 0, "peak_memory": 7}
    assert found.final_outcome(Limits()).details["process"] == {"peak_memory": 7, "exit_code": 0}
    found.verdict = {"ended": -9, "peak_memory": None}
    assert found.final_outcome(Limits()).details["process"] == {"peak_memory": None, "signal": 9}
    found.outcome = Cancelled("asked")
    assert found.final_outcome(Limits()) == Cancelled("asked")
    found.release()
    other.close()
    os.close(results)
    os.close(output)


def test_what_a_supervisor_says_is_heard_and_its_end_too():
    found, other, results, output = worker()
    assert set(found.sources()) == {found.control.fileno(), found.results, found.output}
    found.read_control()
    assert (found.has_ended, found.supervisor, found.has_begun) == (False, None, False)
    other.sendall(packed({"supervisor": 17}))
    found.read_control()
    assert (found.has_ended, found.supervisor, found.has_begun) == (False, 17, True)
    other.sendall(packed({"reason": None, "ended": 0}))
    other.close()
    found.read_control()
    assert (found.has_ended, found.verdict) == (True, {"reason": None, "ended": 0})
    os.close(results)
    assert found.read_frames() == []
    assert found.sources() == [found.output]
    found.release()
    os.close(output)


def test_a_worker_is_stopped_once_and_waited_for_until_then():
    found, other, results, output = worker()
    found.stop(3.0)
    assert other.recv(10) == b""  # our side is shut
    found.stop(9.0)
    assert (found.is_stopped, found.deadline) == (True, 9.0)
    found.release()
    other.close()
    os.close(results)
    os.close(output)


def test_how_long_executors_are_patient():
    assert (local.SECONDS_TO_LEAVE, local.SECONDS_TO_KILL, local.SECONDS_TO_START) == (2.0, 5.0, 300.0)
    assert (spawned.SECONDS_TO_START, spawned.SECONDS_TO_GO, spawned.SECONDS_BETWEEN_LOOKS) == (300.0, 10.0, 0.5)
    assert (local.TAIL_BYTES, spawned.TAIL_BYTES) == (4000, 4000)


def test_a_pause_ends_with_the_first_of_all_deadlines():
    executor = LocalExecutor(2)
    assert executor._pause(None) is None
    first, second = worker(deadline=executor.now() + 50.0), worker(deadline=executor.now() + 20.0)
    executor._running = {0: first[0]}
    assert 49 < executor._pause(None) <= 50
    executor._leaving = [second[0]]
    assert 19 < executor._pause(None) <= 20
    assert 4 < executor._pause(executor.now() + 5.0) <= 5
    assert executor._pause(executor.now() - 5.0) == 0.0
    executor._running, executor._leaving = {}, []
    for found, other, *ends in (first, second):
        found.release()
        other.close()
        for end in ends:
            os.close(end)


def test_cards_are_given_to_those_who_have_none():
    executor = LocalExecutor(3, devices=("0", "1", "2"))
    assert executor._free_device() == "0"
    first, second = worker(device="0"), worker(device="1")
    executor._running = {0: first[0]}
    executor._leaving = [second[0]]
    assert executor._free_device() == "2"  # of that which is being ended only if need be
    third = worker(device="2")
    executor._running[2] = third[0]
    assert executor._free_device() == "1"
    executor._running, executor._leaving = {}, []
    for found, other, *ends in (first, second, third):
        found.release()
        other.close()
        for end in ends:
            os.close(end)
    assert LocalExecutor(2)._free_device() is None
    for devices in (("0",), ("0", "0"), ("0", "1", "2")):
        with pytest.raises(OptionError, match="devices: expected a different one for each of 2 slots"):
            LocalExecutor(2, devices=devices)


def test_an_evaluation_sees_its_own_card_alone():
    executor = LocalExecutor(2, devices=("3", "5"))
    try:
        executor.start(objectives.visible_card)
        for number in (0, 1):
            executor.submit(job(number))
        values = set()
        while len(values) < 2:
            values |= {event.outcome.value for event in executor.wait(60.0) if isinstance(event, Finished)}
    finally:
        executor.close()
    assert values == {3.0, 5.0}


# -- supervisors -------------------------------------------------------------------------------------------------------


def watching(**limits):
    ours, theirs = socket.socketpair()
    return _Watch(theirs, Limits(**limits), os.getppid()), ours, theirs


def closed(watch, *ends):
    for end in (watch._waking, watch._wake):
        os.close(end)
    for end in ends:
        end.close()


def test_a_supervisor_pauses_until_the_next_limit():
    watch, *ends = watching()
    assert watch._pause(None) is None
    assert 4 < watch._pause(time.monotonic() + 5.0) <= 5
    assert watch._pause(time.monotonic() - 5.0) == 0.0
    closed(watch, *ends)
    watch, *ends = watching(memory=1 << 30)
    assert watch._pause(None) == 0.1
    assert watch._pause(time.monotonic() + 5.0) == 0.1
    assert watch._pause(time.monotonic() - 1.0) == 0.0
    closed(watch, *ends)


def test_an_evaluation_is_wanted_until_the_driver_goes_or_says_so():
    watch, ours, theirs = watching()
    assert watch._is_wanted()
    watch._parent += 1
    assert not watch._is_wanted()
    watch._parent -= 1
    ours.shutdown(socket.SHUT_WR)
    assert not watch._is_wanted()
    closed(watch, ours, theirs)


@pytest.fixture
def alone():
    """Runs a function in a process without other children; what it returns must be true."""

    def run(function):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if function() else 1)
            except BaseException:  # noqa: BLE001  this process must not go on as the tests
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    return run


def forked(code=0, seconds=0.0):
    child = os.fork()
    if child == 0:
        time.sleep(seconds)
        os._exit(code)
    return child


def test_reaping_collects_all_that_have_ended(alone):
    def reaped():
        watch, *_ = watching()
        if watch._reap():
            return False  # there is none
        other, watch._worker = forked(1), forked(7)
        stays = forked(0, 60.0)
        until = time.monotonic() + 30
        while watch._ended is None and time.monotonic() < until:
            if not watch._reap():
                return False  # one lives on
            time.sleep(0.01)
        was_right = watch._ended == 7 and watch._peak > 0
        os.kill(stays, signal.SIGKILL)
        if not watch._reap(0):  # waits for one, and says that there was one
            return False
        return was_right and not watch._reap() and not Path(f"/proc/{other}").exists()

    alone(reaped)


def test_the_end_of_others_is_not_that_of_the_worker(alone):
    def reaped():
        watch, *_ = watching()
        watch._worker = -5
        forked(3)
        watch._reap(0)
        return watch._ended is None and watch._peak == 0

    alone(reaped)


def test_everything_below_is_ended(alone):
    def ended():
        watch, *_ = watching()
        children = [forked(0, 600.0) for _ in range(3)]
        watch._end_all()
        return not any(Path(f"/proc/{child}").exists() for child in children)

    alone(ended)


def test_descriptors_that_are_kept(alone):
    def kept():
        ends = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
        close_all_but(0, 1, 2, ends[1], ends[3])
        is_open = [Path(f"/proc/self/fd/{end}").exists() for end in (0, 1, 2, *ends)]
        return is_open == [True, True, True, False, True, False, True, False]

    alone(kept)


def test_what_is_ready():
    (one, one_in), (two, two_in) = os.pipe(), os.pipe()
    assert _ready([one, two], 0) == set()
    os.write(two_in, b"x")
    assert _ready([one, two], 5) == {two}
    os.close(one_in)  # closed is ready, too
    assert _ready([one, two], None) == {one, two}
    for end in (one, two, two_in):
        os.close(end)
    assert _supervisor.SECONDS_BETWEEN_LOOKS == 0.1


def test_memory_is_counted_exactly_only_above_the_allowance(monkeypatch):
    watch, *ends = watching(memory=1000)
    held = {"rough": 500, "exact": 400, "files": 0}
    monkeypatch.setattr(_supervisor, "descendants", lambda pid: [1])
    monkeypatch.setattr(_supervisor, "unmapped", lambda tree: held["files"])
    monkeypatch.setattr(_supervisor, "resident", lambda tree: 100 if tree == [os.getpid()] else held["rough"])
    monkeypatch.setattr(_supervisor, "proportional", lambda tree: held["exact"])
    assert not watch._holds_too_much(1000)
    assert (watch._allowance, watch._peak) == (1100, 500)
    held["rough"], held["exact"] = 2000, 900
    assert not watch._holds_too_much(1000)
    assert watch._peak == 900
    held["files"] = 200
    assert not watch._holds_too_much(1000)  # exactly as much as it may
    held["files"] = 201
    assert watch._holds_too_much(1000)
    assert watch._peak == 1101
    held.update(rough=1, files=0)
    assert not watch._holds_too_much(1000)
    assert watch._peak == 1101
    closed(watch, *ends)


# -- what processes hold -----------------------------------------------------------------------------------------------


def test_a_tree_of_processes(alone):
    def found():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, struct.pack("i", forked(0, 60.0)))
            time.sleep(60)
            os._exit(0)
        grandchild = struct.unpack("i", os.read(reading, 4))[0]
        below = _tree.descendants(os.getpid())
        slow = _tree._children_of_all()
        as_slow = slow.get(os.getpid()) == [child] and slow.get(child) == [grandchild]
        for pid in (child, grandchild):
            os.kill(pid, signal.SIGKILL)
        return sorted(below) == sorted([child, grandchild]) and as_slow

    alone(found)
    assert _tree.descendants(2**22 + 5) == []


def test_bytes_of_a_process():
    me = [os.getpid()]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    assert _tree.resident(me) == pytest.approx(pages * os.sysconf("SC_PAGESIZE"), rel=0.2)
    assert _tree.resident([*me, *me]) == pytest.approx(2 * _tree.resident(me), rel=0.2)
    assert 0 < _tree.proportional(me) <= _tree.resident(me) * 1.2
    assert _tree.resident([2**22 + 5]) == _tree.proportional([2**22 + 5]) == 0
    assert _tree.kernel_kills() >= 0


def test_files_in_memory_count_while_nobody_maps_them():
    import mmap

    me = [os.getpid()]
    before = _tree.unmapped(me)
    descriptor = os.memfd_create("held")
    os.write(descriptor, bytes(1 << 20))
    assert _tree.unmapped(me) - before == 1 << 20
    twice = os.dup(descriptor)
    assert _tree.unmapped(me) - before == 1 << 20  # one file, however often it is open
    with mmap.mmap(descriptor, 1 << 20):
        assert _tree.unmapped(me) == before
    os.close(descriptor)
    os.close(twice)


# -- evaluations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0), (2.5, 2.5), (Fraction(1, 2), 0.5), (Decimal("0.25"), 0.25), (np.float32(0.5), 0.5), (np.int8(3), 3.0),
        (np.array(2.0), 2.0), (10**400, math.inf), (True, None), (np.True_, None), ("1", None), (None, None),
        (1j, None), (np.array([1.0]), None), (np.array(True), None),
    ],
    ids=str,
)  # fmt: skip
def test_numbers(value, expected):
    assert as_number(value) == expected


def test_what_a_return_value_means():
    assert outcome_of(1) == Scored(1.0)
    assert outcome_of(Scored(2.0)) == Scored(2.0)
    assert outcome_of(Cancelled("x")) == Cancelled("x")
    assert outcome_of(math.inf).cause is FailureCause.NAN
    assert outcome_of("text") == Failed(
        FailureCause.EXCEPTION, "the objective must return a finite number, got 'text' (str)"
    )
    long = outcome_of(type("N" * 100, (), {"__repr__": lambda self: "r" * 300})())
    assert f"({'N' * 60})" in long.message
    broken = outcome_of(type("Broken", (), {"__repr__": lambda self: 1 / 0})())
    assert "Broken" in broken.message


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RefusedError("no"), "refused"),
        (DivergedError("up"), "nan"),
        (MemoryError(), "oom"),
        (RuntimeError("CUDA out of memory. Tried"), "oom"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "oom"),
        (ValueError("out of memory"), "exception"),
        (OSError(errno.EMFILE, "files"), "environment"),
        (OSError(errno.ENOSPC, "room"), "environment"),
        (OSError(errno.EAGAIN, "processes"), "environment"),
        (OSError(errno.ENOENT, "file"), "exception"),
        (RuntimeError(os.strerror(errno.ENOSPC)), "environment"),
        (ValueError(os.strerror(errno.ENOSPC)), "exception"),
        (RuntimeError("else"), "exception"),
        (SystemExit(3), "exception"),
    ],
    ids=repr,
)
def test_causes_of_failures(error, cause):
    assert failure_of(error).cause == cause


def test_an_error_of_ours_about_one_of_the_machine():
    error = FileError("cannot be written")
    error.__context__ = OSError(errno.EDQUOT, "quota")
    assert failure_of(error).cause is FailureCause.ENVIRONMENT
    error.__context__ = OSError(errno.ENOENT, "gone")
    assert failure_of(error).cause is FailureCause.EXCEPTION
    assert not is_of_machine(None)


def test_messages_of_failures_are_short():
    class Unsaid(Exception):
        def __str__(self):
            raise ValueError

    assert failure_of(ValueError("x" * 900)).message == "ValueError: " + "x" * 500
    assert failure_of(ValueError()).message == "ValueError"
    assert failure_of(Unsaid()).message == "Unsaid: (no message: its __str__ raised)"
    assert failure_of(StudyError("said by us")).message == "said by us"
    assert failure_of(NasbotError("")).message == "NasbotError"
    assert len(failure_of(ValueError("y" * 10_000)).details["traceback"]) == 4000


def test_what_an_objective_asks_for():
    assert wanted(lambda arch: 1) == ()
    assert wanted(lambda arch, params, trial: 1) == ("params", "trial")
    assert wanted(lambda arch, trial=None: 1) == ("trial",)
    assert wanted(min) == ()
    assert sees_fidelity(lambda arch, trial: 1)
    assert not sees_fidelity(lambda arch, params: 1)


def test_a_live_trial_draws_as_it_is_told():
    points = []
    own, other = (
        LiveTrial(job(3, seed=5), points.append),
        LiveTrial(job(3, seed=5, draws_as=1, fidelity=0.5), points.append),
    )
    assert own.seed == derived_seed(5, 3, Role.OBJECTIVE)
    assert other.seed == derived_seed(5, 1, Role.OBJECTIVE)
    assert (own.fidelity, other.fidelity, own.number) == (1.0, 0.5, 3)
    assert own.rng.random() == own.rng.random() != other.rng.random()


def test_points_that_are_none_are_dropped():
    points = []
    live = LiveTrial(job(), points.append)
    for step, value in (
        (0, 1.0),
        (1, math.nan),
        (2, math.inf),
        (3, "x"),
        (2**62, 2.0),
        (2**62 + 1, 3.0),
        (-(2**62), 4.0),
    ):
        live.report(step, value)
    assert points == [Point(0, 1.0), Point(2**62, 2.0), Point(-(2**62), 4.0)]


@pytest.mark.parametrize(("direction", "good", "bad"), [("maximise", 2.0, 0.5), ("minimise", 0.5, 2.0)])
def test_bars_are_held_against_the_best_so_far_once(direction, good, bad):
    bars = tuple(Bar(step=step, value=1.0, direction=Direction(direction)) for step in (2, 4))
    live = LiveTrial(job(bars=bars), lambda point: None)
    live.report(0, bad)  # before the first bar
    live.report(1, good)
    live.report(2, bad)  # the best so far passes
    assert live.stopped is None
    late = LiveTrial(job(bars=bars), lambda point: None)
    late.report(1, bad)
    with pytest.raises(TrialStopped):
        late.report(2, bad)
    assert late.stopped.step == 2
    sent = []
    silent = LiveTrial(job(bars=bars), sent.append, raises=False)
    silent.report(3, bad)
    silent.report(4, good)  # too late, and not recorded
    assert (silent.stopped.step, len(sent)) == (3, 1)


def test_a_stopped_training_is_stopped_whatever_it_does_then():
    bars = (Bar(step=1, value=1.0, direction=Direction.MAXIMISE),)

    def swallowing(arch, trial):
        try:
            trial.report(1, 0.0)
        except BaseException:  # noqa: BLE001  what an objective may do
            return 5.0

    def failing(arch, trial):
        try:
            trial.report(1, 0.0)
        finally:
            raise ValueError("after it")

    for objective in (swallowing, failing):
        outcome = evaluate(objective, LiveTrial(job(bars=bars), lambda point: None))
        assert isinstance(outcome, Stopped)


# -- repeats -----------------------------------------------------------------------------------------------------------


def test_looks_have_seeds_of_their_own_and_one_curve():
    seeds, points = [], []

    def objective(arch, trial):
        seeds.append(trial.seed)
        trial.report(0, 1.0)
        return Scored(float(len(seeds)), {"n": len(seeds)})

    live = LiveTrial(job(seed=1), points.append)
    outcome = Repeated(objective, 3)(live.arch, {}, live)
    assert (outcome.value, outcome.details["n"], len(points), len(set(seeds))) == (2.0, 1, 1, 3)
    assert seeds[0] == live.seed
    shown = outcome.details["repeats"]
    assert (shown["values"], shown["sd"]) == ([1.0, 2.0, 3.0], 1.0)
    assert (shown["se"], shown["se_after_one_more"]) == (pytest.approx(3**-0.5), 0.5)
    assert repeats_shown([1.0]) == {}
    assert repeats_shown([1.0, 3.0])["repeats"]["sd"] == pytest.approx(2**0.5)
    failed = Repeated(lambda arch: math.nan, 3)(live.arch, {}, live)
    assert failed.cause is FailureCause.NAN


@pytest.mark.parametrize("repeats", [0, -1, 1.5, True, "2"])
def test_repeats_that_cannot_be_meant(repeats):
    with pytest.raises(OptionError, match="repeats: expected a whole number >= 1"):
        Repeated(lambda arch: 1.0, repeats)
    assert Repeated(lambda arch: 1.0, 1).repeats == 1


# -- slots and clocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [0, -1, True, 1.0, None, "2"])
def test_slots_that_cannot_be_meant(slots):
    with pytest.raises(OptionError, match="workers: expected a whole number >= 1"):
        check_slots(slots)


def test_what_can_be_submitted():
    check_can_submit(job(3), [1], 2)
    with pytest.raises(StudyError, match="trial 3 is running already"):
        check_can_submit(job(3), [3], 2)
    with pytest.raises(StudyError, match="trial 3: all 2 slots are taken"):
        check_can_submit(job(3), [1, 2], 2)


@pytest.mark.parametrize("executor", [SerialExecutor, SimulatedExecutor, LocalExecutor], ids=lambda kind: kind.__name__)
def test_nothing_can_be_submitted_before_the_start_or_cancelled_that_does_not_run(executor):
    made = executor()
    with pytest.raises(StudyError, match="the executor has no objective"):
        made.submit(job())
    with pytest.raises(StudyError, match="trial 4 is not running here"):
        made.cancel(4)
    assert list(made.wait(0)) == []
    made.close()


@pytest.mark.parametrize("seconds", [-0.1, math.inf, math.nan, "x", None, True])
def test_durations_that_are_none(seconds):
    with pytest.raises(OptionError, match="a simulated duration must be a finite number of seconds >= 0"):
        checked_duration(seconds)
    assert checked_duration(0) == 0.0


def test_a_simulated_limit_is_crossed_only_beyond_it():
    executor = SimulatedExecutor(2, limits=Limits(seconds=5.0))
    executor.start(lambda arch, trial: (1.0, 5.0 if trial.number == 0 else 5.1))
    for number in (0, 1):
        executor.submit(job(number))
    first, second = executor.wait(), executor.wait()
    assert first[-1].outcome == Scored(1.0)
    assert second[-1].outcome.cause is FailureCause.TIMEOUT
    assert (first[-1].at, second[-1].at, executor.now()) == (5.0, 5.0, 5.0)


def test_a_wait_of_just_long_enough():
    executor = SimulatedExecutor(1, duration=lambda arch: 4.0)
    executor.start(lambda arch: 1.0)
    executor.submit(job())
    assert list(executor.wait(3.9)) == []
    assert executor.now() == 3.9
    assert len(executor.wait(0.1000001)) == 1
    executor.submit(job(1))
    assert len(executor.wait(4.0)) == 1


def test_a_training_that_is_stopped_takes_its_share_of_the_time():
    executor = SimulatedExecutor(1, duration=lambda arch: 10.0)

    def objective(arch, trial):
        trial.report(1, 0.0)
        trial.report(2, 9.0)
        return 9.0

    executor.start(objective)
    executor.submit(job(bars=(Bar(step=1, value=1.0, direction=Direction.MAXIMISE, share=0.25),)))
    events = executor.wait()
    assert [type(event) for event in events] == [Reported, Finished]
    assert isinstance(events[-1].outcome, Stopped)
    assert executor.now() == 2.5


def test_a_cancelled_evaluation_ends_now_and_others_when_they_would():
    executor = SimulatedExecutor(3, duration=lambda arch: 4.0)
    executor.start(lambda arch: 1.0)
    for number in range(3):
        executor.submit(job(number))
    executor.wait(1.0)
    executor.cancel(1)
    events = executor.wait()
    assert (events[0].number, events[0].outcome, events[0].at) == (1, Cancelled(), 1.0)
    assert [executor.wait()[0].number for _ in range(2)] == [0, 2]


def test_threads_are_an_equal_share_of_the_cores(monkeypatch):
    monkeypatch.setattr(local, "n_cores", lambda: 6)
    assert [LocalExecutor(n).threads for n in (1, 2, 4, 9)] == [6, 3, 1, 1]
    assert LocalExecutor(1, threads=2).threads == 2
    for threads in (0, True, 1.5):
        with pytest.raises(OptionError, match="expected a whole number >= 1"):
            LocalExecutor(1, threads=threads)


def test_processes_by_what_the_system_has(monkeypatch):
    assert isinstance(process_executor(2, threads=1), LocalExecutor)
    monkeypatch.setattr("nasbot.execution.processes.fork_server_lacks", lambda: ["fork"])
    other = process_executor(2, threads=1)
    assert (type(other), other.slots, other.threads) == (spawned.SpawnExecutor, 2, 1)
    monkeypatch.setattr(local, "fork_server_lacks", lambda: ["fork"])
    with pytest.raises(OptionError, match="LocalExecutor needs Linux, and here is no fork"):
        LocalExecutor(1)


# -- the fork server ---------------------------------------------------------------------------------------------------


def test_fork_servers_are_shared_by_what_is_wanted_of_them():
    one = ForkServer.shared(1, ("json",), with_main=False)
    assert ForkServer.shared(1, ["json"], with_main=False) is one
    for other in (
        ForkServer.shared(2, ("json",), with_main=False),
        ForkServer.shared(1, (), with_main=False),
        ForkServer.shared(1, ("json",), with_main=True),
        ForkServer.shared(1, ("json",), with_main=False, home="changed"),
    ):
        assert other is not one
    with pytest.raises(BrokenPipeError, match="is gone"):
        ForkServer(1, (), with_main=False).begin("x", Limits(), [])
    assert "OMP_NUM_THREADS" in THREADS


def test_a_fork_server_has_no_terminal_and_a_session_of_its_own():
    server = ForkServer(3, (), with_main=False)
    content = local._in_memory(b"")
    kept, ends = os.dup(0), os.pipe()
    os.dup2(ends[0], 0)  # a driver whose standard input is something
    try:
        server.load("x", content)
    finally:
        os.dup2(kept, 0)
        for end in (kept, *ends):
            os.close(end)
    try:
        until = time.monotonic() + 30
        while Path(f"/proc/{server.pid}/exe").readlink() != Path(sys.executable).resolve() and time.monotonic() < until:
            time.sleep(0.01)
        assert {str(Path(f"/proc/{server.pid}/fd/{n}").readlink()) for n in (0, 1, 2)} == {os.devnull}
        modes = [int(Path(f"/proc/{server.pid}/fdinfo/{n}").read_text().split()[3], 8) & 3 for n in (0, 1, 2)]
        assert modes == [os.O_RDONLY, os.O_WRONLY, os.O_WRONLY]
        assert os.getsid(server.pid) == server.pid
        environment = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
        assert b"OMP_NUM_THREADS=3" in environment
        pid = server.pid
        server.load("x", content)
        assert server.pid == pid  # it runs, and has it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        server.load("x", content)
        assert server.pid not in (0, pid)
    finally:
        server.end()
        os.close(content)
    assert server.pid == 0


def test_a_preparation_has_the_script_only_where_it_is_wanted():
    plain = _sending.preparation("nasbot-fork-server", with_main=False)
    assert "sys_path" in plain
    assert not {"init_main_from_path", "init_main_from_name"} & set(plain)


def test_files_in_memory_are_read_from_their_beginning():
    content = os.urandom(200_000)
    descriptor = local._in_memory(content)
    assert _content(descriptor) == _content(descriptor) == content
    os.close(descriptor)
    assert told(ValueError("z" * 400)) == "ValueError: " + "z" * 300


def test_a_folder_that_is_gone_is_not_entered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _enter(None)
    _enter(str(tmp_path / "gone"))
    assert Path.cwd() == tmp_path
    (tmp_path / "here").mkdir()
    _enter(str(tmp_path / "here"))
    assert Path.cwd() == tmp_path / "here"


# -- folders that travel -----------------------------------------------------------------------------------------------


def test_folders_travel_and_files_come_back(tmp_path):
    read, written = tmp_path / "read", tmp_path / "written"
    (read / "below").mkdir(parents=True)
    (read / "below" / "a.txt").write_bytes(b"a")
    objective = objectives.Carrying(str(read), str(written))
    folders = packed_folders(objective)
    assert folders == {"source": {"below/a.txt": b"a"}}
    there = Unpacked(objective, folders)
    assert Path(there.objective.source, "below/a.txt").read_bytes() == b"a"
    target = Path(there.objective.target)
    for name in ("w.bin", ".hidden", "x" * 202):
        (target / name).write_bytes(b"w")
    (target / "folder").mkdir()
    assert list(there.left()) == [("target", "w.bin", b"w")]
    assert not (target / "w.bin").exists()
    there.remove()
    assert not target.exists()
    keep(objective, "target", "w.bin", b"w")
    assert (written / "w.bin").read_bytes() == b"w"
    none = objectives.Carrying(None, None)
    assert packed_folders(none) == {}
    assert Unpacked(none, {}).objective is none


def test_an_evaluation_may_print_to_closed_streams():
    assert ctypes  # what is loaded beforehand costs a fresh process nothing
    executor = LocalExecutor(1, limits=Limits(seconds=60.0))
    try:
        executor.start(objectives.closing_streams)
        executor.submit(job())
        assert wait_for(executor)[0].outcome.value == 1.0
    finally:
        executor.close()


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("x = 2", ""),
        ("stop_at_study()", '; the script starts a study first: put that under if __name__ == "__main__":'),
        ("1 / 0", "; before that, importing the script failed: ZeroDivisionError: division by zero"),
    ],
)
def test_a_drivers_script_is_kept_as_far_as_a_worker_can_import_it(tmp_path, monkeypatch, line, trouble):
    for name in ("__main__", "__mp_main__"):
        monkeypatch.setitem(sys.modules, name, sys.modules["__main__"])
    script = tmp_path / "script.py"
    script.write_text(f"from nasbot.execution._sending import stop_at_study\ndef objective(): return 1\n{line}\ny = 3")
    stop_at_study()  # here nothing is imported
    assert import_script({"init_main_from_path": str(script)}) == trouble
    kept = sys.modules["__main__"]
    assert kept is sys.modules["__mp_main__"]
    assert kept.objective() == 1
    assert hasattr(kept, "y") is (trouble == "")
    stop_at_study()  # an objective may have a study of its own


def test_what_cannot_be_shown_is_still_refused_in_words():
    failed = outcome_of([10**5000])  # more digits than Python writes
    assert isinstance(failed, Failed)
    assert "got an object that cannot be shown" in failed.message


def test_a_file_that_came_back_and_cannot_be_written(tmp_path):
    (tmp_path / "target").write_text("a file where its folder should be")
    objective = objectives.Carrying(None, str(tmp_path / "target"))
    with pytest.raises(FileError, match=r"target.w\.bin: cannot be written: "):
        keep(objective, "target", "w.bin", b"w")


def test_the_script_is_sent_only_where_the_objective_comes_from_it(monkeypatch):
    everything = {"sys_path": ["a"], "dir": "b", "orig_dir": None, "init_main_from_path": "c.py", "authkey": b"secret"}
    monkeypatch.setattr(_sending.spawn, "get_preparation_data", lambda name: dict(everything))
    assert _sending.preparation("x", with_main=False) == {"sys_path": ["a"], "dir": "b"}
    assert _sending.preparation("x", with_main=True) == {"sys_path": ["a"], "dir": "b", "init_main_from_path": "c.py"}


def test_errors_beside_an_interruption_are_shown_as_ever(capsys):
    interruption._without_traceback(ValueError, ValueError("odd"), None)
    assert capsys.readouterr().err == "ValueError: odd\n"
    with pytest.raises(SystemExit) as left:
        interruption._without_traceback(interruption.Interrupted, interruption.Interrupted("left"), None)
    assert left.value.code == 130
    assert capsys.readouterr().err == "left\n"
    seen = []
    hook = interruption._quietly(seen.append)
    for error in (ValueError("odd"), interruption.Interrupted("left")):
        hook(SimpleNamespace(exc_value=error))
    assert [str(shown.exc_value) for shown in seen] == ["odd"]


def test_a_process_that_cannot_be_started_is_the_machines_failure(monkeypatch):
    executor = SpawnExecutor(1)
    try:
        executor.start(objectives.scored)
        while executor._idle:
            executor._idle.pop().end()

        def no_processes():
            raise OSError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(executor, "_started", no_processes)
        executor.submit(job())
        (event,) = executor.wait(1.0)
        assert event.outcome.cause is FailureCause.ENVIRONMENT
        assert "its process could not be started" in event.outcome.message
    finally:
        executor.close()
