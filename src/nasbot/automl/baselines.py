"""What a good practitioner would train first: strong plain networks, sized to the data. A search begins with these.

The first one is the baseline that every result is shown against. They differ in shape and in how their inputs are
prepared, because an ensemble lives on differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nasbot._own_code import own_object
from nasbot.architecture import Architecture, Layer, Signal, Vocabulary, chain, initial_pool
from nasbot.architecture.pools import narrower
from nasbot.candidate import Candidate, Params
from nasbot.domain import Domain
from nasbot.errors import OptionError
from nasbot.training.objective import FROM_TREES

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

OWN_POOL = "expected MODULE:NAME, where NAME is a list of networks or a function that returns one"
# Widths are for this many rows or more; fewer rows want narrower networks, in proportion to the square root.
ROWS_FOR_FULL_WIDTH = 8000
LEAST_WIDTH = 32

# Label, widths, preparation of the inputs.
PLAIN_MLPS: Sequence[tuple[str, tuple[int, ...], str]] = (
    ("relu", (256, 256, 256), "standard"),
    ("relu", (192, 192, 192, 192), "quantile"),
    ("elu", (128, 128, 128, 128, 128), "standard"),
    ("leaky-relu", (256, 256, 256), "robust"),
    ("elu", (128, 128, 128, 128, 128), "quantile"),
    ("relu", (192, 192, 192, 192), "robust"),
    ("relu", (192, 192, 192), "ple"),
)
# Of few rows little can be learned: after the first of the above, one layer of few units, and none at all.
FEW_ROWS = 1200  # for training
PLAIN_FOR_FEW: Sequence[tuple[str, tuple[int, ...], str]] = (("relu", (16,), "standard"), ("", (), "standard"))
# Units of the convolutions before each of two pools and after the last, what is done to images.
SHIFTED = "crops"
PLAIN_CNNS: Sequence[tuple[str, tuple[int, ...], str]] = (
    ("conv3", (32, 32, 0, 64, 64, 0, 128), "standard"),
    ("conv3", (32, 32, 0, 64, 64, 0, 128), SHIFTED),
    ("res3", (32, 32, 0, 64, 0, 128), "standard"),
    ("conv3", (48, 48, 0, 96, 96, 0, 192), SHIFTED),
)


def plain_pool(domain: Domain, *, n_rows: int, first: Sequence[Architecture] = ()) -> tuple[Candidate, ...]:
    """The given networks, then the plain ones, each made narrower until it lies in the space; no two alike."""
    params = domain.default()
    plain = plain_networks(domain.networks.vocabulary.name, n_rows)
    return _narrowed(domain, first, [Candidate(arch, _prepared(params, how)) for arch, how in plain])


def paper_pool(domain: Domain, *, first: Sequence[Architecture] = ()) -> tuple[Candidate, ...]:
    """The given networks, then the paper's ten, each made narrower until it lies in the space."""
    return _narrowed(domain, first, map(domain.candidate, initial_pool(domain.networks.kind)))


def own_pool(where: str, domain: Domain, *, first: Sequence[Architecture] = ()) -> tuple[Candidate, ...]:
    """The given networks, then those of somebody's own list, or of a function that returns one; no two alike."""
    found = own_object(where, what="pool", expected=OWN_POOL)
    networks = found() if callable(found) else found
    if not isinstance(networks, list | tuple) or not all(isinstance(x, Architecture) for x in networks):
        raise OptionError(f"pool: {OWN_POOL}, got {type(networks).__name__}")
    return tuple((_fitting(domain, first) | _fitting(domain, networks, "pool")).values())


def with_plain_first(pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The same, but the first learns from nobody: it is what one would train without a search."""
    first, *others = pool
    if FROM_TREES not in first.params:
        return tuple(pool)
    return Candidate(first.arch, {**first.params, FROM_TREES: 0.0}), *others


def check_fits(vocabulary: Vocabulary, data: Dataset) -> None:
    """OptionError or VocabularyError where these networks cannot learn the data: before a trial is spent on it."""
    takes = "images" if vocabulary[vocabulary.input_label].emits is Signal.IMAGE else "vectors"
    have = "images" if data.has_images else "vectors"
    if takes != have:
        raise OptionError(f"space: networks of {vocabulary.name} take {takes}, the data are {have}")
    ends = {vocabulary[name].activation for name in vocabulary.decision_labels}
    task, wanted = ("classification", "softmax") if data.is_classification else ("regression", "")
    if ends != {wanted}:
        got = ", ".join(map(repr, sorted(ends))) or "no decision labels"
        raise OptionError(
            f"space: the data ask for {task}, so the decision labels of {vocabulary.name} must have activation "
            f"{wanted!r}, got {got}"
        )
    for label in vocabulary.labels:
        if label.module:
            from nasbot.training.operations import own_module

            own_module(label)


def baseline_of(kind: str, n_rows: int) -> Architecture:
    """The network that results are shown against, before it is made to fit a space."""
    return plain_networks(kind, n_rows)[0][0]


def _fitting(domain: Domain, first: Sequence[Architecture], option: str = "start_from") -> dict[str, Candidate]:
    found: dict[str, Candidate] = {}
    for i, arch in enumerate(first):
        if broken := domain.networks.violations(arch):
            raise OptionError(f"{option}: network {i} does not fit the search: {broken[0]}")
        candidate = domain.candidate(arch)
        found.setdefault(candidate.fingerprint, candidate)
    return found


def _prepared(params: Params, preparation: str) -> Params:
    """The params with this preparation of numbers, or of images: beside what is done to them by default."""
    if "preparation" in params:
        return {**params, "preparation": preparation}
    if preparation == SHIFTED and (default := params.get("augmentation")) in ("none", "flips"):
        return {**params, "augmentation": SHIFTED if default == "none" else f"{default}+{SHIFTED}"}
    return params


def plain_networks(kind: str, n_rows: int) -> list[tuple[Architecture, str]]:
    """The plain networks for so many rows, and how their inputs are prepared."""
    share = min(1.0, (n_rows / ROWS_FOR_FULL_WIDTH) ** 0.5)
    if kind == "cnn":
        return [(_cnn(label, units), preparation) for label, units, preparation in PLAIN_CNNS]
    first, *others = PLAIN_MLPS
    plain = [first, *(PLAIN_FOR_FEW if n_rows < FEW_ROWS else ()), *others]
    return [(_mlp(kind, label, units, share), preparation) for label, units, preparation in plain]


def _mlp(kind: str, label: str, widths: Sequence[int], share: float) -> Architecture:
    units = [min(width, max(LEAST_WIDTH, 8 * round(share * width / 8))) for width in widths]
    return chain(kind, [Layer(label, n) for n in units])


def _cnn(label: str, units: Sequence[int]) -> Architecture:
    layers = [Layer("max-pool") if n == 0 else Layer("conv3" if i == 0 else label, n, 1) for i, n in enumerate(units)]
    return chain("cnn", layers)


def _narrowed(domain: Domain, first: Sequence[Architecture], candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The given networks, then the others, each as narrow as it has to be."""
    space, found = domain.networks, _fitting(domain, first)
    for wide in candidates:
        arch = next((arch for arch in narrower(wide.arch, space.min_units) if arch in space), None)
        if arch is not None:
            candidate = replace(wide, arch=arch)
            found.setdefault(candidate.fingerprint, candidate)
    if not found:
        raise OptionError(
            "budget: too short for these data: not even the narrowest network of the pool could be trained in a trial; "
            "give a longer budget, or smaller images"
        )
    return tuple(found.values())
