"""A vocabulary of somebody's own, for the tests: dense layers and gated ones, in a module that can be imported."""

import torch
from torch import nn

from nasbot import Label, LabelPenalties, Layer, Role, Vocabulary
from nasbot.architecture import chain


class Gated(nn.Module):
    def __init__(self, entering, leaving):
        super().__init__()
        self.linear = nn.Linear(entering, 2 * leaving)

    def forward(self, x):
        values, gates = self.linear(x).chunk(2, dim=1)
        return values * torch.sigmoid(gates)


LABELS = (
    Label(name="ip", role=Role.INPUT),
    Label(name="relu", takes_units=True, group="rectifier", activation="relu"),
    Label(name="gated", takes_units=True, mass_factor=2.0, module="tests.cli.own_cells:Gated"),
    Label(name="softmax", role=Role.DECISION, activation="softmax"),
    Label(name="op", role=Role.OUTPUT),
)
NAMES = [label.name for label in LABELS]
CELLS = Vocabulary("gated-mlp", LABELS, LabelPenalties.from_pairs(NAMES, {("relu", "gated"): 0.2}))
OTHERS = Vocabulary("gated-mlp", LABELS, LabelPenalties.from_pairs(NAMES, {("relu", "gated"): 0.3}))
POOL = [chain(CELLS, [Layer("gated", 16), Layer("relu", 16)]), chain(CELLS, [Layer("relu", 16)])]
