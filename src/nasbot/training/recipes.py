"""How networks are trained, as data: ``FAST`` for people's searches, ``PAPER`` for the protocol of Appendix C.2.

A recipe has one set of settings for networks of vectors and one for networks of images. To change some of them:
``FAST.changed(n_steps=500)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from nasbot._typing import Json
from nasbot.architecture import Architecture, Role
from nasbot.candidate import Params
from nasbot.errors import CodecError, OptionError

OPTIMISERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "constant", "steps")
POISSON = "poisson"
LOSSES = ("squared", "absolute", "huber", POISSON)
SCORES = ("loss", "error")
PARAMS = (  # settings that a candidate may have of its own (training/params.py has their ranges)
    "learning_rate",
    "weight_decay",
    "dropout",
    "batch_size",
    "feature_scaling",
    "schedule",
    "loss",
    "label_smoothing",
    "mixup",
    "augmentation",
    "optimiser",
    "momentum",
    "beta2",
    "warm_up",
)
AUGMENTATIONS = ("none", "flips", "crops", "flips+crops")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One way to train. The comments say what each is; None switches it off."""

    optimiser: str = "adamw"  # or "sgd"
    learning_rate: float = 2e-2
    # adamw: the learning rate of a layer's weights is that of layers with this many inputs, times it over the layer's
    # own number of inputs: a step then moves a layer's sums equally however wide it is. None: the same for all.
    reference_width: int | None = 64
    # The learning rate is also that of networks with this many layers one behind the other, and less for deeper ones in
    # proportion: what a step changes at the output adds up over the layers. None: the same for all.
    reference_depth: int | None = 3
    momentum: float = 0.0  # sgd
    # adamw: the memory of squared gradients, shorter than usual: trainings have hundreds of steps, not 100,000s.
    beta2: float = 0.99
    weight_decay: float = 1e-4  # adamw: taken off each weight directly; sgd: added to the gradient
    # adamw, tables: each feature has a scale of its own, learned at so many times the learning rate and folded into the
    # weights (``scaling``); 0: none.
    feature_scaling: float = 0.0
    schedule: str = "cosine"  # from the learning rate to 0; "constant"; "steps": a tenth of it after each of ``drops``
    drops: tuple[float, ...] = ()  # as shares of all steps
    warm_up: float = 0.08  # the share of steps in which the learning rate rises from 0
    # Of numbers in training: "squared", "absolute", "huber", or "poisson", with which networks say the logarithm of a
    # target that is nowhere negative. Validation is always squared.
    loss: str = "squared"
    sum_loss: bool = False  # over the samples of a batch, instead of the mean
    dropout: float = 0.0  # the share of each hidden layer's outputs that a training step leaves out
    label_smoothing: float = 0.0  # the share of the truth that training spreads over all classes
    # Of classes: how sure a network is follows from the validation rows (``temperature``), so that trainings may be
    # long, and labels smooth.
    temperature_scaling: bool = False
    mixup: float = 0.0  # alpha of Beta(alpha, alpha), the shares in which two samples and their truths are mixed; 0: no
    augmentation: str = "none"  # of images in training: "flips" (left and right), "crops" (shifts), "flips+crops"
    batch_size: int = 256  # fewer where there are few samples: at least ``min_batches`` to an epoch
    min_batches: int = 8
    n_steps: int | None = None  # None: by the four below
    epochs: float = 40.0
    min_steps: int = 300
    max_steps: int = 3000
    max_flops: float | None = 6e11  # of a whole training; larger networks are trained for fewer steps
    check_every: int | None = None  # steps between validations; None: ``n_validations`` of them
    n_validations: int = 15
    patience: float | None = 1 / 3  # the share of all steps without a better validation, after which training ends
    score: str = "loss"  # what validations compare and the objective returns; "error": the share of wrong classes
    # A network beyond one of these is refused before anything is built.
    max_parameters: float | None = 5e7
    max_memory: float | None = 4e9  # bytes: weights, gradients, moments and the activations of a batch
    max_seconds: float | None = None  # as estimated, for a whole training

    def __post_init__(self) -> None:
        for name, value, known in (
            ("optimiser", self.optimiser, OPTIMISERS),
            ("schedule", self.schedule, SCHEDULES),
            ("loss", self.loss, LOSSES),
            ("score", self.score, SCORES),
            ("augmentation", self.augmentation, AUGMENTATIONS),
        ):
            if value not in known:
                raise OptionError(f"{name}: expected {' or '.join(known)}, got {str(value)[:40]!r}")
        for field in fields(self):
            given = getattr(self, field.name)
            if not any(_is_of(given, kind) for kind in str(field.type).split(" | ")):
                raise OptionError(f"{field.name}: expected {_in_words(str(field.type))}, got {str(given)[:40]!r}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise OptionError(f"{name}: expected a number > 0, got {str(value)[:40]!r}")
        for name in ("momentum", "beta2", "weight_decay", "warm_up", "dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise OptionError(f"{name}: expected at least 0 and less than 1, got {getattr(self, name)}")
        for name in ("mixup", "feature_scaling"):
            if not 0 <= getattr(self, name) < math.inf:
                raise OptionError(f"{name}: expected a number >= 0, got {getattr(self, name)}")

    def batch_size_for(self, n_samples: int) -> int:
        """The size of a batch where there are this many samples to learn from."""
        return max(1, min(self.batch_size, max(n_samples // self.min_batches, min(n_samples, SMALLEST_BATCH))))

    def depth_factor(self, arch: Architecture) -> float:
        """What the learning rate is multiplied by for this network."""
        if self.reference_depth is None:
            return 1.0
        return min(1.0, self.reference_depth / max(1, depth(arch)))

    def steps(self, n_samples: int, flops_per_step: float) -> int:
        """How many steps are taken with this many samples to learn from."""
        if self.n_steps is not None:
            return self.n_steps
        wished = self.epochs * n_samples / self.batch_size_for(n_samples)
        n_steps = min(max(wished, self.min_steps), self.max_steps)
        if self.max_flops is not None and flops_per_step > 0:
            n_steps = min(n_steps, max(self.max_flops / flops_per_step, self.min_steps / 2))
        return max(1, round(n_steps))

    def interval(self, n_steps: int) -> int:
        """Steps between two validations."""
        return min(n_steps, self.check_every or max(1, n_steps // self.n_validations))

    def patient_validations(self, n_steps: int) -> float:
        """How many validations without a better one end a training."""
        return math.inf if self.patience is None else max(1, round(self.patience * n_steps / self.interval(n_steps)))


def depth(arch: Architecture) -> int:
    """The most layers with weights that stand one behind the other, decision layers not counted."""
    lengths = [0] * len(arch.layers)
    for u, layer in enumerate(arch.layers[1:], start=1):
        label = arch.vocabulary.by_name[layer.label]
        weighs = label.role is Role.PROCESSING and (label.takes_units or label.kernel_size is not None)
        lengths[u] = max(lengths[p] for p in arch.parents[u]) + weighs
    return lengths[-1]


SMALLEST_BATCH = 16
# Settings that recipes of older studies do not have, with what they are there.
_ADDED: Mapping[str, Json] = {
    "beta2": 0.99,
    "mixup": 0.0,
    "augmentation": "none",
    "feature_scaling": 0.0,
    "temperature_scaling": False,
}
_POSITIVE = (
    "learning_rate",
    "reference_width",
    "reference_depth",
    "batch_size",
    "min_batches",
    "n_steps",
    "epochs",
    "min_steps",
    "max_steps",
    "max_flops",
    "check_every",
    "n_validations",
    "patience",
    "max_parameters",
    "max_memory",
    "max_seconds",
)


@dataclass(frozen=True)
class Recipe:
    """A name, and how networks of vectors and networks of images are trained."""

    name: str
    vectors: Settings
    images: Settings

    def settings(self, input_shape: tuple[int, ...]) -> Settings:
        """The settings for networks of this input."""
        return self.images if len(input_shape) == 3 else self.vectors

    def changed(self, **settings: Any) -> Recipe:
        """The same recipe with these settings, for both kinds of networks; its name says that it was changed."""
        unknown = sorted(set(settings) - {field.name for field in fields(Settings)})
        if unknown:
            known = ", ".join(field.name for field in fields(Settings))
            raise OptionError(f"recipe: unknown setting {unknown[0]!r}; known: {known}")
        name = self.name if self.name.endswith("+") else f"{self.name}+"
        return Recipe(name, replace(self.vectors, **settings), replace(self.images, **settings))

    def with_params(self, params: Params) -> Recipe:
        """The recipe with a candidate's params; OptionError for names other than those of ``PARAMS``."""
        unknown = sorted(set(params) - set(PARAMS))
        if unknown:
            raise OptionError(f"params: expected {', '.join(PARAMS)}, got {unknown[0]!r}")
        return self.changed(**params) if params else self

    def to_dict(self) -> dict[str, Json]:
        """As JSON: a study keeps it, so that a resume with another recipe is noticed."""
        return {"name": self.name, "vectors": _record(self.vectors), "images": _record(self.images)}

    @classmethod
    def from_dict(cls, record: object) -> Recipe:
        """What ``to_dict`` wrote; raises CodecError, naming the place, for anything else."""
        if not isinstance(record, Mapping) or set(record) != {"name", "vectors", "images"}:
            raise CodecError(f"recipe: expected an object with name, vectors, images, got {repr(record)[:60]}")
        if not isinstance(record["name"], str):
            raise CodecError(f"recipe: expected a name, got {repr(record['name'])[:60]}")
        return cls(record["name"], *(_settings(record[part], part) for part in ("vectors", "images")))


def _record(settings: Settings) -> dict[str, Json]:
    """Without what is at its default and unknown to older versions: a study of theirs has then the same recipe."""
    return {name: value for name, value in asdict(settings).items() if _ADDED.get(name, ...) != value}


def _settings(record: object, where: str) -> Settings:
    known = {field.name: str(field.type) for field in fields(Settings)}
    if not isinstance(record, Mapping) or set(record) | set(_ADDED) != set(known):
        raise CodecError(f"recipe, {where}: expected an object with {', '.join(known)}, got {repr(record)[:60]}")
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in {**_ADDED, **record}.items()
    }
    for name, kinds in known.items():
        if not any(_is_of(given[name], kind) for kind in kinds.split(" | ")):
            raise CodecError(f"recipe, {where}: expected {name} as {kinds}, got {repr(given[name])[:60]}")
    try:
        return Settings(**given)
    except OptionError as error:
        raise CodecError(f"recipe, {where}: {error}") from None


def _is_of(value: object, kind: str) -> bool:
    if kind == "None":
        return value is None
    if kind.startswith("tuple"):
        return isinstance(value, tuple) and all(_is_of(item, "float") for item in value)
    expected = {"float": Real, "int": Integral, "str": str, "bool": bool}[kind]  # also of numpy
    return isinstance(value, expected) and (kind == "bool" or not isinstance(value, bool))


def _in_words(kinds: str) -> str:
    """A field's type, for people."""
    words = {"float": "a number", "int": "a whole number", "str": "a text", "bool": "True or False", "None": "None"}
    return " or ".join(words.get(kind, "several numbers") for kind in kinds.split(" | "))


FAST = Recipe(
    "fast",
    Settings(feature_scaling=4.0, label_smoothing=0.05, temperature_scaling=True),
    # Batch normalisation makes up for depth.
    Settings(
        reference_depth=None,
        batch_size=64,
        epochs=15.0,
        min_steps=200,
        max_steps=1500,
        max_flops=2e12,
        weight_decay=5e-4,
    ),
)

# What earlier versions had otherwise in their FAST, for vectors.
CHANGED_SINCE = ("feature_scaling", "label_smoothing", "temperature_scaling")

# What is changed of FAST where rows are few and cross-validation judges: slow, long and with much held back. Chosen on
# five small tables (one division each) among six settings, where it had the lowest or nearly the lowest error on all.
FEW_ROWS: Mapping[str, Any] = {
    "learning_rate": 5e-3,
    "dropout": 0.3,
    "weight_decay": 0.9,
    "feature_scaling": 0.0,
    "label_smoothing": 0.0,
    "temperature_scaling": False,
    "n_steps": 900,
}

# App. C.2. A learning rate of 1e-5 presumes a loss summed over the batch: with the mean nothing is learned in 20,000
# steps (docs/explanation/training.md). For CNNs the text has "reduced gradually"; where, and the momentum and the
# weight decay, are those of the authors' release.
_NO_LIMITS: Mapping[str, Any] = {
    "optimiser": "sgd",
    "warm_up": 0.0,
    "reference_width": None,
    "reference_depth": None,
    "min_batches": 1,
    "patience": None,
    "max_flops": None,
    "max_parameters": None,
    "max_memory": 1.6e10,
}
PAPER = Recipe(
    "paper",
    Settings(
        learning_rate=1e-5,
        schedule="constant",
        sum_loss=True,
        batch_size=256,
        n_steps=20_000,
        check_every=100,
        weight_decay=0.0,
        **_NO_LIMITS,
    ),
    Settings(
        learning_rate=1e-2,
        momentum=0.9,
        schedule="steps",
        drops=(0.35, 0.93),
        batch_size=32,
        n_steps=60_000,
        check_every=4_000,
        weight_decay=2e-4,
        score="error",
        **_NO_LIMITS,
    ),
)

RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in (FAST, PAPER)}


def recipe_of(recipe: str | Recipe) -> Recipe:
    """The recipe itself, or the one of that name."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise OptionError(f"recipe: expected {' or '.join(RECIPES)}, got {str(recipe)[:40]!r}")
    return RECIPES[recipe]
