"""Rows: all that the kernel sees of pairs of points; what is accepted, and how it is made unit free.

A row says how far points are apart in one respect: an OTMANN distance at one structural weight, a feature of networks,
a hyper-parameter of their training. What enters exponents is the *powered* row, (row / typical size) ** power. Dividing
by the typical size makes decays and their prior free of units: a belief does not change when all distances are
multiplied by a constant (``tests/gp/test_belief.py``). Rows of params are on the unit scale already, and stay there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import NasbotError
from nasbot.gp.hyperparameters import PARAM_POWER, FloatArray, Hyperparameters, KernelForm
from nasbot.gp.kernel import Crossed, Powered

# Beyond this every kernel value has underflowed to 0 long since, and decay * row must stay finite: in the
# gradient 0 * inf would be NaN. Only reached when distances in one array span 100 orders of magnitude.
LARGEST_POWERED = 1e100

# Distances are computed by solvers in floating point; rounding asymmetry of the order 1e-12 is not a user's mistake.
SYMMETRY_TOLERANCE = 1e-8

KINDS = ("d", "d_bar", "features", "params")

At = slice | NDArray[np.intp]


class InvalidDistancesError(NasbotError, ValueError):
    """A distance array is not what it is said to be. The message names the array, the place and the cure."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Differences (rows, n, m) between n points and m points, kind by kind. ``rows[:5, 3:]`` is about some of them."""

    array: FloatArray
    sizes: tuple[int, int, int, int]  # how many rows there are of d, d_bar, features and params, in this order
    # (params, n, s) where each of the m stands for s points: itself with each of s settings, whose rows these are. Then
    # the array has no rows of params, and points are in the order of the settings.
    settings: FloatArray | None = None

    @classmethod
    def of(cls, d: object = None, d_bar: object = None, *, features: object = None, params: object = None) -> Rows:
        """From arrays (rows, n, m), or (n, m) for a single row; a kind that is None is absent. Checks their entries.

        d and d_bar have terms of their own (eq. (7)), features a third one; params stand in the exponents of all.
        """
        given = dict(zip(KINDS, (d, d_bar, features, params), strict=True))
        stacks = {kind: _checked_stack(entry, kind) for kind, entry in given.items() if entry is not None}
        if not stacks:
            raise InvalidDistancesError("d and d_bar are both None; pass at least one distance array")
        if len({stack.shape[1:] for stack in stacks.values()}) > 1:
            shapes = " and ".join(str(stack.shape) for stack in stacks.values())
            raise InvalidDistancesError(f"{' and '.join(stacks)} must be about the same points, got shapes {shapes}")
        n_d, n_bar, n_features, n_params = (len(stacks.get(kind, ())) for kind in KINDS)
        array = np.concatenate(list(stacks.values())) if len(stacks) > 1 else next(iter(stacks.values()))
        return cls(array, (n_d, n_bar, n_features, n_params))

    def with_settings(self, params: FloatArray) -> Rows:
        """From the n points to each of the m with every one of s settings, by their rows (params, n, s)."""
        checked = _checked_stack(params, "params")
        if self.sizes[3] or checked.shape[1] != self.n:
            raise InvalidDistancesError(
                f"settings: expected rows without params and settings of shape (params, {self.n}, s), got "
                f"{_counted(self.sizes)} and {checked.shape}"
            )
        return Rows(self.array, (*self.sizes[:3], len(checked)), checked)

    def __getitem__(self, at: tuple[At, At]) -> Rows:
        """Between some of the n points and some of the m, as numpy indexes the last two axes."""
        if self.settings is None:
            return replace(self, array=self.array[:, at[0], at[1]])
        assert at[1] == slice(None), "points with several settings are taken all together"
        return replace(self, array=self.array[:, at[0]], settings=self.settings[:, at[0]])

    def among(self, chosen: NDArray[np.intp]) -> Rows:
        """Among some of the points, where both axes are about the same ones."""
        return self[chosen[:, None], chosen]

    @property
    def same_points(self) -> NDArray[np.intp]:
        """For each of n points, among which these rows are, the first from which it does not differ."""
        return np.asarray((~np.any(self.array, axis=0)).argmax(axis=1))

    @property
    def n(self) -> int:
        """Number of points along the first axis: where a belief is asked, the known ones."""
        return int(self.array.shape[1])

    @property
    def m(self) -> int:
        """Number of points along the second axis: where a belief is asked, the others."""
        return int(self.array.shape[2]) * (1 if self.settings is None else self.settings.shape[2])

    def form(self, distance_power: float, normalised_power: float) -> KernelForm:
        """The form of the kernel that these rows call for: a missing kind is a missing term."""
        n_d, n_bar, n_features, n_params = self.sizes
        return KernelForm(
            n_weights=n_d,
            n_normalised_weights=n_bar,
            n_features=n_features,
            n_params=n_params,
            distance_power=distance_power,
            normalised_power=normalised_power,
        )

    def check_among(self) -> Rows:
        """Itself, or an error unless it is about one set of points: square, symmetric, 0 on the diagonal."""
        for kind, stack in self.kinds():
            if stack.shape[1] != stack.shape[2]:
                raise InvalidDistancesError(
                    f"{kind} must hold the distances among the n observed points, shape (n, n) or (weights, n, n), got "
                    f"{stack.shape}; distances to other points belong in predict"
                )
            limit = SYMMETRY_TOLERANCE * (float(stack.max()) if stack.size else 0.0)
            diagonal = np.einsum("wii->wi", stack)
            if np.any(diagonal > limit):
                rule = "must be 0 from a point to itself; found, at (weight, point)"
                raise InvalidDistancesError(_at_worst(kind, rule, diagonal))
            asymmetry = np.abs(stack - stack.transpose(0, 2, 1))
            if np.any(asymmetry > limit):
                rule = "must be symmetric; use (D + D.T) / 2 if that is meant. Largest difference"
                raise InvalidDistancesError(_at_worst(kind, rule, asymmetry))
        return self

    def check_known(self, form: KernelForm, n: int) -> Rows:
        """Itself, or an error unless it has the kinds of rows of this form, from n known points to others."""
        if self.sizes != form.sizes:
            raise InvalidDistancesError(
                f"the belief was fitted with {_counted(form.sizes)}; pass the same kinds again, got "
                f"{_counted(self.sizes)}"
            )
        if self.n != n:
            hint = " (it looks transposed)" if self.m == n else ""
            raise InvalidDistancesError(
                f"rows must have shape (rows, known points, other points) = ({form.n_rows}, {n}, m), "
                f"got {self.array.shape}{hint}"
            )
        return self

    def kinds(self) -> list[tuple[str, FloatArray]]:
        """The arrays of the kinds that there are, by name."""
        parts = np.split(self.array, np.cumsum(self.sizes[:-1]))
        return [(kind, part) for kind, part in zip(KINDS, parts, strict=True) if len(part)]


@dataclass(frozen=True)
class RowScaling:
    """The typical size of each row, found once on the evaluated networks and then kept."""

    form: KernelForm
    typical: tuple[float, ...]

    @classmethod
    def of(cls, rows: Rows, form: KernelForm) -> RowScaling:
        """The median of each row's positive entries between two different points; 1 where there are none."""
        scaled = rows.array[: form.n_rows - form.n_params]
        return cls(form, (*(_typical_size(row) for row in scaled), *(1.0,) * form.n_params))

    def powered(self, rows: Rows) -> FloatArray:
        """Unit-free powered rows (rows, n, m)."""
        typical = np.array(self.typical)[:, None, None]
        powered = np.empty(rows.array.shape)
        for block, power in zip(self.form.blocks, self.form.powers, strict=True):
            with np.errstate(over="ignore"):  # clipped just below
                powered[block] = (rows.array[block] / typical[block][: len(powered[block])]) ** power
        np.minimum(powered, LARGEST_POWERED, out=powered)
        return powered

    def crossed(self, rows: Rows) -> Powered:
        """The same, for rows that may have settings of their own."""
        if rows.settings is None:
            return self.powered(rows)
        return Crossed(self.powered(rows), rows.settings**PARAM_POWER)

    def in_distance_units(self, theta: Hyperparameters) -> Hyperparameters:
        """The same kernel with decays for raw rows: β / typicalᵖ, as `otmann_kernel` takes them."""
        decays = (theta.decay, theta.normalised_decay, theta.feature_decay, theta.param_decay)
        blocks = zip(decays, self.form.blocks, self.form.powers, strict=True)
        d, d_bar, features, params = (_unscaled(decay, self.typical[block], power) for decay, block, power in blocks)
        return replace(theta, decay=d, normalised_decay=d_bar, feature_decay=features, param_decay=params)


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


def _counted(sizes: tuple[int, int, int, int]) -> str:
    d, d_bar, features, params = sizes
    more = f", {features} features and {params} params" if features or params else ""
    return f"{d} distances d and {d_bar} distances d_bar{more}"


def _typical_size(row: FloatArray) -> float:
    among = row[np.tril_indices(len(row), -1)]
    positive = among[among > 0.0]
    # Positive ones only: with many duplicates the plain median is 0 and would say nothing about scale.
    return float(np.median(positive)) if positive.size else 1.0


def _unscaled(decay: tuple[float, ...], typical: tuple[float, ...], power: float) -> tuple[float, ...]:
    # By logarithms, and kept representable: typical distances of 1e-200 with power 2 would overflow otherwise.
    logs = np.log(np.array(decay)) - power * np.log(np.array(typical))
    return tuple(float(value) for value in np.exp(np.clip(logs, -700.0, 700.0)))
