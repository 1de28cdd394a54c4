"""The eleven hyper-parameters of Appendix B.1, their log-space vector, and their prior.

α, ᾱ      scale, normalised_scale       one per term of eq. (7)
βᵢ, β̄ᵢ    decay, normalised_decay       one per structural weight and term
η²        noise_variance                 Section 2.1

Everything is positive, so inference happens on logarithms. Inside a belief, distances are divided by their typical
size and values standardised (``distances.py``, ``warping.py``), so one prior serves all problems: it is unit free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import OptionError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class KernelForm:
    """Which terms of eq. (7) there are, over how many distances each, and with which power.

    A term over no distances is absent: ``n_normalised_weights=0`` is the paper's "only d" ablation. The paper has
    p = 1 and p̄ = 2; p̄ = 2 is badly indefinite (design.md section 4: Cholesky fails for 22-39 % of prior draws).
    """

    n_weights: int = 4
    n_normalised_weights: int = 4
    distance_power: float = 1.0  # p
    normalised_power: float = 1.0  # p̄

    def __post_init__(self) -> None:
        if min(self.n_weights, self.n_normalised_weights) < 0 or not self.n_weights + self.n_normalised_weights:
            raise OptionError(
                f"a kernel needs at least one distance, got n_weights={self.n_weights} and "
                f"n_normalised_weights={self.n_normalised_weights}"
            )
        for name in ("distance_power", "normalised_power"):
            if not 0.0 < (power := getattr(self, name)) < np.inf:
                raise OptionError(f"{name} must be positive and finite, got {power!r}; the paper has p = 1 and p̄ = 2")

    @cached_property
    def term_rows(self) -> tuple[slice, ...]:
        """For each present term, the rows of a feature array (``distances.py``) it sums over."""
        split, end = self.n_weights, self.n_features
        return tuple(rows for rows in (slice(0, split), slice(split, end)) if rows.stop > rows.start)

    @property
    def n_features(self) -> int:
        """How many distances the kernel looks at."""
        return self.n_weights + self.n_normalised_weights

    @cached_property
    def n_terms(self) -> int:
        """How many exponentials are added."""
        return len(self.term_rows)

    @property
    def n_hyperparameters(self) -> int:
        """Eleven for the paper's kernel: 2 scales, 8 decays, 1 noise variance."""
        return self.n_terms + self.n_features + 1

    def scales(self, vectors: FloatArray) -> FloatArray:
        """The entries (..., terms) of vectors (..., hyper-parameters) that stand for α and ᾱ."""
        return vectors[..., : self.n_terms]

    def decays(self, vectors: FloatArray) -> FloatArray:
        """The entries (..., features) that stand for β and β̄."""
        return vectors[..., self.n_terms : -1]


@dataclass(frozen=True)
class Hyperparameters:
    """One setting of eq. (7) and the noise, by name. An absent term has scale 0 and no decays."""

    scale: float  # α
    normalised_scale: float  # ᾱ
    decay: tuple[float, ...]  # β
    normalised_decay: tuple[float, ...]  # β̄
    noise_variance: float  # η²

    @classmethod
    def from_log(cls, vector: FloatArray, form: KernelForm) -> Hyperparameters:
        """The named form of a log vector laid out as in `to_log`."""
        theta = np.exp(vector)
        scales = [float(scale) for scale in form.scales(theta)]
        decays = tuple(float(decay) for decay in form.decays(theta))
        return cls(
            scale=scales[0] if form.n_weights else 0.0,
            normalised_scale=scales[-1] if form.n_normalised_weights else 0.0,
            decay=decays[: form.n_weights],
            normalised_decay=decays[form.n_weights :],
            noise_variance=float(theta[-1]),
        )

    def to_log(self) -> FloatArray:
        """Logs of (scales of the present terms, decay, normalised_decay, noise_variance)."""
        scales = [self.scale] * bool(self.decay) + [self.normalised_scale] * bool(self.normalised_decay)
        return _log([*scales, *self.decay, *self.normalised_decay, self.noise_variance])


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Independent log-normal priors, in units of the value variance and of the typical distances.

    The medians say: the terms share the variance of the values equally; networks at the typical distance have
    correlation 1/e; the noise is a small part of the variance. They are proper, because with the paper's uniform prior
    the fit runs to zero noise (design.md section 4).
    """

    scale_spread: float = 1.0  # standard deviation of log scale
    decay_spread: float = 1.0
    noise_median: float = 0.02  # as a fraction of the variance of the values
    noise_spread: float = 2.0

    def mean(self, form: KernelForm) -> FloatArray:
        """Mean of the log vector (hyper-parameters,): the prior's mode, where chains start."""
        sizes = [rows.stop - rows.start for rows in form.term_rows]
        decays = [1.0 / size for size in sizes for _ in range(size)]
        return _log([1.0 / form.n_terms] * form.n_terms + decays + [self.noise_median])

    def spread(self, form: KernelForm) -> FloatArray:
        """Standard deviation of the log vector (hyper-parameters,)."""
        return np.array(
            [self.scale_spread] * form.n_terms + [self.decay_spread] * form.n_features + [self.noise_spread]
        )


def _log(entries: Sequence[float]) -> FloatArray:
    return np.asarray(np.log(np.array(entries, dtype=np.float64)))
