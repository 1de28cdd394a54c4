"""Hand-made hostile networks: what a malicious or broken file might hold, each with the error it must get.

``python -m tests.fuzz.bombs`` reads every one of them, prints what each cost in time and memory, and fails if one took
100 ms or more, 256 MB or more, or met anything but its error. tests/architecture/test_codec_hostile.py checks the
outcomes, not the clock.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nasbot.architecture import Architecture
from nasbot.errors import CodecError, InvalidArchitectureError, NasbotError, VocabularyError

MAX_MILLISECONDS = 100.0
MAX_MEGABYTES = 256.0
MAX_MESSAGE = 500
MEGABYTE = 1_000_000  # what the codec reads at most


@dataclass(frozen=True)
class Bomb:
    """One hostile input; ``make`` builds it when asked, because many are large."""

    name: str
    make: Callable[[], Any]
    error: type[NasbotError] = CodecError
    read: Callable[[Any], Architecture] = Architecture.from_json

    def refusal(self, content: Any) -> NasbotError:
        """The error that reading ``content`` raises; AssertionError where it is accepted."""
        try:
            self.read(content)
        except NasbotError as error:
            return error
        raise AssertionError(f"{self.name}: accepted")


# -- valid parts to spoil ------------------------------------------------------------------------------------------


def layer(label: str, units: Any = None, stride: Any = None) -> dict[str, Any]:
    """One layer as plain data."""
    return {"label": label, "units": units, "stride": stride}


def chain(n_hidden: int = 2, **changes: Any) -> dict[str, Any]:
    """A valid small MLP as plain data, with keys replaced by ``changes``."""
    layers = [layer("ip"), *(layer("relu", 16) for _ in range(n_hidden)), layer("linear"), layer("op")]
    edges = [[u, u + 1] for u in range(len(layers) - 1)]
    return {"kind": "mlp-reg", "layers": layers, "edges": edges} | changes


def with_layer(entry: Any) -> str:
    """The small MLP with its second layer replaced."""
    record = chain()
    record["layers"][1] = entry
    return json.dumps(record)


def with_edges(*edges: Any) -> str:
    """The small MLP with edges added."""
    record = chain()
    record["edges"] += edges
    return json.dumps(record)


def with_text(key: str, text: str) -> str:
    """The small MLP with the JSON of one key spelled by hand."""
    rest = {name: value for name, value in chain().items() if name != key}
    return json.dumps(rest)[:-1] + f', "{key}": {text}}}'


def with_units(text: str) -> str:
    """The small MLP with one layer's units spelled by hand."""
    return json.dumps(chain()).replace('"units": 16', f'"units": {text}', 1)


def cnn(layers: list[dict[str, Any]], edges: list[list[int]]) -> str:
    """A CNN, valid or not."""
    return json.dumps({"kind": "cnn", "layers": layers, "edges": edges})


def fill(unit: str, before: str = "", after: str = "") -> str:
    """As many copies of ``unit`` as the codec's limit on bytes leaves room for."""
    return before + unit * ((MEGABYTE - len(before) - len(after)) // len(unit)) + after


def nested_list(depth: int) -> Any:
    """[[[…]]] as Python objects."""
    inner: Any = []
    for _ in range(depth):
        inner = [inner]
    return inner


def itself() -> list[Any]:
    """A list that contains itself."""
    loop: list[Any] = []
    loop.append(loop)
    return loop


def distinct_keys(n: int) -> str:
    """n different keys and their values, as the inside of an object."""
    return ",".join(f'"{i}":0' for i in range(n))


def repeated_edge() -> str:
    """As many edges as are read, the last one a repetition."""
    pairs = [[i % 100, i // 100] for i in range(9_999)]
    return json.dumps(chain(edges=[*pairs, pairs[-1]]))


def all_input() -> str:
    """A thousand inputs."""
    return cnn([layer("ip")] * 1000, [])


def unconnected() -> str:
    """Nearly a thousand layers and no edge."""
    return cnn([layer("ip"), *[layer("conv3", 8)] * 998, layer("op")], [])


def many_image_sizes() -> str:
    """One layer that concatenates 900 images, each half the size of the one before."""
    n = 900
    layers = [layer("ip"), *[layer("conv3", 8, 2)] * n, layer("conv3", 8), layer("softmax"), layer("op")]
    edges = [[u, u + 1] for u in range(n + 3)] + [[u, n + 1] for u in range(1, n)]
    return cnn(layers, edges)


def backwards() -> str:
    """A long chain numbered from the end."""
    record = chain(997)
    n = len(record["layers"])
    return json.dumps(record | {"edges": [[n - 1 - u, n - 1 - v] for u, v in record["edges"]]})


def dense_cycle() -> str:
    """Ten thousand edges among a hundred layers, in both directions."""
    return json.dumps(chain(96) | {"edges": [[u, v] for u in range(100) for v in range(100)]})


def from_dict(record: Any) -> Architecture:
    """Hostile Python objects rather than text."""
    return Architecture.from_dict(record)


DEEP = 300_000
ASTRAL = "\U000e0001"  # an invisible character that escapes to ten

NESTING = [
    Bomb("lists, open", lambda: "[" * DEEP),
    Bomb("lists, closed", lambda: "[" * DEEP + "]" * DEEP),
    Bomb("objects, open", lambda: fill('{"":')),
    Bomb("objects, closed", lambda: '{"a":' * 150_000 + "0" + "}" * 150_000),
    Bomb("lists and objects in turn", lambda: fill('[{"a":')),
    Bomb("closing brackets first", lambda: "]" * DEEP + "[" * DEEP),
    Bomb("one level too deep, in an annotation", lambda: with_text("note", "[" * 16 + "]" * 16)),
    Bomb("deep inside layers", lambda: with_text("layers", "[" * DEEP + "]" * DEEP)),
    Bomb("deep inside an edge", lambda: with_text("edges", "[[0," + "[" * DEEP + "]" * DEEP + "]]")),
    Bomb("deep inside units", lambda: with_units("[" * DEEP + "]" * DEEP)),
    Bomb("brackets behind an escaped quote", lambda: '{"a\\"":' + "[" * DEEP),
    Bomb("brackets behind an escaped backslash", lambda: '{"a\\\\":' + "[" * DEEP),
    Bomb("mismatched brackets", lambda: fill("[}")),
]

SIZE = [
    Bomb("a byte too many", lambda: " " * (MEGABYTE + 1)),
    Bomb("twenty megabytes", lambda: b"[" * 20_000_000),
    Bomb("a megabyte of empty lists", lambda: fill("[],", "[", "[]]")),
    Bomb("a megabyte of empty objects", lambda: fill("{},", "[", "{}]")),
    Bomb("a megabyte of zeros", lambda: fill("0,", "[", "0]")),
    Bomb("a megabyte of floats", lambda: fill("0.5,", "[", "0]")),
    Bomb("a megabyte of empty strings", lambda: fill('"",', "[", '""]')),
    Bomb("a megabyte of nulls", lambda: fill("null,", "[", "null]")),
    Bomb("as many values as are read, in no network", lambda: "[" + "0.5," * 39_000 + "0]"),
    Bomb("10^6 layers", lambda: with_text("layers", "[" + "{}," * 999_999 + "{}]")),
    Bomb("310,000 layers in a megabyte", lambda: with_text("layers", "[" + "{}," * 309_999 + "{}]")),
    Bomb("1,001 layers", lambda: json.dumps(chain(998))),
    Bomb("10,001 edges", lambda: json.dumps(chain(edges=[[u % 100, u // 100] for u in range(10_001)]))),
    Bomb("100,000 edges", lambda: with_text("edges", "[" + "[0,1]," * 99_999 + "[0,1]]")),
    Bomb("a megabyte of spaces", lambda: fill(" ")),
    Bomb("a megabyte of line breaks", lambda: fill("\n")),
    Bomb("a megabyte of one string", lambda: fill("x", '"', '"')),
    Bomb("a megabyte of escapes", lambda: fill("\\u0000", '"', '"')),
    Bomb("39,000 keys", lambda: "{" + distinct_keys(39_000) + "}"),
    Bomb("39,000 keys in a layer", lambda: with_text("layers", "[{" + distinct_keys(39_000) + "}]")),
    Bomb("a key of a megabyte", lambda: fill("k", '{"', '":0}')),
    Bomb("an unknown key of a megabyte in a layer", lambda: with_layer({"k" * 900_000: 0})),
    Bomb("a kind of a megabyte", lambda: json.dumps(chain(kind="k" * 900_000)), VocabularyError),
    Bomb("a label of a megabyte", lambda: with_layer(layer("x" * 900_000, 8))),
    Bomb("a version of a megabyte", lambda: json.dumps(chain(version="1" * 900_000))),
    Bomb("an edge of 39,000 ends", lambda: with_edges([0] * 39_000)),
]

QUADRATIC = [
    Bomb("an open string of escaped quotes", lambda: fill('\\"', '"')),
    Bomb("an open string of escaped quotes inside a network", lambda: fill('\\"', '{"kind": "')),
    Bomb("an open string of backslashes", lambda: fill("\\", '"')),
    Bomb("quotes alone", lambda: fill('"')),
    Bomb("quotes and backslashes in turn", lambda: fill('"\\')),
    Bomb("the last of 39,000 keys again", lambda: "{" + distinct_keys(39_000) + ',"38999":0}'),
    Bomb("39,000 equal keys", lambda: "{" + '"a":0,' * 39_000 + '"a":0}'),
    Bomb("the last of 10,000 edges again", repeated_edge),
    Bomb("numbers with a megabyte of digits", lambda: fill("9", "[", "]")),
    Bomb("a megabyte of line breaks, then an error", lambda: fill("\n", "[", "x]")),
]

NUMBERS = [
    Bomb("10^12 units", lambda: with_units(str(10**12))),
    Bomb("10^12 units as a float", lambda: with_units("1e12")),
    Bomb("units of 100,000 digits", lambda: with_units("9" * 100_000)),
    Bomb("units of minus 100,000 digits", lambda: with_units("-" + "9" * 100_000)),
    Bomb("units of 1e400", lambda: with_units("1e400")),
    Bomb("units of -1e400", lambda: with_units("-1e400")),
    Bomb("units with an exponent of 100,000 digits", lambda: with_units("1e" + "9" * 100_000)),
    Bomb("units of 1e308", lambda: with_units("1e308")),
    Bomb("units of 16 and a half", lambda: with_units("16.5")),
    Bomb("units with 100,000 decimals", lambda: with_units("16." + "0" * 100_000 + "1" + "0" * 100_000 + "e5")),
    Bomb("negative units", lambda: with_units("-16")),
    Bomb("no units", lambda: with_units("0"), InvalidArchitectureError),
    Bomb("NaN units", lambda: with_units("NaN")),
    Bomb("infinite units", lambda: with_units("Infinity")),
    Bomb("NaN in an annotation", lambda: with_text("score", "NaN")),
    Bomb("minus infinity in an annotation", lambda: with_text("score", "-Infinity")),
    Bomb("100,000 digits in an annotation", lambda: with_text("score", "1" * 100_000)),
    Bomb("units in hexadecimal", lambda: with_units("0x10")),
    Bomb("units with a leading zero", lambda: with_units("016")),
    Bomb("a stride of 10^9", lambda: with_layer(layer("relu", 16, 10**9))),
    Bomb("a stride where none is taken", lambda: with_layer(layer("relu", 16, 3)), InvalidArchitectureError),
    Bomb("an edge to layer 10^18", lambda: with_edges([0, 10**18])),
    Bomb("an edge to layer 900", lambda: with_edges([0, 900]), InvalidArchitectureError),
    Bomb("an edge from layer -1", lambda: with_edges([-1, 3])),
    Bomb("an edge from layer 0.5", lambda: with_edges([0.5, 3])),
]

TYPES = [
    Bomb("nothing", lambda: ""),
    Bomb("null", lambda: "null"),
    Bomb("a list", lambda: "[]"),
    Bomb("a number", lambda: "17"),
    Bomb("an empty object", lambda: "{}"),
    Bomb("kind a list", lambda: json.dumps(chain(kind=["cnn"]))),
    Bomb("kind an object", lambda: json.dumps(chain(kind={"cnn": 1}))),
    Bomb("kind null", lambda: json.dumps(chain(kind=None))),
    Bomb("kind unknown", lambda: json.dumps(chain(kind="rnn")), VocabularyError),
    Bomb("kind with a terminal's escape codes", lambda: json.dumps(chain(kind="\x1b[2J\x07\n" * 9)), VocabularyError),
    Bomb("kind of characters that escape to ten", lambda: json.dumps(chain(kind=ASTRAL * 60)), VocabularyError),
    Bomb("layers an object", lambda: json.dumps(chain(layers={"0": layer("ip")}))),
    Bomb("layers a string", lambda: json.dumps(chain(layers="ip relu op"))),
    Bomb("edges null", lambda: json.dumps(chain(edges=None))),
    Bomb("edges a string", lambda: json.dumps(chain(edges="0-1"))),
    Bomb("an edge of strings", lambda: with_edges(["0", "1"])),
    Bomb("an edge of booleans", lambda: with_edges([False, True])),
    Bomb("an edge of nulls", lambda: with_edges([None, None])),
    Bomb("an edge of three", lambda: with_edges([0, 1, 2])),
    Bomb("an edge of none", lambda: with_edges([])),
    Bomb("an edge as an object", lambda: with_edges({"from": 0, "to": 1})),
    Bomb("a layer as a string", lambda: with_layer("relu")),
    Bomb("a layer as a list", lambda: with_layer(["relu", 16])),
    Bomb("a layer without a label", lambda: with_layer({"units": 16})),
    Bomb("a layer with an unknown key", lambda: with_layer(layer("relu", 16) | {"dropouts": 0.5})),
    Bomb("label a number", lambda: with_layer(layer(3, 16))),  # type: ignore[arg-type]
    Bomb("label empty", lambda: with_layer(layer("", 16))),
    Bomb("label with line breaks", lambda: with_layer(layer("re\nlu", -1))),
    Bomb("label with escape codes", lambda: with_layer(layer("\x1b[31mrelu", 16))),
    Bomb("label with a direction override", lambda: with_layer(layer("relu\u202e", 16))),
    Bomb("label a lone surrogate", lambda: with_layer(layer("\ud800", 16))),
    Bomb("label unknown", lambda: with_layer(layer("gelu", 16)), InvalidArchitectureError),
    Bomb("a thousand unknown labels of quotes", lambda: cnn([layer("\\'" * 20)] * 1000, []), InvalidArchitectureError),
    Bomb("units a string", lambda: with_layer(layer("relu", "16"))),
    Bomb("units true", lambda: with_layer(layer("relu", True))),
    Bomb("units a list", lambda: with_layer(layer("relu", [16]))),
    Bomb("version 3", lambda: json.dumps(chain(version=3))),
    Bomb("dropout a list", lambda: with_layer(layer("relu", 16) | {"dropout": [0.5]})),
    Bomb("dropout of 1e308", lambda: with_layer(layer("relu", 16) | {"dropout": 1e308}), InvalidArchitectureError),
    Bomb("a norm of a megabyte", lambda: with_layer(layer("relu", 16) | {"norm": "n" * 900_000})),
    Bomb("a norm that is an object", lambda: with_layer(layer("relu", 16) | {"norm": {}})),
    Bomb("a factor of nothing", lambda: with_layer(layer("relu", 16) | {"decay_factor": 0}), InvalidArchitectureError),
    Bomb("version true", lambda: json.dumps(chain(version=True))),
    Bomb("version an object", lambda: json.dumps(chain(version={"major": 1}))),
    Bomb("the same key twice", lambda: json.dumps(chain())[:-1] + ', "kind": "cnn"}'),
    Bomb("the same annotation twice", lambda: json.dumps(chain())[:-1] + ', "a": 1, "a": 1}'),
    Bomb("the same key twice in a layer", lambda: with_text("layers", '[{"label": "ip", "label": "ip"}]')),
    Bomb("the same key twice, once escaped", lambda: json.dumps(chain())[:-1] + ', "k\\u0069nd": "cnn"}'),
]

TEXT = [
    Bomb("invalid UTF-8", lambda: b'{"kind": "\xff\xfe"}'),
    Bomb("an overlong UTF-8 slash", lambda: b'{"kind": "\xc0\xaf"}'),
    Bomb("a UTF-8 surrogate", lambda: b'{"kind": "\xed\xa0\x80"}'),
    Bomb("UTF-16", lambda: json.dumps(chain()).encode("utf-16")),
    Bomb("UTF-32 without a mark", lambda: json.dumps(chain()).encode("utf-32-le")),
    Bomb("a byte order mark", lambda: b"\xef\xbb\xbf" + json.dumps(chain()).encode()),
    Bomb("a byte order mark in a string", lambda: "\ufeff" + json.dumps(chain())),
    Bomb("NUL bytes", lambda: fill("\0")),
    Bomb("a raw line break in a string", lambda: '{"kind": "mlp\nreg"}'),
    Bomb("two networks", lambda: json.dumps(chain()) * 2),
    Bomb("half a network", lambda: json.dumps(chain())[:-20]),
    Bomb("single quotes", lambda: str(chain())),
    Bomb("a comment", lambda: "// a network\n" + json.dumps(chain())),
    Bomb("a trailing comma", lambda: json.dumps(chain())[:-1] + ",}"),
    Bomb("a pickle", lambda: b"\x80\x04\x95\x1f\x00\x00\x00cos\nsystem\n(S'true'\ntR."),
    Bomb("a gzip header", lambda: b"\x1f\x8b\x08" + b"\0" * 1000),
]

GRAPHS = [
    Bomb("no layers", lambda: json.dumps(chain(layers=[], edges=[])), InvalidArchitectureError),
    Bomb("two layers", lambda: cnn([layer("ip"), layer("op")], [[0, 1]]), InvalidArchitectureError),
    Bomb("a loop on one layer", lambda: with_edges([1, 1]), InvalidArchitectureError),
    Bomb("a cycle of two", lambda: with_edges([2, 1]), InvalidArchitectureError),
    Bomb("a cycle through everything", lambda: with_edges([4, 0]), InvalidArchitectureError),
    Bomb("ten thousand edges in cycles", dense_cycle, InvalidArchitectureError),
    Bomb("numbered backwards", backwards, InvalidArchitectureError),
    Bomb("an edge twice", lambda: with_edges([0, 1])),
    Bomb("an edge twice, once in floats", lambda: with_edges([0.0, 1.0])),
    Bomb("a thousand inputs", all_input, InvalidArchitectureError),
    Bomb("a thousand layers without edges", unconnected, InvalidArchitectureError),
    Bomb("a thousand image sizes", many_image_sizes, InvalidArchitectureError),
    Bomb("a CNN's labels in an MLP", lambda: with_layer(layer("conv3", 16, 1)), InvalidArchitectureError),
    Bomb("an MLP called a CNN", lambda: json.dumps(chain(kind="cnn")), InvalidArchitectureError),
    Bomb("a regression called a classification", lambda: json.dumps(chain(kind="mlp-class")), InvalidArchitectureError),
    Bomb("the output fed around the decision", lambda: with_edges([1, 4]), InvalidArchitectureError),
]

OBJECTS = [
    Bomb("an integer of 100,000 digits", lambda: chain(layers=[layer("ip", 10**100_000)]), read=from_dict),
    Bomb("infinite units, in Python", lambda: chain(layers=[layer("ip", float("inf"))]), read=from_dict),
    Bomb("NaN units, in Python", lambda: chain(layers=[layer("ip", float("nan"))]), read=from_dict),
    Bomb("a list nested 100,000 deep as an edge", lambda: chain(edges=[nested_list(100_000)]), read=from_dict),
    Bomb("a list that contains itself as an edge", lambda: chain(edges=[itself()]), read=from_dict),
    Bomb("a set of edges", lambda: chain(edges={(0, 1)}), read=from_dict),
    Bomb("a complex number of units", lambda: chain(layers=[layer("ip", 1j)]), read=from_dict),
    Bomb("no mapping", lambda: [("kind", "cnn")], read=from_dict),
    Bomb("no text", lambda: 17),
]

BOMBS = [*NESTING, *SIZE, *QUADRATIC, *NUMBERS, *TYPES, *TEXT, *GRAPHS, *OBJECTS]


@dataclass(frozen=True)
class Cost:
    """What refusing one bomb took."""

    bomb: Bomb
    n_bytes: int
    milliseconds: float
    megabytes: float
    error: NasbotError

    @property
    def complaints(self) -> list[str]:
        """Which bars were missed."""
        message = str(self.error)
        return [
            complaint
            for complaint, missed in (
                (
                    f"{type(self.error).__name__}, expected {self.bomb.error.__name__}",
                    type(self.error) is not self.bomb.error,
                ),
                (f"message of {len(message)} characters", len(message) > MAX_MESSAGE),
                ("message of several lines", not message.isprintable()),
                (f"took {MAX_MILLISECONDS:.0f} ms or more", self.milliseconds >= MAX_MILLISECONDS),
                (f"took {MAX_MEGABYTES:.0f} MB or more", self.megabytes >= MAX_MEGABYTES),
            )
            if missed
        ]


def measure(bomb: Bomb) -> Cost:
    """CPU time, best of three since the machine may be busy, and peak memory, apart since tracing takes time."""
    content = bomb.make()
    gc.collect()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        error = bomb.refusal(content)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    bomb.refusal(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n_bytes = len(content) if isinstance(content, str | bytes) else 0
    return Cost(bomb, n_bytes, 1e3 * min(seconds), peak / 1e6, error)


def main() -> int:
    """Print the table; 0 if every bar is met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.parse_args()
    costs = [measure(bomb) for bomb in BOMBS]
    print(f"{'bomb':52} {'bytes':>10} {'ms':>7} {'MB':>6}  error")
    for cost in costs:
        row = f"{cost.bomb.name:52} {cost.n_bytes:10,} {cost.milliseconds:7.2f} {cost.megabytes:6.2f}"
        print(f"{row}  {type(cost.error).__name__}" + "".join(f"  MISS: {text}" for text in cost.complaints))
    slowest = max(costs, key=lambda cost: cost.milliseconds)
    largest = max(costs, key=lambda cost: cost.megabytes)
    print(f"\n{len(costs)} bombs, slowest {slowest.milliseconds:.1f} ms ({slowest.bomb.name}), ", end="")
    print(f"largest {largest.megabytes:.1f} MB ({largest.bomb.name})")
    missed = sum(bool(cost.complaints) for cost in costs)
    print("PASS" if not missed else f"MISS: {missed} bombs")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
