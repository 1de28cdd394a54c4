"""Which settings of a recipe can be searched together with the network: their ranges, as data, and where from.

The default of each is the recipe's own setting, so that a search begins with the recipe as it is. A range stands around
the defaults of ``FAST``; where a recipe says something else, it moves along (learning rate) or is widened to hold it.
Papers are named for the idea of a range: but for FCNet's grids, which we have as a table, none was looked up for its
exact numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nasbot.domain import Choice, Float, Param
from nasbot.training.recipes import AUGMENTATIONS, OPTIMISERS, POISSON, Recipe, Settings


@dataclass(frozen=True)
class Tunable:
    """One row: the range for vectors and for images (None: not there), and why that one."""

    vectors: Param | None
    images: Param | None
    source: str
    needs_classes: bool = False
    needs_rates: bool = False  # a target that is nowhere negative


# How far from the recipe's own. Its learning rate is per layer (``reference_width``, ``reference_depth``), so that one
# value suits most networks and the usual three decades of others' searches would be spent far from it.
RATE_FACTORS = (0.25, 3.0)
_RATE = Float(0.005, 0.06, log=True, default=0.02)  # of FAST; moved with the recipe's

TUNABLE: Mapping[str, Tunable] = {
    "learning_rate": Tunable(_RATE, _RATE, "the recipe's, times 0.25 to 3: see RATE_FACTORS"),
    "weight_decay": Tunable(
        Float(1e-6, 1e-1, log=True, default=1e-4),
        Float(1e-6, 1e-1, log=True, default=5e-4),
        "five decades, wider than searches of MLPs on tables usually are (Gorishniy et al. 2021, Kadra et al. 2021)",
    ),
    "dropout": Tunable(
        Float(0.0, 0.4, default=0.0),
        Float(0.0, 0.4, default=0.0),
        "none to rather much for trainings of few epochs; searches of longer ones go further (Gorishniy et al. 2021)",
    ),
    "batch_size": Tunable(
        Choice(64, 128, 256, 512, ordered=True, default=256),
        Choice(32, 64, 128, ordered=True, default=64),
        "halves and doubles of the recipe's 256 and 64",
    ),
    "feature_scaling": Tunable(
        Choice(0.0, 2.0, 4.0, 8.0, ordered=True, default=4.0),
        None,
        "none, halves and doubles of the recipe's 4; RealMLP has 6 (Holzmüller et al. 2024)",
    ),
    "schedule": Tunable(Choice("cosine", "constant"), None, "FCNet's two (Klein & Hutter 2019)"),
    "loss": Tunable(
        Choice("squared", POISSON),
        None,
        "of targets that are nowhere negative: Poisson's variance grows with the mean",
        needs_rates=True,
    ),
    "label_smoothing": Tunable(
        Float(0.0, 0.2, default=0.05),
        Float(0.0, 0.2, default=0.0),
        "none, to twice the usual 0.1 (Szegedy et al. 2016)",
        needs_classes=True,
    ),
    "mixup": Tunable(None, Float(0.0, 0.4, default=0.0), "none, to twice the usual alpha of 0.2 (Zhang et al. 2018)"),
    "augmentation": Tunable(None, Choice(*AUGMENTATIONS), "flips and shifts by an eighth, the usual ones for CIFAR"),
    "optimiser": Tunable(Choice(*OPTIMISERS), Choice(*OPTIMISERS), "the two that are built"),
    "momentum": Tunable(
        Float(0.0, 0.99, default=0.9, when=("optimiser", "sgd")),
        Float(0.0, 0.99, default=0.9, when=("optimiser", "sgd")),
        "from plain descent to more than the usual 0.9",
    ),
    "beta2": Tunable(
        Float(0.9, 0.999, default=0.99, when=("optimiser", "adamw")),
        Float(0.9, 0.999, default=0.99, when=("optimiser", "adamw")),
        "up to Adam's own default, 0.999 (Kingma & Ba 2015)",
    ),
    "warm_up": Tunable(Float(0.0, 0.2, default=0.08), Float(0.0, 0.2, default=0.08), "none, to a fifth of the steps"),
}


def tunable(
    recipe: Recipe, input_shape: tuple[int, ...], *, classifies: bool, has_rates: bool = False
) -> dict[str, Param]:
    """The params that networks of this input can be searched with, defaults being the recipe's settings."""
    settings, takes_images = recipe.settings(input_shape), len(input_shape) == 3
    found = {}
    for name, row in TUNABLE.items():
        param = row.images if takes_images else row.vectors
        is_there = (classifies or not row.needs_classes) and (has_rates or not row.needs_rates)
        if param is not None and is_there:
            found[name] = _around(name, param, settings)
    return found


def _around(name: str, param: Param, settings: Settings) -> Param:
    """The param with the recipe's own setting as its default."""
    own = getattr(settings, name)
    if name == "momentum" and settings.optimiser != "sgd":  # it says nothing there
        return param
    if isinstance(param, Choice):
        if own in param.values:
            return Choice(*param.values, ordered=param.ordered, default=own, when=param.when)
        values = sorted({*param.values, own}) if param.ordered else (*param.values, own)
        return Choice(*values, ordered=param.ordered, default=own, when=param.when)
    assert isinstance(param, Float)
    if name == "learning_rate":
        low, high = (factor * own for factor in RATE_FACTORS)
        return replace(param, low=low, high=high, default=own)
    if param.log and own <= 0:  # a recipe without it: the least is next to none
        return replace(param, default=param.low)
    return replace(param, low=min(param.low, own), high=max(param.high, own), default=own)
