"""Every public name, once. ``nasbot/__init__.py`` reads this page: each name loads when it is first asked for."""

from nasbot.architecture import (
    Architecture as Architecture,
    Label as Label,
    LabelPenalties as LabelPenalties,
    Layer as Layer,
    MassRules as MassRules,
    Role as Role,
    SearchSpace as SearchSpace,
    Signal as Signal,
    Vocabulary as Vocabulary,
    initial_pool as initial_pool,
    layer_masses as layer_masses,
    path_lengths as path_lengths,
)
from nasbot.architecture.own_vocabulary import use_vocabulary as use_vocabulary
from nasbot.automl import (
    FoundStudy as FoundStudy,
    FoundTrial as FoundTrial,
    search as search,
)
from nasbot.callbacks.follower import (
    Callbacks as Callbacks,
    Follower as Follower,
    OnBest as OnBest,
)
from nasbot.callbacks.mlflow_log import MLflowLog as MLflowLog
from nasbot.callbacks.tensorboard_log import TensorBoardLog as TensorBoardLog
from nasbot.candidate import Candidate as Candidate
from nasbot.domain import (
    Choice as Choice,
    Domain as Domain,
    Fidelity as Fidelity,
    Float as Float,
    Integer as Integer,
)
from nasbot.errors import (
    CodecError as CodecError,
    DataError as DataError,
    DivergedError as DivergedError,
    ExhaustedError as ExhaustedError,
    ExportError as ExportError,
    FailingError as FailingError,
    FileError as FileError,
    InvalidArchitectureError as InvalidArchitectureError,
    NasbotError as NasbotError,
    OptionError as OptionError,
    OutsideSpaceError as OutsideSpaceError,
    PenaltyError as PenaltyError,
    RefusedError as RefusedError,
    SolverError as SolverError,
    StorageError as StorageError,
    StudyError as StudyError,
    TraceError as TraceError,
    Violation as Violation,
    VocabularyError as VocabularyError,
)
from nasbot.estimators import (
    NASBOTClassifier as NASBOTClassifier,
    NASBOTRegressor as NASBOTRegressor,
)
from nasbot.execution import (
    Interrupted as Interrupted,
    Limits as Limits,
    LocalExecutor as LocalExecutor,
    RayExecutor as RayExecutor,
    SpawnExecutor as SpawnExecutor,
)
from nasbot.exporting.export import export as export
from nasbot.exporting.model_file import load_model as load_model
from nasbot.gp import (
    BeliefOptions as BeliefOptions,
    GraphGP as GraphGP,
)
from nasbot.otmann import (
    Distances as Distances,
    Matching as Matching,
    NeighbourIndex as NeighbourIndex,
    Otmann as Otmann,
    PairwiseDistances as PairwiseDistances,
    RuleSet as RuleSet,
    cross as cross,
    distance as distance,
    explain as explain,
    pairwise as pairwise,
)
from nasbot.pacing import (
    MedianPacer as MedianPacer,
    NoPacer as NoPacer,
)
from nasbot.plots.plot import plot as plot
from nasbot.searchers import (
    NASBOT as NASBOT,
    EvolutionSearch as EvolutionSearch,
    RandomSearch as RandomSearch,
    TreeBO as TreeBO,
)
from nasbot.study import (
    Budget as Budget,
    Study as Study,
    StudyView as StudyView,
    maximise as maximise,
    minimise as minimise,
)
from nasbot.tracing.trace import trace as trace
from nasbot.training.loop import (
    Trained as Trained,
    train as train,
)
from nasbot.training.module import build as build
from nasbot.training.objective import TrainingObjective as TrainingObjective
from nasbot.training.recipes import Recipe as Recipe
from nasbot.trial import (
    History as History,
    Scored as Scored,
    Trial as Trial,
)

__version__: str
