"""Builders: the regular networks that people start from, as one-liners.

Every builder returns a chain of layers, the input before it, a decision layer and the output behind it. The blocked
ones follow the families of Appendix B.3: VGG-like CNNs, CNNs and MLPs in blocks of growing width, residual CNNs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nasbot.architecture.graph import Architecture
from nasbot.architecture.labels import Role, Vocabulary
from nasbot.architecture.layer import MAX_LAYERS, Layer
from nasbot.architecture.vocabularies import CNN, SIGMOIDS, vocabulary_of
from nasbot.errors import OptionError

T = TypeVar("T")

FIRST_UNITS = 64
# Wider blocks than this would double past the 1024 units of the paper's search space in the fc layer that follows.
MAX_BLOCK_UNITS = 512
# The order in which the authors' release lists them before shuffling; ``blocked_mlp`` goes round it without a shuffle.
BLOCK_RECTIFIERS = ("relu", "elu", "crelu", "leaky-relu", "softplus")
VGG_STEM = (64, 128)
VGG_BLOCKS = (128, 256, 512)
VGG_DENSE = (128, 256, 512)


def chain(kind: str | Vocabulary, layers: Iterable[Layer], *, decision: str | None = None) -> Architecture:
    """Input, the given processing layers one after the other, a decision layer, output.

    ``decision`` names the decision label, the vocabulary's first one otherwise; vocabularies without decision labels
    (cell spaces) get none, the last layer then feeds the output.
    """
    vocabulary = vocabulary_of(kind)
    middle = _bounded(layers)
    for i, layer in enumerate(middle):
        _check_processing(vocabulary, layer, i)
    ending = _decision(vocabulary, decision)
    sequence = (Layer(vocabulary.input_label), *middle, *ending, Layer(vocabulary.output_label))
    return Architecture(vocabulary, sequence, ((u, u + 1) for u in range(len(sequence) - 1)))


def blocked_mlp(
    kind: str | Vocabulary,
    n_blocks: int,
    layers_per_block: int,
    *,
    labels: Sequence[str] | None = None,
    units: Sequence[int] | None = None,
) -> Architecture:
    """An MLP of ``n_blocks`` blocks of equal layers; ``labels`` and ``units`` have one entry per block.

    By default blocks alternate between a rectifier and a sigmoid, going round the lists of each, and their units
    double from 64 up to 512.
    """
    _check_block_counts(n_blocks=n_blocks, layers_per_block=layers_per_block)
    block_labels = _per_block("labels", labels, n_blocks) if labels is not None else alternating_labels(n_blocks)
    block_units = _per_block("units", units, n_blocks) if units is not None else doubling_units(n_blocks)
    blocks = zip(block_labels, block_units, strict=True)
    return chain(kind, [Layer(label, size) for label, size in blocks for _ in range(layers_per_block)])


def vgg_like(convolutions_per_block: int) -> Architecture:
    """A CNN after VGG: two pairs of 3x3 convolutions, three blocks of ``convolutions_per_block``, three fc layers.

    Each pair and each block ends in a max-pool, so images shrink by 32.
    """
    _check_block_counts(convolutions_per_block=convolutions_per_block)
    stem = [(units, 2) for units in VGG_STEM]
    blocks = [(units, convolutions_per_block) for units in VGG_BLOCKS]
    layers = []
    for units, n_convolutions in stem + blocks:
        layers += [Layer("conv3", units, 1)] * n_convolutions + [Layer("max-pool")]
    return chain(CNN, [*layers, *(Layer("fc", units) for units in VGG_DENSE)])


def blocked_cnn(n_blocks: int, layers_per_block: int) -> Architecture:
    """A CNN of blocks of 3x3 convolutions, the first of each block with stride 2, units doubling from 64 up to 512."""
    return _cnn_in_blocks("conv3", n_blocks, layers_per_block)


def residual_cnn(n_blocks: int, layers_per_block: int) -> Architecture:
    """As ``blocked_cnn``, with residual layers (two convolutions and a shortcut each) in place of convolutions."""
    return _cnn_in_blocks("res3", n_blocks, layers_per_block)


def alternating_labels(n_blocks: int, *, rectifiers_from: int = 0, sigmoids_from: int = 0) -> tuple[str, ...]:
    """One label per MLP block: even blocks take the next rectifier, odd ones the next sigmoid, from given places on."""
    return tuple(
        SIGMOIDS[(sigmoids_from + b // 2) % len(SIGMOIDS)]
        if b % 2
        else BLOCK_RECTIFIERS[(rectifiers_from + b // 2) % len(BLOCK_RECTIFIERS)]
        for b in range(n_blocks)
    )


def doubling_units(n_blocks: int) -> tuple[int, ...]:
    """64, 128, 256, 512 and 512 from there on."""
    widest = MAX_BLOCK_UNITS.bit_length()  # no need to double 1000 times to find the minimum
    return tuple(min(FIRST_UNITS << min(b, widest), MAX_BLOCK_UNITS) for b in range(n_blocks))


def _cnn_in_blocks(label: str, n_blocks: int, layers_per_block: int) -> Architecture:
    _check_block_counts(n_blocks=n_blocks, layers_per_block=layers_per_block)
    layers = [Layer("conv7", FIRST_UNITS, 1), Layer("max-pool")]
    for units in doubling_units(n_blocks):
        layers += [Layer(label, units, 2), *[Layer(label, units, 1)] * (layers_per_block - 1)]
    fc_units = 2 * doubling_units(n_blocks)[-1]
    return chain(CNN, [*layers, Layer("avg-pool"), Layer("fc", fc_units)])


def _bounded(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """The layers as a tuple, refusing an endless or absurd iterable before it fills the memory."""
    taken: list[Layer] = []
    for layer in layers:
        if len(taken) == MAX_LAYERS:
            raise OptionError(f"layers: a network has at most {MAX_LAYERS} layers, got more")
        taken.append(layer)
    return tuple(taken)


def _check_processing(vocabulary: Vocabulary, layer: object, i: int) -> None:
    if not isinstance(layer, Layer):
        raise OptionError(f"layers[{i}]: expected a Layer, got {type(layer).__name__} {str(layer)[:60]!r}")
    label = vocabulary.by_name.get(layer.label)
    if label is not None and label.role is not Role.PROCESSING:  # an unknown label is the Architecture's to report
        raise OptionError(
            f"layers[{i}] ({label.name}): expected processing layers only, got the {label.role} label; "
            "input, decision layer and output are added by the builder"
        )


def _decision(vocabulary: Vocabulary, name: str | None) -> tuple[Layer, ...]:
    known = vocabulary.decision_labels
    if name is None:
        return (Layer(known[0]),) if known else ()
    if name not in known:
        raise OptionError(
            f"decision: expected a decision label of {vocabulary.name} ({', '.join(known) or 'it has none'}), "
            f"got {name!r}"
        )
    return (Layer(name),)


def _check_block_counts(**counts: int) -> None:
    """Whole numbers >= 1, and few enough layers in all that a network of them can exist."""
    n_layers = 1
    for name, count in counts.items():
        if type(count) is not int or not 1 <= count <= MAX_LAYERS:
            raise OptionError(f"{name}: expected a whole number from 1 to {MAX_LAYERS}, got {count!r}")
        n_layers *= count
    if n_layers > MAX_LAYERS:
        product = " * ".join(f"{name} ({count})" for name, count in counts.items())
        raise OptionError(f"{product} makes {n_layers} layers; expected at most {MAX_LAYERS}")


def _per_block(name: str, values: Sequence[T], n_blocks: int) -> Sequence[T]:
    is_list = isinstance(values, list | tuple)  # a string is a sequence too, of letters
    if not is_list or len(values) != n_blocks:
        got = len(values) if is_list else repr(values)
        raise OptionError(f"{name}: expected a list with one entry for each of the {n_blocks} blocks, got {got}")
    return values
