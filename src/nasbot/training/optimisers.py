"""Steps on parameters, in one call to a fused kernel for each group that shares a learning rate.

``torch.optim`` has the same kernels; what it does around them in Python takes longer than a step of a small network.
The tests compare every step with torch's own optimisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nasbot.training.recipes import Settings

BETA1 = 0.9
EPSILON = 1e-8


@dataclass(frozen=True)
class Group:
    """Parameters that share a factor on the learning rate, and whether weight decay applies to them."""

    parameters: list[Tensor]
    factor: float
    decays: bool


def groups_of(network: nn.Module, settings: Settings) -> list[Group]:
    """The parameters by the number of their inputs; biases and normalisation have factor 1 and do not decay."""
    found: dict[tuple[float, bool], list[Tensor]] = {}
    for parameter in network.parameters():
        is_weight = parameter.ndim > 1
        factor = 1.0
        if is_weight and settings.optimiser == "adamw" and settings.reference_width is not None:
            factor = min(1.0, settings.reference_width / parameter[0].numel())
        found.setdefault((factor, is_weight), []).append(parameter)
    return [Group(parameters, factor, decays) for (factor, decays), parameters in found.items()]


class AdamW:
    """Adam with decoupled weight decay."""

    def __init__(self, groups: Sequence[Group], settings: Settings) -> None:
        self.groups, self.weight_decay, self.beta2 = groups, settings.weight_decay, settings.beta2
        self.first = [[torch.zeros_like(p) for p in group.parameters] for group in groups]
        self.second = [[torch.zeros_like(p) for p in group.parameters] for group in groups]
        count = torch.zeros((), device=groups[0].parameters[0].device)
        self.count = count
        self.counts = [[count] * len(group.parameters) for group in groups]

    def step(self, gradients: Sequence[list[Tensor]], learning_rate: float) -> None:
        """Move the parameters of each group by its gradients."""
        self.count += 1
        for i, group in enumerate(self.groups):
            torch._fused_adamw_(
                group.parameters,
                gradients[i],
                self.first[i],
                self.second[i],
                [],
                self.counts[i],
                lr=learning_rate * group.factor,
                beta1=BETA1,
                beta2=self.beta2,
                weight_decay=self.weight_decay if group.decays else 0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )


class SGD:
    """Stochastic gradient descent, with momentum where the settings have one."""

    def __init__(self, groups: Sequence[Group], settings: Settings) -> None:
        self.groups, self.momentum, self.weight_decay = groups, settings.momentum, settings.weight_decay
        self.velocity = [[torch.zeros_like(p) for p in group.parameters] for group in groups]
        self.is_first = True

    def step(self, gradients: Sequence[list[Tensor]], learning_rate: float) -> None:
        """Move the parameters of each group by its gradients."""
        for i, group in enumerate(self.groups):
            torch._fused_sgd_(
                group.parameters,
                gradients[i],
                self.velocity[i] if self.momentum else [],
                weight_decay=self.weight_decay if group.decays else 0.0,
                momentum=self.momentum,
                lr=learning_rate * group.factor,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=self.is_first,
            )
        self.is_first = False


def optimiser_of(groups: Sequence[Group], settings: Settings) -> AdamW | SGD:
    """The optimiser that the settings name."""
    return AdamW(groups, settings) if settings.optimiser == "adamw" else SGD(groups, settings)
