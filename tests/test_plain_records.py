"""Dataclasses of plain fields as JSON and back, and what the system refuses as one error with its file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from nasbot import _json
from nasbot._files import file_errors
from nasbot.errors import CodecError, DataError, FileError


@dataclass(frozen=True)
class Record:
    name: str
    n: int = 1
    size: float | None = None
    is_whole: bool = False
    pairs: tuple[tuple[float, ...], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


WHOLE = Record("a", 2, 0.5, True, ((1.0, 2.0), ()), {"deciding": 3.0})


def test_records_come_back():
    record = json.loads(json.dumps(_json.record_of(WHOLE)))
    assert _json.read_as(Record, record, "record") == WHOLE
    assert _json.read_as(Record, {"form": "x", **record}, "record", beside=("form",)) == WHOLE


def test_what_is_missing_is_at_its_default_only_where_it_may_be_missing():
    assert _json.read_as(Record, {"name": "b"}, "record", optional=True) == Record("b")
    with pytest.raises(CodecError, match="record: expected an object with name, n, size"):
        _json.read_as(Record, {"name": "b"}, "record")


def test_a_field_may_have_a_rule_of_its_own():
    record = _json.record_of(WHOLE)
    assert _json.read_as(Record, record, "record", size=_json.scale) == WHOLE
    with pytest.raises(CodecError, match="record, size: expected numbers above 0"):
        _json.read_as(Record, {**record, "size": 0.0}, "record", size=_json.scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 1}, "record, name: expected text, got 1"),
        ({"n": 1.5}, "record, n: expected a whole number >= 0, got 1.5"),
        ({"n": True}, "record, n: expected a whole number"),
        ({"size": "1"}, "record, size: expected a finite number, got '1'"),
        ({"size": None}, "record, size: expected a finite number, got None"),
        ({"is_whole": 1}, "record, is_whole: expected true or false, got 1"),
        ({"pairs": 1.0}, "record, pairs: expected a list, got 1.0"),
        ({"pairs": [1.0]}, "record, pairs: expected a list, got 1.0"),
        ({"pairs": [["x"]]}, "record, pairs: expected a finite number, got 'x'"),
        ({"seconds": []}, "record, seconds: expected an object"),
        ({"seconds": {"a": "b"}}, "record, seconds: expected a finite number, got 'b'"),
        ({"more": 1}, "record: expected an object with name"),
    ],
    ids=str,
)
def test_anything_else_is_refused_with_its_place(change, message):
    with pytest.raises(CodecError, match=message):
        _json.read_as(Record, {**_json.record_of(WHOLE), **change}, "record")


def test_what_the_system_refuses_is_a_file_error_with_its_reason(tmp_path):
    with pytest.raises(FileError, match=r"^cannot read it: No such file or directory$"), file_errors("cannot read it"):
        (tmp_path / "none").read_bytes()
    with pytest.raises(FileError, match=r"^cannot read it: embedded null"), file_errors("cannot read it", ValueError):
        (tmp_path / "a\0b").read_bytes()
    with pytest.raises(ValueError, match="a bug"), file_errors("cannot read it"):
        raise ValueError("a bug")


@pytest.mark.parametrize("error", [FileError("another file"), DataError("not a table")], ids=repr)
def test_our_own_errors_stay_as_they_are(error):
    with pytest.raises(type(error)) as raised, file_errors("cannot read it", ValueError):
        raise error
    assert raised.value is error
