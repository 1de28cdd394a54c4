"""The modifiers much as the authors' release draws them, for comparisons with it: ``modifiers=RELEASE_MODIFIERS``.

Where the paper says "at random", the release has preferences. What a modification does is the same as the paper's:

release_dup_path, release_skip    the search's own for CNNs (``nasbot.evolution.branching``)
release_inc_en_masse  changes a half, a quarter or an eighth of the layers, not an eighth only; and ..._dec_en_masse
release_swap_label    convolutions seldom to a pool, a pool to the other kind of pool, fully connected layers of CNNs
                      never; in MLPs only to the other family of activations
release_wedge_layer   seldom a pool; behind fully connected layers of CNNs only such layers, and nowhere else

Not as there: ``remove_layer`` (docs/deviations.md); which convolution takes the place of another (there some are more
likely than others, and some never taken); and ``sites``, which list what could be done as the paper has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from nasbot.architecture import Architecture, Label, Role
from nasbot.evolution.branching import is_dense
from nasbot.evolution.modifier import NO_SITE, Modifier, Rejected, pick
from nasbot.evolution.structure import (
    NewLabel,
    Wedge,
    new_layer,
    other_labels,
    random_stride,
    relabelled,
    swap_label,
    swappable,
    wedge_labels,
    wedge_layer,
    wedgeable,
)
from nasbot.evolution.units import Run, changeable, dec_en_masse, decreased, inc_en_masse, increased
from nasbot.evolution.wiring import label_of

SWAPPED_POOL = 0.1  # how likely a convolution becomes a layer without units
WEDGED_POOL = 0.05  # and a new layer is one


# -- units -------------------------------------------------------------------------------------------------------------


def _run(arch: Architecture, layers: Sequence[int], name: str, rng: np.random.Generator) -> Run | Rejected:
    """Halves in networks of four or more inner layers, quarters from eight on, eighths from sixteen on."""
    parts = [n for n in (2, 4, 8) if len(arch.layers) - 2 >= 2 * n]
    cuts = [np.linspace(0, len(layers), n + 1).astype(int).tolist() for n in parts]
    runs = [tuple(layers[a:b]) for ends in cuts for a, b in pairwise(ends) if a < b]
    return pick(runs, rng) if runs else Rejected(name, NO_SITE, "too few layers with units")


def _increased_run(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
    return _run(arch, changeable(arch, increased), "release_inc_en_masse", rng)


def _decreased_run(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
    return _run(arch, changeable(arch, decreased), "release_dec_en_masse", rng)


# -- labels ------------------------------------------------------------------------------------------------------------


def _seldom_a_pool(labels: Sequence[Label], probability: float, rng: np.random.Generator) -> Label:
    """One of the labels; one without units with this probability, where there is a choice."""
    pools = [label for label in labels if not label.takes_units]
    others = [label for label in labels if label.takes_units]
    if pools and (not others or rng.random() < probability):
        return pick(pools, rng)
    return pick(others, rng)


def _swap(arch: Architecture, rng: np.random.Generator) -> NewLabel | Rejected:
    layers = [u for u in swappable(arch) if label_of(arch, u).role is Role.PROCESSING and not is_dense(arch, u)]
    if not layers:
        return Rejected("release_swap_label", NO_SITE, "no layer could have another label")
    u = pick(layers, rng)
    now = label_of(arch, u)
    labels = other_labels(arch, u)
    if not now.takes_units:
        labels = [label for label in labels if not label.takes_units]
    elif arch.vocabulary.shrinks_images:
        labels = [label for label in labels if label.strides or not label.takes_units]
    else:
        labels = [label for label in labels if label.family != now.family]
    if not labels:
        return Rejected("release_swap_label", "no other label fits", f"layer {u} {arch.layers[u]}")
    label = _seldom_a_pool(labels, SWAPPED_POOL, rng)
    return u, relabelled(arch, u, label, other_stride=random_stride(label, rng))


def _wedge(arch: Architecture, rng: np.random.Generator) -> Wedge | Rejected:
    edge = pick(wedgeable(arch), rng)
    labels: Sequence[Label] = wedge_labels(arch, *edge)
    if arch.vocabulary.shrinks_images:
        behind_dense = is_dense(arch, edge[0])
        labels = [label for label in labels if (label.takes_units and not label.strides) == behind_dense]
    if not labels:
        return Rejected("release_wedge_layer", "no label fits", f"no label fits between {edge[0]} and {edge[1]}")
    label = _seldom_a_pool(labels, WEDGED_POOL, rng)
    return edge, new_layer(arch, edge, label, other_stride=random_stride(label, rng))


release_inc_en_masse: Modifier[Run] = replace(inc_en_masse, name="release_inc_en_masse", draw=_increased_run)
release_dec_en_masse: Modifier[Run] = replace(dec_en_masse, name="release_dec_en_masse", draw=_decreased_run)
release_swap_label: Modifier[NewLabel] = replace(swap_label, name="release_swap_label", draw=_swap)
release_wedge_layer: Modifier[Wedge] = replace(wedge_layer, name="release_wedge_layer", draw=_wedge)

RELEASE_MODIFIERS: tuple[str | Modifier[Any], ...] = (
    *("dec_single", "inc_single", release_dec_en_masse, release_inc_en_masse, "remove_layer", release_wedge_layer),
    *("release_dup_path", "release_skip", release_swap_label) * 2,  # twice as likely as the others
)
