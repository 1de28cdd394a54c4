"""Choice: utilities of networks under a belief, and how the best is looked for (Section 2.1, Appendix B.2)."""

from nasbot.acquisition.choices import (
    EI,
    UCB,
    Acquisition,
    LogEI,
    Outlook,
    Thompson,
    Uniform,
    acquisition_of,
    improving_choices,
)
from nasbot.acquisition.feasibility import Feasibility
from nasbot.acquisition.functions import (
    averaged,
    expected_improvement,
    log_averaged,
    log_expected_improvement,
    uniform,
    upper_confidence_bound,
)
from nasbot.acquisition.maximise import Found, Maximum, Settings, Utility, by_evolution, by_evolution_and_climbing

__all__ = [
    "EI",
    "UCB",
    "Acquisition",
    "Feasibility",
    "Found",
    "LogEI",
    "Maximum",
    "Outlook",
    "Settings",
    "Thompson",
    "Uniform",
    "Utility",
    "acquisition_of",
    "averaged",
    "by_evolution",
    "by_evolution_and_climbing",
    "expected_improvement",
    "improving_choices",
    "log_averaged",
    "log_expected_improvement",
    "uniform",
    "upper_confidence_bound",
]
