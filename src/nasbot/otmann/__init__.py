"""OTMANN, the distance between two networks by optimal transport (Section 3, Appendix A)."""

from nasbot.otmann.distances import Distances, Otmann, cross, distance, pairwise
from nasbot.otmann.matching import MatchedPair, Matching, explain
from nasbot.otmann.neighbours import NeighbourIndex, Neighbours
from nasbot.otmann.packing import PackedNetworks
from nasbot.otmann.pairwise_distances import NetworkDistance, PairwiseDistances
from nasbot.otmann.presets import PRESETS, RuleSet
from nasbot.otmann.transport import Transport, solve_transport

__all__ = [
    "PRESETS",
    "Distances",
    "MatchedPair",
    "Matching",
    "NeighbourIndex",
    "Neighbours",
    "NetworkDistance",
    "Otmann",
    "PackedNetworks",
    "PairwiseDistances",
    "RuleSet",
    "Transport",
    "cross",
    "distance",
    "explain",
    "pairwise",
    "solve_transport",
]
