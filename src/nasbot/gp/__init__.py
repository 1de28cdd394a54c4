"""Belief: a Gaussian process on rows of distances (Sections 2.1 and 4, Appendix B.1). Knows nothing of networks.

kernel, hyperparameters    eq. (7) and its eleven hyper-parameters with their prior
rows, warping              what comes in, made unit free
fidelity                   what evaluations at less than the full effort say
likelihood, slice_sampler, fit    hyper-parameters from data: posterior samples, or their mode
posterior, pending, mixture       conditioning, hallucinated points, predictions of the ensemble
repair, calibration        what had to be mended, and whether the belief is honest
belief                     all of it behind `fit_belief`, for the search
graph_gp                   all of it behind `GraphGP`, for people with distances of their own
"""

from nasbot.gp.belief import Belief, BeliefOptions, Inference, fit_belief
from nasbot.gp.calibration import Calibration
from nasbot.gp.fit import Chain
from nasbot.gp.graph_gp import GraphGP, NotFittedError
from nasbot.gp.hyperparameters import Hyperparameters, KernelForm, Prior
from nasbot.gp.kernel import otmann_kernel
from nasbot.gp.posterior import Prediction
from nasbot.gp.repair import Repairs
from nasbot.gp.rows import InvalidDistancesError, Rows
from nasbot.gp.warping import InvalidValuesError, Warp

__all__ = [
    "Belief",
    "BeliefOptions",
    "Calibration",
    "Chain",
    "GraphGP",
    "Hyperparameters",
    "Inference",
    "InvalidDistancesError",
    "InvalidValuesError",
    "KernelForm",
    "NotFittedError",
    "Prediction",
    "Prior",
    "Repairs",
    "Rows",
    "Warp",
    "fit_belief",
    "otmann_kernel",
]
