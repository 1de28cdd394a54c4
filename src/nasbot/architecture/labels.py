"""What a layer can be: labels and vocabularies, as data.

A vocabulary says which labels exist, what each takes, how labels are grouped and what it costs to match them. The
paper's three (MLP for regression, MLP for classification, CNN) are built in; anyone can write another, a cell space
for instance, without touching this package: everything else reads these tables and never the text of a label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nasbot.architecture.attributes import Attributes
from nasbot.architecture.operations import OPERATIONS, implied_operation
from nasbot.architecture.penalties import LabelPenalties
from nasbot.errors import Violation, VocabularyError

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture
    from nasbot.architecture.layer import Layer

    Rule = Callable[[Architecture], Iterable[Violation]]
    Feature = Callable[[Architecture], float | Sequence[float]]

MAX_NAME_LENGTH = 40
POOLINGS = ("", "max", "average")


class Role(StrEnum):
    """The four kinds of layer of Section 2.2."""

    INPUT = "input"
    PROCESSING = "processing"
    DECISION = "decision"
    OUTPUT = "output"


class Signal(StrEnum):
    """What runs along an edge. A layer that takes ANY pools each incoming image to a vector of its channels first."""

    VECTOR = "vector"
    IMAGE = "image"
    ANY = "any"


@dataclass(frozen=True, kw_only=True, repr=False)
class Label:
    """One type of layer: what it takes and how it counts. Nothing in the package looks at the name for meaning."""

    name: str
    role: Role = Role.PROCESSING
    takes_units: bool = False
    strides: tuple[int, ...] = ()  # the strides to choose from, the default first; () where the label takes none
    shrinks: int = 1  # by how much the image shrinks where the label takes no stride (pools: 2)
    takes: Signal = Signal.VECTOR
    emits: Signal = Signal.VECTOR
    may_follow_input: bool = True
    family: str = ""  # labels of one family do the same kind of work; drawings and modifiers go by it
    group: str | None = None  # path lengths are also counted over the layers of each group alone (App. A.3)
    mass_factor: float = 1.0  # times units * incoming channels (App. A.3: res 2, fc of a CNN 0.1)
    fixed_mass: float | None = None  # instead of the product, for labels without units (cell spaces)
    kernel_size: int | None = None  # of each convolution; None: dense where the label takes units
    n_convolutions: int = 1
    width_factor: int = 1  # channels really leaving per unit (crelu 2); masses count units, as the paper does
    joins_skips: bool = False  # a skip to a smaller image goes through layers of this label (App. B.2: avg-pool)
    # What nasbot.training builds of it; docs/explanation/training.md says how these meet.
    activation: str = (
        ""  # applied to what the weights give, by its name in nasbot.architecture.activations; "": nothing
    )
    pooling: str = ""  # max or average, over windows as wide as the label shrinks
    batch_norm: bool | None = None  # between weights and activation; None: where there is a kernel_size
    dropout: float = 0.0  # the share of channels left out at each training step
    module: str = ""  # the import path of an nn.Module of one's own, "my_layers:Gated": imported where it is built
    operation: str = ""  # what a layer of it is, by its name in nasbot.architecture.operations; "": as the fields imply
    cuts: bool = False  # passes nothing on, as ``none`` of cell spaces: what it cuts off is not counted in features
    layer_norm: bool = False  # between weights and activation, instead of batch normalisation; of vectors

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > MAX_NAME_LENGTH or not self.name.isprintable():
            raise VocabularyError(
                f"label name must be 1 to {MAX_NAME_LENGTH} printable characters, got {self.name[:60]!r}"
            )
        if any(stride < 1 for stride in (*self.strides, self.shrinks)):
            raise VocabularyError(f"label {self.name}: strides must be >= 1, got {self.strides or self.shrinks}")
        for field in ("kernel_size", "n_convolutions", "width_factor"):
            value = getattr(self, field)
            if value is not None and (type(value) is not int or value < 1):
                raise VocabularyError(f"label {self.name}: {field} must be a whole number >= 1, got {value!r}")
        if self.pooling not in POOLINGS:
            raise VocabularyError(
                f"label {self.name}: pooling must be {' or '.join(POOLINGS[1:])}, got {self.pooling!r}"
            )
        if not 0 <= self.dropout < 1:
            raise VocabularyError(f"label {self.name}: dropout must be at least 0 and below 1, got {self.dropout}")
        for field in ("mass_factor", "fixed_mass"):
            value = getattr(self, field)
            if value is not None and not 0 <= value < float("inf"):
                raise VocabularyError(f"label {self.name}: {field} must be a finite number >= 0, got {value}")
        object.__setattr__(self, "operation", self.operation or implied_operation(self))
        if self.operation not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise VocabularyError(f"label {self.name}: unknown operation {self.operation!r}; known: {known}")
        OPERATIONS[self.operation].check(self)

    def __repr__(self) -> str:
        """The last four fields only where they say something: studies keep a digest of this from before they were."""
        shown = [f.name for f in fields(self)[:-4]]
        shown += ["module"] * bool(self.module) + ["operation"] * (self.operation != implied_operation(self))
        shown += ["cuts"] * self.cuts
        shown += ["layer_norm"] * self.layer_norm
        return f"Label({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def normalises(self) -> bool:
        """Whether a normalisation stands behind its weights."""
        return self.norm != "none"

    @property
    def norm(self) -> str:
        """The normalisation behind its weights: none, batch or layer."""
        if self.role is not Role.PROCESSING:
            return "none"
        if self.layer_norm:
            return "layer"
        by_default = self.kernel_size is not None
        return "batch" if (by_default if self.batch_norm is None else self.batch_norm) else "none"

    @cache  # noqa: B019  # labels are few and live as long as their vocabulary
    def with_attributes(self, attributes: Attributes) -> Label:
        """The label as a layer with these attributes has it; a factor of weight decay is not a label's."""
        dropout = self.dropout if attributes.dropout is None else attributes.dropout
        if attributes.norm is None:
            return replace(self, dropout=dropout)
        norm = attributes.norm
        return replace(self, dropout=dropout, batch_norm=norm == "batch", layer_norm=norm == "layer")

    @property
    def refuses_images(self) -> bool:
        """Whether a parent that emits an image is an error; the output only averages and takes whatever comes."""
        return self.takes is Signal.VECTOR and self.role in (Role.PROCESSING, Role.DECISION)


@dataclass(frozen=True)
class Vocabulary:
    """The labels of one kind of network, their penalties, and any rules beyond those the labels imply.

    ``rules`` are functions from a network to the violations it commits; a network that commits one cannot be built.
    ``features`` are functions from a network to a number, or to as many of them for each network: what you know to
    matter, for the belief to compare networks by, beside the features that all networks have (``features.py``).
    """

    name: str
    labels: tuple[Label, ...]
    penalties: LabelPenalties
    rules: tuple[Rule, ...] = ()
    features: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        names = [label.name for label in self.labels]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise VocabularyError(f"vocabulary {self.name}: label {twice!r} is defined twice")
        for role in (Role.INPUT, Role.OUTPUT):
            if (n := sum(label.role is role for label in self.labels)) != 1:
                raise VocabularyError(f"vocabulary {self.name}: needs exactly one {role} label, got {n}")
        if tuple(names) != self.penalties.labels:
            raise VocabularyError(
                f"vocabulary {self.name}: its penalties must list the same labels in the same order; "
                f"labels {', '.join(names)}; penalties {', '.join(self.penalties.labels)}"
            )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Vocabulary({self.name!r}, {len(self.labels)} labels)"

    def __getitem__(self, name: str) -> Label:
        try:
            return self.by_name[name]
        except KeyError:
            known = ", ".join(self.by_name)
            raise VocabularyError(f"unknown label {name!r} in vocabulary {self.name}; known: {known}") from None

    @cached_property
    def by_name(self) -> Mapping[str, Label]:
        """Labels by their names."""
        return {label.name: label for label in self.labels}

    def label_of(self, layer: Layer) -> Label:
        """The label of this layer, with the layer's own attributes in the place of the label's."""
        label = self.by_name[layer.label]
        return label if layer.attributes is None else label.with_attributes(layer.attributes)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The position of each label in ``labels`` and in the penalties."""
        return {label.name: i for i, label in enumerate(self.labels)}

    @cached_property
    def rows(self) -> Mapping[str, tuple[Role, bool, tuple[int, ...], int, bool, bool, bool]]:
        """The part of each label that the validity of a network depends on, as plain tuples: quick to look up.

        Role, takes units, strides, shrinks, takes images, refuses images, emits images.
        """
        has_images = any(x.emits is Signal.IMAGE for x in self.labels)
        return {
            x.name: (
                x.role,
                x.takes_units,
                x.strides,
                x.shrinks,
                x.takes is Signal.IMAGE,
                has_images and x.refuses_images,
                x.emits is Signal.IMAGE,
            )
            for x in self.labels
        }

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that path lengths are counted over, in order of first mention."""
        return tuple(dict.fromkeys(label.group for label in self.labels if label.group is not None))

    @cached_property
    def shrinks_images(self) -> bool:
        """Whether a layer can have a stride, as in CNNs."""
        return any(label.strides for label in self.labels)

    @cached_property
    def decision_labels(self) -> tuple[str, ...]:
        """Names of the decision labels; empty where any layer may feed the output (cell spaces)."""
        return tuple(label.name for label in self.labels if label.role is Role.DECISION)

    @cached_property
    def input_label(self) -> str:
        """Name of the label of the first layer."""
        return next(label.name for label in self.labels if label.role is Role.INPUT)

    @cached_property
    def output_label(self) -> str:
        """Name of the label of the last layer."""
        return next(label.name for label in self.labels if label.role is Role.OUTPUT)
