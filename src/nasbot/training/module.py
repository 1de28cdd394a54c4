"""From an ``Architecture`` to a ``torch.nn.Module``: Section 2.2 made of weights.

Every layer becomes one part, by the operation of its label (``operations``) and never by its name;
``nasbot.architecture.resources`` counts exactly what is built here.

Parents are concatenated in ascending order. A layer that emits a vector averages each incoming image over its pixels
first. The output averages the decision layers: numbers for regression, probabilities for classification.

Parameters are named by the index of their layer in the architecture: ``layers.3.weight`` and ``layers.3.bias`` of a
dense or decision layer, ``layers.3.conv.weight`` and ``layers.3.norm.weight`` of a convolution, ``layers.3.convs.0…``
and ``layers.3.norms.0…`` where there are several, ``layers.3.dense…`` and ``layers.3.norm…`` of a dense layer with
batch normalisation; ``layers.3.first…``, ``.second``, ``.norm`` and ``.projection`` of a residual dense layer;
``layers.3.module…`` of a module of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from nasbot._rng import Role as Purpose
from nasbot._rng import stream
from nasbot.architecture import Architecture, Label, Role, Signal
from nasbot.architecture.resources import check_whole, checked_input_shape
from nasbot.errors import OptionError, VocabularyError
from nasbot.training.operations import Emission, Part, part_of

Numbers: TypeAlias = Sequence[float] | Tensor
RATE_SCALE = "rate_scale"  # its name in the state
SOFTMAX = "softmax"  # the activation of decision labels that classify; "" is that of those that regress


class Network(nn.Module):
    """The module of one architecture. Takes (n, features) or (n, channels, height, width).

    Gives (n, n_outputs): for regression the mean of the decision layers; for classification the logarithm of the mean
    of their probabilities, so ``-network(x)[i, y[i]]`` is the negative log-likelihood of sample i.

    With a ``rate_scale``, a number c for each output of a regression, that mean z says a multiple of the target's mean,
    1 + elu(z), which is never negative: below the mean z is its logarithm, above it grows in proportion. What is given
    is c elu(z), the same of the standardised target (``Dataset.rate_scale``). It is part of the state.
    """

    rate_scale: Tensor | None

    def __init__(
        self, arch: Architecture, input_shape: tuple[int, ...], n_outputs: int, rate_scale: Numbers | None = None
    ) -> None:
        super().__init__()
        self.arch, self.input_shape, self.n_outputs = arch, input_shape, n_outputs
        self.classifies = _classifies(arch)
        scale = None if rate_scale is None else _checked_scale(rate_scale, n_outputs, self.classifies)
        self.register_buffer(RATE_SCALE, scale)
        self.layers, self.dropouts = nn.ModuleDict(), nn.ModuleDict()
        self.steps: list[Step] = []
        channels = [input_shape[0]]
        for u, layer in enumerate(arch.layers[1:-1], start=1):
            label = arch.vocabulary.label_of(layer)
            entering = sum(channels[p] for p in arch.parents[u])
            built, leaving = part_of(label, layer, entering, n_outputs)
            self.layers[str(u)] = built
            drop: nn.Module | None = None
            if label.dropout and label.role is Role.PROCESSING:
                self.dropouts[str(u)] = drop = _dropout(label)
            channels.append(leaving)
            last_uses = tuple(p for p in arch.parents[u] if arch.children[p][-1] == u)
            self.steps.append(Step(u, arch.parents[u], built, _gatherer(arch, u), last_uses, drop))

    def forward(self, x: Tensor) -> Tensor:
        """Predictions; see the class."""
        values: list[Tensor | None] = [None] * len(self.arch.layers)
        values[0] = x
        for u, parents, part, gather, done_with, drop in self.steps:
            emitted = part(gather([values[p] for p in parents]))
            values[u] = emitted if drop is None else drop(emitted)
            for p in done_with:  # where no gradient is wanted, nothing else keeps it
                values[p] = None
        decisions = [values[u] for u in self.arch.parents[-1]]
        out = averaged(decisions, classifies=self.classifies)  # type: ignore[arg-type]  # none of these is done with
        return out if self.rate_scale is None else functional.elu(out) * self.rate_scale

    @property
    def takes_images(self) -> bool:
        """Whether its input has channels, height and width."""
        return len(self.input_shape) == 3


class Step(NamedTuple):
    """One layer's work: what it takes, its part, how its parents come together, and who is not needed after it."""

    u: int
    parents: tuple[int, ...]
    part: nn.Module
    gather: Callable[[list[Tensor | None]], Tensor]
    done_with: tuple[int, ...]
    drop: nn.Module | None = None  # dropout of what the part emits


def build(
    arch: Architecture,
    *,
    input_shape: Sequence[int],
    n_outputs: int,
    seed: int,
    rate_scale: Numbers | None = None,
) -> Network:
    """The network of ``arch``, its weights as ``seed`` gives them: the same in any process, on any day.

    Touches no global random state. Raises VocabularyError where a label does not say what is to be built.
    """
    shape = checked_input_shape(arch.vocabulary, list(input_shape))
    check_whole("n_outputs", n_outputs)
    network = Network(arch, shape, n_outputs, rate_scale)
    initialise(network, seed=seed)
    return network


def averaged(decisions: Sequence[Tensor], *, classifies: bool) -> Tensor:
    """The output: decision layers averaged, probabilities through their logarithms so that none underflows."""
    if not classifies:
        return decisions[0] if len(decisions) == 1 else torch.stack(tuple(decisions)).mean(dim=0)
    logs = [functional.log_softmax(decision, dim=1) for decision in decisions]
    if len(logs) == 1:
        return logs[0]
    return torch.logsumexp(torch.stack(logs), dim=0) - math.log(len(logs))


def _checked_scale(given: Numbers, n_outputs: int, classifies: bool) -> Tensor:
    scale = torch.as_tensor(given, dtype=torch.float32)
    if classifies or scale.shape != (n_outputs,) or not bool(((scale > 0) & scale.isfinite()).all()):
        wanted = "none, for classes" if classifies else f"{n_outputs} finite numbers > 0"
        raise OptionError(f"{RATE_SCALE}: expected {wanted}, got {str(scale.tolist())[:60]}")
    return scale.clone()


def _dropout(label: Label) -> nn.Module:
    return nn.Dropout2d(label.dropout) if label.emits is Signal.IMAGE else nn.Dropout(label.dropout)


def _classifies(arch: Architecture) -> bool:
    """What the decision labels say; VocabularyError where they say nothing, or two things."""
    kinds = {arch.vocabulary.by_name[arch.layers[u].label].activation for u in arch.decision_layers}
    if kinds == {SOFTMAX}:
        return True
    if kinds == {""}:
        return False
    said = ", ".join(sorted(repr(kind) for kind in kinds)) or "no decision layers"
    raise VocabularyError(
        f"vocabulary {arch.kind}: a network is trained where all its decision labels have activation {SOFTMAX!r} "
        f"(classification) or '' (regression), got {said}"
    )


def _gatherer(arch: Architecture, u: int) -> Callable[[list[Tensor | None]], Tensor]:
    """How the parents of layer u come together: concatenated, and averaged over pixels where a vector comes out."""
    label = arch.vocabulary.by_name[arch.layers[u].label]
    emits = [arch.vocabulary.by_name[arch.layers[p].label].emits for p in arch.parents[u]]
    if label.emits is not Signal.IMAGE and Signal.IMAGE in emits:
        return _pooled_and_concatenated
    return _only if len(emits) == 1 else _concatenated


def _only(values: list[Tensor | None]) -> Tensor:
    value = values[0]
    assert value is not None
    return value


def _concatenated(values: list[Tensor | None]) -> Tensor:
    return torch.cat(values, dim=1)  # type: ignore[arg-type]  # parents come before their children


def _pooled_and_concatenated(values: list[Tensor | None]) -> Tensor:
    vectors = [value.mean(dim=(2, 3)) if value.ndim == 4 else value for value in values if value is not None]
    return vectors[0] if len(vectors) == 1 else torch.cat(vectors, dim=1)


# -- how weights begin -------------------------------------------------------------------------------------------------


@torch.no_grad()
def initialise(network: Network, *, seed: int) -> None:
    """Set all weights as ``seed`` says, so that every layer's sums begin with the spread its activation likes."""
    rng = stream(seed, 0, Purpose.WEIGHTS)
    emissions = [Emission.equal(network.input_shape[0])]
    arch = network.arch
    for u, layer in enumerate(arch.layers[1:-1], start=1):
        label = arch.vocabulary.label_of(layer)
        entering = Emission(
            np.concatenate([emissions[p].means for p in arch.parents[u]]),
            np.concatenate([emissions[p].powers for p in arch.parents[u]]),
        )
        part = network.layers[str(u)]
        assert isinstance(part, Part)
        part.set_weights(label, entering, rng)
        n_channels = (layer.units or len(entering.means)) * label.width_factor
        emissions.append(part.emission(label, entering, n_channels))
