"""Where the networks of a search are trained."""

import pytest

from nasbot.automl.place import Place, parsed_bytes
from nasbot.errors import OptionError
from nasbot.execution import LocalExecutor, RayExecutor, SerialExecutor


@pytest.mark.parametrize(
    ("place", "workers", "kind"),
    [
        (Place(), 1, SerialExecutor),
        (Place(), 2, LocalExecutor),
        (Place(memory_per_trial=1 << 30), 1, LocalExecutor),
        (Place("local"), 1, LocalExecutor),
        (Place("here"), 2, SerialExecutor),
        (Place("ray", address="head:26379"), 2, RayExecutor),
    ],
)
def test_each_place_has_its_executor(place, workers, kind):
    executor = place.executor(workers, 10.0)
    assert type(executor) is kind
    if kind is not SerialExecutor:
        assert executor.slots == workers
        assert executor.limits.seconds == 150.0
        assert executor.limits.memory == place.memory_per_trial


def test_a_cluster_is_used_as_a_whole_where_nothing_else_is_said():
    executor = Place("ray", cpus_per_trial=2).executor(2, 10.0, all_slots=True)
    assert executor._slots is None
    assert executor.cpus_per_trial == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "moon"}, "executor: expected one of"),
        ({"address": "head:1"}, "address: only a Ray cluster has it"),
        ({"kind": "local", "cpus_per_trial": 2}, "cpus_per_trial: only a Ray cluster has it"),
        ({"kind": "here", "memory_per_trial": 1 << 30}, "memory_per_trial: networks that are trained here"),
        ({"memory_per_trial": 0}, "limit on memory"),
        ({"kind": "ray", "gpus_per_trial": -1}, "gpus_per_trial: expected a number >= 0"),
    ],
)
def test_what_cannot_be_meant(options, words):
    with pytest.raises(OptionError, match=words):
        Place(**options)


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
