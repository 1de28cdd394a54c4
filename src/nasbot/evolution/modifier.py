"""What a modifier is: one row of the appendix's table of changes to a network (Appendix B.2).

A modifier knows where in a network it can be applied (its sites), how to draw one of them, and what the network looks
like afterwards. So the same definition serves evolution, which draws, and hill climbing, which goes through all sites.
Called, it is the operation of the table: ``modifier(arch, rng=rng)`` gives another network, or says why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from nasbot.architecture import Architecture, Edge, Layer
from nasbot.errors import InvalidArchitectureError

Site = TypeVar("Site")
T = TypeVar("T")

NO_SITE = "nowhere to apply"


@dataclass(frozen=True)
class Rejected:
    """A modification that came to nothing: ``reason`` is short and worth counting, ``detail`` says where and what."""

    modifier: str
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.modifier}: {self.detail or self.reason}"


@dataclass(frozen=True)
class Edit:
    """One modification of a network: by which modifier, in words, and what came out."""

    modifier: str
    description: str
    arch: Architecture


class Draft(NamedTuple):
    """A modification in words, and the layers and edges it leads to, not yet checked."""

    description: str
    layers: Sequence[Layer]
    edges: Iterable[Edge]

    def built_from(self, arch: Architecture) -> Architecture:
        """The network; raises where it is not valid."""
        return Architecture(arch.vocabulary, self.layers, self.edges)


class UnitsDraft(NamedTuple):
    """A modification in words, and the units it gives to some layers."""

    description: str
    units: Mapping[int, int]

    def built_from(self, arch: Architecture) -> Architecture:
        """The network; raises where it is not valid."""
        return arch.with_units(self.units)


@dataclass(frozen=True, eq=False)
class Modifier(Generic[Site]):
    """``modifier(arch, rng=rng)`` applies the modifier at a site drawn at random.

    Equal generators and equally numbered networks give equal results, in any process. An ordinary failure is a
    ``Rejected``, never an exception. The network that comes out is valid; whether it is in a search space is for the
    caller to ask.
    """

    name: str
    sites: Callable[[Architecture], Iterator[Site]]  # in a fixed order
    draw: Callable[[Architecture, np.random.Generator], Site | Rejected]
    draft: Callable[[Architecture, Site], Draft | UnitsDraft | Rejected]

    def __call__(self, arch: Architecture, *, rng: np.random.Generator) -> Architecture | Rejected:
        edit = self.edit(arch, rng=rng)
        return edit if isinstance(edit, Rejected) else edit.arch

    def edit(self, arch: Architecture, *, rng: np.random.Generator) -> Edit | Rejected:
        """The same, with a description in words."""
        site = self.draw(arch, rng)
        return site if isinstance(site, Rejected) else self.edit_at(arch, site)

    def edit_at(self, arch: Architecture, site: Site) -> Edit | Rejected:
        """The modification at this site."""
        draft = self.draft(arch, site)
        if isinstance(draft, Rejected):
            return draft
        try:
            return Edit(self.name, draft.description, draft.built_from(arch))
        except InvalidArchitectureError as error:
            reason = error.violations[0].rule if error.violations else "invalid"
            return Rejected(self.name, reason, f"{draft.description}: {error}")

    def edits(self, arch: Architecture) -> Iterator[Edit | Rejected]:
        """The modification at each site, in a fixed order."""
        return (self.edit_at(arch, site) for site in self.sites(arch))


def below(n: int, rng: np.random.Generator) -> int:
    """Uniform over 0..n-1; ten times as quick as ``rng.integers`` and biased by less than n / 2^53."""
    return int(rng.random() * n)


def pick(options: Sequence[T], rng: np.random.Generator) -> T:
    """One of the options, each as likely as the others."""
    return options[int(rng.random() * len(options))]
