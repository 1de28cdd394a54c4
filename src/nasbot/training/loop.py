"""Training a network: batches, steps, validations, the best weights kept.

The whole data set is in memory. Each epoch draws one permutation; batches are taken from it without touching single
samples; a batch that would be short at the end of an epoch is left for the next permutation. After every interval of
the recipe the network is validated, and the weights of the best validation are those it ends with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from nasbot._rng import Role, derived_seed, stream
from nasbot.architecture import Architecture
from nasbot.architecture.attributes import Attributes
from nasbot.data.dataset import Dataset, Part
from nasbot.data.metrics import Metric
from nasbot.data.parts import NO_RATES
from nasbot.errors import DataError, DivergedError, OptionError
from nasbot.training.estimates import check_affordable, estimate
from nasbot.training.losses import losses_of
from nasbot.training.module import Network, build
from nasbot.training.predictions import Validation, metrics_of, predictions, scored
from nasbot.training.products import is_worth_it, quick_products
from nasbot.training.recipes import FAST, POISSON, Recipe, Settings, recipe_of
from nasbot.training.steps import Batch, batches_of, stepper, tensor_of
from nasbot.training.temperature import can_be_sharpened, sharpen, sharpened, sharpness_of
from nasbot.trial import Point

TOO_HIGH = 1e9  # a loss from which nothing comes back in single precision
# The first part of a limited time in which the clock changes nothing: first steps are slow, and trainings that keep
# well within their time must come out equal to the last bit, whatever the machine was doing.
UNHURRIED = 0.1
NONE = Attributes()
DROP = 0.1  # what a step of the "steps" schedule multiplies the learning rate by

Report = Callable[[int, float], object]
OnValidation = Callable[[int, np.ndarray], object]


@dataclass(frozen=True)
class Trained:
    """A trained network, with the weights of its best validation."""

    network: Network
    loss: float  # on the validation part: mean squared error of the standardised target, or negative log-likelihood
    score: float  # what validations compare: the metric in its own sense; else the loss, or the share of wrong classes
    curve: tuple[Point, ...]  # the score at each validation
    steps: int
    best_step: int
    seconds: float
    stopped: str  # steps, patience or time
    metrics: Mapping[str, float]  # of validation and test part, in people's units
    training_curve: tuple[Point, ...] = ()  # the mean loss of the steps since the validation before
    sharpness: float = 1.0  # what its logits were multiplied by in the end (``temperature``)


def train(
    network: Network | Architecture,
    data: Dataset,
    recipe: Recipe | str = FAST,
    *,
    seed: int = 0,
    report: Report | None = None,
    seconds: float | None = None,
    device: str = "cpu",
    steps_share: float = 1.0,
    stop_after: float | None = None,
    metric: Metric | None = None,
    on_validation: OnValidation | None = None,
    targets: np.ndarray | None = None,
    sharpness: float | None = None,
) -> Trained:
    """Train on ``data.train``, choosing by ``data.valid``. Equal seeds give equal weights, unless time ran out.

    Args:
        network: a network, or an architecture, which begins with the weights of ``seed``.
        data: prepared and divided.
        recipe: how to train; an object, "fast" or "paper".
        seed: random seed (initial weights, order of the samples, dropout, augmentation).
        report: called as ``report(step, score)`` at each validation.
        seconds: after which training ends with what it has; the learning rate comes down in time where foreseeable.
        device: "cpu", or what PyTorch calls another one.
        steps_share: the fidelity: a whole training, with its own schedule, of that share of the recipe's steps.
        stop_after: the share of the steps after which training ends with the weights it then has: for a length that
            was settled before, so that validation rows choose nothing.
        metric: what chooses the best validation, instead of the recipe's score; steps go down the loss all the same.
        on_validation: called with the step and what the network says of the validation rows, at each validation.
        targets: (n, outputs), what to learn of the training rows instead of ``data.train.y``: numbers, or of classes
            their probabilities.
        sharpness: what a classifier's logits are multiplied by in the end (``temperature``), where that was settled
            before; None: by the validation rows, where the recipe says so.

    Returns:
        The network with the weights of its best validation, and what was measured.

    Raises:
        RefusedError: the recipe's limits are crossed; before anything is built.
        DivergedError: a loss is not a number.
        OptionError: what is wrong with the call.
    """
    settings = recipe_of(recipe).settings(data.input_shape)
    _check(data, seconds, device)
    if not 0 < steps_share < math.inf:
        raise OptionError(f"steps_share: expected a number > 0, got {steps_share!r}")
    if stop_after is not None and not 0 < stop_after <= 1:
        raise OptionError(f"stop_after: expected a share of the steps, above 0 and at most 1, got {stop_after!r}")
    if targets is not None and targets.shape != (len(data.train), data.n_outputs):
        raise OptionError(f"targets: expected shape {(len(data.train), data.n_outputs)}, got {targets.shape}")
    arch = network if isinstance(network, Architecture) else network.arch
    expected = estimate(
        arch, settings, input_shape=data.input_shape, n_outputs=data.n_outputs, n_samples=len(data.train)
    )
    check_affordable(expected, settings)
    begun = time.monotonic()
    if isinstance(network, Architecture):
        network = network_of(arch, data, settings, seed=seed)
    elif (network.input_shape, network.n_outputs) != (data.input_shape, data.n_outputs):
        raise OptionError(
            f"network: made for inputs {network.input_shape} and {network.n_outputs} outputs, "
            f"the data have {data.input_shape} and {data.n_outputs}"
        )
    if network.classifies != data.is_classification:
        raise OptionError(f"network: its kind is {arch.kind}, the data ask for {data.kind}")
    n_steps = max(1, round(steps_share * expected.steps))
    has_large_products = is_worth_it(arch, data.input_shape, data.n_outputs, settings.batch_size_for(len(data.train)))
    with quick_products(has_large_products and device == "cpu"):
        course = _Course(
            network, data, settings, n_steps, stop_after, targets, sharpness, seed=seed, device=device, metric=metric
        )
        with _own_randomness(network, seed, settings.dropout), _dropping(network, settings.dropout):
            course.run(report, None if seconds is None else begun + seconds, begun, on_validation)
        course.keep_best()
        metrics = {
            **_named("valid", metrics_of(network, data, data.valid)),
            **_named("test", metrics_of(network, data, data.test)),
        }
    return Trained(
        network,
        course.best.loss,
        course.best.score,
        tuple(course.curve),
        course.step,
        course.best.step,
        time.monotonic() - begun,
        course.stopped,
        metrics,
        tuple(course.training_curve),
        course.sharpness,
    )


def network_of(arch: Architecture, data: Dataset, settings: Settings, *, seed: int = 0) -> Network:
    """The network for these data, its outputs as the loss wants them."""
    scale = None
    if settings.loss == POISSON and not data.is_classification:
        scale = data.rate_scale
        if scale is None:
            raise OptionError(NO_RATES)
    return build(arch, input_shape=data.input_shape, n_outputs=data.n_outputs, seed=seed, rate_scale=scale)


def _check(data: Dataset, seconds: float | None, device: str) -> None:
    if len(data.train) < 2 or len(data.valid) < 1:
        raise DataError(
            f"{data.name}: training needs at least 2 rows to learn from and 1 to validate on, "
            f"got {len(data.train)} and {len(data.valid)}"
        )
    if seconds is not None and not seconds > 0:
        raise OptionError(f"seconds: expected a number > 0 or None, got {seconds!r}")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch says "not compiled with CUDA" by an assertion
        reason = str(error).partition("\n")[0][:120]
        raise OptionError(f"device: {str(device)[:40]!r} cannot be used here: {reason}") from None


# -- the course of one training ----------------------------------------------------------------------------------------


class _Course:
    """One training: what changes while it runs."""

    def __init__(
        self,
        network: Network,
        data: Dataset,
        settings: Settings,
        n_steps: int,
        stop_after: float | None = None,
        targets: np.ndarray | None = None,
        sharpness: float | None = None,
        *,
        seed: int,
        device: str,
        metric: Metric | None = None,
    ) -> None:
        if settings.temperature_scaling and not (network.classifies and can_be_sharpened(network.arch)):
            # Nothing would make up for smooth labels.
            settings = replace(settings, temperature_scaling=False, label_smoothing=0.0)
        self.finds_sharpness = settings.temperature_scaling and sharpness is None
        self.network, self.settings, self.n_steps = network, settings, n_steps
        self.last = n_steps if stop_after is None else max(1, round(stop_after * n_steps))
        self.data, self.metric = data, metric
        self.device = torch.device(device)
        network.to(self.device)
        if network.takes_images:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in the stubs
        self.valid = _on(self.device, data.valid, data.loss_weights(data.valid))
        self.batches = batches_of(
            _on(self.device, data.train, data.loss_weights(data.train), targets),
            settings.batch_size_for(len(data.train)),
            rng=stream(seed, 0, Role.BATCHES),
        )
        self.interval = settings.interval(n_steps) if stop_after is None else self.last
        self.depth_factor = settings.depth_factor(network.arch)
        changes = stream(seed, 0, Role.AUGMENTATION)
        self.take_step = stepper(network, settings, settings.batch_size_for(len(data.train)), rng=changes)
        self.step = 0
        self.curve: list[Point] = []
        self.training_curve: list[Point] = []
        self.recent: list[float] = []  # losses of the steps since the last validation
        self.best = Validation(0, math.inf, math.inf, (math.inf, math.inf))
        self.best_state: dict[str, Tensor] = {}
        self.sharpness = sharpness if settings.temperature_scaling and sharpness is not None else 1.0  # of the best
        self.stopped = "steps"

    def run(
        self, report: Report | None, end: float | None, begun: float, on_validation: OnValidation | None = None
    ) -> None:
        """Steps and validations until the steps, the patience or the time are used up."""
        self.network.train()
        without_better, patience = 0, self.settings.patient_validations(self.n_steps)
        for batch in self.batches:
            progress = self.step / self.n_steps
            if end is not None:
                elapsed = (time.monotonic() - begun) / max(end - begun, 1e-9)
                progress = max(progress, (elapsed - UNHURRIED) / (1 - UNHURRIED))
            out_of_time = progress >= 1 and self.step > 0
            if not out_of_time:
                self._take(batch, progress)
            if out_of_time or self.step % self.interval == 0 or self.step == self.last:
                without_better = 0 if self._validate(report, on_validation) else without_better + 1
                if self.step == self.last:
                    return
                if out_of_time:
                    self.stopped = "time"
                    return
                if without_better >= patience:
                    self.stopped = "patience"
                    return

    def _take(self, batch: Batch, progress: float) -> None:
        size = self.depth_factor * learning_rate(self.settings, self.step, self.n_steps, progress)
        x, y, *weights = batch
        loss = self.take_step(x, y, size, *weights)
        self.step += 1
        if not loss < TOO_HIGH:  # a NaN is not
            raise DivergedError(
                f"training diverged: the loss of step {self.step} is {loss:.3g}; a smaller learning_rate may help"
            )
        if self.device.type == "cpu":  # elsewhere the loss is not asked for
            self.recent.append(loss)

    def _validate(self, report: Report | None, on_validation: OnValidation | None) -> bool:
        """Whether the validation part is predicted better than ever before."""
        if self.curve and self.curve[-1].step == self.step:
            return True  # validated already: time ran out just after
        out = predictions(self.network, self.valid[0])
        sharpness = self.sharpness
        if self.finds_sharpness:
            logs = out.cpu().numpy()
            sharpness = sharpness_of(logs, *(each.cpu().numpy() for each in self.valid[1:]))
            out = torch.from_numpy(sharpened(logs, sharpness)).to(self.device)
        loss, error = losses_of(out, *self.valid[1:], classifies=self.network.classifies)
        self.network.train()
        if not loss < TOO_HIGH:
            raise DivergedError(
                f"training diverged: the validation loss after step {self.step} is {loss:.3g}; "
                "a smaller learning_rate may help"
            )
        if on_validation is not None:
            on_validation(self.step, out.cpu().numpy())
        by_error = self.settings.score == "error"
        now = scored(self.step, out.cpu().numpy(), (loss, error), self.data, self.data.valid, self.metric, by_error)
        self.curve.append(Point(self.step, now.score))
        if self.recent:
            self.training_curve.append(Point(self.step, fmean(self.recent)))
            self.recent.clear()
        if report is not None:
            report(self.step, now.score)
        if not now.cost < self.best.cost:
            return False
        self.best, self.sharpness = now, sharpness
        self._remember()
        return True

    @torch.no_grad()
    def _remember(self) -> None:
        state = self.network.state_dict()
        if not self.best_state:
            self.best_state = {name: torch.clone(tensor) for name, tensor in state.items()}
            return
        for name, tensor in state.items():
            self.best_state[name].copy_(tensor)

    @torch.no_grad()
    def keep_best(self) -> None:
        """Give the network its best weights, in memory of their own and in the usual order."""
        self.network.load_state_dict(self.best_state)
        for parameter in self.network.parameters():
            parameter.grad = None
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
        self.network.cpu().eval()
        sharpen(self.network, self.sharpness)


def learning_rate(settings: Settings, step: int, n_steps: int, progress: float) -> float:
    """The learning rate of a step, ``progress`` being how much of the training lies behind it."""
    size = settings.learning_rate
    if settings.schedule == "cosine":
        size *= 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
    elif settings.schedule == "steps":
        size *= DROP ** sum(progress >= drop for drop in settings.drops)
    rising = settings.warm_up * n_steps
    return size * min(1.0, (step + 1) / rising) if rising >= 1 else size


@contextmanager
def _own_randomness(network: Network, seed: int, dropout: float) -> Iterator[None]:
    """Dropout draws from torch's global state: lend it one of ours, and give back the old one afterwards."""
    if not network.dropouts and not dropout:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed(seed, 0, Role.OBJECTIVE))
        yield


@contextmanager
def _dropping(network: Network, share: float) -> Iterator[None]:
    """While it trains, leave out a share of what each hidden layer emits that has no share of its own."""

    def drop(part: nn.Module, _: object, out: Tensor) -> Tensor | None:
        return functional.dropout(out, share) if part.training else None

    layers = network.arch.layers
    others = {*network.arch.decision_layers, *(u for u, x in enumerate(layers) if (x.attributes or NONE).dropout)}
    hidden = [part for u, part in network.layers.items() if int(u) not in others] if share else []
    hooks = [part.register_forward_hook(drop) for part in hidden]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _on(device: torch.device, part: Part, weights: np.ndarray | None, targets: np.ndarray | None = None) -> Batch:
    y = part.y if targets is None else targets.astype(np.float32, copy=False)
    arrays = (part.X, y, *(() if weights is None else (weights,)))
    return tuple(tensor_of(array).to(device) for array in arrays)


def _named(part: str, metrics: Mapping[str, float]) -> dict[str, float]:
    return {f"{part}_{name}": value for name, value in metrics.items()}
