"""Networks through JSON and back, exactly. Hostile input is the business of test_codec_hostile.py."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from nasbot.architecture import Architecture, Layer
from nasbot.errors import CodecError, FileError, InvalidArchitectureError, VocabularyError
from nasbot.testing.networks import random_architecture
from nasbot.testing.strategies import architectures
from tests.architecture.cells import cell_vocabulary

KINDS = ("mlp-reg", "mlp-class", "cnn")
N_ROUND_TRIPS = 10_000
CHAIN = Architecture(
    "cnn",
    [Layer("ip"), Layer("conv3", 8, 2), Layer("max-pool"), Layer("softmax"), Layer("op")],
    [(0, 1), (1, 2), (2, 3), (3, 4)],
)


def identical(a: Architecture, b: Architecture) -> bool:
    """The same numbering too, which == does not ask for."""
    return (a.vocabulary, a.layers, a.edges) == (b.vocabulary, b.layers, b.edges)


@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_networks_come_back_exactly(part: int) -> None:
    rng = np.random.default_rng([42, part])
    n = N_ROUND_TRIPS // 10
    for i in range(n):
        # 4 to 60 layers, most of them few: half have at most 11.
        arch = random_architecture(KINDS[i % 3], rng=rng, n_layers=int(4 + 57 * rng.random() ** 3))
        text = arch.to_json()
        back = Architecture.from_json(text)
        assert identical(arch, back)
        assert back.to_json() == text


@given(architectures(max_layers=24))
def test_plain_data_come_back_exactly(arch: Architecture) -> None:
    assert identical(Architecture.from_dict(arch.to_dict()), arch)
    assert identical(Architecture.from_json(arch.to_json().encode()), arch)
    assert json.loads(arch.to_json()) == {"version": 1, **arch.to_dict()}


def test_the_format_is_the_documented_one() -> None:
    assert CHAIN.to_dict() == {
        "kind": "cnn",
        "layers": [
            {"label": "ip", "units": None, "stride": None},
            {"label": "conv3", "units": 8, "stride": 2},
            {"label": "max-pool", "units": None, "stride": None},
            {"label": "softmax", "units": None, "stride": None},
            {"label": "op", "units": None, "stride": None},
        ],
        "edges": [[0, 1], [1, 2], [2, 3], [3, 4]],
    }


def test_what_the_reference_files_hold_is_read() -> None:
    """Units as floats, strides left out, other keys beside ours: an id, masses."""
    record = CHAIN.to_dict() | {"id": "net", "masses": [1.5]}
    record["layers"][1] = {"label": "conv3", "units": 8.0}
    arch = Architecture.from_dict(record)
    assert arch.layers[1] == Layer("conv3", 8, 1)
    assert type(arch.layers[1].units) is int


def test_a_vocabulary_of_one_s_own_is_passed_in() -> None:
    cells = cell_vocabulary()
    arch = Architecture(cells, [Layer("start"), Layer("conv-3x3"), Layer("end")], [(0, 1), (1, 2)])
    assert identical(Architecture.from_json(arch.to_json(), vocabulary=cells), arch)
    with pytest.raises(VocabularyError, match="unknown kind of network 'nas-bench-201'"):
        Architecture.from_json(arch.to_json())
    with pytest.raises(VocabularyError, match="is of kind 'cnn', the vocabulary given is 'nas-bench-201'"):
        Architecture.from_json(CHAIN.to_json(), vocabulary=cells)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    CHAIN.save(path)
    assert identical(Architecture.load(path), CHAIN)
    assert identical(Architecture.load(str(path)), CHAIN)
    with pytest.raises(FileError, match=r"cannot read .*missing\.json"):
        Architecture.load(tmp_path / "missing.json")
    with pytest.raises(FileError, match="cannot write"):
        CHAIN.save(tmp_path / "no such folder" / "net.json")
    path.write_text("{")
    with pytest.raises(CodecError, match=r"net\.json: not JSON"):
        Architecture.load(path)


def test_a_file_with_an_invalid_network_keeps_its_violations(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    record = CHAIN.to_dict()
    record["layers"][1]["stride"] = 3
    path.write_text(json.dumps(record))
    with pytest.raises(
        InvalidArchitectureError, match=r"net\.json: layer 1 \(conv3\) has stride 1 or 2, got 3"
    ) as caught:
        Architecture.load(path)
    assert caught.value.layer == 1
