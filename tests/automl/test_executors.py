"""Where the networks of a search are trained."""

import pytest

from nasbot.automl.executors import check_place, checked_workers, default_workers, executor_of, parsed_bytes
from nasbot.errors import OptionError
from nasbot.execution import LocalExecutor, RayExecutor, SerialExecutor


@pytest.mark.parametrize(
    ("given", "options", "kind"),
    [
        ("auto", {"workers": 1}, SerialExecutor),
        ("auto", {"workers": 2}, LocalExecutor),
        ("auto", {"workers": 1, "memory_per_trial": 1 << 30}, LocalExecutor),
        ("local", {"workers": 1}, LocalExecutor),
        ("here", {"workers": 2}, SerialExecutor),
        ("ray", {"workers": 2, "address": "head:26379"}, RayExecutor),
    ],
)
def test_each_word_has_its_executor(given, options, kind):
    executor = executor_of(given, seconds=10.0, **options)
    assert type(executor) is kind
    if kind is not SerialExecutor:
        assert executor.slots == options["workers"]
        assert executor.limits.seconds == 150.0
        assert executor.limits.memory == options.get("memory_per_trial")


def test_a_cluster_is_used_as_a_whole_where_nothing_else_is_said():
    executor = executor_of("ray", workers=None, seconds=10.0, cpus_per_trial=2)
    assert executor._slots is None
    assert executor.cpus_per_trial == 2


def test_an_executor_that_is_given_is_taken_with_its_own_limits():
    mine = SerialExecutor()
    assert executor_of(mine, workers=None, seconds=10.0) is mine
    for options in ({"workers": 2}, {"workers": None, "memory_per_trial": 1 << 30}):
        with pytest.raises(OptionError, match="has its own; leave them out"):
            executor_of(mine, seconds=10.0, **options)


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ("moon", {}, "executor: expected one of auto, here, local, ray, got 'moon'"),
        ("auto", {"address": "head:1"}, "address: only a Ray cluster has it"),
        ("local", {"cpus_per_trial": 2}, "cpus_per_trial: only a Ray cluster has it"),
        ("here", {"memory_per_trial": 1 << 30}, "memory_per_trial: networks that are trained here"),
        ("auto", {"memory_per_trial": 0}, "limit on memory"),
        ("ray", {"cpus_per_trial": -1}, "cpus_per_trial: expected a number >= 0"),
    ],
)
def test_what_cannot_be_meant(given, options, words):
    with pytest.raises(OptionError, match=words):
        check_place(given, **options)


def test_workers():
    assert 1 <= default_workers() == checked_workers(None) <= 2
    for workers in (0, -1, 257, 2.0, True):
        with pytest.raises(OptionError, match="workers: expected a whole number from 1 to 256"):
            checked_workers(workers)


@pytest.mark.parametrize(
    ("text", "n"),
    [("1000", 1000), ("500M", 500 << 20), ("2G", 2 << 30), ("1.5 gb", 3 << 29), ("4KiB", 4096)],
)
def test_bytes(text, n):
    assert parsed_bytes(text) == n


@pytest.mark.parametrize("text", ["", "G", "-2G", "nan", "inf", "0", "1e300", "2X", "two"])
def test_what_are_no_bytes(text):
    with pytest.raises(OptionError, match="such as 500M or 2G"):
        parsed_bytes(text)
