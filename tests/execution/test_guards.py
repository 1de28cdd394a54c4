"""Each safeguard of the executors is there: these tests fail where one is taken out."""

import json
import mmap
import os
import resource
import socket
import struct
import tempfile
import time
import zlib
from pathlib import Path

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.execution import Job, Limits, LocalExecutor, _supervisor, _tree, local
from nasbot.execution._frames import HEADER, MAX_FRAME, FrameError, FrameReader, packed
from tests.execution.objectives import Hanging, SharingMemory, a_second, data_limit, hiding_memory

JOB = Job(0, Candidate(initial_pool("mlp-reg")[0]), 0)


def test_a_frame_with_another_checksum_is_not_believed():
    body = json.dumps({"outcome": {"value": 1.0, "details": {}}}).encode()
    forged = HEADER.pack(len(body), zlib.crc32(body) ^ 1) + body
    with pytest.raises(FrameError, match="checksum"):
        FrameReader().feed(forged)


def test_a_frame_that_announces_too_much_is_refused_at_once():
    with pytest.raises(FrameError, match=f"{MAX_FRAME + 1:,} bytes is announced"):
        FrameReader().feed(struct.pack(">II", MAX_FRAME + 1, 0))
    with pytest.raises(FrameError, match="at most"):
        packed({"x": "y" * MAX_FRAME})


def test_a_supervisor_that_does_not_end_is_killed_within_seconds():
    executor = LocalExecutor(1)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ends = [os.pipe(), os.pipe()]
    for reading, _ in ends:
        os.set_blocking(reading, False)
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    worker = local._Worker(JOB, ours, ends[0][0], ends[1][0], supervisor=child)
    executor._running[0] = worker
    executor.cancel(0)
    assert 4 < worker.deadline - executor.now() <= 5
    executor._origin -= 5.1  # so much later
    executor.wait(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    theirs.close()
    for _, writing in ends:
        os.close(writing)


def test_the_memory_of_a_process_is_limited_by_the_kernel():
    executor = LocalExecutor(1, limits=Limits(memory=300_000_000))
    executor.start(data_limit)
    executor.submit(JOB)
    (finished,) = executor.wait()
    executor.close()
    assert 300_000_000 < finished.outcome.value < 10**10


def test_pages_that_processes_share_count_once():
    n_bytes = 64_000_000
    with mmap.mmap(-1, n_bytes) as shared:
        shared.write(b"x" * n_bytes)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            shared.seek(0)
            shared.read(n_bytes)
            os.write(writing, b"!")
            time.sleep(600)
            os._exit(0)
        assert os.read(reading, 1) == b"!"
        both = [os.getpid(), child]
        assert _tree.resident(both) - _tree.proportional(both) > n_bytes / 2
        os.kill(child, 9)
        os.waitpid(child, 0)
        for end in (reading, writing):
            os.close(end)


def test_only_what_is_really_held_crosses_the_limit(monkeypatch):
    ours, theirs = socket.socketpair()
    watch = _supervisor._Watch(theirs, Limits(), 1)
    sizes = {"resident": 100, "proportional": 40}
    for name in sizes:
        monkeypatch.setattr(_supervisor, name, lambda tree, name=name: 10 if tree == [os.getpid()] else sizes[name])
    assert not watch._holds_too_much(50)
    sizes["proportional"] = 61
    assert watch._holds_too_much(50)
    for end in (watch._waking, watch._wake):
        os.close(end)
    ours.close()
    theirs.close()


def test_shared_memory_of_a_trial_that_was_ended_goes_with_it():
    with tempfile.NamedTemporaryFile(prefix="nasbot-test-", dir="/dev/shm") as old:
        new = Path(f"{old.name}-new")
        old.truncate(4096)
        executor = LocalExecutor(1, limits=Limits(seconds=1.0))
        executor.start(SharingMemory(str(new), old.name))
        executor.submit(JOB)
        (finished,) = executor.wait()
        executor.close()
        assert finished.outcome.cause == "timeout"
        assert not new.exists()
        assert Path(old.name).exists()


def test_no_limit_without_being_asked():
    executor = LocalExecutor(1)
    executor.start(data_limit)
    executor.submit(JOB)
    (finished,) = executor.wait()
    executor.close()
    assert finished.outcome.value == float(resource.getrlimit(resource.RLIMIT_DATA)[0])


def test_memory_in_files_that_are_not_mapped_is_counted():
    n_bytes = 8_000_000
    before = _tree.unmapped([os.getpid()])
    first, second = os.memfd_create("nasbot-test"), os.memfd_create("nasbot-test")
    os.write(first, b"x" * n_bytes)
    os.write(second, b"x" * n_bytes)
    copy = os.dup(first)  # the same file twice
    assert 2 * n_bytes <= _tree.unmapped([os.getpid()]) - before < 2.1 * n_bytes
    with mmap.mmap(second, n_bytes):  # counted with the pages of the process
        assert n_bytes <= _tree.unmapped([os.getpid()]) - before < 1.1 * n_bytes
    for descriptor in (first, second, copy):
        os.close(descriptor)


def test_a_trial_that_hides_its_memory_in_a_file_is_ended():
    executor = LocalExecutor(1, limits=Limits(memory=200_000_000, seconds=120.0))
    executor.start(hiding_memory)
    executor.submit(JOB)
    (finished,) = executor.wait()
    executor.close()
    assert finished.outcome.cause == "oom"


def test_an_import_that_hangs_has_a_deadline_without_any_limit(monkeypatch):
    monkeypatch.setattr("nasbot.execution.local.SECONDS_TO_START", 2.0)
    executor = LocalExecutor(1)
    executor.start(Hanging())
    executor.submit(JOB)
    (finished,) = executor.wait()
    executor.close()
    assert finished.outcome.cause == "environment"
    assert "importing the objective's module" in finished.outcome.message


def test_a_trial_that_has_begun_may_take_longer_than_that(monkeypatch):
    executor = LocalExecutor(1)
    executor.start(a_second)
    executor.submit(JOB)
    while executor._running[JOB.number].supervisor is None:
        assert not executor.wait(0.1)
    monkeypatch.setattr("nasbot.execution.local.SECONDS_TO_START", 0.0)
    assert executor._running[JOB.number].deadline == float("inf")
    (finished,) = executor.wait()
    executor.close()
    assert finished.outcome.value == 1.0
