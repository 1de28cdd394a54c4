"""The paper's nine modifiers and ours, by name, and the one-step edits of a network: what could be next.

``one_step_edits`` goes through all of them in a fixed order (hill climbing, "what would happen if"); ``sample_edits``
draws some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeGuard

import numpy as np

from nasbot.architecture import Architecture
from nasbot.architecture.resources import check_whole
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.evolution.attributes import change_decay, change_dropout, change_norm
from nasbot.evolution.branching import release_dup_path, release_skip
from nasbot.evolution.modifier import Edit, Modifier, Rejected, pick
from nasbot.evolution.structure import dup_path, remove_layer, skip, swap_label, wedge_layer
from nasbot.evolution.units import dec_en_masse, dec_single, double_units, halve_units, inc_en_masse, inc_single

AnyModifier = Modifier[Any]

_UNITS = (dec_single, inc_single, dec_en_masse, inc_en_masse)
_STRUCTURE = (dup_path, remove_layer, skip, swap_label, wedge_layer)
_ALL: tuple[AnyModifier, ...] = (*_UNITS, *_STRUCTURE)
MODIFIERS: Mapping[str, AnyModifier] = {modifier.name: modifier for modifier in _ALL}
UNIT_MODIFIERS = tuple(modifier.name for modifier in _UNITS)
STRUCTURE_MODIFIERS = tuple(modifier.name for modifier in _STRUCTURE)

_DOUBLING = (halve_units, double_units)
DOUBLING_MODIFIERS = tuple(modifier.name for modifier in _DOUBLING)
_MLP: tuple[AnyModifier, ...] = (*_UNITS, *_DOUBLING, *_STRUCTURE)
_CNN: tuple[AnyModifier, ...] = (
    *(*_UNITS, *_DOUBLING),
    *(release_dup_path, remove_layer, release_skip, swap_label, wedge_layer),
)
# What the search changes networks by (docs/deviations.md): units also doubled and halved, and the branches of CNNs as
# the release draws them.
MLP_MODIFIERS = tuple(modifier.name for modifier in _MLP)
CNN_MODIFIERS = tuple(modifier.name for modifier in _CNN)
_ATTRIBUTES: tuple[AnyModifier, ...] = (change_dropout, change_norm, change_decay)
ATTRIBUTE_MODIFIERS = tuple(modifier.name for modifier in _ATTRIBUTES)  # of dropout, normalisation and weight decay
_KNOWN: Mapping[str, AnyModifier] = {modifier.name: modifier for modifier in (*_ALL, *_CNN, *_ATTRIBUTES)}
# Those of the release that only comparisons need: known by name once, and studies may still name them.
_MOVED = tuple(f"release_{name}" for name in ("dec_en_masse", "inc_en_masse", "swap_label", "wedge_layer"))

SAMPLE_TRIES = 10  # for each edit wanted, before there are taken to be no more


def modifiers_of(chosen: Iterable[str | AnyModifier]) -> tuple[AnyModifier, ...]:
    """The modifiers with these names; one of a user's own stands for itself. Twice the same: twice as likely."""
    if isinstance(chosen, str):
        raise OptionError(f"modifiers: expected a list of names, got the text {chosen!r}")
    found = []
    for entry in chosen:
        if entry in _MOVED:
            raise OptionError(
                f"modifiers: {entry} is no longer part of the package; take it from benchmarks/release_modifiers.py of "
                "the repository, and hand in the modifier itself"
            )
        if not isinstance(entry, Modifier) and entry not in _KNOWN:
            raise OptionError(f"modifiers: unknown modifier {entry!r}; known: {', '.join(_KNOWN)}")
        found.append(entry if isinstance(entry, Modifier) else _KNOWN[entry])
    if not found:
        raise OptionError("modifiers: expected at least one, got none")
    return tuple(found)


def one_step_edits(
    arch: Architecture,
    space: SearchSpace,
    *,
    limit: int | None = None,
    modifiers: Iterable[str | AnyModifier] = tuple(MODIFIERS),
) -> tuple[Edit, ...]:
    """The networks of the space that are one modification away, no two the same up to numbering, and never ``arch``.

    All of them but for two bounds: ``dup_path`` contributes the 200 shortest paths, and ``remove_layer`` 16 ways to
    reconnect for each layer. The modifiers take turns, so that the first ``limit`` edits are of every kind; where a
    limit is given, no more than those are made.
    """
    if limit is not None:
        check_whole("limit", limit, at_least=0)
    seen = {arch}
    turns = _in_turn([modifier.edits(arch) for modifier in dict.fromkeys(modifiers_of(modifiers))])
    return tuple(islice((edit for edit in turns if _is_new(edit, space, seen)), limit))


def sample_edits(
    arch: Architecture,
    space: SearchSpace,
    n: int,
    *,
    rng: np.random.Generator,
    modifiers: Iterable[str | AnyModifier] = tuple(MODIFIERS),
) -> tuple[Edit, ...]:
    """Up to ``n`` one-step edits, drawn as ``mutate_once`` draws them; different ones, inside the space, not ``arch``.

    Fewer than ``n`` where the network has fewer, or ten draws for each were not enough to find them.
    """
    check_whole("n", n, at_least=0)
    seen, drawn = {arch}, modifiers_of(modifiers)
    edits = (pick(drawn, rng).edit(arch, rng=rng) for _ in range(SAMPLE_TRIES * n))
    return tuple(islice((edit for edit in edits if _is_new(edit, space, seen)), n))


def _is_new(edit: Edit | Rejected, space: SearchSpace, seen: set[Architecture]) -> TypeGuard[Edit]:
    """Whether the edit is one, leads into the space and to a network not seen; which it is from now on."""
    if isinstance(edit, Rejected) or edit.arch not in space or edit.arch in seen:
        return False
    seen.add(edit.arch)
    return True


def _in_turn(iterators: Sequence[Iterator[Edit | Rejected]]) -> Iterator[Edit]:
    """One edit from each, again and again, until all are used up; rejections take no turn."""
    waiting = [(edit for edit in iterator if isinstance(edit, Edit)) for iterator in iterators]
    while waiting:
        still = []
        for iterator in waiting:
            if (edit := next(iterator, None)) is not None:
                yield edit
                still.append(iterator)
        waiting = still
