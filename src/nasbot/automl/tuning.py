"""Which params are searched together with the networks, by default and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nasbot.domain import Choice, Float, Integer, Param
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

PREPARATION = Choice("standard", "robust", "quantile", "ple")
# What "auto" searches: what was measured to be worth it; the loss only where the target is heavy-tailed.
AUTO = ("preparation",)
AUTO_OF_RATES = (*AUTO, "loss")


def params_of(
    tune: str | Sequence[str] | Mapping[str, Param] | None, data: Dataset, recipe: Recipe
) -> dict[str, Param]:
    """The params to search on these data, of which the recipe has the defaults."""
    if tune is None or tune == "none":
        return {}
    known = _known(data, recipe)
    if tune == "auto":
        has_rates = recipe.settings(data.input_shape).loss == "poisson"
        return {name: known[name] for name in (AUTO_OF_RATES if has_rates else AUTO) if name in known}
    names = [name.strip() for name in tune.split(",")] if isinstance(tune, str) else list(tune)
    if unknown := [name for name in names if name not in known]:
        raise OptionError(f"tune: expected auto, none, or some of {', '.join(known)}; got {str(unknown[0])[:40]!r}")
    if isinstance(tune, Mapping):
        return {name: _checked(name, param, recipe) for name, param in tune.items()}
    return {name: _without_others(known[name], names) for name in names}


def _known(data: Dataset, recipe: Recipe) -> dict[str, Param]:
    """What can be searched on these data."""
    from nasbot.training.params import tunable

    prepared = {"preparation": PREPARATION} if getattr(data.preprocessing.inputs, "number_inputs", ()) else {}
    has_rates = data.rate_scale is not None
    return prepared | tunable(recipe, data.input_shape, classifies=data.is_classification, has_rates=has_rates)


def _checked(name: str, param: object, recipe: Recipe) -> Param:
    """The param; OptionError where training would refuse one of its values."""
    if not isinstance(param, Float | Integer | Choice):
        raise OptionError(f"tune: {name}: expected Float, Integer or Choice, got {type(param).__name__}")
    for value in param.values if isinstance(param, Choice) else (param.low, param.high):
        try:
            if name == "preparation":
                PREPARATION.check(value)
            else:
                recipe.with_params({name: value})
        except OptionError as error:
            raise OptionError(f"tune: {name} may be {value!r}, which training refuses: {error}") from None
    return param


def _without_others(param: Param, names: Sequence[str]) -> Param:
    """Without a condition on a param that is not searched."""
    if param.when is None or param.when[0] in names or isinstance(param, Choice):
        return param
    return replace(param, when=None)
