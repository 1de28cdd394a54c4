"""The initial pools (Appendix B.3, Figures "initial pool"): ten regular networks of each kind to start a search from.

CNN: four VGG-like networks and six in blocks, as at the time of the paper (its text says three VGG-like; the figure
and the release have four).

MLP: ten blocked networks. The authors draw the labels afresh at every call: even blocks take the next of the shuffled
rectifiers, odd ones the next of the shuffled sigmoids. Here nothing is drawn: network i goes round the rectifiers from
place i mod 5 and round the sigmoids from place i mod 2, so each of the ten pairs of a first rectifier and a first
sigmoid occurs exactly once, and the pool is the same in every process. Units are the intended ones (64, 128, 256, 512,
512, ...), not those that a bug in the release shifts by a block.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from nasbot.architecture.blocks import alternating_labels, blocked_cnn, blocked_mlp, chain, vgg_like
from nasbot.architecture.graph import Architecture
from nasbot.architecture.labels import Vocabulary
from nasbot.architecture.layer import Layer
from nasbot.architecture.space import SearchSpace
from nasbot.architecture.vocabularies import BUILT_IN, CNN, vocabulary_of
from nasbot.errors import VocabularyError

MLP_BLOCKS = ((3, 2), (4, 2), (5, 2), (3, 4), (6, 2), (8, 2), (6, 3), (10, 2), (4, 6), (8, 3))
VGG_CONVOLUTIONS = (1, 2, 3, 4)
SHRINKING = (1.0, 0.5, 0.25, 0.125, 0.0625)
SHALLOW_DEPTHS, SHALLOW_UNITS = (1, 2, 3), 128
CNN_BLOCKS = ((3, 1), (3, 2), (3, 3), (3, 4), (3, 5), (4, 4))


def initial_pool(kind: str | Vocabulary) -> tuple[Architecture, ...]:
    """The ten networks that a search over a built-in kind starts from; the same at every call."""
    vocabulary = vocabulary_of(kind)
    if vocabulary != BUILT_IN.get(vocabulary.name):
        raise VocabularyError(
            f"there is no built-in initial pool for the vocabulary {vocabulary.name!r}, only for "
            f"{', '.join(BUILT_IN)}; build a few networks yourself "
            "(nasbot.architecture.chain makes simple ones) and pass them as the pool"
        )
    return _built_in_pool(vocabulary.name)


def pool_within(space: SearchSpace) -> tuple[Architecture, ...]:
    """The initial pool of the space's kind as far as it fits: made narrower where need be, and shallow where too deep.

    The pool as it is where all of it lies in the space. Of a space that holds none of these, the pool as it is, too:
    whoever checks it says what is wrong.
    """
    pool = initial_pool(space.kind)
    if all(arch in space for arch in pool):
        return pool
    label = Layer("conv3", SHALLOW_UNITS, 1) if space.kind == CNN.name else Layer("relu", SHALLOW_UNITS)
    shallow = tuple(chain(space.kind, [label] * n) for n in SHALLOW_DEPTHS)
    fitting = (
        next((arch for arch in narrower(wide, space.min_units) if arch in space), None) for wide in (*pool, *shallow)
    )
    return tuple(dict.fromkeys(arch for arch in fitting if arch is not None)) or pool


def narrower(arch: Architecture, least: int) -> tuple[Architecture, ...]:
    """The network with fewer and fewer units in every layer."""
    return tuple(
        Architecture(
            arch.vocabulary,
            [
                layer if layer.units is None else replace(layer, units=max(least, round(layer.units * share)))
                for layer in arch.layers
            ],
            arch.edges,
        )
        for share in SHRINKING
    )


@cache  # networks are values: one copy serves everybody, with its masses and path lengths
def _built_in_pool(name: str) -> tuple[Architecture, ...]:
    if name == CNN.name:
        return (*(vgg_like(k) for k in VGG_CONVOLUTIONS), *(blocked_cnn(*blocks) for blocks in CNN_BLOCKS))
    return tuple(
        blocked_mlp(
            name, n_blocks, layers_per_block, labels=alternating_labels(n_blocks, rectifiers_from=i, sigmoids_from=i)
        )
        for i, (n_blocks, layers_per_block) in enumerate(MLP_BLOCKS)
    )
