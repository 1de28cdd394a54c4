"""The modifiers that change the attributes of layers, and nothing else: one for each.

change_dropout  one layer, a run of neighbours or all: another share from ``DROPOUTS``
change_norm     the same: another normalisation
change_decay    the same: half or twice the factor of weight decay

A search makes these changes where its modifiers name them: ``NASBOT(..., modifiers=(*MLP_MODIFIERS,
*ATTRIBUTE_MODIFIERS))``. A layer that cannot have the attribute, or has that value already, is no site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nasbot.architecture import Architecture, Attributes, Label, Layer
from nasbot.architecture import attributes as rules
from nasbot.evolution.modifier import NO_SITE, Draft, Modifier, Rejected, below, pick
from nasbot.evolution.units import doubling_lengths

DROPOUTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
MOST = 64.0  # and 1 / 64: how far factors of weight decay go

Value = float | str
Site = tuple[tuple[int, ...], Value]  # layers changed together, and what they get


def _dropout_of(layer: Layer, label: Label) -> float:
    own = None if layer.attributes is None else layer.attributes.dropout
    return label.dropout if own is None else own


def _norm_of(layer: Layer, label: Label) -> str:
    own = None if layer.attributes is None else layer.attributes.norm
    return own or label.norm


def _factor_of(layer: Layer, label: Label) -> float:
    own = None if layer.attributes is None else layer.attributes.decay_factor
    return own or 1.0


def _modifier(
    name: str,
    attribute: str,
    now: Callable[[Layer, Label], Value],
    values: Callable[[Value], Sequence[Value]],
    word: str,
) -> Modifier[Site]:
    """The modifier that gives runs of layers one of ``values``, which may depend on what the first of them has."""

    def takers(arch: Architecture) -> list[int]:
        by_name = arch.vocabulary.by_name
        return [u for u, layer in enumerate(arch.layers) if _may_have(by_name[layer.label], attribute, u)]

    def current(arch: Architecture, u: int) -> Value:
        return now(arch.layers[u], arch.vocabulary.by_name[arch.layers[u].label])

    def sites(arch: Architecture) -> Iterator[Site]:
        layers = takers(arch)
        for size in doubling_lengths(len(layers)):
            for first in range(len(layers) - size + 1):
                for value in values(current(arch, layers[first])):
                    yield tuple(layers[first : first + size]), value

    def draw(arch: Architecture, rng: np.random.Generator) -> Site | Rejected:
        layers = takers(arch)
        if not layers:
            return Rejected(name, NO_SITE, f"no layer can have a {word}")
        size = pick(doubling_lengths(len(layers)), rng)
        first = below(len(layers) - size + 1, rng)
        return tuple(layers[first : first + size]), pick(values(current(arch, layers[first])), rng)

    def draft(arch: Architecture, site: Site) -> Draft | Rejected:
        run, value = site
        layers = list(arch.layers)
        before = [current(arch, u) for u in run]
        for u in run:
            layer = layers[u]
            layers[u] = Layer(layer.label, layer.units, layer.stride, _with(layer.attributes, attribute, value))
        where = f"layer {run[0]} {arch.layers[run[0]].label}" if len(run) == 1 else f"layers {_listed(run)}"
        return Draft(f"{where}: {word} {_listed(dict.fromkeys(before))} -> {_shown(value)}", layers, arch.edges)

    return Modifier(name, sites, draw, draft)


def _may_have(label: Label, attribute: str, u: int) -> bool:
    """Whether a layer of this label can have the attribute, by the rules of networks."""
    tried = {"dropout": 0.5, "norm": "none" if label.norm != "none" else "batch", "decay_factor": 2.0}[attribute]
    return not any(rules.violations(_with(None, attribute, tried), label, u))


def _with(own: Attributes | None, attribute: str, value: Value) -> Attributes:
    changed: Mapping[str, Any] = {attribute: value}
    return (own or Attributes())._replace(**changed)


def _other_shares(now: Value) -> Sequence[Value]:
    return [share for share in DROPOUTS if share != now]


def _other_norms(now: Value) -> Sequence[Value]:
    return [norm for norm in rules.NORMS if norm != now]


def _near_factors(now: Value) -> Sequence[Value]:
    return [other for other in (float(now) / 2, float(now) * 2) if 1 / MOST <= other <= MOST]


def _listed(values: Sequence[Value] | dict[Value, None]) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"


change_dropout = _modifier("change_dropout", "dropout", _dropout_of, _other_shares, "dropout")
change_norm = _modifier("change_norm", "norm", _norm_of, _other_norms, "norm")
change_decay = _modifier("change_decay", "decay_factor", _factor_of, _near_factors, "decay factor")
