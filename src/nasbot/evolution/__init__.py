"""Appendix B.2: modifiers of a network, nine of them the paper's, mutation operators made of them, and evolution.

Knows one network at a time and whatever number it is told to be worth: nothing of distances or beliefs.
"""

from nasbot.evolution.algorithm import Evolution, evaluation_schedule, mutation_schedule
from nasbot.evolution.modifier import Edit, Modifier, Rejected
from nasbot.evolution.modifiers import (
    ATTRIBUTE_MODIFIERS,
    CNN_MODIFIERS,
    DOUBLING_MODIFIERS,
    MLP_MODIFIERS,
    MODIFIERS,
    STRUCTURE_MODIFIERS,
    UNIT_MODIFIERS,
    one_step_edits,
    sample_edits,
)
from nasbot.evolution.mutation import (
    STEP_PROBABILITIES,
    Mutation,
    MutationOperator,
    Step,
    mutate,
    mutate_once,
)
from nasbot.evolution.selection import fitness_spread, selection_probabilities

__all__ = [
    "ATTRIBUTE_MODIFIERS",
    "CNN_MODIFIERS",
    "DOUBLING_MODIFIERS",
    "MLP_MODIFIERS",
    "MODIFIERS",
    "STEP_PROBABILITIES",
    "STRUCTURE_MODIFIERS",
    "UNIT_MODIFIERS",
    "Edit",
    "Evolution",
    "Modifier",
    "Mutation",
    "MutationOperator",
    "Rejected",
    "Step",
    "evaluation_schedule",
    "fitness_spread",
    "mutate",
    "mutate_once",
    "mutation_schedule",
    "one_step_edits",
    "sample_edits",
    "selection_probabilities",
]
