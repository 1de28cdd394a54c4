"""What to evaluate next: searchers, all stateless functions of a history.

Searchers load when they are first asked for: a study with a searcher of one's own begins without the scipy of the
others.
"""

from typing import TYPE_CHECKING

from nasbot._lazy import lazy_names
from nasbot.searchers.base import Explains, ExplainsParams, Proposal, Recommends, Searcher
from nasbot.searchers.effect import Effect, Effects, Near, ParamEffect, SlicePoint, Start

if TYPE_CHECKING:
    from nasbot.searchers.evolution_search import EvolutionSearch
    from nasbot.searchers.knowledge import KernelTerms
    from nasbot.searchers.nasbot import NASBOT, Maximiser
    from nasbot.searchers.random_search import RandomSearch
    from nasbot.searchers.treebo import TreeBO

_LATER = {
    **dict.fromkeys(("NASBOT", "Maximiser"), "nasbot.searchers.nasbot"),
    "KernelTerms": "nasbot.searchers.knowledge",
    "EvolutionSearch": "nasbot.searchers.evolution_search",
    "RandomSearch": "nasbot.searchers.random_search",
    "TreeBO": "nasbot.searchers.treebo",
}

__getattr__, __dir__ = lazy_names(__name__, _LATER)

__all__ = [
    "NASBOT",
    "Effect",
    "Effects",
    "EvolutionSearch",
    "Explains",
    "ExplainsParams",
    "KernelTerms",
    "Maximiser",
    "Near",
    "ParamEffect",
    "Proposal",
    "RandomSearch",
    "Recommends",
    "Searcher",
    "SlicePoint",
    "Start",
    "TreeBO",
]
