"""The steps of a training: batches of the data, and one step on one of them, written out or by autograd."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from nasbot.training._dense_plan import DensePlan, gradient_of
from nasbot.training.augmentation import augmented, mixed
from nasbot.training.losses import training_loss
from nasbot.training.module import Network
from nasbot.training.optimisers import groups_of, optimiser_of
from nasbot.training.recipes import Settings
from nasbot.training.scaling import FeatureScales

# A permuted copy of the inputs serves a whole epoch of batches; beyond this many bytes each batch is gathered alone.
MAX_EPOCH_COPY = 64_000_000

Batch = tuple[Tensor, ...]  # inputs, target, and the rows' weights where they have some


def batches_of(part: Batch, size: int, *, rng: np.random.Generator) -> Iterator[Batch]:
    """Batches of this size without end: a new permutation for each epoch, what is left of it thrown away."""
    X, *others = part
    as_copy = X.ndim == 2 and X.numel() * X.element_size() <= MAX_EPOCH_COPY
    n_batches = len(X) // size
    while True:
        order = torch.from_numpy(rng.permutation(len(X))[: n_batches * size]).to(X.device)
        epoch = [tensor.index_select(0, order) for tensor in others]
        X_epoch = X.index_select(0, order) if as_copy else None
        for start in range(0, n_batches * size, size):
            rest = [tensor[start : start + size] for tensor in epoch]
            if X_epoch is not None:
                yield X_epoch[start : start + size], *rest
                continue
            x = X.index_select(0, order[start : start + size])
            if x.ndim == 4:
                x = x.contiguous(memory_format=torch.channels_last)
            yield x, *rest


def tensor_of(array: np.ndarray) -> Tensor:
    """A tensor on the array's own memory, which is only read: a file shared by several processes, often."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return torch.from_numpy(np.ascontiguousarray(array))


class TakeStep(Protocol):
    """One step on one batch; returns the batch's mean loss before it."""

    def __call__(self, x: Tensor, y: Tensor, learning_rate: float, weights: Tensor | None = None, /) -> float: ...


def stepper(network: Network, settings: Settings, batch_size: int, *, rng: np.random.Generator) -> TakeStep:
    """take_step(x, y, learning rate[, weights]): one step on one batch; returns the batch's mean loss before it."""
    is_plain = (settings.loss in DensePlan.LOSSES or network.classifies) and not settings.mixup
    if is_plain and DensePlan.serves(network):
        return planned_stepper(network, settings, batch_size)
    return autograd_stepper(network, settings, rng=rng, is_mixed=_mixes(network))


def planned_stepper(network: Network, settings: Settings, batch_size: int) -> TakeStep:
    """By the written-out plan of networks of vectors."""
    plan = DensePlan(network, settings, batch_size)
    optimiser = FeatureScales(optimiser_of(plan.groups, settings), network, settings)
    on_input = [gradient_of(weight) for weight in optimiser.weights]

    @torch.no_grad()
    def take_step(x: Tensor, y: Tensor, learning_rate: float, weights: Tensor | None = None, /) -> float:
        loss = plan.step(x, y, weights)
        optimiser.step(plan.gradients, on_input, learning_rate)
        return loss

    return take_step


def _mixes(network: Network) -> bool:
    """Whether steps compute in bfloat16 where that is safe: on graphics cards that have it."""
    return next(network.parameters()).device.type == "cuda" and torch.cuda.is_bf16_supported()


def autograd_stepper(
    network: Network, settings: Settings, *, rng: np.random.Generator, is_mixed: bool = False
) -> TakeStep:
    """By autograd: any network."""
    changes_images = network.takes_images and settings.augmentation != "none"
    groups = groups_of(network, settings)
    parameters = [p for group in groups for p in group.parameters]
    optimiser = FeatureScales(optimiser_of(groups, settings), network, settings)
    on_input = [i for weight in optimiser.weights for i, p in enumerate(parameters) if p is weight]
    sizes = [len(group.parameters) for group in groups]
    on_cpu = parameters[0].device.type == "cpu"

    def loss_on(x: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        def loss_to(out: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
            exact = out.float() if is_mixed else out
            return training_loss(
                exact, y, settings, classifies=network.classifies, weights=weights, rate_scale=network.rate_scale
            )

        if changes_images:
            x = augmented(x, settings.augmentation, rng=rng)
        if not settings.mixup:
            return loss_to(network(x), y, weights)
        x, others, share = mixed(x, settings.mixup, rng=rng)
        out = network(x)
        theirs = None if weights is None else weights[others]
        return share * loss_to(out, y, weights) + (1 - share) * loss_to(out, y[others], theirs)

    def take_step(x: Tensor, y: Tensor, learning_rate: float, weights: Tensor | None = None, /) -> float:
        if is_mixed:
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                loss = loss_on(x, y, weights)
        else:
            loss = loss_on(x, y, weights)
        gradients = torch.autograd.grad(loss * len(x) if settings.sum_loss else loss, parameters)
        with torch.no_grad():
            laid_out = _laid_out(gradients, parameters)
            optimiser.step(_by_group(laid_out, sizes), [laid_out[i] for i in on_input], learning_rate)
        # Elsewhere than on the CPU, to ask for the number is to wait for it: there validations notice a divergence.
        return float(loss.detach()) if on_cpu else 0.0

    return take_step


def _laid_out(gradients: tuple[Tensor, ...], parameters: list[Tensor]) -> list[Tensor]:
    """The gradients, each laid out in memory as its parameter is."""
    return [
        g if g.stride() == p.stride() else torch.empty_like(p).copy_(g)
        for g, p in zip(gradients, parameters, strict=True)
    ]


def _by_group(gradients: list[Tensor], sizes: list[int]) -> list[list[Tensor]]:
    """The gradients in the groups of their parameters."""
    grouped, start = [], 0
    for size in sizes:
        grouped.append(gradients[start : start + size])
        start += size
    return grouped
