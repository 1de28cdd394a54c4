"""OTMANN written plainly from the paper and solved by linear programming: the slow, obvious twin of ``nasbot.otmann``.

eq. (3)        minimise φ_lmm(Z) + φ_nas(Z) + ν φ_str(Z) over Z >= 0, Z 1 <= masses of one, Zᵀ 1 <= masses of the other
Theorem 2      minimise <Z', C'>                 over Z' >= 0, Z' 1 = y₁, Z'ᵀ 1 = y₂           (Appendix A.1)

Nothing here shares code with the fast road: masses, path lengths and costs are computed again from the definitions, and
an infinite label penalty means that its variable does not exist, where the fast road clips it at 2.

The solver's word is not taken for it: from its prices a bound is computed that no matching can undercut, and a result
that is not within ``MAX_GAP`` of that bound is refused. So the numbers can be trusted to about ten digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, MassRules, Role
from nasbot.architecture.attributes import Attributes
from nasbot.errors import OptionError, SolverError, VocabularyError

Array = NDArray[np.float64]
PathKey = tuple[str, str, str]  # (group or "all"; sp, lp or rw; ip or op)

ALL = "all"
# The tolerances of HiGHS are absolute and not to be had tighter, so it sees larger numbers: masses of this total and
# costs times this factor. Unscaled it takes a layer of 1e-11 of the mass for an empty one and a cost of 1e-10 for none;
# scaled much further, the tolerances would ask for more digits than a float has.
SCALED_TOTAL = 1e4
COST_SCALE = 1e3
TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
MAX_GAP = 1e-10  # of the distance, between what was found and what no matching can undercut
ROUNDING = 1e-13  # of the total mass, which d is a small difference of where networks are alike


class UnsolvedError(SolverError):
    """The linear program was not solved to a proven optimum."""


@dataclass(frozen=True, eq=False)
class ReferenceMatching:
    """The Z that solves eq. (3), and the three penalties that add up to the distance."""

    matched_mass: Array  # Z, (n1, n2)
    unassigned_1: Array  # (n1,)
    unassigned_2: Array  # (n2,)
    label_penalty: float  # φ_lmm
    unassigned_mass: float  # φ_nas
    structural_penalty: float  # ν φ_str
    total_mass: float  # of both networks together
    gap: float  # by how much the distance could be too large at most

    @property
    def distance(self) -> float:
        """d, the objective of eq. (3)."""
        return self.label_penalty + self.unassigned_mass + self.structural_penalty

    @property
    def normalised_distance(self) -> float:
        """d_bar = d / (tm(G1) + tm(G2)); 0 between two networks without any mass."""
        return self.distance / self.total_mass if self.total_mass else 0.0


@dataclass(frozen=True, eq=False)
class ReferencePlan:
    """The Z' that solves the transport program of Theorem 2; its last row and column are the unassigned mass."""

    plan: Array  # (n1 + 1, n2 + 1)
    total_cost: float


def reference_distance(
    a: Architecture,
    b: Architecture,
    structural_weight: float,
    *,
    penalties: LabelPenalties | None = None,
    mass_rules: MassRules | None = None,
) -> float:
    """d(a, b) of eq. (3). Penalties default to the vocabulary's, mass rules to the paper's."""
    return reference_matching(a, b, structural_weight, penalties=penalties, mass_rules=mass_rules).distance


def reference_matching(
    a: Architecture,
    b: Architecture,
    structural_weight: float,
    *,
    penalties: LabelPenalties | None = None,
    mass_rules: MassRules | None = None,
) -> ReferenceMatching:
    """The best matching of eq. (3). Raises UnsolvedError unless it is proven to be one."""
    if a.vocabulary != b.vocabulary:
        raise VocabularyError(f"two networks must be of one kind to be matched, got {a.kind} and {b.kind}")
    label_cost = reference_label_cost(a, b, penalties)
    structural_cost = reference_structural_cost(a, b)
    mass_1, mass_2 = reference_masses(a, mass_rules), reference_masses(b, mass_rules)
    return solve_matching(mass_1, mass_2, label_cost, structural_cost, structural_weight)


# -- masses, Section 3 -------------------------------------------------------------------------------------------------


def reference_masses(arch: Architecture, mass_rules: MassRules | None = None) -> Array:
    """ℓm(u) for every layer, from the text of Section 3 and "Other details" of Appendix A.3; or its logarithm."""
    rules = mass_rules or MassRules()
    labels = [arch.vocabulary[layer.label] for layer in arch.layers]
    computation = {
        u: _computation(labels[u], arch.layers[u], incoming, rules)
        for u, incoming in enumerate(_incoming(arch))
        if labels[u].role is Role.PROCESSING
    }
    share = max(rules.nonprocessing_mass * sum(computation.values()), rules.nonprocessing_floor)
    n_decisions = sum(label.role is Role.DECISION for label in labels)
    masses = []
    for u, label in enumerate(labels):
        given = share / n_decisions if label.role is Role.DECISION else share
        masses.append(computation.get(u, given))
    return np.array(masses, dtype=np.float64)


def _computation(label: Label, layer: Layer, incoming: int, rules: MassRules) -> float:
    """The mass of a processing layer: its units times the units that come in, a pool being one unit."""
    if label.fixed_mass is not None:
        return label.fixed_mass
    product = rules.factors.get(label.name, label.mass_factor) * (layer.units or 1) * incoming
    return math.log(1 + product) if rules.logarithmic else product**rules.exponent


def _incoming(arch: Architecture) -> list[int]:
    """Channels entering each layer: what its parents emit, concatenated."""
    incoming: list[int] = []
    for v in range(len(arch.layers)):
        incoming.append(sum(_emitted(arch.layers[u], u, incoming) for u in range(v) if (u, v) in arch.edges))
    return incoming


def _emitted(layer: Layer, u: int, incoming: Sequence[int]) -> int:
    if u == 0:
        return 1  # the distance must not depend on the data set
    return incoming[u] if layer.units is None else layer.units


# -- path lengths, Section 3 and Algorithm 1 ---------------------------------------------------------------------------


def reference_path_lengths(arch: Architecture) -> dict[PathKey, Array]:
    """δ for every layer, by (group, kind, end): ``["all", "sp", "op"][u]`` is the fewest hops from u to the output.

    Kinds are sp, lp and rw (shortest, longest, random walk), ends ip and op; groups those of the vocabulary and "all".
    """
    lengths: dict[PathKey, Array] = {}
    for group in (ALL, *arch.vocabulary.groups):
        counted = [group in (ALL, arch.vocabulary[layer.label].group) for layer in arch.layers]
        for kind, reduce in (("sp", min), ("lp", max), ("rw", fmean)):
            lengths[group, kind, "op"] = np.array(_to_output(arch, counted, reduce))
            lengths[group, kind, "ip"] = np.array(_from_input(arch, counted, reduce))
    return lengths


Reduce = Callable[[list[float]], float]


def _to_output(arch: Architecture, counted: list[bool], reduce: Reduce) -> list[float]:
    """Hops out of layers that count, over the children."""

    @cache
    def length(u: int) -> float:
        onwards = [counted[u] + length(v) for v in range(len(counted)) if (u, v) in arch.edges]
        return reduce(onwards) if onwards else 0.0

    # From the back, so that the recursion finds its answers in the cache and long chains do not exhaust the stack.
    return [length(u) for u in reversed(range(len(counted)))][::-1]


def _from_input(arch: Architecture, counted: list[bool], reduce: Reduce) -> list[float]:
    """Hops into layers that count, over the parents."""

    @cache
    def length(v: int) -> float:
        backwards = [counted[v] + length(u) for u in range(len(counted)) if (u, v) in arch.edges]
        return reduce(backwards) if backwards else 0.0

    return [length(v) for v in range(len(counted))]


# -- costs, Section 3 --------------------------------------------------------------------------------------------------


def reference_label_cost(a: Architecture, b: Architecture, penalties: LabelPenalties | None = None) -> Array:
    """C_lmm (n1, n2), infinities included; with what attributes differ by where layers have some."""
    table = penalties or a.vocabulary.penalties

    def cost(x: Layer, y: Layer) -> float:
        plain = table.penalty(x.label, y.label)
        if x.attributes is None and y.attributes is None:
            return plain
        (dropout_a, norm_a, decay_a), (dropout_b, norm_b, decay_b) = (own(layer) for layer in (x, y))
        more = 0.5 * abs(dropout_a - dropout_b) + 0.1 * (norm_a != norm_b) + 0.05 * abs(math.log2(decay_a / decay_b))
        return plain if plain == math.inf else min(2.0, plain + more)

    def own(layer: Layer) -> tuple[float, str, float]:
        label, given = a.vocabulary[layer.label], layer.attributes or Attributes()
        dropout = 0.0 if given.dropout is None else given.dropout - label.dropout
        return dropout, given.norm or "the label's", given.decay_factor or 1.0

    return np.array([[cost(x, y) for y in b.layers] for x in a.layers])


def reference_structural_cost(a: Architecture, b: Architecture) -> Array:
    """C_str (n1, n2): the mean over groups of the mean over the six kinds of path length differences."""
    lengths_a, lengths_b = reference_path_lengths(a), reference_path_lengths(b)
    per_group = []
    for group in (ALL, *a.vocabulary.groups):
        keys = [(group, kind, end) for kind, end in product(("sp", "lp", "rw"), ("ip", "op"))]
        differences = [np.abs(lengths_a[key][:, None] - lengths_b[key][None, :]) for key in keys]
        per_group.append(sum(differences) / 6)
    cost: Array = np.asarray(sum(per_group)) / len(per_group)
    return cost


# -- the two programs --------------------------------------------------------------------------------------------------


def solve_matching(
    mass_1: ArrayLike,
    mass_2: ArrayLike,
    label_cost: ArrayLike,
    structural_cost: ArrayLike,
    structural_weight: float,
) -> ReferenceMatching:
    """Eq. (3) for given masses (n1,), (n2,) and costs (n1, n2); an infinite label cost forbids the match."""
    m1, m2 = _checked_masses(mass_1), _checked_masses(mass_2)
    labels, structure = np.asarray(label_cost, dtype=np.float64), np.asarray(structural_cost, dtype=np.float64)
    if not 0 <= structural_weight < np.inf:
        raise OptionError(f"structural_weight must be a finite number >= 0, got {structural_weight}")
    cost = labels + structural_weight * structure
    total = float(m1.sum() + m2.sum())
    matched, prices = np.zeros(cost.shape), np.full(len(m1), 2.0)
    rows, columns = np.nonzero(np.isfinite(cost))
    if total and len(rows):
        # φ_nas counts a matched unit on neither side: it saves 2 and pays its cost.
        sums = _sums(rows, columns, cost.shape)
        mass, marginals = _solved(cost[rows, columns] - 2.0, total, n_prices=len(m1), A_ub=sums, b_ub=[*m1, *m2])
        matched[rows, columns], prices = mass, -marginals
    matched = _made_feasible(matched, m1, m2)
    unassigned_1 = np.maximum(m1 - matched.sum(axis=1), 0.0)
    unassigned_2 = np.maximum(m2 - matched.sum(axis=0), 0.0)
    free = np.isfinite(labels)
    unproven = ReferenceMatching(
        matched_mass=matched,
        unassigned_1=unassigned_1,
        unassigned_2=unassigned_2,
        label_penalty=float((matched[free] * labels[free]).sum()),
        unassigned_mass=float(unassigned_1.sum() + unassigned_2.sum()),
        structural_penalty=float(structural_weight * (matched * structure).sum()),
        total_mass=total,
        gap=0.0,
    )
    return replace(unproven, gap=_check_gap(unproven.distance, _lower_bound(m1, m2, cost, prices), total))


def reference_transport(mass_1: ArrayLike, mass_2: ArrayLike, cost: ArrayLike) -> ReferencePlan:
    """The transport program of Theorem 2: the masses beside an unassigned row and column of cost 1, corner 0.

    ``cost`` (n1, n2) is C_lmm + ν C_str; infinite entries are left out of the program.
    """
    m1, m2, inner = _checked_masses(mass_1), _checked_masses(mass_2), np.asarray(cost, dtype=np.float64)
    supply, demand = np.array([*m1, m2.sum()]), np.array([*m2, m1.sum()])
    augmented = np.zeros((len(supply), len(demand)))
    augmented[:-1, :-1], augmented[:-1, -1], augmented[-1, :-1] = inner, 1.0, 1.0
    rows, columns = np.nonzero(np.isfinite(augmented))
    plan, prices = np.zeros(augmented.shape), np.zeros(len(supply))
    total = float(supply.sum())
    if total:
        sums = _sums(rows, columns, augmented.shape)
        fixed = {"A_eq": sums, "b_eq": [*supply, *demand]}
        plan[rows, columns], prices = _solved(augmented[rows, columns], total, n_prices=len(supply), **fixed)
    plan = _with_exact_sums(plan, m1, m2)
    found = float((plan[rows, columns] * augmented[rows, columns]).sum())
    # Weak duality: where p_i + q_j <= C'_ij throughout, no plan costs less than <y1, p> + <y2, q>.
    bound = float(supply @ prices + demand @ (augmented - prices[:, None]).min(axis=0))
    _check_gap(found, bound, total)
    return ReferencePlan(plan, found)


def _with_exact_sums(plan: Array, mass_1: Array, mass_2: Array) -> Array:
    """The plan without the violations that the solver's tolerance lets through: unassigned is what is not matched."""
    inner = _made_feasible(plan[:-1, :-1], mass_1, mass_2)
    exact = np.zeros(plan.shape)
    exact[:-1, :-1], exact[-1, -1] = inner, inner.sum()
    exact[:-1, -1] = np.maximum(mass_1 - inner.sum(axis=1), 0.0)
    exact[-1, :-1] = np.maximum(mass_2 - inner.sum(axis=0), 0.0)
    return exact


def _checked_masses(masses: ArrayLike) -> Array:
    array = np.asarray(masses, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any():
        raise OptionError(f"masses must be one row of finite numbers >= 0, got {array}")
    return array


def _sums(rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, ...]) -> Any:
    """The constraint matrix: row sums of Z, then column sums, over the variables that exist."""
    variables = np.arange(len(rows))
    constraint = np.concatenate([rows, shape[0] + columns])
    ones = np.ones(2 * len(rows))
    return coo_array((ones, (constraint, np.concatenate([variables, variables]))), shape=(sum(shape), len(rows)))


def _solved(objective: Array, total: float, *, n_prices: int, **constraints: Any) -> tuple[Array, Array]:
    """A basic solution by HiGHS' dual simplex, and the prices of the first constraints. Raises if it is not optimal."""
    scale = SCALED_TOTAL / total
    scaled = {name: np.asarray(x) * scale if name.startswith("b_") else x.tocsr() for name, x in constraints.items()}
    options = {"presolve": False, **TOLERANCES}
    result = linprog(objective * COST_SCALE, bounds=(0, None), method="highs-ds", options=options, **scaled)
    if result.status != 0:
        raise UnsolvedError(f"HiGHS did not solve a program of {len(objective)} variables: {result.message}")
    marginals = np.concatenate([result.ineqlin.marginals, result.eqlin.marginals])
    return result.x / scale, marginals[:n_prices] / COST_SCALE


# -- trust -------------------------------------------------------------------------------------------------------------


def _made_feasible(matched: Array, mass_1: Array, mass_2: Array) -> Array:
    """Without the violations that the solver's tolerance lets through: entries >= 0, no layer over-assigned."""
    feasible = np.maximum(matched, 0.0)
    for axis, masses in ((1, mass_1), (0, mass_2)):
        sums = feasible.sum(axis=axis)
        shrink = np.divide(masses, sums, out=np.ones_like(sums), where=sums > masses)
        feasible *= shrink[:, None] if axis == 1 else shrink[None, :]
    return feasible


def _lower_bound(mass_1: Array, mass_2: Array, cost: Array, prices: Array) -> float:
    """What no matching can undercut, by weak duality, from any prices of the rows.

    A unit matched from i to j saves 2 - cost_ij <= p_i + q_j, where q are the least prices of the columns for which
    this is so. All savings together are at most Σ m_i p_i + Σ m_j q_j, and d is at least the rest of the total mass.
    """
    saving = 2.0 - cost
    p = np.maximum(prices, 0.0)
    q = np.maximum((saving - p[:, None]).max(axis=0, initial=0.0), 0.0)
    p = np.maximum((saving - q[None, :]).max(axis=1, initial=0.0), 0.0)
    return float((mass_1 * (1.0 - p)).sum() + (mass_2 * (1.0 - q)).sum())


def _check_gap(found: float, bound: float, total_mass: float) -> float:
    gap = found - bound
    if gap > MAX_GAP * found + ROUNDING * total_mass:
        raise UnsolvedError(f"HiGHS found penalties of {found!r}, but only {bound!r} is proven to be unavoidable")
    return gap
