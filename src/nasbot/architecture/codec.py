"""Networks in and out of JSON: strict, versioned, bounded, exact.

Reading never runs code, and every bound (bytes, values, nesting, layers, edges, units) is checked before anything of
that size is built. Work and memory are linear in the input, and a message quotes at most a few dozen characters of it,
escaped. Keys of the outermost object other than ours are the owner's annotations (a name, a score) and are ignored;
inside a layer an unknown key is an error. docs/reference/architecture-json.md describes the format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from reprlib import Repr
from typing import Any, NoReturn, TypeVar

from nasbot._files import file_errors
from nasbot.architecture.attributes import NORMS, Attributes
from nasbot.architecture.labels import MAX_NAME_LENGTH, Vocabulary
from nasbot.architecture.layer import MAX_EDGES, MAX_LAYERS, MAX_UNITS, Edge, Layer
from nasbot.architecture.vocabularies import BUILT_IN, HOW_TO_NAME_ONE, OWN
from nasbot.errors import CodecError, NasbotError, VocabularyError

H = TypeVar("H", bound=Hashable)

FORMAT_VERSION = 2
PLAIN_VERSION = 1  # without attributes of layers; what needs none is written so, for readers from before there were any
MAX_BYTES = 1_000_000  # the largest network readable here, indented generously, has 600,000
MAX_VALUES = 40_000  # MAX_LAYERS and MAX_EDGES make 34,000; the rest is room for annotations
MAX_DEPTH = 16
MAX_DIGITS = 20
N_SHARED = 1 << 16  # different layers, and edges, that networks read share
LAYER_KEYS = ("label", "units", "stride")
ATTRIBUTE_KEYS = Attributes._fields

# The possessive quantifiers (*+) and the optional last quote make every match final: an unterminated string is eaten
# whole, once. With plain ones each of its quotes starts another scan to the end: 40 kB took 10 s, 1 MB takes hours.
STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")


Parts = tuple[Vocabulary, list[Layer], list[Edge]]  # what a network is built of; whether it is one, it says itself


def plain(kind: str, layers: Iterable[Layer], edges: Iterable[Edge]) -> dict[str, Any]:
    """A network as plain data."""
    return {
        "kind": kind,
        "layers": [
            {"label": x.label, "units": x.units, "stride": x.stride}
            if x.attributes is None
            else {"label": x.label, "units": x.units, "stride": x.stride, **_own(x.attributes)}
            for x in layers
        ],
        "edges": [list(edge) for edge in sorted(edges)],
    }


def parts_of(record: Mapping[str, Any], vocabulary: Vocabulary | None = None) -> Parts:
    """What ``plain`` wrote; for a vocabulary that is not built in, pass it."""
    if not isinstance(record, Mapping):
        raise CodecError(f"a network must be an object with kind, layers and edges, got {_type_name(record)}")
    if missing := [key for key in ("kind", "layers", "edges") if key not in record]:
        raise CodecError(f"a network must have the keys kind, layers and edges; missing: {', '.join(missing)}")
    known = _vocabulary(record["kind"], vocabulary)
    entries = _bounded_list(record["layers"], "layers", MAX_LAYERS)
    pairs = _bounded_list(record["edges"], "edges", MAX_EDGES)
    layers = [_layer(entry, u) for u, entry in enumerate(entries)]
    edges = [_edge(pair, i) for i, pair in enumerate(pairs)]
    if len(set(edges)) < len(edges):
        raise CodecError(f"edges: {list(_first_repeated(edges))} is listed twice")
    return known, layers, edges


def to_json(kind: str, layers: Sequence[Layer], edges: Iterable[Edge]) -> str:
    """A network as one JSON object with a format version: the lowest that can say it."""
    is_plain = all(layer.attributes is None for layer in layers)
    version = PLAIN_VERSION if is_plain else FORMAT_VERSION
    return json.dumps({"version": version, **plain(kind, layers, edges)}, allow_nan=False)


def parts_of_json(text: str | bytes, vocabulary: Vocabulary | None = None) -> Parts:
    """What ``to_json`` wrote. Raises CodecError or VocabularyError.

    Linear in the length of ``text``, and nothing of it is kept but the parts.
    """
    record = _parse(_decoded(text))
    if not isinstance(record, dict):
        raise CodecError(f"a network must be a JSON object, got {_type_name(record)}")
    version = record.get("version", FORMAT_VERSION)
    if type(version) is not int or not PLAIN_VERSION <= version <= FORMAT_VERSION:
        readable = f"{PLAIN_VERSION} and {FORMAT_VERSION}"
        raise CodecError(f"version {_shown(version)} of the network format is unknown; this nasbot reads {readable}")
    parts = parts_of(record, vocabulary)
    if version == PLAIN_VERSION:
        for u, entry in enumerate(record["layers"]):
            if own := [key for key in ATTRIBUTE_KEYS if key in entry]:
                raise CodecError(
                    f"layer {u}: {own[0]} is of version {FORMAT_VERSION} of the network format, got {PLAIN_VERSION}"
                )
    return parts


def read(path: str | Path) -> bytes:
    """As much of a file as is ever looked at; FileError names it."""
    with file_errors(f"cannot read {Path(path)}", ValueError), Path(path).open("rb") as file:
        return file.read(MAX_BYTES + 1)


def write(path: str | Path, text: str) -> None:
    """Write a line to a file; FileError names it."""
    with file_errors(f"cannot write {Path(path)}", ValueError):
        Path(path).write_text(text + "\n", encoding="utf-8")


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with the network in a file, the error names the file."""
    try:
        yield
    except NasbotError as error:
        error.args = (f"{Path(path)}: {error}",)
        raise


# -- text to plain data ------------------------------------------------------------------------------------------


def _decoded(text: str | bytes) -> str:
    if not isinstance(text, str | bytes | bytearray):
        raise CodecError(f"a network is read from a string or from bytes, got {_type_name(text)}")
    if len(text) > MAX_BYTES:
        raise CodecError(f"a network's JSON may have at most {MAX_BYTES:,} bytes, got {len(text):,} or more")
    if isinstance(text, str):
        return text
    try:
        return bytes(text).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CodecError(f"not UTF-8 text: byte {error.start} cannot be decoded") from None


def _parse(text: str) -> object:
    if text.startswith("\ufeff"):
        raise CodecError("not JSON: begins with a byte order mark; save the file as UTF-8 without one")
    _check_size_and_depth(STRING.sub("", text))
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_bounded_int,
            parse_float=_finite_float,
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # "Unterminated string starting at" and others
        raise CodecError(f"not JSON: {what} at line {error.lineno}, column {error.colno}") from None


def _check_size_and_depth(bare: str) -> None:
    """Of the text without its strings. The parser builds all values and recurses on nesting: bombs are met here."""
    n_values = 1 + sum(bare.count(mark) for mark in ",[{")
    if n_values > MAX_VALUES:
        raise CodecError(f"at most {MAX_VALUES:,} values are read (layers, edges and annotations), got {n_values:,}")
    depth = 0
    for match in BRACKET.finditer(bare):
        depth += 1 if match[0] in "[{" else -1
        if depth > MAX_DEPTH:
            raise CodecError(f"lists and objects are nested deeper than {MAX_DEPTH} levels")
        if depth < 0:
            return  # not JSON, and the parser will get no further than this


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise CodecError(f"the key {_shown(_first_repeated(name for name, _ in pairs))} stands twice in one object")
    return record


def _first_repeated(values: Iterable[H]) -> H:
    seen: set[H] = set()
    return next(value for value in values if value in seen or seen.add(value))  # type: ignore[func-returns-value]


def _refuse_constant(name: str) -> NoReturn:
    raise CodecError(f"{name} is not a number that JSON knows")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise CodecError(f"a whole number of {len(digits)} digits; at most {MAX_DIGITS} are read")
    return int(digits)


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise CodecError(f"{_shown(digits)} is too large for a number")
    return value


# -- plain data to values ----------------------------------------------------------------------------------------


def _vocabulary(kind: object, given: Vocabulary | None) -> Vocabulary:
    if not isinstance(kind, str):
        raise CodecError(f"kind must be a string, got {_type_name(kind)}")
    if given is not None:
        if kind != given.name:
            raise VocabularyError(f"the network is of kind {_shown(kind)}, the vocabulary given is {given.name!r}")
        return given
    found = BUILT_IN.get(kind) or OWN.get(kind)
    if found is None:
        raise VocabularyError(
            f"unknown kind of network {_shown(kind)}; built in: {', '.join(BUILT_IN)}; {HOW_TO_NAME_ONE}"
        )
    return found


def _bounded_list(value: object, name: str, most: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise CodecError(f"{name} must be a list, got {_type_name(value)}")
    if len(value) > most:
        raise CodecError(f"{name}: at most {most:,} are read, got {len(value):,}")
    return list(value)


def _layer(entry: object, u: int) -> Layer:
    if not isinstance(entry, Mapping):
        raise CodecError(f"layer {u} must be an object with label, units and stride, got {_type_name(entry)}")
    if unknown := [key for key in entry if key not in LAYER_KEYS and key not in ATTRIBUTE_KEYS]:
        known = ", ".join((*LAYER_KEYS, *ATTRIBUTE_KEYS))
        raise CodecError(f"layer {u}: unknown key {_shown(unknown[0])}; known: {known}")
    label = entry.get("label")
    if not isinstance(label, str):
        raise CodecError(f"layer {u}: label must be a string, got {_type_name(label)}")
    if not 0 < len(label) <= MAX_NAME_LENGTH or not label.isprintable():
        # What no vocabulary can know is refused here, so that no message below quotes megabytes or line breaks.
        raise CodecError(f"layer {u}: label must be 1 to {MAX_NAME_LENGTH} printable characters, got {_shown(label)}")
    return _shared_layer(
        str(label),
        _whole(entry.get("units"), f"layer {u} ({label}): units", MAX_UNITS),
        _whole(entry.get("stride"), f"layer {u} ({label}): stride", MAX_UNITS),
        _attributes(entry, f"layer {u} ({label})"),
    )


def _own(attributes: Attributes) -> dict[str, Any]:
    return {key: value for key, value in attributes._asdict().items() if value is not None}


def _attributes(entry: Mapping[str, Any], name: str) -> Attributes | None:
    """What a layer has of its own; whether it may have that is for the network to say."""
    found: dict[str, Any] = {key: entry[key] for key in ATTRIBUTE_KEYS if entry.get(key) is not None}
    for key, value in found.items():
        if key == "norm":
            if not isinstance(value, str) or value not in NORMS:
                raise CodecError(f"{name}: norm must be one of {', '.join(NORMS)}, got {_shown(value)}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise CodecError(f"{name}: {key} must be a number, got {_shown(value)}")
    return Attributes(**found) if found else None


@lru_cache(maxsize=N_SHARED)
def _shared_layer(label: str, units: int | None, stride: int | None, attributes: Attributes | None) -> Layer:
    """One object for equal layers: a study of 100,000 networks has millions of them, and few different ones."""
    return Layer(label, units, stride, attributes)


@lru_cache(maxsize=N_SHARED)
def _shared_edge(u: int, v: int) -> Edge:
    return u, v


def _edge(pair: object, i: int) -> Edge:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise CodecError(f"edge number {i} must be a pair of layer indices, got {_shown(pair)}")
    u, v = (_whole(end, f"edge number {i}", MAX_LAYERS) for end in pair)
    if u is None or v is None:
        raise CodecError(f"edge number {i} must be a pair of layer indices, got {_shown(pair)}")
    return _shared_edge(u, v)


def _whole(value: object, name: str, most: int) -> int | None:
    """A whole number or None; floats with whole values count, booleans do not."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and value % 1 != 0):
        raise CodecError(f"{name} must be a whole number, got {_shown(value)}")
    if not 0 <= value <= most:
        raise CodecError(f"{name} must lie between 0 and {most:,}, got {_shown(value)}")
    return int(value)


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__[:40]}")


class _Excerpt(Repr):
    """Values in messages: at most the first few items, levels and characters of each, one line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 3
        self.maxstring = self.maxother = 40

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to print integers of thousands of digits, so those are counted instead."""
        return repr(x) if x.bit_length() <= 64 else f"a whole number of {x.bit_length():,} bits"


def _shown(value: object) -> str:
    """A value in a message, cut to a length that keeps the message one short line."""
    text = _Excerpt().repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
