"""A learned scale for each feature of a table: which of them matter is found sooner than by the weights alone.

The weights W that meet the input are V diag(s). The optimiser moves V, and s at a multiple of the learning rate; the
network always has W, so whatever reads, validates, stores or exports it knows nothing of this. No more is computed
than a product for each of these weights: with G the gradient of W, that of V is G diag(s), that of s the sum over the
rows of G * V. As the scaling layer of RealMLP (Holzmüller et al. 2024), for which the input itself is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nasbot.training.module import Network
from nasbot.training.operations import Dense
from nasbot.training.optimisers import SGD, AdamW, Group
from nasbot.training.recipes import Settings


class FeatureScales:
    """An optimiser of a network whose weights on the input are products; of any other, the given one as it is."""

    def __init__(self, optimiser: AdamW | SGD, network: Network, settings: Settings) -> None:
        self.optimiser, self.weights = optimiser, _weights_on_input(network, settings)
        n_features = network.input_shape[0]
        self.products = [weight.data[:, :n_features] for weight in self.weights]  # W: what the network computes with
        self.own = [product.clone() for product in self.products]  # V
        if self.weights:
            self.scales = self.products[0].new_ones(n_features)
            self._scaling = AdamW([Group([self.scales], settings.feature_scaling, 0.0)], settings)

    def step(self, gradients: Sequence[list[Tensor]], on_input: Sequence[Tensor], learning_rate: float) -> None:
        """Move all parameters by their gradients, among which those of ``weights`` stand in ``on_input`` once more."""
        if not self.weights:
            self.optimiser.step(gradients, learning_rate)
            return
        of_scales = torch.zeros_like(self.scales)
        for product, own, whole in zip(self.products, self.own, on_input, strict=True):
            gradient = whole[:, : len(self.scales)]
            of_scales += (gradient * own).sum(dim=0)
            gradient *= self.scales
            product.copy_(own)
        self.optimiser.step(gradients, learning_rate)
        self._scaling.step([[of_scales]], learning_rate)
        for product, own in zip(self.products, self.own, strict=True):
            own.copy_(product)
            product *= self.scales


def _weights_on_input(network: Network, settings: Settings) -> list[Tensor]:
    """The weights whose first columns meet the features as they are; none where features are not to be scaled."""
    if not settings.feature_scaling or settings.optimiser != "adamw" or network.takes_images:
        return []
    parts = [step.part for step in network.steps if 0 in step.parents]
    dense = [part if isinstance(part, Dense) else getattr(part, "dense", None) for part in parts]
    return [part.weight for part in dense if isinstance(part, Dense)]
