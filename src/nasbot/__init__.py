"""nasbot: neural architecture search with Bayesian optimisation and optimal transport.

Every public name is listed here once and imported when it is first used, so that ``import nasbot`` stays quick: numba,
torch and plotting load only with the parts that need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "nasbot.architecture": (
        "Architecture",
        "Label",
        "LabelPenalties",
        "Layer",
        "MassRules",
        "Role",
        "Signal",
        "Vocabulary",
        "layer_masses",
        "path_lengths",
    ),
    "nasbot.errors": (
        "CodecError",
        "FileError",
        "InvalidArchitectureError",
        "NasbotError",
        "OptionError",
        "OutsideSpaceError",
        "PenaltyError",
        "SolverError",
        "Violation",
        "VocabularyError",
    ),
    "nasbot.otmann": (
        "Distances",
        "Matching",
        "Otmann",
        "PairwiseDistances",
        "RuleSet",
        "cross",
        "distance",
        "explain",
        "pairwise",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: PLE0604
    "__version__",
    *_HOME_OF,
]

if TYPE_CHECKING:
    from nasbot.architecture import (
        Architecture as Architecture,
        Label as Label,
        LabelPenalties as LabelPenalties,
        Layer as Layer,
        MassRules as MassRules,
        Role as Role,
        Signal as Signal,
        Vocabulary as Vocabulary,
        layer_masses as layer_masses,
        path_lengths as path_lengths,
    )
    from nasbot.errors import (
        CodecError as CodecError,
        FileError as FileError,
        InvalidArchitectureError as InvalidArchitectureError,
        NasbotError as NasbotError,
        OptionError as OptionError,
        OutsideSpaceError as OutsideSpaceError,
        PenaltyError as PenaltyError,
        SolverError as SolverError,
        Violation as Violation,
        VocabularyError as VocabularyError,
    )
    from nasbot.otmann import (
        Distances as Distances,
        Matching as Matching,
        Otmann as Otmann,
        PairwiseDistances as PairwiseDistances,
        RuleSet as RuleSet,
        cross as cross,
        distance as distance,
        explain as explain,
        pairwise as pairwise,
    )


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'nasbot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
