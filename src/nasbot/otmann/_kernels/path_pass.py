"""Masses and path lengths of many networks in one compiled pass, laid out for the solver.

The obvious versions are ``architecture.masses.layer_masses`` and ``architecture.paths.path_lengths``; this pass does
the same arithmetic in the same order, so path lengths agree to the last bit. It costs a few microseconds a network
where Python needs hundreds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nasbot.otmann._kernels._marking import inlined, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

INPUT, PROCESSING, DECISION, OUTPUT = 0, 1, 2, 3
NO_UNITS = -1
N_KINDS_AND_ENDS = 6


@kernel
def network_masses(
    labels: Integers,
    units: Integers,
    edges: Integers,
    role: Integers,
    factor: Floats,
    fixed_mass: Floats,
    zeta: float,
    floor: float,
    exponent: float,
    out: Floats,
) -> None:
    """Layer masses of one network into ``out``; ``edges`` (n, 2) ascending, ``fixed_mass`` NaN where none is set.

    Products are raised to ``exponent``; where that is 0 it is their logarithm.
    """
    n = len(labels)
    incoming = np.zeros(n)
    edge = 0
    for u in range(n):
        emitted = incoming[u] if units[u] == NO_UNITS else float(units[u])
        if u == 0:
            emitted = 1.0
        while edge < len(edges) and edges[edge, 0] == u:
            incoming[edges[edge, 1]] += emitted
            edge += 1
    total = 0.0
    n_decisions = 0
    for u in range(n):
        out[u] = 0.0
        if role[labels[u]] == PROCESSING:
            if np.isnan(fixed_mass[labels[u]]):
                out[u] = factor[labels[u]] * (1 if units[u] == NO_UNITS else units[u]) * incoming[u]
                if exponent == 0.0:
                    out[u] = math.log1p(out[u])
                elif exponent != 1.0:
                    out[u] = out[u] ** exponent
            else:
                out[u] = fixed_mass[labels[u]]
            total += out[u]
        elif role[labels[u]] == DECISION:
            n_decisions += 1
    share = max(zeta * total, floor)
    for u in range(n):
        if role[labels[u]] == DECISION:
            out[u] = share / n_decisions
    out[0] = share
    out[n - 1] = share


@kernel
def network_path_lengths(labels: Integers, edges: Integers, group: Integers, n_groups: int, out: Floats) -> None:
    """Path lengths of one network into out[u, g * 6 + 2 * kind + end]; group 0 is all layers, the others from 1."""
    n = len(labels)
    n_edges = len(edges)
    n_parents = np.zeros(n, np.int64)
    n_children = np.zeros(n, np.int64)
    for e in range(n_edges):
        n_children[edges[e, 0]] += 1
        n_parents[edges[e, 1]] += 1
    for u in range(n):
        for g in range(n_groups):
            for end in range(2):
                reached = (n_parents[u] if end == 0 else n_children[u]) > 0
                out[u, 6 * g + end] = np.inf if reached else 0.0
                out[u, 6 * g + 2 + end] = 0.0
                out[u, 6 * g + 4 + end] = 0.0

    # Edges ascend by their tail, so every layer is complete before its children see it; parents then come ascending.
    complete = 0
    for e in range(n_edges):
        while complete <= edges[e, 0]:
            _close(complete, n_parents[complete], labels, group, n_groups, 0, out)
            complete += 1
        _merge(edges[e, 0], edges[e, 1], n_groups, 0, out)
    while complete < n:
        _close(complete, n_parents[complete], labels, group, n_groups, 0, out)
        complete += 1

    # Towards the output tails descend, and the children of one tail are taken in ascending order.
    end_of_tail = n_edges
    for u in range(n - 1, -1, -1):
        begin = end_of_tail - n_children[u]
        for e in range(begin, end_of_tail):
            _merge(edges[e, 1], u, n_groups, 1, out)
        end_of_tail = begin
        _close(u, n_children[u], labels, group, n_groups, 1, out)


@inlined
def _merge(source: int, target: int, n_groups: int, end: int, out: Floats) -> None:
    """Let one neighbour's lengths count in the minimum, maximum and sum of another layer."""
    for g in range(n_groups):
        k = 6 * g + end
        out[target, k] = min(out[target, k], out[source, k])
        out[target, k + 2] = max(out[target, k + 2], out[source, k + 2])
        out[target, k + 4] += out[source, k + 4]


@inlined
def _close(u: int, n_neighbours: int, labels: Integers, group: Integers, n_groups: int, end: int, out: Floats) -> None:
    """All neighbours have counted: turn the sum into a mean and add the layer's own hop."""
    if n_neighbours:
        for g in range(n_groups):
            hop = 1.0 if g == 0 or group[labels[u]] == g else 0.0
            k = 6 * g + end
            out[u, k] += hop
            out[u, k + 2] += hop
            out[u, k + 4] = hop + out[u, k + 4] / n_neighbours


@kernel
def pack_networks(
    layer_offsets: Integers,
    labels: Integers,
    units: Integers,
    edge_offsets: Integers,
    edges: Integers,
    role: Integers,
    factor: Floats,
    fixed_mass: Floats,
    group: Integers,
    n_groups: int,
    class_of: Integers,
    n_classes: int,
    zeta: float,
    floor: float,
    exponent: float,
    features: Floats,
    masses: Floats,
    packed_labels: Integers,
    offsets: Integers,
    totals: Floats,
) -> int:
    """Fill the solver's arrays for all networks, layers sorted by exchange class, then network, then number.

    features (6 * n_groups, layers), path lengths; offsets (n_classes, networks + 1). Layers without mass are left out,
    since they take no part in the matching. Returns the number of layers kept.
    """
    n_networks = len(layer_offsets) - 1
    all_masses = np.empty(len(labels))
    for i in range(n_networks):
        begin = layer_offsets[i]
        end = layer_offsets[i + 1]
        network_masses(
            labels[begin:end],
            units[begin:end],
            edges[edge_offsets[i] : edge_offsets[i + 1]],
            role,
            factor,
            fixed_mass,
            zeta,
            floor,
            exponent,
            all_masses[begin:end],
        )
        totals[i] = 0.0
        for x in range(begin, end):  # not .sum(), which adds in another order when it is NumPy's
            totals[i] += all_masses[x]
    place = np.empty(len(labels), np.int64)
    n_kept = 0
    for c in range(n_classes):
        for i in range(n_networks):
            offsets[c, i] = n_kept
            for x in range(layer_offsets[i], layer_offsets[i + 1]):
                if class_of[labels[x]] == c:
                    place[x] = -1
                    if all_masses[x] > 0:
                        place[x] = n_kept
                        masses[n_kept] = all_masses[x]
                        packed_labels[n_kept] = labels[x]
                        n_kept += 1
        offsets[c, n_networks] = n_kept
    n_features = N_KINDS_AND_ENDS * n_groups
    for i in range(n_networks):
        begin = layer_offsets[i]
        n = layer_offsets[i + 1] - begin
        lengths = np.empty((n, n_features))
        network_path_lengths(
            labels[begin : begin + n], edges[edge_offsets[i] : edge_offsets[i + 1]], group, n_groups, lengths
        )
        for u in range(n):
            at = place[begin + u]
            if at >= 0:
                for k in range(n_features):
                    features[k, at] = lengths[u, k]
    return n_kept
