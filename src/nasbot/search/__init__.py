"""What to evaluate next: searchers, all stateless functions of a history."""

from nasbot.search.base import Explains, Proposal, Searcher
from nasbot.search.effect import Effect, Effects, Near
from nasbot.search.evolution_search import EvolutionSearch
from nasbot.search.nasbot import NASBOT, Acquisition, KernelTerms, Maximiser
from nasbot.search.random_search import RandomSearch
from nasbot.search.treebo import TreeBO

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
