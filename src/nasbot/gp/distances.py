"""Distance arrays: what is accepted, and how they become unit-free features of the kernel.

A *feature* is (distance / typical distance) ** power, one row per structural weight, those of d before those of
d_bar. Dividing by the typical distance makes decays and their prior free of units: a belief does not change when
all distances are multiplied by a constant (``tests/gp/test_belief.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nasbot.errors import NasbotError
from nasbot.gp.hyperparameters import FloatArray, Hyperparameters, KernelForm

# Beyond this every kernel value has underflowed to 0 long since, and decay * feature must stay finite: in the
# gradient 0 * inf would be NaN. Only reached when distances in one array span 100 orders of magnitude.
LARGEST_FEATURE = 1e100

# Distances are computed by solvers in floating point; rounding asymmetry of the order 1e-12 is not a user's mistake.
SYMMETRY_TOLERANCE = 1e-8


class InvalidDistancesError(NasbotError, ValueError):
    """A distance array is not what it is said to be. The message names the array, the place and the cure."""


@dataclass(frozen=True)
class DistanceScaling:
    """The typical distance of each row, found once on the evaluated networks and then kept."""

    form: KernelForm
    typical: tuple[float, ...]

    @classmethod
    def of(cls, d: FloatArray | None, d_bar: FloatArray | None, form: KernelForm) -> DistanceScaling:
        """The median of each row's positive distances between two different points; 1 where there are none."""
        rows = (row for array in (d, d_bar) if array is not None for row in array)
        return cls(form, tuple(_typical_distance(row) for row in rows))

    def features(self, d: FloatArray | None, d_bar: FloatArray | None) -> FloatArray:
        """Unit-free powered distances (features, n, m) of arrays (weights, n, m)."""
        split = self.form.n_weights
        scaled = []
        for array, typical, power in (
            (d, self.typical[:split], self.form.distance_power),
            (d_bar, self.typical[split:], self.form.normalised_power),
        ):
            if array is not None:
                with np.errstate(over="ignore"):  # clipped just below
                    scaled.append((array / np.array(typical)[:, None, None]) ** power)
        features = np.concatenate(scaled)
        np.minimum(features, LARGEST_FEATURE, out=features)
        return features

    def in_distance_units(self, theta: Hyperparameters) -> Hyperparameters:
        """The same kernel with decays for raw distances: β / typicalᵖ, as `otmann_kernel` takes them."""
        decay = _unscaled(theta.decay, self.typical[: self.form.n_weights], self.form.distance_power)
        decay_bar = _unscaled(theta.normalised_decay, self.typical[self.form.n_weights :], self.form.normalised_power)
        return Hyperparameters(theta.scale, theta.normalised_scale, decay, decay_bar, theta.noise_variance)


def kernel_form(
    d: FloatArray | None, d_bar: FloatArray | None, distance_power: float, normalised_power: float
) -> KernelForm:
    """The form of eq. (7) that these arrays call for: a missing array is a missing term."""
    return KernelForm(
        n_weights=0 if d is None else len(d),
        n_normalised_weights=0 if d_bar is None else len(d_bar),
        distance_power=distance_power,
        normalised_power=normalised_power,
    )


def checked_distances(array: object, name: str) -> FloatArray:
    """Distances among n points as a (weights, n, n) float array, or an error that says what is wrong and where."""
    distances = _checked_stack(array, name)
    if distances.shape[1] != distances.shape[2]:
        raise InvalidDistancesError(
            f"{name} must hold the distances among the n observed points, shape (n, n) or (weights, n, n), got "
            f"{distances.shape}; distances to other points belong in predict"
        )
    limit = SYMMETRY_TOLERANCE * (float(distances.max()) if distances.size else 0.0)
    diagonal = np.einsum("wii->wi", distances)
    if np.any(diagonal > limit):
        raise InvalidDistancesError(
            _at_worst(name, "must be 0 from a point to itself; found, at (weight, point)", diagonal)
        )
    asymmetry = np.abs(distances - distances.transpose(0, 2, 1))
    if np.any(asymmetry > limit):
        raise InvalidDistancesError(
            _at_worst(name, "must be symmetric; use (D + D.T) / 2 if that is meant. Largest difference", asymmetry)
        )
    return distances


def checked_cross(array: object, name: str, n_weights: int, n: int) -> FloatArray:
    """Distances from n known points (rows) to m others (columns) as a (weights, n, m) float array, or an error."""
    cross = _checked_stack(array, name)
    if cross.shape[:2] != (n_weights, n):
        hint = " (it looks transposed)" if cross.shape[0] == n_weights and cross.shape[2] == n else ""
        raise InvalidDistancesError(
            f"{name} must have shape (weights, known points, other points) = ({n_weights}, {n}, m), "
            f"got {cross.shape}{hint}"
        )
    return cross


def check_same_points(d: FloatArray | None, d_bar: FloatArray | None, names: tuple[str, str]) -> None:
    """Both arrays, where given, must be about the same points; at least one must be given."""
    if d is None and d_bar is None:
        raise InvalidDistancesError(f"{names[0]} and {names[1]} are both None; pass at least one distance array")
    if d is not None and d_bar is not None and d.shape[1:] != d_bar.shape[1:]:
        raise InvalidDistancesError(
            f"{names[0]} and {names[1]} must be about the same points, got shapes {d.shape} and {d_bar.shape}"
        )


def _checked_stack(array: object, name: str) -> FloatArray:
    try:
        distances = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidDistancesError(f"{name} must hold numbers, got {type(array).__name__}: {cause}") from cause
    if distances.ndim == 2:
        distances = distances[None]
    if distances.ndim != 3 or not len(distances):
        raise InvalidDistancesError(f"{name} must have shape (n, m) or (weights, n, m), got {distances.shape}")
    if not np.all(np.isfinite(distances)):
        bad = ~np.isfinite(distances)
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidDistancesError(
            f"{name} must be finite, got {distances[place]} at (weight, row, column) = {place} and in {bad.sum()} "
            "entries in all; replace 'incomparable' by a large number"
        )
    if np.any(distances < 0.0):
        raise InvalidDistancesError(_at_worst(name, "must be >= 0; similarities are not distances. Value", -distances))
    return distances


def _at_worst(name: str, rule: str, excess: FloatArray) -> str:
    place = tuple(int(i) for i in np.unravel_index(np.argmax(excess), excess.shape))
    return f"{name} {rule}: {abs(excess[place]):.6g} at {place}"


def _typical_distance(row: FloatArray) -> float:
    among = row[np.tril_indices(len(row), -1)]
    positive = among[among > 0.0]
    # Positive ones only: with many duplicates the plain median is 0 and would say nothing about scale.
    return float(np.median(positive)) if positive.size else 1.0


def _unscaled(decay: tuple[float, ...], typical: tuple[float, ...], power: float) -> tuple[float, ...]:
    # By logarithms, and kept representable: typical distances of 1e-200 with power 2 would overflow otherwise.
    logs = np.log(np.array(decay)) - power * np.log(np.array(typical))
    return tuple(float(value) for value in np.exp(np.clip(logs, -700.0, 700.0)))
