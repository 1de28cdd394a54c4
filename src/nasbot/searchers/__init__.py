"""What to evaluate next: searchers, all stateless functions of a history.

Searchers load when they are first asked for: a study with a searcher of one's own begins without the scipy of the
others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nasbot.searchers.base import Explains, Proposal, Recommends, Searcher
from nasbot.searchers.effect import Effect, Effects, Near

if TYPE_CHECKING:
    from nasbot.searchers.evolution_search import EvolutionSearch
    from nasbot.searchers.nasbot import NASBOT, Acquisition, KernelTerms, Maximiser
    from nasbot.searchers.random_search import RandomSearch
    from nasbot.searchers.treebo import TreeBO

_LATER = {
    **dict.fromkeys(("NASBOT", "Acquisition", "KernelTerms", "Maximiser"), "nasbot"),
    "EvolutionSearch": "evolution_search",
    "RandomSearch": "random_search",
    "TreeBO": "treebo",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'nasbot.searchers' has no attribute {name!r}")
    value = getattr(import_module(f"nasbot.searchers.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


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
    "Recommends",
    "Searcher",
    "TreeBO",
]
