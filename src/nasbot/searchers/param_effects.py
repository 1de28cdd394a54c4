"""What is believed of params, for people: how much each matters, and what its values would give the best network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nasbot.candidate import Params
from nasbot.domain import Choice, Domain, Float, Param
from nasbot.searchers.effect import Effect, ParamEffect, SlicePoint, Value
from nasbot.searchers.pool import shown

N_SLICE = 13  # values of a number that a slice asks about
FACTORS = (0.25, 0.5, 2.0, 4.0)  # by which what-if multiplies a number on a logarithmic scale
TAILS = (0.05, 0.5, 0.95)  # of the posterior samples


def slice_values(param: Param) -> tuple[Value, ...]:
    """Values along the range of a param: all of a choice."""
    if isinstance(param, Choice):
        return param.values
    return tuple(dict.fromkeys(param.at(i / (N_SLICE - 1)) for i in range(N_SLICE)))


def slices(domain: Domain, params: Params) -> list[tuple[str, Value, Params]]:
    """Each active param by name with each value of its slice, and the params that it gives."""
    return [
        (name, value, domain.completed({**params, name: value}))
        for name in domain.active(params)
        for value in slice_values(domain.params[name])
    ]


def param_effects_of(
    domain: Domain,
    params: Params,
    decays: NDArray[np.float64],
    asked: Sequence[tuple[str, Value, Params]],
    effects: Sequence[Effect],
) -> tuple[ParamEffect, ...]:
    """The most important first, from sampled decays (samples, params) and the effects of what ``slices`` gave."""
    points: dict[str, list[SlicePoint]] = {name: [] for name in domain.params}
    for (name, value, _), effect in zip(asked, effects, strict=True):
        unit = domain.params[name].unit(value)
        points[name].append(SlicePoint(value, unit, effect.median, effect.lower, effect.upper))
    lost = np.quantile(-np.expm1(-decays), TAILS, axis=0).T
    found = [
        ParamEffect(
            name,
            float(middle),
            float(low),
            float(high),
            is_log=not isinstance(param, Choice) and param.log,
            is_choice=isinstance(param, Choice),
            at=params.get(name),
            points=tuple(sorted(points[name], key=lambda point: point.unit)),
        )
        for (name, param), (low, middle, high) in zip(domain.params.items(), lost, strict=True)
    ]
    return tuple(sorted(found, key=lambda effect: -effect.importance))


def changes_of(domain: Domain, params: Params) -> list[tuple[str, Params]]:
    """Changes of one param each, in words: by factors on a logarithmic scale, else to the values beside its own."""
    found: list[tuple[str, Params]] = []
    for name in sorted(domain.active(params)):
        param, own = domain.params[name], params[name]
        if isinstance(param, Choice) or not param.log or isinstance(own, str):
            others = [(f"{name} {shown(own)} -> {shown(value)}", value) for value in param.neighbours(own)]
        else:
            others = [
                (f"{name} x {factor:g} ({shown(value)})", value)
                for factor in FACTORS
                if param.low <= (value := _multiplied(param, own, factor)) <= param.high and value != own
            ]
        found += [(words, domain.completed({**params, name: value})) for words, value in others]
    return found


def _multiplied(param: Param, own: float | int, factor: float) -> float | int:
    return float(f"{own * factor:.4g}") if isinstance(param, Float) else round(own * factor)
