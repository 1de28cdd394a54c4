"""Fidelity: what a cheap evaluation, at a share s of the full effort, says of a full one (s = 1).

f(x, s) = f(x, 1) + φ(s) r(x),  φ(s) = ((1/s)^g - 1) / (9^g - 1):  0 at s = 1, 1 at s = 1/9

    k((x, s), (x', s')) = k(x, x') + φ(s) φ(s') [κ k(x, x') + c]

The residual r has the kernel κ k + c; c is also the prior variance of its mean, so that needs no parameter of its own.
What is asked at s = 1 has φ = 0 and sees the plain kernel. Short trainings are also noisier: the noise variance at s is
η² (1 + ω φ(s)).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nasbot.gp.hyperparameters import FloatArray, KernelForm
from nasbot.gp.warping import InvalidValuesError

_UNIT = math.log(9.0)  # φ is 1 at s = 1/9


def checked_fidelities(fidelities: object, n: int) -> FloatArray | None:
    """Fidelities (n,) in (0, 1], or an error; None where all are 1, which is the plain belief."""
    array = np.asarray(fidelities, dtype=np.float64)
    if array.shape != (n,) or not np.all((array > 0.0) & (array <= 1.0)):
        raise InvalidValuesError(f"fidelities must be {n} numbers in (0, 1], one for each value, got {fidelities!r}")
    return None if np.all(array == 1.0) else array


def remainder(fidelities: FloatArray, g: FloatArray) -> FloatArray:
    """φ (..., n) of fidelities (n,) for exponents g (...)."""
    exponent = np.asarray(g)[..., None]
    return np.asarray(np.expm1(exponent * -np.log(fidelities)) / np.expm1(exponent * _UNIT))


def remainder_slope(fidelities: FloatArray, g: float) -> FloatArray:
    """∂φ/∂ log g (n,)."""
    log_effort, unit = -np.log(fidelities), math.expm1(g * _UNIT)
    above = np.expm1(g * log_effort)
    return np.asarray(g * (log_effort * (above + 1.0) * unit - above * _UNIT * (unit + 1.0)) / unit**2)


def with_fidelities(
    kernel: FloatArray, vectors: FloatArray, form: KernelForm, left: FloatArray, right: FloatArray
) -> FloatArray:
    """The formula at the head of this file, from the plain kernel (s, n, m), for fidelities (n,) and (m,)."""
    kappa, offset, g, _ = np.moveaxis(np.exp(form.fidelity(vectors)), -1, 0)
    weight = remainder(left, g)[:, :, None] * remainder(right, g)[:, None, :]
    return np.asarray(kernel * (1.0 + kappa[:, None, None] * weight) + offset[:, None, None] * weight)


def added_noise(vectors: FloatArray, form: KernelForm, fidelities: FloatArray) -> FloatArray:
    """η² ω φ (s, n): by how much the noise variance at these fidelities (n,) exceeds that at 1."""
    *_, g, omega = np.moveaxis(np.exp(form.fidelity(vectors)), -1, 0)
    return np.asarray((np.exp(vectors[..., -1]) * omega)[:, None] * remainder(fidelities, g))


def information_gap(vectors: FloatArray, form: KernelForm, fidelities: FloatArray) -> FloatArray:
    """√(1 - ρ²) (s, m), ρ being the prior correlation of the objective at these fidelities (m,) and at 1."""
    kappa, offset, g, _ = np.moveaxis(np.exp(form.fidelity(vectors)), -1, 0)
    variance = np.exp(form.scales(vectors)).sum(axis=-1)
    added = (kappa + offset / variance)[:, None] * remainder(fidelities, g) ** 2  # per unit of variance at 1
    return np.asarray(np.sqrt(added / (1.0 + added)))


def levelled(values: FloatArray, fidelities: FloatArray, candidates: NDArray[np.intp]) -> FloatArray:
    """Values (n,) on the scale of full fidelity: each rung's offset removed, by the pairs seen there and higher up.

    ``candidates`` (n,) has one number for all observations of one candidate. The offset is the median difference of
    such pairs, of logarithms where all values have one sign; that of the rung above where there are none. Ranking
    within rungs would not do: what was promoted is a selected lot.
    """
    sign = 1.0 if np.all(values > 0.0) else -1.0 if np.all(values < 0.0) else 0.0
    line = sign * np.log(sign * values) if sign else values.copy()
    lower, higher = _pairs(fidelities, candidates)
    offset = 0.0
    for s in np.unique(fidelities)[::-1]:
        seen = fidelities[lower] == s
        if np.any(seen):
            offset = float(np.median(line[higher[seen]] - line[lower[seen]]))
        line[fidelities == s] += offset
    return np.asarray(sign * np.exp(sign * line) if sign else line)


def _pairs(fidelities: FloatArray, candidates: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of two observations of one candidate, the second at the higher fidelity: all such pairs."""
    order = np.lexsort((fidelities, candidates))
    most = int(np.unique(candidates, return_counts=True)[1].max(initial=1))
    pairs = [(order[:-shift], order[shift:]) for shift in range(1, most)]
    lower, higher = np.concatenate([np.empty((2, 0), np.intp), *pairs], axis=1)
    kept = (candidates[lower] == candidates[higher]) & (fidelities[lower] < fidelities[higher])
    return lower[kept], higher[kept]
