"""nasbot: neural architecture search with Bayesian optimisation and optimal transport.

Every public name is listed here once. Importing this is quick: numba, torch and plotting load inside the functions that
need them, when they are first called.
"""

from nasbot.architecture import (
    Architecture,
    Label,
    LabelPenalties,
    Layer,
    MassRules,
    Role,
    SearchSpace,
    Signal,
    Vocabulary,
    initial_pool,
    layer_masses,
    path_lengths,
)
from nasbot.errors import (
    CodecError,
    FileError,
    InvalidArchitectureError,
    NasbotError,
    OptionError,
    OutsideSpaceError,
    PenaltyError,
    SolverError,
    Violation,
    VocabularyError,
)
from nasbot.otmann import (
    Distances,
    Matching,
    Otmann,
    PairwiseDistances,
    RuleSet,
    cross,
    distance,
    explain,
    pairwise,
)

__version__ = "0.1.0"

__all__ = [
    "Architecture",
    "CodecError",
    "Distances",
    "FileError",
    "InvalidArchitectureError",
    "Label",
    "LabelPenalties",
    "Layer",
    "MassRules",
    "Matching",
    "NasbotError",
    "OptionError",
    "Otmann",
    "OutsideSpaceError",
    "PairwiseDistances",
    "PenaltyError",
    "Role",
    "RuleSet",
    "SearchSpace",
    "Signal",
    "SolverError",
    "Violation",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "cross",
    "distance",
    "explain",
    "initial_pool",
    "layer_masses",
    "pairwise",
    "path_lengths",
]
