"""Hostile JSON: refused with our errors, in one short line, within fixed work and memory.

The inputs are in tests/fuzz/bombs.py, which also measures them. Here no clock is read. Work is bounded by giving a
process that meets all of them a minute of CPU, some forty times what it needs (a scan that starts again at every quote
would need hours for one of them), and by counting comparisons where the search is ours.
"""

import json
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from nasbot.architecture import Architecture, codec
from nasbot.architecture.codec import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_VALUES, STRING
from nasbot.architecture.layer import MAX_EDGES, MAX_LAYERS, MAX_UNITS
from nasbot.errors import CodecError, FileError, InvalidArchitectureError, NasbotError
from tests.fuzz.bombs import BOMBS, MAX_MESSAGE, OBJECTS, QUADRATIC, SIZE, Bomb, chain, layer, with_layer, with_text

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 64_000_000  # bytes; the largest takes 18 million
CPU_SECONDS = 60


def test_there_are_at_least_fifty_bombs_with_names_of_their_own():
    assert len({bomb.name for bomb in BOMBS}) == len(BOMBS) >= 50


@pytest.mark.parametrize("bomb", [b for b in BOMBS if b not in QUADRATIC], ids=lambda bomb: bomb.name)
def test_bomb_is_refused_in_one_short_line(bomb: Bomb):
    error = bomb.refusal(bomb.make())
    assert type(error) is bomb.error
    assert str(error).isprintable()
    assert 0 < len(str(error)) <= MAX_MESSAGE


def _limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def test_work_is_linear_in_the_input():
    script = """
from tests.fuzz.bombs import BOMBS, MAX_MESSAGE
for bomb in BOMBS:
    print(bomb.name, flush=True)
    error = bomb.refusal(bomb.make())
    assert type(error) is bomb.error and str(error).isprintable() and len(str(error)) <= MAX_MESSAGE, repr(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""},
        preexec_fn=_limit_cpu,
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stdout.splitlines()[-1:]
    assert run.returncode == 0, f"exit {run.returncode} (-24, -9: out of CPU seconds) at {last}\n{run.stderr}"
    assert last == [BOMBS[-1].name]


class Counted:
    """A key that counts how often it is compared."""

    compared = 0

    def __init__(self, key: int) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return isinstance(other, Counted) and self.key == other.key


def test_the_search_for_a_repetition_compares_each_value_a_few_times_at_most():
    Counted.compared = 0
    n = 5_000
    assert codec._first_repeated([*map(Counted, range(n)), Counted(n - 1)]).key == n - 1
    assert Counted.compared <= 4 * n


@pytest.mark.parametrize("bomb", [*SIZE, *OBJECTS], ids=lambda bomb: bomb.name)
def test_memory_is_bounded(bomb: Bomb):
    content = bomb.make()
    tracemalloc.start()
    try:
        bomb.refusal(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY


# -- what lies just inside each bound is read, so that the bounds above are the ones at work --------------------------


def test_the_largest_network_is_read_even_when_indented():
    n_hidden = MAX_LAYERS - 3
    record = chain(n_hidden)
    extra = ([u, v] for u in range(1, n_hidden) for v in range(u + 2, n_hidden + 1))
    record["edges"] += [next(extra) for _ in range(MAX_EDGES - len(record["edges"]))]
    arch = Architecture.from_json(json.dumps(record, indent=4))
    assert (len(arch.layers), len(arch.edges)) == (MAX_LAYERS, MAX_EDGES)
    assert len(json.dumps(record, indent=4)) < MAX_BYTES


@pytest.mark.parametrize(
    "text",
    [
        with_text("note", "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)),
        with_text("note", "[" + "0," * (MAX_VALUES - 100) + "0]"),
        with_text("note", json.dumps("[{," * 100_000)),
        with_text("note", json.dumps('\\"' * 100_000)),
        with_text("note", "9" * MAX_DIGITS),
        with_text("note", '"\\ud800"'),
        with_text("note", "1e308"),
        with_layer(layer("relu", MAX_UNITS)),
        with_layer(layer("relu", float(MAX_UNITS))),
        json.dumps(chain()) + " " * (MAX_BYTES - len(json.dumps(chain()))),
    ],
    ids=[
        "depth",
        "values",
        "brackets in a string",
        "quotes in a string",
        "digits",
        "surrogate",
        "float",
        "units",
        "units as a float",
        "bytes",
    ],
)
def test_what_keeps_to_the_bounds_is_read(text: str):
    assert len(Architecture.from_json(text).layers) == 5


def test_annotations_are_ignored_and_not_kept():
    arch = Architecture.from_json(json.dumps(chain(name="mine", score={"accuracy": [0.5, None]}, version=1)))
    assert arch.to_dict() == chain()


def test_all_kinds_of_text_are_read():
    text = json.dumps(chain())
    assert {Architecture.from_json(form) for form in (text, text.encode(), bytearray(text.encode()))} == {
        Architecture.from_dict(chain())
    }


@pytest.mark.parametrize("text", ['"', '"\\', '"\\"', '"a\\\\"b"c', '"a"[', '\\"', ""])
def test_strings_are_skipped_as_a_parser_would(text: str):
    assert STRING.sub("", text) == {'"a\\\\"b"c': "b", '"a"[': "[", '\\"': "\\", '"\\': "\\"}.get(text, "")


# -- messages --------------------------------------------------------------------------------------------------------


def test_all_violations_are_kept_though_few_are_shown():
    unconnected = next(bomb for bomb in BOMBS if bomb.name == "a thousand layers without edges")
    error = unconnected.refusal(unconnected.make())
    assert isinstance(error, InvalidArchitectureError)
    assert len(error.violations) > 1000
    assert "more" in str(error)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (chain(layers=[layer("ip", 10**400)]), "a whole number of 1,329 bits"),
        (chain(edges=[[0, 1, 2]]), "got [0, 1, 2]"),
        (chain(edges=[[0, None]]), "got [0, None]"),
        (chain(layers=[layer("ip", 16.5)]), "layer 0 (ip): units must be a whole number, got 16.5"),
        (chain(layers=[layer("ip", -2)]), "between 0 and 1,000,000, got -2"),
        (chain(layers=3), "layers must be a list, got a number"),
        (chain(edges=[[0, 1], [1, 2], [0, 1]]), "[0, 1] is listed twice"),
    ],
)
def test_messages_say_what_was_expected_and_what_came(record: dict[str, object], said: str):
    with pytest.raises(CodecError) as caught:
        Architecture.from_dict(record)
    assert said in str(caught.value)


# -- files -----------------------------------------------------------------------------------------------------------


def test_every_error_of_a_file_names_it(tmp_path: Path):
    path = tmp_path / "net.json"
    path.write_text("{")
    with pytest.raises(CodecError, match=r"net\.json: not JSON"):
        Architecture.load(path)
    path.write_text(with_layer(layer("gelu", 8)))
    with pytest.raises(InvalidArchitectureError, match=r"net\.json: layer 1: unknown label 'gelu'") as caught:
        Architecture.load(path)
    assert caught.value.layer == 1


@pytest.mark.parametrize("name", ["missing.json", ".", "a/b/c.json", "nul\0.json", "x" * 300 + ".json"])
def test_what_cannot_be_opened_is_a_file_error(name: str, tmp_path: Path):
    with pytest.raises(FileError, match="cannot read"):
        Architecture.load(tmp_path / name)
    with pytest.raises(FileError, match="cannot write"):
        Architecture.from_dict(chain()).save(tmp_path / "no folder" / "inside" / name)


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(NasbotError, match="at most 1,000,000 bytes"):
        Architecture.load("/dev/zero")


def test_a_saved_file_is_loaded_exactly(tmp_path: Path):
    arch = Architecture.from_dict(chain())
    arch.save(tmp_path / "net.json")
    again = Architecture.load(tmp_path / "net.json")
    assert (again.layers, again.edges) == (arch.layers, arch.edges)
    assert json.loads((tmp_path / "net.json").read_text())["version"] == codec.PLAIN_VERSION
