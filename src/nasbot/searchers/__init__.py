"""What to evaluate next: searchers, all stateless functions of a history."""

from nasbot.searchers.base import Explains, Proposal, Searcher
from nasbot.searchers.effect import Effect, Effects, Near
from nasbot.searchers.evolution_search import EvolutionSearch
from nasbot.searchers.nasbot import NASBOT, Acquisition, KernelTerms, Maximiser
from nasbot.searchers.random_search import RandomSearch
from nasbot.searchers.treebo import TreeBO

__all__ = [
    "NASBOT",
    "Acquisition",
    "Effect",
    "Effects",
    "EvolutionSearch",
    "Explains",
    "KernelTerms",
    "Maximiser",
    "Near",
    "Proposal",
    "RandomSearch",
    "Searcher",
    "TreeBO",
]
