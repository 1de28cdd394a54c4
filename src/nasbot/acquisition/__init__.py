"""Choice: utilities of networks under a belief, and how the best is looked for (Section 2.1, Appendix B.2)."""

from nasbot.acquisition.feasibility import Feasibility
from nasbot.acquisition.functions import (
    averaged,
    expected_improvement,
    log_averaged,
    log_expected_improvement,
    thompson,
    uniform,
    upper_confidence_bound,
)
from nasbot.acquisition.maximise import Found, Maximum, Utility, by_evolution, by_evolution_and_climbing

__all__ = [
    "Feasibility",
    "Found",
    "Maximum",
    "Utility",
    "averaged",
    "by_evolution",
    "by_evolution_and_climbing",
    "expected_improvement",
    "log_averaged",
    "log_expected_improvement",
    "thompson",
    "uniform",
    "upper_confidence_bound",
]
