"""Which params, and which options of single layers, are searched together with the networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nasbot.domain import Choice, Float, Integer, Param
from nasbot.errors import OptionError
from nasbot.evolution import ATTRIBUTE_MODIFIERS
from nasbot.training.objective import FROM_TREES

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

SHARES = (0.0, 0.3, 0.6)  # of what trees say in what is learned
PREPARATION = Choice("standard", "robust", "quantile", "ple")
# What "auto" searches: what was measured to be worth it; the loss only where the target is heavy-tailed, and to learn
# from trees where a short training has gained by it.
AUTO = ("preparation", "augmentation", "mixup", FROM_TREES)
AUTO_OF_RATES = (*AUTO, "loss")

# Options of a layer by name, and the modifier that changes each.
ATTRIBUTES: Mapping[str, str] = dict(zip(("dropout", "norm", "weight_decay"), ATTRIBUTE_MODIFIERS, strict=True))


def attributes_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The options of single layers to search: "all", "none", or some of ``ATTRIBUTES``, in their order."""
    if given is None or given == "none":
        return ()
    if given == "all":
        return tuple(ATTRIBUTES)
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if unknown := [name for name in names if name not in ATTRIBUTES]:
        raise OptionError(
            f"attributes: expected all, none, or some of {', '.join(ATTRIBUTES)}; got {str(unknown[0])[:40]!r}"
        )
    return tuple(name for name in ATTRIBUTES if name in names)


def searched_attributes(modifiers: Sequence[object]) -> tuple[str, ...]:
    """The options of single layers that a search with these modifiers changes."""
    return tuple(name for name, modifier in ATTRIBUTES.items() if modifier in modifiers)


def params_of(
    tune: str | Sequence[str] | Mapping[str, Param] | None,
    data: Dataset,
    recipe: Recipe,
    from_trees: float | None = None,
) -> dict[str, Param]:
    """The params to search on these data, of which the recipe has the defaults.

    ``from_trees`` is the default share of what trees say in what is learned; None: they say nothing.
    """
    if tune is None or tune == "none":
        return {}
    known = _known(data, recipe)
    if from_trees is not None:
        known[FROM_TREES] = Choice(*SHARES, ordered=True, default=from_trees)
    if tune == "auto":
        has_rates = recipe.settings(data.input_shape).loss == "poisson"
        return {name: known[name] for name in (AUTO_OF_RATES if has_rates else AUTO) if name in known}
    names = _names(tune)
    if unknown := [name for name in names if name not in known]:
        raise OptionError(f"tune: expected auto, none, or some of {', '.join(known)}; got {str(unknown[0])[:40]!r}")
    if isinstance(tune, Mapping):
        return {name: _checked(name, param, recipe) for name, param in tune.items()}
    return {name: _without_others(known[name], names) for name in names}


def asks_for_trees(tune: str | Sequence[str] | Mapping[str, Param] | None) -> bool:
    """Whether learning from trees is asked for by name, not by "auto"."""
    return tune is not None and FROM_TREES in _names(tune)


def _names(tune: object) -> list[str]:
    """The names of params that are asked for; whether there are such params the data say."""
    if isinstance(tune, str):
        return [name.strip() for name in tune.split(",")]
    if not isinstance(tune, Iterable):
        raise OptionError(f"tune: expected auto, none, names, or params by name; got {tune!r:.60}")
    return [str(name) for name in tune]


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
    kind = float if isinstance(param, Float) else int
    for value in param.values if isinstance(param, Choice) else (kind(param.low), kind(param.high)):
        try:
            if name == "preparation":
                PREPARATION.check(value)
            elif name == FROM_TREES:
                Float(0.0, 1.0, default=0.0).check(value)
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
