"""Modules that tests use as layers of a vocabulary of their own."""

import torch
from torch import nn


class Gated(nn.Module):
    """Half of what a linear map gives decides how much of the other half passes."""

    def __init__(self, entering, leaving):
        super().__init__()
        self.linear = nn.Linear(entering, 2 * leaving)
        self.shift = nn.Parameter(torch.randn(leaving))

    def forward(self, x):
        values, gates = self.linear(x).chunk(2, dim=1)
        return values * torch.sigmoid(gates + self.shift)


def narrow(entering, leaving):
    return nn.Linear(entering, leaving - 1)


def fails(entering, leaving):
    raise ValueError("no such width")


def number(entering, leaving):
    return 3
