"""One network: layer graphs as frozen values, and everything that can be said about one of them alone."""

from nasbot.architecture.graph import Architecture, Edge, Layer
from nasbot.architecture.labels import Label, Role, Signal, Vocabulary
from nasbot.architecture.masses import MassRules, layer_masses
from nasbot.architecture.paths import PathEnd, PathKind, PathLengths, path_lengths
from nasbot.architecture.penalties import LabelPenalties
from nasbot.architecture.vocabularies import BUILT_IN, CNN, MLP_CLASS, MLP_REG, vocabulary_of

__all__ = [
    "BUILT_IN",
    "CNN",
    "MLP_CLASS",
    "MLP_REG",
    "Architecture",
    "Edge",
    "Label",
    "LabelPenalties",
    "Layer",
    "MassRules",
    "PathEnd",
    "PathKind",
    "PathLengths",
    "Role",
    "Signal",
    "Vocabulary",
    "layer_masses",
    "path_lengths",
    "vocabulary_of",
]
