"""Strict reading of JSON: each function gives a value of one type, or raises CodecError naming the place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nasbot.errors import CodecError


def fields_of(record: object, where: str, names: Sequence[str]) -> Mapping[str, object]:
    """The record, if it is an object with exactly these fields."""
    if not isinstance(record, Mapping) or set(record) != set(names):
        raise CodecError(f"{where}: expected an object with {', '.join(names)}, got {shown(record)}")
    return record


def form_of(record: object, where: str, forms: Sequence[str]) -> str:
    """The record's form, if it is one of these."""
    form = record.get("form") if isinstance(record, Mapping) else None
    if not isinstance(form, str) or form not in forms:
        raise CodecError(f"{where}: expected a form among {', '.join(forms)}, got {shown(form)}")
    return form


def list_of(value: object, where: str) -> Sequence[object]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise CodecError(f"{where}: expected a list, got {shown(value)}")
    return value


def text_of(value: object, where: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise CodecError(f"{where}: expected text, got {shown(value)}")
    return value


def truth_of(value: object, where: str) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise CodecError(f"{where}: expected true or false, got {shown(value)}")
    return value


def number_of(value: object, where: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CodecError(f"{where}: expected a finite number, got {shown(value)}")
    return float(value)


def whole_of(value: object, where: str) -> int:
    """A whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CodecError(f"{where}: expected a whole number >= 1, got {shown(value)}")
    return value


def numbers_in(value: object, where: str) -> tuple[float, ...]:
    """A list of finite numbers."""
    return tuple(number_of(item, where) for item in list_of(value, where))


def scales_of(value: object) -> tuple[float, ...]:
    """A list of numbers above 0."""
    scales = numbers_in(value, "scale")
    if any(scale <= 0 for scale in scales):
        raise CodecError("scale: expected numbers above 0")
    return scales


def shown(value: object) -> str:
    """The beginning of a value, for messages."""
    return repr(value)[:60]
