"""One training step of a network of vectors, written out: forward, loss, backward, in buffers made once.

A step of a small network is spent on bookkeeping: of autograd, of allocation, of concatenation. Here each layer is a
few calls into buffers that stay: parents are not concatenated, each multiplies its own columns of the weights; and
gradients are written where the optimiser reads them. Autograd is the slow twin (tests/training/test_dense_plan.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nasbot.architecture import Role
from nasbot.training.activations import STEPS, Steps
from nasbot.training.module import Network
from nasbot.training.operations import DecisionLayer, Dense, DenseLayer
from nasbot.training.optimisers import Group, groups_of
from nasbot.training.recipes import POISSON, Settings

# -- one layer ---------------------------------------------------------------------------------------------------------


@dataclass
class _Source:
    """One parent of a layer: what it emits, the columns of the weights that are its, and where gradients go."""

    emitted: Tensor
    columns: Tensor  # (units, width of the parent)
    transposed: Tensor
    columns_gradient: Tensor
    gradient: Tensor | None  # of what the parent emits; None for the input
    is_first_to_write: bool = False


@dataclass
class _Work:
    """One layer: its buffers, and what to do with them."""

    sums: Tensor
    activated: Tensor  # what the activation gives
    emitted: Tensor  # what is left of it by dropout
    kept: Tensor | None  # what dropout multiplies by: 0, or one over the share that stays
    gradient: Tensor  # of what is emitted
    sums_gradient: Tensor
    bias: Tensor
    bias_gradient: Tensor
    steps: Steps
    sources: list[_Source] = field(default_factory=list)


class DensePlan:
    """Steps of one network on batches of one size. Its parameters become views of what the optimiser moves."""

    LOSSES = ("squared", POISSON)

    @staticmethod
    def serves(network: Network) -> bool:
        """Whether every layer is dense, its activation written out, no normalisation or dropout, and on the CPU."""
        if network.dropouts or any(p.device.type != "cpu" for p in network.parameters()):
            return False
        return all(
            type(part) is DecisionLayer or (type(part) is DenseLayer and part.name in STEPS)
            for part in network.layers.values()
        )

    def __init__(self, network: Network, settings: Settings, batch_size: int) -> None:
        self.network, self.sums, self.batch_size = network, settings.sum_loss, batch_size
        self.dropout, self.smoothing = settings.dropout, settings.label_smoothing
        self.groups, self.gradients = _flattened(network, settings)
        self.input = self.gradients[0][0].new_zeros(batch_size, network.input_shape[0])
        self._lay_out()

    def _lay_out(self) -> None:
        """Make the buffers and say, for each layer, what meets what."""
        arch, n = self.network.arch, self.batch_size
        decisions = arch.decision_layers
        # All decision layers in one buffer: one softmax, one mean.
        zeros = self.input.new_zeros
        self.decisions = zeros(len(decisions), n, self.network.n_outputs)
        self.decisions_gradient = torch.zeros_like(self.decisions)
        self.minus_one = -torch.ones_like(self.decisions[:1, :1, :1])
        works: dict[int, _Work] = {}
        for u, layer in enumerate(arch.layers[1:-1], start=1):
            label = arch.vocabulary.by_name[layer.label]
            part = self.network.layers[str(u)]
            assert isinstance(part, Dense)
            if label.role is Role.DECISION:
                place = decisions.index(u)
                sums, gradient = self.decisions[place], self.decisions_gradient[place]
                work = _Work(
                    sums, sums, sums, None, gradient, gradient, part.bias.data, gradient_of(part.bias), STEPS[""]
                )
            else:
                steps = STEPS[label.activation]
                sums, sums_gradient = zeros(n, part.out_features), zeros(n, part.out_features)
                shares = steps.in_place and label.width_factor == 1
                activated = sums if shares else zeros(n, part.out_features * label.width_factor)
                # The gradient needs what the activation gave, so what dropout leaves of it has a buffer of its own.
                emitted, kept = activated, None
                if self.dropout:
                    emitted, kept = torch.zeros_like(activated), torch.zeros_like(activated)
                # The gradient of the sums may overwrite that of what is emitted wherever the two are of one shape.
                gradient = sums_gradient if label.width_factor == 1 else torch.zeros_like(emitted)
                work = _Work(
                    sums,
                    activated,
                    emitted,
                    kept,
                    gradient,
                    sums_gradient,
                    part.bias.data,
                    gradient_of(part.bias),
                    steps,
                )
            works[u] = work
            self._connect(u, part, works)
        self.forward_order = list(works.values())
        self.backward_order = self.forward_order[::-1]
        _mark_first_writers(self.backward_order)

    def _connect(self, u: int, part: Dense, works: dict[int, _Work]) -> None:
        start = 0
        weight, gradient = part.weight.data, gradient_of(part.weight)
        for p in self.network.arch.parents[u]:
            emitted = self.input if p == 0 else works[p].emitted
            end = start + emitted.shape[1]
            columns = weight[:, start:end]
            back = None if p == 0 else works[p].gradient
            works[u].sources.append(_Source(emitted, columns, columns.t(), gradient[:, start:end], back))
            start = end

    def step(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> float:
        """Gradients of the mean loss of this batch (or of its sum), left in ``gradients``; returns the mean loss.

        With ``weights``, (n,), each row's loss counts so many times.
        """
        self.input.copy_(x)
        for work in self.forward_order:
            sums = work.sums
            first, *others = work.sources
            torch.addmm(work.bias, first.emitted, first.transposed, out=sums)
            for source in others:
                sums.addmm_(source.emitted, source.transposed)
            work.steps.forward(sums, work.activated)
            if work.kept is not None:  # from torch's global state and in its own order, as autograd's twin draws
                stays = 1.0 - self.dropout
                torch.mul(work.activated, work.kept.bernoulli_(stays).div_(stays), out=work.emitted)
        loss = self._class_loss(y, weights) if self.network.classifies else self._number_loss(y, weights)
        for work in self.backward_order:
            dz = work.sums_gradient
            if work.kept is not None:
                work.gradient.mul_(work.kept)
            work.steps.backward(work.gradient, work.sums, work.activated, dz)
            torch.sum(dz, 0, out=work.bias_gradient)
            transposed = dz.t()
            for source in work.sources:
                torch.mm(transposed, source.emitted, out=source.columns_gradient)
                if source.gradient is None:
                    continue
                if source.is_first_to_write:
                    torch.mm(dz, source.columns, out=source.gradient)
                else:
                    source.gradient.addmm_(dz, source.columns)
        return loss

    def _number_loss(self, y: Tensor, weights: Tensor | None) -> float:
        """Mean squared error of the mean of the decision layers, all of which get the same gradient."""
        k, n, n_outputs = self.decisions.shape
        out = self.decisions[0] if k == 1 else self.decisions.mean(dim=0)
        if self.network.rate_scale is not None:
            return self._rate_loss(out, y, weights)
        difference = torch.sub(out, y)
        weighted = difference if weights is None else difference * weights[:, None]
        loss = float(torch.dot(difference.reshape(-1), weighted.reshape(-1))) / (n * n_outputs)
        scale = 2.0 / (k * n_outputs * (1 if self.sums else n))
        torch.mul(weighted, scale, out=self.decisions_gradient[0])
        if k > 1:
            self.decisions_gradient[1:] = self.decisions_gradient[0]
        return loss

    def _rate_loss(self, z: Tensor, y: Tensor, weights: Tensor | None) -> float:
        """Poisson loss of rates 1 + elu(z): below 1 the gradient is rate minus truth, above it that over the rate."""
        assert self.network.rate_scale is not None
        k, n, n_outputs = self.decisions.shape
        truth = 1 + y / self.network.rate_scale
        rate = torch.nn.functional.elu(z) + 1
        logs = torch.where(z > 0, rate.log(), z)
        counts: Tensor | float = 1.0 if weights is None else weights[:, None]
        loss = float(torch.sum((rate - truth * logs) * counts)) / (n * n_outputs)
        scale = 1.0 / (k * n_outputs * (1 if self.sums else n))
        self.decisions_gradient[:] = (rate - truth) / rate.clamp(min=1) * counts * scale
        return loss

    def _class_loss(self, y: Tensor, weights: Tensor | None) -> float:
        """Negative log-likelihood under the mean of the decision layers' probabilities.

        Each layer's gradient is its own (p - truth), times its share of the probability given to the truth.
        """
        if self.smoothing or y.is_floating_point():
            return self._smoothed_loss(y, weights)
        k, n, _ = self.decisions.shape
        logs = torch.log_softmax(self.decisions, dim=2)
        truth = y.view(1, n, 1).expand(k, n, 1)
        of_truth = logs.gather(2, truth)  # (k, n, 1)
        shares: Tensor | float = 1.0
        if k > 1:
            together = torch.logsumexp(of_truth, dim=0)
            shares = torch.exp(of_truth - together)
            loss = math.log(k) - float(together.mean())
        else:
            together = of_truth[0]
            loss = -float(together.mean())
        if weights is not None:
            counted = weights.view(n, 1)
            loss = float((counted * (math.log(k) - together)).mean())
            shares = shares * counted
        gradient = torch.exp(logs, out=self.decisions_gradient)
        gradient.scatter_add_(2, truth, self.minus_one.expand(k, n, 1))
        gradient.mul_(shares if self.sums else shares / n)
        return loss

    def _smoothed_loss(self, y: Tensor, weights: Tensor | None) -> float:
        """The same with a truth that is spread over all classes: each layer's share of every class counts.

        ``y`` is the true class of each row, or (n, classes) probabilities.
        """
        k, n, n_classes = self.decisions.shape
        logs = torch.log_softmax(self.decisions, dim=2)
        together = torch.logsumexp(logs, dim=0) - math.log(k)  # (n, classes)
        truth = torch.full_like(together, self.smoothing / n_classes)
        if y.is_floating_point():
            truth.add_(y, alpha=1.0 - self.smoothing)
        else:
            truth.scatter_add_(1, y.view(n, 1), truth.new_full((n, 1), 1.0 - self.smoothing))
        if weights is not None:
            truth.mul_(weights.view(n, 1))
        loss = -float(torch.sum(truth * together)) / n
        shared = truth * torch.exp(logs - together) / k  # (k, n, classes)
        gradient = torch.exp(logs, out=self.decisions_gradient)
        gradient.mul_(shared.sum(dim=2, keepdim=True)).sub_(shared)
        if not self.sums:
            gradient.div_(n)
        return loss


def _mark_first_writers(backward_order: Sequence[_Work]) -> None:
    """Of the layers that give a parent its gradient, the first writes and the others add."""
    written: set[int] = set()
    for work in backward_order:
        for source in work.sources:
            if source.gradient is not None:
                source.is_first_to_write = id(source.gradient) not in written
                written.add(id(source.gradient))


def _flattened(network: Network, settings: Settings) -> tuple[list[Group], list[list[Tensor]]]:
    """Each group's parameters as views of one tensor, and one tensor for their gradients beside it."""
    groups, gradients = [], []
    for group in groups_of(network, settings):
        flat = torch.cat([p.data.reshape(-1) for p in group.parameters])
        gradient = torch.zeros_like(flat)
        start = 0
        for p in group.parameters:
            end = start + p.numel()
            p.data = flat[start:end].view(p.shape)
            p.grad = gradient[start:end].view(p.shape)
            start = end
        groups.append(Group([flat], group.factor, group.decay))
        gradients.append([gradient])
    return groups, gradients


def gradient_of(parameter: Tensor) -> Tensor:
    """Where a step leaves the gradient of one of the network's parameters."""
    assert parameter.grad is not None
    return parameter.grad
