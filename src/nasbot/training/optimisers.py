"""Steps on parameters, in one call to a fused kernel for each group that shares a learning rate.

``torch.optim`` has the same kernels; what it does around them in Python takes longer than a step of a small network.
They are private names of torch, so each is tried once on the device, and where this torch does not have it, or has
changed it, the same step is made of plain tensor operations. The tests compare both with torch's own optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from nasbot.training.module import Network
from nasbot.training.recipes import Settings

BETA1 = 0.9
EPSILON = 1e-8


@dataclass(frozen=True)
class Group:
    """Parameters that share a factor on the learning rate, and what the weight decay is multiplied by for them."""

    parameters: list[Tensor]
    factor: float
    decay: float


def groups_of(network: nn.Module, settings: Settings) -> list[Group]:
    """The parameters by the number of their inputs; biases and normalisation have factor 1 and do not decay."""
    found: dict[tuple[float, float], list[Tensor]] = {}
    own = _decay_factors(network)
    for name, parameter in network.named_parameters():
        is_weight = parameter.ndim > 1
        factor = 1.0
        if is_weight and settings.optimiser == "adamw" and settings.reference_width is not None:
            factor = min(1.0, settings.reference_width / parameter[0].numel())
        decay = own.get(name.split(".")[1], 1.0) if own and is_weight else float(is_weight)
        found.setdefault((factor, decay), []).append(parameter)
    return [Group(parameters, factor, decay) for (factor, decay), parameters in found.items()]


def _decay_factors(network: nn.Module) -> dict[str, float]:
    """Of the layers that have one of their own, by number; the names of parameters begin ``layers.NUMBER``."""
    layers = network.arch.layers if isinstance(network, Network) else ()
    own = {str(u): layer.attributes.decay_factor for u, layer in enumerate(layers) if layer.attributes is not None}
    return {u: factor for u, factor in own.items() if factor is not None}


Update = Callable[..., object]


@cache
def adamw_update(device: str) -> Update:
    """A step of AdamW on devices of this type: torch's fused kernel where it works, ``plain_adamw`` elsewhere."""
    given = [[torch.ones(1, device=device)] for _ in range(4)]
    settings = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.0, "eps": 1e-8}
    fused: Update | None = getattr(torch, "_fused_adamw_", None)
    count = [torch.ones((), device=device)]
    works = fused is not None and _works(fused, *given, [], count, **settings, amsgrad=False, maximize=False)
    return fused if fused is not None and works else plain_adamw


@cache
def sgd_update(device: str) -> Update:
    """A step of SGD on devices of this type: torch's fused kernel where it works, ``plain_sgd`` elsewhere."""
    given = [[torch.ones(1, device=device)] for _ in range(3)]
    settings = {"weight_decay": 0.0, "momentum": 0.9, "lr": 0.1, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": False, "is_first_step": True}
    fused: Update | None = getattr(torch, "_fused_sgd_", None)
    works = fused is not None and _works(fused, *given, **settings, **flags)
    return fused if fused is not None and works else plain_sgd


def _works(update: Update, *tensors: list[Tensor], **settings: float | bool) -> bool:
    """Whether the call is taken; an older or a later torch may have other arguments, or no kernel for the device."""
    try:
        with torch.no_grad():
            update(*tensors, **settings)
    except (RuntimeError, TypeError):  # NotImplementedError is a RuntimeError
        return False
    return True


def plain_adamw(
    parameters: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    _: list[Tensor],
    counts: list[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
) -> None:
    """The fused kernel's step in plain operations, with its arguments; ``amsgrad`` and ``maximize`` are never asked."""
    step = float(counts[0])
    for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
        p.mul_(1 - lr * weight_decay)
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        spread = v.sqrt().div_((1 - beta2**step) ** 0.5).add_(eps)
        p.addcdiv_(m, spread, value=-lr / (1 - beta1**step))


def plain_sgd(
    parameters: list[Tensor],
    gradients: list[Tensor],
    velocity: list[Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
    """The fused kernel's step in plain operations, with its arguments; the last but one are never asked for."""
    for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
        step = g.add(p, alpha=weight_decay) if weight_decay else g
        if momentum:
            step = velocity[i].copy_(step) if is_first_step else velocity[i].mul_(momentum).add_(step)
        p.add_(step, alpha=-lr)


class AdamW:
    """Adam with decoupled weight decay."""

    def __init__(self, groups: Sequence[Group], settings: Settings) -> None:
        self.groups, self.weight_decay, self.beta2 = groups, settings.weight_decay, settings.beta2
        self.first = [[torch.zeros_like(p) for p in group.parameters] for group in groups]
        self.second = [[torch.zeros_like(p) for p in group.parameters] for group in groups]
        count = torch.zeros((), device=groups[0].parameters[0].device)
        self.count = count
        self.counts = [[count] * len(group.parameters) for group in groups]
        self._update = adamw_update(count.device.type)

    def step(self, gradients: Sequence[list[Tensor]], learning_rate: float) -> None:
        """Move the parameters of each group by its gradients."""
        self.count += 1
        for i, group in enumerate(self.groups):
            self._update(
                group.parameters,
                gradients[i],
                self.first[i],
                self.second[i],
                [],
                self.counts[i],
                lr=learning_rate * group.factor,
                beta1=BETA1,
                beta2=self.beta2,
                weight_decay=self.weight_decay * group.decay,
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
        self._update = sgd_update(groups[0].parameters[0].device.type)

    def step(self, gradients: Sequence[list[Tensor]], learning_rate: float) -> None:
        """Move the parameters of each group by its gradients."""
        for i, group in enumerate(self.groups):
            self._update(
                group.parameters,
                gradients[i],
                self.velocity[i] if self.momentum else [],
                weight_decay=self.weight_decay * group.decay,
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
