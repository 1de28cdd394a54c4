"""One network: layer graphs as frozen values, and everything that can be said about one of them alone."""

from nasbot.architecture.attributes import AttributePenalties, Attributes
from nasbot.architecture.blocks import blocked_cnn, blocked_mlp, chain, residual_cnn, vgg_like
from nasbot.architecture.graph import Architecture
from nasbot.architecture.labels import Label, Role, Signal, Vocabulary
from nasbot.architecture.layer import Edge, Layer
from nasbot.architecture.masses import MassRules, layer_masses
from nasbot.architecture.operations import LayerResources
from nasbot.architecture.paths import PathEnd, PathKind, PathLengths, path_lengths
from nasbot.architecture.penalties import LabelPenalties
from nasbot.architecture.pools import initial_pool
from nasbot.architecture.resources import Resources, resources
from nasbot.architecture.space import SearchSpace
from nasbot.architecture.vocabularies import (
    BUILT_IN,
    CNN,
    MLP_CLASS,
    MLP_CLASS_PLUS,
    MLP_REG,
    MLP_REG_PLUS,
    vocabulary_of,
)

__all__ = [
    "BUILT_IN",
    "CNN",
    "MLP_CLASS",
    "MLP_CLASS_PLUS",
    "MLP_REG",
    "MLP_REG_PLUS",
    "Architecture",
    "AttributePenalties",
    "Attributes",
    "Edge",
    "Label",
    "LabelPenalties",
    "Layer",
    "LayerResources",
    "MassRules",
    "PathEnd",
    "PathKind",
    "PathLengths",
    "Resources",
    "Role",
    "SearchSpace",
    "Signal",
    "Vocabulary",
    "blocked_cnn",
    "blocked_mlp",
    "chain",
    "initial_pool",
    "layer_masses",
    "path_lengths",
    "residual_cnn",
    "resources",
    "vgg_like",
    "vocabulary_of",
]
