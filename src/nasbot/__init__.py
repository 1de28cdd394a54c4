"""nasbot: neural architecture search with Bayesian optimisation and optimal transport.

Every public name is listed here once. Importing this is quick: numba, torch and plotting load inside the functions that
need them, when they are first called.
"""

from typing import TYPE_CHECKING

from nasbot._display import register
from nasbot._lazy import lazy_names
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
from nasbot.architecture.own_vocabulary import use_vocabulary
from nasbot.candidate import Candidate
from nasbot.domain import Choice, Domain, Fidelity, Float, Integer
from nasbot.errors import (
    CodecError,
    DataError,
    DivergedError,
    ExhaustedError,
    ExportError,
    FailingError,
    FileError,
    InvalidArchitectureError,
    NasbotError,
    OptionError,
    OutsideSpaceError,
    PenaltyError,
    RefusedError,
    SolverError,
    StorageError,
    StudyError,
    TraceError,
    Violation,
    VocabularyError,
)
from nasbot.otmann import (
    Distances,
    Matching,
    NeighbourIndex,
    Otmann,
    PairwiseDistances,
    RuleSet,
    cross,
    distance,
    explain,
    pairwise,
)
from nasbot.trial import History, Scored, Trial

if TYPE_CHECKING:
    from nasbot.automl import FoundStudy, FoundTrial, search
    from nasbot.callbacks.follower import Callbacks, Follower, OnBest
    from nasbot.callbacks.mlflow_log import MLflowLog
    from nasbot.callbacks.tensorboard_log import TensorBoardLog
    from nasbot.estimators import NASBOTClassifier, NASBOTRegressor
    from nasbot.execution import Interrupted, Limits, LocalExecutor, RayExecutor, SpawnExecutor
    from nasbot.exporting.export import export
    from nasbot.exporting.model_file import load_model
    from nasbot.gp import BeliefOptions, GraphGP
    from nasbot.pacing import MedianPacer, NoPacer
    from nasbot.plots.plot import plot
    from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
    from nasbot.study import Budget, Study, StudyView, maximise, minimise
    from nasbot.tracing.trace import trace
    from nasbot.training.loop import Trained, train
    from nasbot.training.module import build
    from nasbot.training.objective import TrainingObjective
    from nasbot.training.recipes import Recipe

__version__ = "0.1.0"

register(
    {
        "network.draw": "nasbot.drawing.draw:draw",
        "network.svg": "nasbot.drawing.draw:to_svg",
        "matching.draw": "nasbot.drawing.matching:draw_plan",
        "matching.svg": "nasbot.drawing.matching:matching_svg",
        "distances.html": "nasbot.plots.notebook:distances_html",
        "trial.html": "nasbot.plots.notebook:trial_html",
        "study.html": "nasbot.plots.notebook:study_html",
        "model.architecture": "nasbot.tracing.trace:trace",
    }
)

# The names just above, by the module that is imported when one of them is first asked for: all of scipy comes with it.
_LATER = {
    **dict.fromkeys(("Interrupted", "Limits", "LocalExecutor", "RayExecutor", "SpawnExecutor"), "nasbot.execution"),
    **dict.fromkeys(("BeliefOptions", "GraphGP"), "nasbot.gp"),
    **dict.fromkeys(("Callbacks", "Follower", "OnBest"), "nasbot.callbacks.follower"),
    "MLflowLog": "nasbot.callbacks.mlflow_log",
    **dict.fromkeys(("MedianPacer", "NoPacer"), "nasbot.pacing"),
    "plot": "nasbot.plots.plot",
    "TensorBoardLog": "nasbot.callbacks.tensorboard_log",
    **dict.fromkeys(("NASBOT", "EvolutionSearch", "RandomSearch", "TreeBO"), "nasbot.searchers"),
    **dict.fromkeys(("FoundStudy", "FoundTrial", "search"), "nasbot.automl"),
    **dict.fromkeys(("Budget", "Study", "StudyView", "maximise", "minimise"), "nasbot.study"),
    **dict.fromkeys(("NASBOTClassifier", "NASBOTRegressor"), "nasbot.estimators"),
    "export": "nasbot.exporting.export",
    "load_model": "nasbot.exporting.model_file",
    **dict.fromkeys(("Trained", "train"), "nasbot.training.loop"),
    "TrainingObjective": "nasbot.training.objective",
    "Recipe": "nasbot.training.recipes",
    "build": "nasbot.training.module",
    "trace": "nasbot.tracing.trace",
}


__getattr__, __dir__ = lazy_names(__name__, _LATER)

__all__ = [
    "NASBOT",
    "Architecture",
    "BeliefOptions",
    "Budget",
    "Callbacks",
    "Candidate",
    "Choice",
    "CodecError",
    "DataError",
    "Distances",
    "DivergedError",
    "Domain",
    "EvolutionSearch",
    "ExhaustedError",
    "ExportError",
    "FailingError",
    "Fidelity",
    "FileError",
    "Float",
    "Follower",
    "FoundStudy",
    "FoundTrial",
    "GraphGP",
    "History",
    "Integer",
    "Interrupted",
    "InvalidArchitectureError",
    "Label",
    "LabelPenalties",
    "Layer",
    "Limits",
    "LocalExecutor",
    "MLflowLog",
    "MassRules",
    "Matching",
    "MedianPacer",
    "NASBOTClassifier",
    "NASBOTRegressor",
    "NasbotError",
    "NeighbourIndex",
    "NoPacer",
    "OnBest",
    "OptionError",
    "Otmann",
    "OutsideSpaceError",
    "PairwiseDistances",
    "PenaltyError",
    "RandomSearch",
    "RayExecutor",
    "Recipe",
    "RefusedError",
    "Role",
    "RuleSet",
    "Scored",
    "SearchSpace",
    "Signal",
    "SolverError",
    "SpawnExecutor",
    "StorageError",
    "Study",
    "StudyError",
    "StudyView",
    "TensorBoardLog",
    "TraceError",
    "Trained",
    "TrainingObjective",
    "TreeBO",
    "Trial",
    "Violation",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "build",
    "cross",
    "distance",
    "explain",
    "export",
    "initial_pool",
    "layer_masses",
    "load_model",
    "maximise",
    "minimise",
    "pairwise",
    "path_lengths",
    "plot",
    "search",
    "trace",
    "train",
    "use_vocabulary",
]
