"""Structure-aware mutations of networks in JSON, and the judgement on what the codec makes of them.

A mutation is a function of the input and one seed, so that a finding comes back. Most changes are made to the parsed
value, where they reach past the parser into the checks behind it; some to the text and some to the bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from nasbot.architecture import BUILT_IN, Architecture
from nasbot.architecture.pools import initial_pool
from nasbot.errors import NasbotError
from tests.fuzz.bombs import MAX_MESSAGE

MAX_SIZE = 60_000  # larger inputs are for tests/fuzz/bombs.py: here many matter more than long ones

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, 7.0, 0.5, -0.0, 1e308, 10**6, 10**6 + 1, 10**12, 10**19,
    "", "ip", "op", "cnn", "mlp-reg", "x" * 50, "\n", "\x1b[0m", "\ud800", "\U000e0001" * 30,
    [], {}, [[]], [0], [0, 1], [0, 1, 2], list(range(50)),
    {"label": "relu"}, {"label": "softmax"}, {"label": "conv3", "units": 16, "stride": 2},
)  # fmt: skip
TEXTS = (
    "NaN", "-Infinity", "1e999", "9" * 30, "-", "0x1", "01", "1.", "null", "tru", "//", " " * 100, "\ufeff", "\u2028",
    '"', "\\", "\\u0000", "\\ud800", "[", "]", "{", "}", ",", ":", "[" * 20, '"kind": "cnn",', '"edges": [],',
)  # fmt: skip
LABELS = sorted({label.name for vocabulary in BUILT_IN.values() for label in vocabulary.labels})
Path = tuple[Any, ...]


def seeds() -> list[bytes]:
    """Valid networks to start from: the smallest of each initial pool, and one of each kind by hand."""
    pools = [arch for kind in BUILT_IN for arch in initial_pool(kind)[:4]]
    return [arch.to_json().encode() for arch in pools]


def mutated(data: bytes, seed: int) -> bytes:
    """A changed copy of ``data``; equal arguments give equal results in any process."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = _mutated_once(data, rng)[:MAX_SIZE]
    return data


def _mutated_once(data: bytes, rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.7:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            pass
        else:
            return _encoded(_changed(value, rng), rng)
    return _changed_text(data, rng) if kind < 0.9 else _changed_bytes(data, rng)


def _encoded(value: Any, rng: random.Random) -> bytes:
    indent = rng.choice((None, None, None, 1))
    return json.dumps(value, indent=indent, ensure_ascii=rng.random() < 0.8).encode("utf-8", "surrogatepass")


# -- of the value ----------------------------------------------------------------------------------------------------


def _changed(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and rng.random() < 0.6:
        return rng.choice((_relabel, _resize, _add_edge, _drop_edge, _split_edge, _skip, _renumber))(value, rng)
    places = list(_places(value))
    path = rng.choice(places)
    return _replaced(value, path, rng.choice((_junk, _repeat, _nest, _remove, _rename, _swap)), rng)


def _places(value: Any, path: Path = (), depth: int = 0) -> Iterator[Path]:
    """The address of every value inside ``value``."""
    yield path
    if depth < 8:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            yield from _places(inner, (*path, key), depth + 1)


def _replaced(value: Any, path: Path, change: Callable[[Any, random.Random], Any], rng: random.Random) -> Any:
    if not path:
        return change(value, rng)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], change, rng)
    return copy


def _junk(_: Any, rng: random.Random) -> Any:
    return rng.choice(JUNK)


def _repeat(value: Any, rng: random.Random) -> Any:
    n = rng.choice((2, 3, 30, 1500))
    return value * n if isinstance(value, list | str) and len(value) * n < 20_000 else [value] * n


def _nest(value: Any, rng: random.Random) -> Any:
    for _ in range(rng.choice((1, 2, 12, 15, 16, 17, 200))):
        value = [value] if rng.random() < 0.7 else {"a": value}
    return value


def _remove(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value:
        gone = rng.choice(list(value))
        return {key: inner for key, inner in value.items() if key != gone}
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return value[:at] + value[at + 1 :]
    return None


def _rename(value: Any, rng: random.Random) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    old = rng.choice(list(value))
    new = rng.choice((old.upper(), old + " ", "unit", "labels", "version", "", "\n", "k" * 100))
    return {new if key == old else key: inner for key, inner in value.items()}


def _swap(value: Any, rng: random.Random) -> Any:
    if not isinstance(value, list) or len(value) < 2:
        return value
    copy = list(value)
    u, v = rng.randrange(len(copy)), rng.randrange(len(copy))
    copy[u], copy[v] = copy[v], copy[u]
    return copy


# -- of the network, so that a good part stays valid ------------------------------------------------------------------


def _layers_and_edges(record: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    layers, edges = record.get("layers"), record.get("edges")
    return (list(layers) if isinstance(layers, list) else []), (list(edges) if isinstance(edges, list) else [])


def _relabel(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    layers, _ = _layers_and_edges(record)
    if layers and isinstance(layers[at := rng.randrange(len(layers))], dict):
        layers[at] = layers[at] | {"label": rng.choice(LABELS)}
    return record | {"layers": layers}


def _resize(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    layers, _ = _layers_and_edges(record)
    if layers and isinstance(layers[at := rng.randrange(len(layers))], dict):
        layers[at] = layers[at] | {
            rng.choice(("units", "stride")): rng.choice((None, 1, 2, 16, 64.0, 1024, 10**6, 0, -3, 1.5))
        }
    return record | {"layers": layers}


def _add_edge(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    layers, edges = _layers_and_edges(record)
    n = len(layers) + 1
    edges.append(sorted((rng.randrange(n), rng.randrange(n))) if rng.random() < 0.8 else [rng.randrange(n), 0])
    return record | {"edges": edges}


def _drop_edge(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    _, edges = _layers_and_edges(record)
    if edges:
        edges.pop(rng.randrange(len(edges)))
    return record | {"edges": edges}


def _split_edge(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy of a layer put behind it: what a modifier of the search would do."""
    layers, edges = _layers_and_edges(record)
    if len(layers) < 4 or not all(isinstance(e, list) and all(type(end) is int for end in e) for e in edges):
        return record
    at = rng.randrange(1, len(layers) - 2)
    renumbered = [[end + (end > at) for end in edge] for edge in edges]
    moved = [[at + 1 if i == 0 and end == at else end for i, end in enumerate(edge)] for edge in renumbered]
    return record | {"layers": [*layers[: at + 1], layers[at], *layers[at + 1 :]], "edges": [*moved, [at, at + 1]]}


def _skip(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    layers, edges = _layers_and_edges(record)
    if len(layers) > 5:
        edges.append(sorted(rng.sample(range(1, len(layers) - 2), 2)))
    return record | {"edges": edges}


def _renumber(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    _, edges = _layers_and_edges(record)
    rng.shuffle(edges)
    return record | {"edges": edges}


# -- of the text and of the bytes -------------------------------------------------------------------------------------


def _changed_text(data: bytes, rng: random.Random) -> bytes:
    at, until = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    piece = rng.choice(TEXTS).encode("utf-8")
    if rng.random() < 0.7:
        until = min(len(data), at + rng.choice((0, 0, 1, 3)))
    return data[:at] + piece * rng.choice((1, 1, 1, 2, 50)) + data[until:]


def _changed_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 16))):
        at = rng.randint(0, len(changed))
        changed[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
    return bytes(changed)


# -- the judgement ----------------------------------------------------------------------------------------------------


class Finding(AssertionError):
    """The codec broke a promise."""


def judged(data: bytes, read: Callable[[bytes], Architecture] = Architecture.from_json) -> str:
    """ "accepted" or the name of the error; raises Finding where the codec breaks a promise."""
    try:
        arch = read(data)
    except NasbotError as error:
        message = str(error)
        if not message or len(message) > MAX_MESSAGE or not message.isprintable():
            raise Finding(f"message of {len(message)} characters: {message[:200]!r}") from error
        return type(error).__name__
    except Exception as error:
        raise Finding(f"{type(error).__name__} instead of a NasbotError: {str(error)[:200]!r}") from error
    again = Architecture.from_json(arch.to_json())
    if (again.kind, again.layers, again.edges) != (arch.kind, arch.layers, arch.edges):
        raise Finding("does not round-trip through JSON")
    return "accepted"
