"""What steps go down and what validations compare: losses of outputs, each sample times its weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor
from torch.nn import functional

from nasbot.training.recipes import Settings

TINY_RATE = 1e-12  # the logarithm of nothing is no number


def training_loss(
    out: Tensor,
    y: Tensor,
    settings: Settings,
    *,
    classifies: bool,
    weights: Tensor | None = None,
    rate_scale: Tensor | None = None,
) -> Tensor:
    """The mean loss that steps go down: ``loss_of``, unless the settings say otherwise; each row times its weight."""
    if classifies:
        smooth = settings.label_smoothing
        plain = loss_of(out, y, weights, classifies=True)
        if not smooth:
            return plain
        return (1 - smooth) * plain - smooth * _weighted(out, weights)
    if rate_scale is not None:
        rate = (1 + out / rate_scale).clamp(min=TINY_RATE)
        return _weighted(rate - (1 + y / rate_scale) * rate.log(), weights)
    losses: Mapping[str, Callable[..., Tensor]] = {
        "squared": functional.mse_loss,
        "absolute": functional.l1_loss,
        "huber": functional.huber_loss,
    }
    loss = losses[settings.loss]
    return loss(out, y) if weights is None else _weighted(loss(out, y, reduction="none"), weights)


def loss_of(out: Tensor, y: Tensor, weights: Tensor | None = None, *, classifies: bool) -> Tensor:
    """Negative log-likelihood, or mean squared error over samples and outputs; each sample times its weight."""
    if classifies and y.is_floating_point():  # probabilities of all classes instead of one that is true
        return _weighted(-(y * out).sum(dim=1), weights)
    loss = functional.nll_loss if classifies else functional.mse_loss
    return loss(out, y) if weights is None else _weighted(loss(out, y, reduction="none"), weights)


def _weighted(losses: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of losses (n,) or (n, outputs), each sample's times its weight.

    Not divided by the sum of the weights: a batch of heavy samples takes a longer step than one of light ones.
    """
    return losses.mean() if weights is None else (losses.reshape(len(weights), -1) * weights[:, None]).mean()


def losses_of(out: Tensor, y: Tensor, weights: Tensor | None = None, *, classifies: bool) -> tuple[float, float | None]:
    """The loss, and the share of wrong classes where there are classes; weighted, the mean that the weights give."""
    if weights is not None:
        share = weights / weights.mean()
        wrong = float(((out.argmax(dim=1) != y) * share).mean()) if classifies else None
        return float(loss_of(out, y, share, classifies=classifies)), wrong
    loss = float(loss_of(out, y, classifies=classifies))
    return loss, int((out.argmax(dim=1) != y).sum()) / len(y) if classifies else None
