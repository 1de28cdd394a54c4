"""The search space 𝒳 of Appendix B.3 ("Domain"): limits as data, and what a network breaks of them.

The paper's limits are the defaults. Limits on what a network costs on given data (parameters, flops, memory) are ours
and need the shape of the data. Every limit is a field, and ``Violation.rule`` is the name of the field to change; the
one exception is ``linear_model``: networks without hidden layers that differ in copies of their decision layer are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from nasbot.architecture.graph import Architecture
from nasbot.architecture.labels import Role, Vocabulary
from nasbot.architecture.masses import PAPER_MASS_RULES
from nasbot.architecture.resources import check_whole, checked_input_shape, resources
from nasbot.architecture.vocabularies import BUILT_IN, vocabulary_of
from nasbot.errors import OptionError, OutsideSpaceError, Violation, VocabularyError

# How near to max_mass the quick sum is no longer trusted: it adds in another order than ``Architecture.total_mass``.
# 1000 additions of doubles are wrong by at most 1000 * 2^-53 = 1.1e-13 of the sum.
MASS_ROUNDING = 1e-9


@dataclass(frozen=True)
class SearchSpace:
    """Which networks a search may propose: ``arch in space`` asks, ``violations`` explains, ``check`` insists.

    ``kind`` is a built-in name or a Vocabulary of one's own. ``max_parameters``, ``max_flops`` (of one sample) and
    ``max_memory`` (bytes, training with ``batch_size``) are counted as in ``resources`` and need ``input_shape``, and
    so does ``may_shrink_pixels=False``, which keeps networks outside that have a stride or a pool on images of one
    pixel. Every limit includes its bound.
    """

    kind: str | Vocabulary  # the name where it is built in, so that equal spaces compare equal
    _: KW_ONLY
    min_layers: int = 3
    max_layers: int = 60
    max_mass: float = 1e8
    max_in_degree: int = 5
    max_out_degree: int = 5
    max_edges: int = 200
    min_units: int = 8
    max_units: int = 1024
    max_parameters: float | None = None
    max_flops: float | None = None
    max_memory: float | None = None
    input_shape: tuple[int, ...] | None = None
    n_outputs: int = 1
    batch_size: int = 256  # the larger of the paper's two (MLPs 256, CNNs 32)
    # True because the paper's own pool does: its tenth CNN pools single pixels on CIFAR-10, all ten on images of 8x8.
    may_shrink_pixels: bool = True

    def __post_init__(self) -> None:
        vocabulary = vocabulary_of(self.kind)
        is_built_in = vocabulary == BUILT_IN.get(vocabulary.name)
        object.__setattr__(self, "kind", vocabulary.name if is_built_in else vocabulary)
        _check_limits(self)
        _check_resource_limits(self)
        if self.input_shape is not None:
            object.__setattr__(self, "input_shape", checked_input_shape(vocabulary, self.input_shape))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that all networks of the space share."""
        return vocabulary_of(self.kind)

    def __contains__(self, arch: object) -> bool:
        """Whether ``arch`` breaks no limit; raises VocabularyError for a network of another vocabulary."""
        if not isinstance(arch, Architecture):
            return False
        self._check_vocabulary(arch)
        return (
            self.min_layers <= len(arch.layers) <= self.max_layers
            and len(arch.edges) <= self.max_edges
            and max(map(len, arch.parents)) <= self.max_in_degree
            and max(map(len, arch.children)) <= self.max_out_degree
            and self._units_fit(arch)
            and self._mass_fits(arch)
            and not _repeats_a_linear_model(arch)
            and (self.input_shape is None or not any(self._data_violations(arch)))
        )

    def violations(self, arch: Architecture) -> list[Violation]:
        """Every limit that ``arch`` breaks, by how much and at which layer; empty exactly where ``arch in self``."""
        self._check_vocabulary(arch)
        return [*self._structure_violations(arch), *self._data_violations(arch)]

    def check(self, arch: Architecture) -> None:
        """Raise OutsideSpaceError with the violations of ``arch``, if there are any."""
        if found := self.violations(arch):
            raise OutsideSpaceError.of(found)

    # -- the quick answer ------------------------------------------------------------------------------------------

    def _check_vocabulary(self, arch: Architecture) -> None:
        given: object = arch
        if not isinstance(given, Architecture):
            raise OptionError(f"expected a network as an Architecture, got {type(given).__name__}")
        vocabulary = self.vocabulary
        if arch.vocabulary is not vocabulary and arch.vocabulary != vocabulary:
            also = ", another one of the same name" if arch.kind == vocabulary.name else ""
            raise VocabularyError(f"the space is of kind {vocabulary.name!r}, the network of kind {arch.kind!r}{also}")

    def _units_fit(self, arch: Architecture) -> bool:
        units = [layer.units for layer in arch.layers if layer.units is not None]
        return not units or (min(units) >= self.min_units and max(units) <= self.max_units)

    def _mass_fits(self, arch: Architecture) -> bool:
        """``arch.total_mass <= max_mass``, from a plain sum where that is clear: no array is built for it."""
        mass = _mass_by_plain_sum(arch, self._mass_rules) * self._mass_with_ends
        if mass <= self.max_mass * (1 - MASS_ROUNDING):
            return True
        return mass <= self.max_mass * (1 + MASS_ROUNDING) and arch.total_mass <= self.max_mass

    @cached_property
    def _mass_rules(self) -> Mapping[str, tuple[float, float]]:
        """For each label what units * incoming channels is multiplied by, and what is added to that."""
        rules = dict.fromkeys(self.vocabulary.by_name, (0.0, 0.0))
        for label in self.vocabulary.labels:
            if label.role is Role.PROCESSING:
                rules[label.name] = (label.mass_factor, 0.0) if label.fixed_mass is None else (0.0, label.fixed_mass)
        return rules

    @cached_property
    def _mass_with_ends(self) -> float:
        """Total mass for each unit of mass of the processing layers: input, output and decision layers add ζ each."""
        n_shares = 3 if self.vocabulary.decision_labels else 2
        return 1 + n_shares * PAPER_MASS_RULES.nonprocessing_mass

    # -- the long answer -------------------------------------------------------------------------------------------

    def _structure_violations(self, arch: Architecture) -> Iterator[Violation]:
        n_layers, n_edges = len(arch.layers), len(arch.edges)
        if n_layers < self.min_layers:
            yield _too_few("min_layers", "the network", n_layers, self.min_layers, "layers", None)
        if n_layers > self.max_layers:
            yield _too_many("max_layers", "the network", n_layers, self.max_layers, "layers", None)
        if n_edges > self.max_edges:
            yield _too_many("max_edges", "the network", n_edges, self.max_edges, "edges", None)
        if arch.total_mass > self.max_mass:
            heaviest = int(arch.masses.argmax())
            part = f"{_name(arch, heaviest)} has {arch.masses[heaviest]:.6g} of it"
            message = f"the network has mass {arch.total_mass:.6g}, expected at most {self.max_mass:.6g}"
            excess = f"{arch.total_mass - self.max_mass:.3g} too much"
            yield Violation("max_mass", f"{message} ({excess}; {part})", heaviest)
        if _repeats_a_linear_model(arch):
            n = len(arch.decision_layers)
            yield Violation("linear_model", f"a linear model has one decision layer, got {n} copies of it", None)
        for u in range(n_layers):
            yield from self._layer_violations(arch, u)

    def _layer_violations(self, arch: Architecture, u: int) -> Iterator[Violation]:
        name, units = _name(arch, u), arch.layers[u].units
        if len(arch.parents[u]) > self.max_in_degree:
            yield _too_many("max_in_degree", name, len(arch.parents[u]), self.max_in_degree, "parents", u)
        if len(arch.children[u]) > self.max_out_degree:
            yield _too_many("max_out_degree", name, len(arch.children[u]), self.max_out_degree, "children", u)
        if units is not None and units < self.min_units:
            yield _too_few("min_units", name, units, self.min_units, "units", u)
        if units is not None and units > self.max_units:
            yield _too_many("max_units", name, units, self.max_units, "units", u)

    def _data_violations(self, arch: Architecture) -> Iterator[Violation]:
        """Limits that depend on the data: resources, and images that have nothing left to shrink."""
        if self.input_shape is None:
            return
        if not self.may_shrink_pixels:
            yield from _shrunk_pixels(arch, max(self.input_shape[1:], default=1))
        if self.max_parameters is None and self.max_flops is None and self.max_memory is None:
            return
        layers = resources(arch, self.input_shape, self.n_outputs).layers
        for field, limit, noun, parts in (
            ("max_parameters", self.max_parameters, "parameters", [part.parameters for part in layers]),
            ("max_flops", self.max_flops, "flops", [part.flops for part in layers]),
            ("max_memory", self.max_memory, "bytes", [part.memory_bytes(self.batch_size) for part in layers]),
        ):
            if limit is not None and sum(parts) > limit:
                yield _too_costly(field, arch, parts, limit, noun)


def _repeats_a_linear_model(arch: Architecture) -> bool:
    """Without hidden layers every further decision layer is a copy, at distance 0: trained once is enough."""
    return len(arch.decision_layers) > 1 and not arch.processing_layers


def _mass_by_plain_sum(arch: Architecture, rules: Mapping[str, tuple[float, float]]) -> float:
    """The mass of the processing layers but for rounding, in one pass; ``layer_masses`` must say the same.

    Written out flat because it is most of the time of ``arch in space``: 5 us for 20 layers, against 16 us over the
    functions of ``masses.py`` and 60 us with arrays.
    """
    out_channels: list[int] = []
    mass = 0.0
    for layer, parents in zip(arch.layers, arch.parents, strict=True):
        incoming = 0
        for p in parents:
            incoming += out_channels[p]
        factor, fixed = rules[layer.label]
        if layer.units is None:
            mass += factor * incoming + fixed
            out_channels.append(incoming or 1)  # 0 only at the input, which emits one channel
        else:
            mass += factor * incoming * layer.units + fixed
            out_channels.append(layer.units)
    return mass


def _shrunk_pixels(arch: Architecture, side: int) -> Iterator[Violation]:
    """A stride on an image of one pixel changes nothing but the distance to other networks."""
    factors = arch.downsampling
    for u, factor in enumerate(factors):
        if factor is not None and arch.parents[u]:
            entering = factors[arch.parents[u][0]] or 1
            if factor > entering >= side:
                message = f"{_name(arch, u)} shrinks an image that is one pixel already, of an input of side {side}"
                yield Violation("may_shrink_pixels", f"{message}; expected stride 1 or no layer there", u)


def _name(arch: Architecture, u: int) -> str:
    return f"layer {u} ({arch.layers[u].label})"


def _too_many(field: str, name: str, got: int, limit: int, noun: str, u: int | None) -> Violation:
    return Violation(field, f"{name} has {got:,} {noun}, expected at most {limit:,} ({got - limit:,} too many)", u)


def _too_few(field: str, name: str, got: int, limit: int, noun: str, u: int | None) -> Violation:
    return Violation(field, f"{name} has {got:,} {noun}, expected at least {limit:,} ({limit - got:,} too few)", u)


def _too_costly(field: str, arch: Architecture, parts: list[int], limit: float, noun: str) -> Violation:
    """The layer at fault is the one with the largest part."""
    total, u = sum(parts), max(range(len(parts)), key=parts.__getitem__)
    message = f"the network needs {total:,} {noun}, expected at most {limit:,.0f}"
    part = f"{_name(arch, u)} needs {parts[u]:,} of them"
    return Violation(field, f"{message} ({total - limit:,.0f} too many; {part})", u)


# -- the limits themselves ---------------------------------------------------------------------------------------------


def _check_limits(space: SearchSpace) -> None:
    check_whole("min_layers", space.min_layers, at_least=3)
    for field in ("max_layers", "max_in_degree", "max_out_degree", "max_edges", "min_units", "max_units"):
        check_whole(field, getattr(space, field))
    check_whole("n_outputs", space.n_outputs)
    check_whole("batch_size", space.batch_size)
    for low, high in (("min_layers", "max_layers"), ("min_units", "max_units")):
        if getattr(space, low) > getattr(space, high):
            got = f"{getattr(space, low)} > {getattr(space, high)}"
            raise OptionError(f"{low}, {high}: expected {low} <= {high}, got {got}")
    _check_positive("max_mass", space.max_mass)
    if type(space.may_shrink_pixels) is not bool:
        raise OptionError(f"may_shrink_pixels: expected True or False, got {space.may_shrink_pixels!r}")


def _check_resource_limits(space: SearchSpace) -> None:
    for field in ("max_parameters", "max_flops", "max_memory"):
        if (limit := getattr(space, field)) is not None:
            _check_positive(field, limit)
            _check_shape_given(space, field)
    if not space.may_shrink_pixels:
        _check_shape_given(space, "may_shrink_pixels=False")


def _check_shape_given(space: SearchSpace, needed_by: str) -> None:
    if space.input_shape is None:
        raise OptionError(f"{needed_by}: expected input_shape with it, the shape of one sample, got input_shape=None")


def _check_positive(name: str, value: object) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value > 0:  # type: ignore[operator]  # "not >" also refuses NaN
        raise OptionError(f"{name}: expected a number > 0 (infinity: no limit), got {value!r}")
