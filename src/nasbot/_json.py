"""Plain data: what JSON can carry, and one strict reader for every file that we open.

Writers pass through ``plain_json``. Readers take what they expect, item by item, and anything else is a CodecError that
names the place; whoever reads a file turns it into the error of that file.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from nasbot._typing import Json
from nasbot.errors import CodecError, OptionError

MAX_DEPTH = 12
T = TypeVar("T")


# -- writing -----------------------------------------------------------------------------------------------------------


def plain_json(record: Mapping[str, object]) -> dict[str, Json]:
    """A copy that JSON can carry: numpy scalars and arrays as numbers and lists, numbers that are not finite as null.

    A note must not be able to end a study, so a predicted NaN is forgotten; anything that is not data is an error.
    """
    if not isinstance(record, Mapping):
        raise OptionError(f"notes and details: expected a mapping of names to plain data, got {type(record).__name__}")
    return {_key(key): _plain(value, 1) for key, value in record.items()}


def utf8(text: str) -> str:
    """The text as UTF-8 can carry it: lone surrogates (undecodable bytes in a message) become question marks."""
    return str(text).encode("utf-8", "replace").decode("utf-8")


def _plain(value: object, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise OptionError(f"notes and details: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, depth + 1) for entry in value]
    raise OptionError(f"notes and details: expected plain data, got {type(value).__name__}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise OptionError(f"notes and details: names are strings, got {type(key).__name__} {str(key)[:40]!r}")
    return utf8(key)


# -- reading -----------------------------------------------------------------------------------------------------------


def parsed(text: str | bytes, where: str) -> object:
    """The data of a JSON text; NaN and Infinity, which JSON does not know, are refused."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, TypeError, RecursionError) as error:
        raise CodecError(f"{where}: not JSON: {str(error)[:120]}") from None


def mapping(value: object, where: str) -> Mapping[str, object]:
    """An object, whatever its names."""
    if not isinstance(value, Mapping):
        raise CodecError(f"{where}: expected an object, got {_shown(value)}")
    return value


def table(value: object) -> Mapping[str, Any]:
    """An object, or an empty one where it is something else: for those who show what there is."""
    return value if isinstance(value, Mapping) else {}


def fields(value: object, where: str, names: Sequence[str], *, optional: Sequence[str] = ()) -> Mapping[str, object]:
    """An object with exactly these names; the ``optional`` ones may be missing."""
    if not isinstance(value, Mapping) or not set(names) <= set(value) <= {*names, *optional}:
        raise CodecError(f"{where}: expected an object with {', '.join((*names, *optional))}, got {_shown(value)}")
    return value


def form(value: object, where: str, forms: Sequence[str]) -> str:
    """The entry ``form`` of an object, one of these."""
    found = value.get("form") if isinstance(value, Mapping) else None
    if not isinstance(found, str) or found not in forms:
        raise CodecError(f"{where}: expected a form among {', '.join(forms)}, got {_shown(found)}")
    return found


def items(value: object, where: str) -> Sequence[object]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise CodecError(f"{where}: expected a list, got {_shown(value)}")
    return value


def text(value: object, where: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise CodecError(f"{where}: expected text, got {_shown(value)}")
    return value


def truth(value: object, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise CodecError(f"{where}: expected true or false, got {_shown(value)}")
    return value


def number(value: object, where: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise CodecError(f"{where}: expected a finite number, got {_shown(value)}")
    return float(value)


def numbers(value: object, where: str) -> tuple[float, ...]:
    """A list of finite numbers."""
    return tuple(number(item, where) for item in items(value, where))


def scales(value: object, where: str = "scale") -> tuple[float, ...]:
    """A list of numbers above 0."""
    return tuple(scale(item, where) for item in items(value, where))


def scale(value: object, where: str = "scale") -> float:
    """A number above 0."""
    found = number(value, where)
    if found <= 0:
        raise CodecError(f"{where}: expected numbers above 0")
    return found


def whole(value: object, where: str, *, at_least: int = 0) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise CodecError(f"{where}: expected a whole number >= {at_least}, got {_shown(value)}")
    return value


# -- dataclasses of plain fields ---------------------------------------------------------------------------------------


def record_of(value: Any) -> dict[str, Json]:
    """A dataclass as JSON, tuples as lists; ``read_as`` gives an equal one."""
    return {entry.name: _lists(getattr(value, entry.name)) for entry in dataclasses.fields(value)}


def read_as(
    kind: type[T],
    record: object,
    where: str,
    *,
    beside: Sequence[str] = (),
    optional: bool = False,
    **own: Callable[[object, str], Any],
) -> T:
    """The dataclass that ``record_of`` wrote, its fields of the types that it declares; CodecError for anything else.

    Args:
        beside: names that stand in the record beside the fields.
        optional: whether fields may be missing, which are then at their defaults.
        own: readers of fields that have a rule beyond their type.
    """
    types = _types(kind)  # type: ignore[arg-type]  # a class can be hashed
    found = fields(record, where, (*beside, *(() if optional else types)), optional=tuple(types) if optional else ())
    return kind(
        **{
            name: (own.get(name) or _reader(types[name]))(value, f"{where}, {name}")
            for name, value in found.items()
            if name in types
        }
    )


@cache
def _types(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {entry.name: hints[entry.name] for entry in dataclasses.fields(kind)}


@cache
def _reader(kind: Any) -> Callable[[object, str], Any]:
    """What reads a value of this type; of a field that may be None, one that is said."""
    plain: dict[Any, Callable[[object, str], Any]] = {float: number, int: whole, str: text, bool: truth}
    if kind in plain:
        return plain[kind]
    inner = [_reader(part) for part in get_args(kind) if part not in (NoneType, Ellipsis)]
    if get_origin(kind) is tuple:
        return lambda value, where: tuple(inner[0](item, where) for item in items(value, where))
    if get_origin(kind) is Mapping:
        return lambda value, where: {name: inner[1](item, where) for name, item in mapping(value, where).items()}
    return inner[0]


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _shown(value: object) -> str:
    return repr(value)[:60]
