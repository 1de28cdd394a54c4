"""A trained model in one file: its weights as safetensors, everything else as JSON in the file's own metadata.

Format 1 is one network, format 2 several whose answers are averaged. Nothing is pickled, and reading one never runs
code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from nasbot import _json
from nasbot._files import file_errors
from nasbot._typing import Json
from nasbot.architecture import Architecture, Vocabulary
from nasbot.architecture.resources import resources
from nasbot.data.intervals import Intervals
from nasbot.data.preparations import Preparation
from nasbot.data.preprocessing import Class, NumberTarget, Preprocessing
from nasbot.errors import CodecError, NasbotError, OptionError, StorageError
from nasbot.training.ensemble import Ensemble, networks_of
from nasbot.training.module import RATE_SCALE, Network, build
from nasbot.training.predicting import outputs_of

ONE, SEVERAL = 1, 2  # formats
MAX_METADATA = 20_000_000  # characters
MAX_MEMBERS = 100


@dataclass(frozen=True, repr=False)
class Model:
    """A network or an ensemble with what its data went through, ready to predict from raw rows.

    ``details`` is whatever else is worth knowing about it, as plain data.
    """

    network: Network | Ensemble
    preprocessing: Preprocessing | None = None
    details: Mapping[str, Json] = field(default_factory=dict)
    intervals: Intervals | None = None  # what its predictions of numbers were off by on validation rows

    def __repr__(self) -> str:
        n, size = len(self.networks), sum(weights.numel() for weights in self.network.parameters())
        made_of = "one network" if n == 1 else f"{n} networks, averaged"
        if self.preprocessing is None:
            return f"<Model: {made_of}, {size:,} parameters>"
        predicted = ", ".join(self.preprocessing.target.names)
        classes = f", one of {len(self.classes)} classes" if self.classes else ""
        return f"<Model: {made_of}, {size:,} parameters, predicts {predicted}{classes}>"

    @property
    def networks(self) -> tuple[Network, ...]:
        """The members: one, unless it is an ensemble."""
        return networks_of(self.network)

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the members; they add up to 1."""
        return self.network.weights if isinstance(self.network, Ensemble) else (1.0,)

    @property
    def classes(self) -> tuple[Class, ...]:
        """The classes in the order of ``predict_proba``; none for numbers."""
        return self._known.classes

    def predict(self, X: Any) -> np.ndarray:
        """Of raw rows or images: numbers in their own units, (n,) or (n, targets), or the most probable classes."""
        return self._known.predicted(self.outputs(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, classes), in the order of ``classes``; OptionError where numbers are predicted."""
        if not self.classes:
            raise OptionError("predict_proba: this model predicts numbers; expected one that predicts classes")
        odds = np.exp(self.outputs(X))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The lowest and highest values that the truth lies between for this share of rows like those of validation.

        Args:
            X: raw rows or images.
            coverage: the share, between 0 and 1.

        Returns:
            (n, 2) for one number, (n, targets, 2) for several, in their own units; each target has its own share.

        Raises:
            OptionError: where classes are predicted, the model does not know how far it was off, or there were too few
                validation rows for this coverage.
        """
        low, high = self.bounds(self.predict(X), coverage)
        return np.stack([low, high], axis=-1)

    def bounds(self, predicted: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """The same around what ``predict`` gave, as two arrays of its shape."""
        if self.classes:
            raise OptionError("intervals: this model predicts classes; predict_proba says how sure it is")
        if self.intervals is None:
            raise OptionError(
                "intervals: this model does not know how far it was off; take it from a study again (nasbot export)"
            )
        low, high = self.intervals.bounds(predicted.reshape(len(predicted), -1), coverage)
        return low.reshape(predicted.shape), high.reshape(predicted.shape)

    def outputs(self, X: Any, *, exact: bool = True) -> np.ndarray:
        """What the network gives for raw rows or images, (n, outputs): standardised, or logarithms of probabilities.

        In double precision; in single precision, at half the time, where they need not be ``exact``.
        """
        return outputs_of(self.network, self._known.X(X), exact=exact)

    @property
    def _known(self) -> Preprocessing:
        if self.preprocessing is None:
            raise OptionError("this model does not say what its data went through, so it predicts from no raw rows")
        return self.preprocessing

    def to_bytes(self) -> bytes:
        """The file's content; ``model_from`` and ``load_model`` read it back exactly."""
        record: dict[str, Any] = {
            "n_outputs": self.network.n_outputs,
            "preprocessing": None if self.preprocessing is None else self.preprocessing.to_dict(),
            "details": dict(self.details),
            **({} if self.intervals is None else {"intervals": self.intervals.to_dict()}),
        }
        if isinstance(self.network, Ensemble):
            parts = zip(self.network.networks, self.network.weights, self.network.preparations, strict=True)
            members = [
                {**_drawn(network), "weight": weight, "preparation": None if step is None else step.to_dict()}
                for network, weight, step in parts
            ]
            record |= {"format": SEVERAL, "members": members}
        else:
            record |= {"format": ONE, **_drawn(self.network)}
        return save(state_of(self.network), {"nasbot": json.dumps(record, allow_nan=False)})


def averaged(models: Sequence[Model], weights: Sequence[float], details: Mapping[str, Json]) -> Model:
    """The models as one, whose answer is the weighted mean of theirs; their data differ at most in the preparation."""
    first = models[0].preprocessing
    assert first is not None
    plain = replace(first, preparation=None)
    steps = [model.preprocessing.preparation for model in models if model.preprocessing is not None]
    return Model(_ensemble([n for model in models for n in model.networks], weights, steps, plain), plain, details)


def state_of(network: Network | Ensemble) -> dict[str, Tensor]:
    """Weights and buffers, detached and in one piece each."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}


def _drawn(network: Network) -> dict[str, Json]:
    return {"architecture": network.arch.to_dict(), "input_shape": list(network.input_shape)}


def _ensemble(
    networks: Sequence[Network],
    weights: Sequence[float],
    preparations: Sequence[Preparation | None],
    preprocessing: Preprocessing | None,
) -> Ensemble:
    target = None if preprocessing is None else preprocessing.target
    limits = target.standard_limits if isinstance(target, NumberTarget) else None
    return Ensemble(networks, weights, preparations, limits).eval()


def load_model(path: str | Path, *, vocabulary: Vocabulary | None = None) -> Model:
    """What ``Model.to_bytes`` gave. FileError where it cannot be read, StorageError where it is something else.

    ``vocabulary`` is that of the network, where it is not a built-in one.
    """
    with file_errors(f"cannot read {path}", ValueError):
        data = Path(path).read_bytes()
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
        return _model(_json.parsed(text, "its description"), state, vocabulary)
    except StorageError:
        raise
    except MemoryError:
        raise StorageError("there is not enough memory for the model") from None
    except (NasbotError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"not a model that nasbot saved: {str(error)[:200]}") from None


def with_weights(network: Network | Ensemble, state: Mapping[str, Tensor]) -> Network | Ensemble:
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
    if not isinstance(record, dict) or record.get("format") not in (ONE, SEVERAL) or record["format"] is True:
        raise StorageError(f"expected a model of format {ONE} or {SEVERAL}, got {str(record)[:40]!r}")
    preprocessing = None if record["preprocessing"] is None else Preprocessing.from_dict(record["preprocessing"])
    details, n_outputs = record["details"], record["n_outputs"]
    if not isinstance(details, Mapping):
        raise StorageError(f"details: expected an object, got {type(details).__name__}")
    n_weights = sum(tensor.numel() for tensor in state.values())
    network: Network | Ensemble
    if record["format"] == ONE:
        network = _built([record], n_outputs, [state.get(RATE_SCALE)], n_weights, vocabulary)[0]
    else:
        members = _json.items(record["members"], "members")
        if not 1 <= len(members) <= MAX_MEMBERS:
            raise StorageError(f"members: expected 1 to {MAX_MEMBERS}, got {len(members)}")
        names = ("architecture", "input_shape", "weight", "preparation")
        read = [_json.fields(member, f"member {i}", names) for i, member in enumerate(members)]
        weights = [_json.number(member["weight"], "weight") for member in read]
        steps = [None if m["preparation"] is None else Preparation.from_dict(m["preparation"]) for m in read]
        scales = [state.get(f"members.{i}.{RATE_SCALE}") for i in range(len(read))]
        networks = _built(read, n_outputs, scales, n_weights, vocabulary)
        network = _ensemble(networks, weights, steps, preprocessing)
    if preprocessing is not None and preprocessing.input_shape != network.input_shape:
        raise StorageError(f"preprocessing: expected {network.input_shape}, got {preprocessing.input_shape}")
    if preprocessing is not None and preprocessing.target.n_outputs != n_outputs:
        raise StorageError(f"preprocessing: expected {n_outputs} outputs, got {preprocessing.target.n_outputs}")
    if preprocessing is not None and preprocessing.is_classification != network.classifies:
        raise StorageError("preprocessing: its target is of another task than the network's")
    intervals = None if record.get("intervals") is None else Intervals.from_dict(record["intervals"])
    if intervals is not None and len(intervals.outputs) != n_outputs:
        raise StorageError(f"intervals: expected {n_outputs} outputs, got {len(intervals.outputs)}")
    with torch.no_grad():
        return Model(with_weights(network, state), preprocessing, details, intervals)


def _built(
    records: Sequence[Mapping[str, Any]],
    n_outputs: Any,
    rate_scales: Sequence[Tensor | None],
    n_weights: int,
    vocabulary: Vocabulary | None,
) -> list[Network]:
    archs = [Architecture.from_dict(record["architecture"], vocabulary=vocabulary) for record in records]
    # Before anything is allocated: a short file may describe networks larger than memory.
    parts = zip(archs, records, strict=True)
    if sum(_n_counted(arch, record["input_shape"], n_outputs) for arch, record in parts) > n_weights:
        raise StorageError("the network has more weights than the file")
    return [
        build(arch, input_shape=record["input_shape"], n_outputs=n_outputs, seed=0, rate_scale=scale)
        for arch, record, scale in zip(archs, records, rate_scales, strict=True)
    ]


def _n_counted(arch: Architecture, input_shape: Sequence[int], n_outputs: int) -> int:
    """Weights of all layers but those of somebody's own modules, of which only a guess is known."""
    layers = zip(arch.layers, resources(arch, input_shape, n_outputs).layers, strict=True)
    return sum(part.parameters for layer, part in layers if not arch.vocabulary.by_name[layer.label].module)
