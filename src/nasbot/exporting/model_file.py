"""A trained network in one file: its weights as safetensors, everything else as JSON in the file's own metadata.

Nothing is pickled, and reading one never runs code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from nasbot._typing import Json
from nasbot.architecture import Architecture, Vocabulary
from nasbot.data.preprocessing import Preprocessing
from nasbot.errors import CodecError, FileError, NasbotError, StorageError
from nasbot.training.module import Network, build

FORMAT = 1
MAX_METADATA = 20_000_000  # characters


@dataclass(frozen=True)
class Model:
    """A network with what its data went through, and whatever else is worth knowing about it (plain data)."""

    network: Network
    preprocessing: Preprocessing | None = None
    details: Mapping[str, Json] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The file's content; ``model_from`` and ``load_model`` read it back exactly."""
        network = self.network
        record = {
            "format": FORMAT,
            "architecture": network.arch.to_dict(),
            "input_shape": list(network.input_shape),
            "n_outputs": network.n_outputs,
            "preprocessing": None if self.preprocessing is None else self.preprocessing.to_dict(),
            "details": dict(self.details),
        }
        return save(state_of(network), {"nasbot": json.dumps(record, allow_nan=False)})


def state_of(network: Network) -> dict[str, Tensor]:
    """Weights and buffers, detached and in one piece each."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}


def load_model(path: str | Path, *, vocabulary: Vocabulary | None = None) -> Model:
    """What ``Model.to_bytes`` gave. FileError where it cannot be read, StorageError where it is something else.

    ``vocabulary`` is that of the network, where it is not a built-in one.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return model_from(data, vocabulary=vocabulary)
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from None


def model_from(data: bytes, *, vocabulary: Vocabulary | None = None) -> Model:
    """The model of a file's content; StorageError where it is something else."""
    try:
        state = load(data)
    except (SafetensorError, ValueError) as error:
        raise StorageError(f"not a safetensors file: {str(error)[:120]}") from None
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])  # the line above has checked that it is JSON
    text = header.get("__metadata__", {}).get("nasbot", "")
    if not text or len(text) > MAX_METADATA:
        raise StorageError("not a model that nasbot saved: it says nothing about a network")
    try:
        return _model(json.loads(text), state, vocabulary)
    except StorageError:
        raise
    except (NasbotError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"not a model that nasbot saved: {str(error)[:200]}") from None


def with_weights(network: Network, state: Mapping[str, Tensor]) -> Network:
    """The network with these weights, ready to predict; CodecError where they are another network's."""
    own = network.state_dict()
    missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    for name in missing or unknown:
        raise CodecError(f"weights and network do not belong together: {name} is in only one of them")
    for name, tensor in own.items():
        if tensor.shape != state[name].shape:
            found, expected = tuple(state[name].shape), tuple(tensor.shape)
            raise CodecError(f"weights and network do not belong together: {name} is {found}, expected {expected}")
    network.load_state_dict(dict(state))
    return network.eval()


def _model(record: object, state: Mapping[str, Tensor], vocabulary: Vocabulary | None) -> Model:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise StorageError(f"expected a model of format {FORMAT}, got {str(record)[:40]!r}")
    arch = Architecture.from_dict(record["architecture"], vocabulary=vocabulary)
    network = build(arch, input_shape=record["input_shape"], n_outputs=record["n_outputs"], seed=0)
    preprocessing = None if record["preprocessing"] is None else Preprocessing.from_dict(record["preprocessing"])
    details = record["details"]
    if not isinstance(details, Mapping):
        raise StorageError(f"details: expected an object, got {type(details).__name__}")
    with torch.no_grad():
        return Model(with_weights(network, state), preprocessing, details)
