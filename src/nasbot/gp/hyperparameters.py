"""The eleven hyper-parameters of Appendix B.1, those of its extensions, their log-space vector, and their prior.

α, ᾱ, a_f      scale, normalised_scale, feature_scale     one per term of eq. (7)
βᵢ, β̄ᵢ, c_k    decay, normalised_decay, feature_decay     one per row of a term
l_j            param_decay                                one per row that all terms share
κ, c, g, ω     fidelity                                   where there are fidelities (``fidelity.py``)
η²             noise_variance                             Section 2.1

Everything is positive, so inference happens on logarithms. Inside a belief, distances are divided by their typical
size and values standardised (``rows.py``, ``warping.py``), so one prior serves all problems: it is unit free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import OptionError

FloatArray = NDArray[np.float64]

FEATURE_POWER = 2.0
PARAM_POWER = 1.5  # q
PARAM_SPREAD = 1.0  # standard deviation of log l_j
N_FIDELITY = 4  # κ, c, g, ω


@dataclass(frozen=True, kw_only=True)
class KernelForm:
    """Which terms the kernel has, over which rows (``rows.py``) each, and with which powers.

    A term over no rows is absent: ``n_normalised_weights=0`` is the paper's "only d" ablation. Rows of params stand in
    the exponent of every term, so they are a factor of the whole kernel. The paper has p = 1 and p̄ = 2; p̄ = 2 is badly
    indefinite (Cholesky fails for 22-39 % of prior draws).
    """

    n_weights: int = 4
    n_normalised_weights: int = 4
    n_features: int = 0
    n_params: int = 0
    distance_power: float = 1.0  # p
    normalised_power: float = 1.0  # p̄
    has_fidelities: bool = False

    def __post_init__(self) -> None:
        if min(self.sizes) < 0 or not sum(self.sizes):
            raise OptionError(
                f"a kernel needs at least one distance, got n_weights={self.n_weights} and "
                f"n_normalised_weights={self.n_normalised_weights}"
            )
        for name in ("distance_power", "normalised_power"):
            if not 0.0 < (power := getattr(self, name)) < np.inf:
                raise OptionError(f"{name} must be positive and finite, got {power!r}; the paper has p = 1 and p̄ = 2")

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """How many rows there are of d, d_bar, features and params."""
        return self.n_weights, self.n_normalised_weights, self.n_features, self.n_params

    @property
    def powers(self) -> tuple[float, float, float, float]:
        """The power of each kind of row."""
        return self.distance_power, self.normalised_power, FEATURE_POWER, PARAM_POWER

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The rows of each of the four kinds."""
        ends = np.cumsum((0, *self.sizes))
        return tuple(slice(int(start), int(end)) for start, end in pairwise(ends))

    @cached_property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the rows in the exponent of each present term; those of params are in all of them."""
        return tuple(tuple(r for rows in factors for r in range(rows.start, rows.stop)) for factors in self.factors)

    @cached_property
    def factors(self) -> tuple[tuple[slice, ...], ...]:
        """The same by blocks: a term is the product of one exponential for its own rows and one for the shared."""
        *own, params = self.blocks
        shared = (params,) if self.n_params else ()
        return tuple((rows, *shared) for rows in own if rows.stop > rows.start) or (shared,)

    @property
    def n_rows(self) -> int:
        """How many rows the kernel looks at."""
        return sum(self.sizes)

    @cached_property
    def n_terms(self) -> int:
        """How many exponentials are added."""
        return len(self.factors)

    @property
    def n_hyperparameters(self) -> int:
        """Eleven for the paper's kernel: 2 scales, 8 decays, 1 noise variance."""
        return self.n_terms + self.n_rows + N_FIDELITY * self.has_fidelities + 1

    def scales(self, vectors: FloatArray) -> FloatArray:
        """The entries (..., terms) of vectors (..., hyper-parameters) that stand for α, ᾱ and a_f."""
        return vectors[..., : self.n_terms]

    def decays(self, vectors: FloatArray) -> FloatArray:
        """The entries (..., rows) that stand for β, β̄, c and l."""
        return vectors[..., self.n_terms : self.n_terms + self.n_rows]

    def fidelity(self, vectors: FloatArray) -> FloatArray:
        """The entries (..., 4) that stand for κ, c, g and ω; none where there are no fidelities."""
        return vectors[..., self.n_terms + self.n_rows : -1]


@dataclass(frozen=True)
class Hyperparameters:
    """One setting of the kernel and the noise, by name. An absent term has scale 0 and no decays."""

    scale: float  # α
    normalised_scale: float  # ᾱ
    decay: tuple[float, ...]  # β
    normalised_decay: tuple[float, ...]  # β̄
    noise_variance: float  # η²
    feature_scale: float = 0.0  # a_f
    feature_decay: tuple[float, ...] = ()  # c_k
    param_decay: tuple[float, ...] = ()  # l_j
    fidelity: tuple[float, ...] = ()  # κ, c, g, ω

    @classmethod
    def from_log(cls, vector: FloatArray, form: KernelForm) -> Hyperparameters:
        """The named form of a log vector laid out as in `to_log`."""
        theta = np.exp(vector)
        left = iter(form.scales(theta).tolist())
        scales = [next(left) if size else 0.0 for size in form.sizes[:3]]
        decays = [tuple(form.decays(theta)[rows].tolist()) for rows in form.blocks]
        fidelity = tuple(form.fidelity(theta).tolist())
        scales[0] += sum(left)  # that of params alone, where nothing else is searched
        return cls(
            scale=scales[0],
            normalised_scale=scales[1],
            decay=decays[0],
            normalised_decay=decays[1],
            noise_variance=float(theta[-1]),
            feature_scale=scales[2],
            feature_decay=decays[2],
            param_decay=decays[3],
            fidelity=fidelity,
        )

    def to_log(self) -> FloatArray:
        """Logs of (scales of the present terms, decays of all rows, those of fidelity, noise_variance)."""
        scales = [scale for scale in (self.scale, self.normalised_scale, self.feature_scale) if scale]
        decays = (*self.decay, *self.normalised_decay, *self.feature_decay, *self.param_decay)
        return _log([*scales, *decays, *self.fidelity, self.noise_variance])


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Independent log-normal priors, in units of the value variance and of the typical distances.

    The medians say: the terms share the variance of the values equally; networks at the typical distance have
    correlation 1/e; the noise is a small part of the variance. They are proper, because with the paper's uniform prior
    the fit runs to zero noise. Params are on the unit scale: k of them that differ by all of it give exp(-½√k). A low
    fidelity is expected to add half of the variance again, an offset of a tenth of it, and the noise again; g is 1/2.
    """

    scale_spread: float = 1.0  # standard deviation of log scale
    decay_spread: float = 1.0
    noise_median: float = 0.02  # as a fraction of the variance of the values
    noise_spread: float = 2.0

    def mean(self, form: KernelForm) -> FloatArray:
        """Mean of the log vector (hyper-parameters,): the prior's mode, where chains start."""
        decays = [1.0 / size for size in form.sizes[:3] for _ in range(size)]
        decays += [0.5 / math.sqrt(form.n_params) for _ in range(form.n_params)]
        fidelity = [0.5, 0.1, 0.5, 1.0] if form.has_fidelities else []
        return _log([1.0 / form.n_terms] * form.n_terms + decays + fidelity + [self.noise_median])

    def spread(self, form: KernelForm) -> FloatArray:
        """Standard deviation of the log vector (hyper-parameters,)."""
        decays = [self.decay_spread] * (form.n_rows - form.n_params) + [PARAM_SPREAD] * form.n_params
        fidelity = [1.0, 1.0, 0.5, 1.0] if form.has_fidelities else []
        return np.array([self.scale_spread] * form.n_terms + decays + fidelity + [self.noise_spread])


def _log(entries: Sequence[float]) -> FloatArray:
    return np.asarray(np.log(np.array(entries, dtype=np.float64)))
