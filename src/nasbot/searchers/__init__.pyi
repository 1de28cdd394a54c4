"""Every public name of this room, once; each loads when it is first asked for."""

from nasbot.searchers.base import (
    Explains as Explains,
    ExplainsParams as ExplainsParams,
    Proposal as Proposal,
    Recommends as Recommends,
    Searcher as Searcher,
)
from nasbot.searchers.effect import (
    Effect as Effect,
    Effects as Effects,
    Near as Near,
    ParamEffect as ParamEffect,
    SlicePoint as SlicePoint,
    Start as Start,
)
from nasbot.searchers.evolution_search import EvolutionSearch as EvolutionSearch
from nasbot.searchers.knowledge import KernelTerms as KernelTerms
from nasbot.searchers.nasbot import (
    NASBOT as NASBOT,
    Maximiser as Maximiser,
)
from nasbot.searchers.random_search import RandomSearch as RandomSearch
from nasbot.searchers.treebo import TreeBO as TreeBO
