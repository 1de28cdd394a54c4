"""docs/reference/architecture-json.md says what the codec does."""

import re
from pathlib import Path

import pytest

from nasbot.architecture import BUILT_IN, Architecture, codec, layer
from nasbot.architecture.labels import MAX_NAME_LENGTH

TEXT = (Path(__file__).resolve().parents[2] / "docs/reference/architecture-json.md").read_text()
EXAMPLES = re.findall(r"^```json\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_read(example: str):
    assert len(Architecture.from_json(example).layers) >= 5


def test_bounds_are_those_of_the_code():
    rows = dict(re.findall(r"^\| ([a-z ]+)[^|]*\| ([\d,]+)[^|]*\|$", TEXT.split("## Bounds")[1], flags=re.MULTILINE))
    stated = {name.strip(): int(bound.replace(",", "")) for name, bound in rows.items()}
    assert stated == {
        "bytes": codec.MAX_BYTES,
        "values": codec.MAX_VALUES,
        "nesting": codec.MAX_DEPTH,
        "layers": layer.MAX_LAYERS,
        "edges": layer.MAX_EDGES,
        "units": layer.MAX_UNITS,
        "digits of a whole number": codec.MAX_DIGITS,
        "characters of a label": MAX_NAME_LENGTH,
    }


def test_every_label_is_listed():
    listed = set(re.findall(r"[a-z0-9-]+", TEXT))
    assert {label.name for vocabulary in BUILT_IN.values() for label in vocabulary.labels} <= listed
