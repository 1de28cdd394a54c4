"""The kernel of eq. (7) on OTMANN distances as a kernel of GPyTorch, and a BoTorch model with it.

    kernel = NetworkKernel(networks)                    # those evaluated, and those to choose from
    model = network_gp(kernel, kernel.inputs(evaluated), values)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    best, _ = optimize_acqf_discrete(LogExpectedImprovement(model, values.max()), q=1, choices=kernel.inputs())
    kernel.networks[int(best)]

GPyTorch's inputs are tensors, so a network enters as its number among the kernel's networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasbot.architecture import Architecture
from nasbot.errors import OptionError, missing_extra
from nasbot.otmann.pairwise_distances import NetworkDistance, PairwiseDistances

try:
    import gpytorch
    from botorch.models import SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.settings import validate_input_scaling
    from gpytorch.constraints import Positive
    from gpytorch.priors import LogNormalPrior
except ImportError:
    raise missing_extra("nasbot.integrations.botorch", "botorch") from None

DECAY_SPREAD = 1.0  # standard deviation of the logarithm of a decay
SCALE_SPREAD = 0.5  # and of a scale


class NetworkKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]  # GPyTorch ships no types
    """α exp(-Σ βᵢ (dᵢ/tᵢ)ᵖ) + ᾱ exp(-Σ β̄ᵢ (d̄ᵢ/t̄ᵢ)ᵖ̄) between networks; t is the median of each distance.

    Hyper-parameters ``scale``, ``decay``, ``normalised_scale`` and ``normalised_decay`` are fitted as any of GPyTorch's
    are, under log-normal priors. The kernel is not positive definite in general, least of all with powers above 1:
    GPyTorch adds jitter, which may not be enough then.
    """

    has_lengthscale = False

    def __init__(
        self,
        networks: Sequence[Architecture],
        *,
        distance: NetworkDistance | None = None,
        distance_power: float = 1.0,
        normalised_power: float = 1.0,
    ) -> None:
        """Compare the networks.

        Args:
            networks: all that will be modelled or chosen from; ``extend`` adds more.
            distance: between networks; OTMANN with the paper's weights by default.
            distance_power: p of eq. (7).
            normalised_power: p̄ of eq. (7).

        Raises:
            OptionError: fewer than two networks, or a power that is not positive.
        """
        super().__init__()
        if len(networks) < 2:
            raise OptionError(f"networks: expected at least two, got {len(networks)}")
        if not (distance_power > 0 and normalised_power > 0):
            raise OptionError(f"powers: expected numbers above 0, got {distance_power} and {normalised_power}")
        self._table = PairwiseDistances.of(networks, distance)
        self._powers = distance_power, normalised_power
        found = self._table.distances
        self._typical = _typical(found.d), _typical(found.d_bar)
        self._keep_distances()
        n_weights = len(found.d)
        location = float(np.log(0.5 / n_weights))
        for name, size in (
            ("scale", 1),
            ("normalised_scale", 1),
            ("decay", n_weights),
            ("normalised_decay", n_weights),
        ):
            is_scale = name.endswith("scale")
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(torch.zeros(size, dtype=torch.float64)))
            self.register_constraint(f"raw_{name}", Positive())
            prior = (
                LogNormalPrior(float(np.log(0.5)), SCALE_SPREAD) if is_scale else LogNormalPrior(location, DECAY_SPREAD)
            )
            self.register_prior(f"{name}_prior", prior, _getter(name), _setter(name))
            self.set_value(name, 0.5 if is_scale else 0.5 / n_weights)

    @property
    def networks(self) -> tuple[Architecture, ...]:
        """The networks, by the numbers under which they enter."""
        return self._table.networks

    def inputs(self, networks: Sequence[Architecture] | None = None) -> Tensor:
        """The tensor (n, 1) that stands for these networks, by default for all; OptionError for unknown ones."""
        if networks is None:
            return torch.arange(len(self.networks), dtype=torch.float64)[:, None]
        numbers = {arch: number for number, arch in reversed(list(enumerate(self.networks)))}
        if unknown := [i for i, arch in enumerate(networks) if arch not in numbers]:
            raise OptionError(f"networks: number {unknown[0]} is not one of the kernel's; call extend with it first")
        return torch.tensor([numbers[arch] for arch in networks], dtype=torch.float64)[:, None]

    def extend(self, networks: Sequence[Architecture]) -> Tensor:
        """Add networks behind those known, and give their inputs (n, 1). Typical distances stay as they are."""
        before = len(self.networks)
        self._table = self._table.extended(networks)
        self._keep_distances()
        return self.inputs()[before:]

    def value(self, name: str) -> Tensor:
        """The hyper-parameter ``scale``, ``decay``, ``normalised_scale`` or ``normalised_decay``."""
        constrained: Tensor = self.raw_constraint(name).transform(getattr(self, f"raw_{name}"))
        return constrained

    def set_value(self, name: str, value: float | Tensor) -> None:
        """Set a hyper-parameter."""
        raw = getattr(self, f"raw_{name}")
        given = torch.as_tensor(value, dtype=raw.dtype).expand_as(raw)
        self.initialize(**{f"raw_{name}": self.raw_constraint(name).inverse_transform(given)})

    def raw_constraint(self, name: str) -> Any:
        """What maps the unconstrained parameter to the hyper-parameter."""
        return getattr(self, f"raw_{name}_constraint")

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: object) -> Tensor:
        """The kernel (..., n, m) between inputs (..., n, 1) and (..., m, 1), or its diagonal."""
        first, second = x1[..., 0].round().long(), x2[..., 0].round().long()
        at = (first, second) if diag else (first[..., :, None], second[..., None, :])
        near = _factor(self.value("decay"), self._d[(slice(None), *at)])
        near_normalised = _factor(self.value("normalised_decay"), self._d_bar[(slice(None), *at)])
        return self.value("scale") * near + self.value("normalised_scale") * near_normalised

    def _keep_distances(self) -> None:
        """Unit-free powered distances, as buffers so that they move with the kernel."""
        found = self._table.distances
        for name, array, typical, power in zip(
            ("_d", "_d_bar"), (found.d, found.d_bar), self._typical, self._powers, strict=True
        ):
            powered = torch.from_numpy((array / typical[:, None, None]) ** power)
            self.register_buffer(name, powered, persistent=False)


def network_gp(kernel: NetworkKernel, inputs: Tensor, values: Tensor) -> SingleTaskGP:
    """A BoTorch model of values (n,) or (n, 1) at these inputs (n, 1), standardised, with noise that is fitted.

    BoTorch's check that inputs lie in the unit cube is switched off for it: they are numbers of networks.
    """
    column = values.reshape(-1, 1).to(torch.float64)
    if len(column) != len(inputs):
        raise OptionError(f"values: expected one for each of {len(inputs)} inputs, got {len(column)}")
    with validate_input_scaling(False):
        return SingleTaskGP(inputs, column, covar_module=kernel, outcome_transform=Standardize(m=1))


def _factor(decay: Tensor, powered: Tensor) -> Tensor:
    return torch.exp(-torch.einsum("w,w...->...", decay, powered))


def _typical(distances: np.ndarray) -> np.ndarray:
    """The median of each weight's positive distances between two networks; 1 where there are none."""
    return np.array([np.median(row[row > 0]) if (row > 0).any() else 1.0 for row in distances])


def _getter(name: str) -> Any:
    return lambda kernel: kernel.value(name)


def _setter(name: str) -> Any:
    return lambda kernel, value: kernel.set_value(name, value)
