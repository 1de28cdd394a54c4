import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nasbot.architecture import SearchSpace, initial_pool
from nasbot.errors import OptionError, VocabularyError
from nasbot.evolution import Mutation, MutationOperator
from nasbot.otmann import NeighbourIndex, Otmann
from nasbot.otmann.packing import joined


def grown(kind: str, n: int, seed: int = 0) -> list:
    """Networks grown by mutation from the pool, some of them more than once."""
    rng, operator = np.random.default_rng(seed), MutationOperator(SearchSpace(kind))
    networks = list(initial_pool(kind))
    while len(networks) < n:
        made = operator(networks[rng.integers(len(networks))], rng=rng)
        networks.append(made.arch if isinstance(made, Mutation) else networks[0])
    return [networks[i] for i in rng.permutation(n)]


MLPS, CNNS = grown("mlp-reg", 300), grown("cnn", 120)


def nearest_by_all(distance, asked, networks, k: int, normalised: bool):
    """The slow twin: every distance."""
    between = distance.cross(asked, networks)
    mean = (between.d_bar if normalised else between.d).mean(axis=0)
    numbers = np.array([np.lexsort((np.arange(len(row)), row))[:k] for row in mean])
    return numbers, np.take_along_axis(mean, numbers, axis=1)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("networks", [MLPS, CNNS], ids=["mlp", "cnn"])
@pytest.mark.parametrize("distance", [Otmann(), Otmann(preset="log-mass", structural_weights=[0.5])])
def test_the_nearest_are_those_of_all_distances(networks, distance, normalised):
    asked, known = networks[:20], networks[10:]
    found = NeighbourIndex(known, distance=distance).query(asked, 7, normalised=normalised)
    numbers, distances = nearest_by_all(distance, asked, known, 7, normalised)
    assert found.numbers.tolist() == numbers.tolist()
    assert found.distances.tolist() == distances.tolist()


@settings(max_examples=15)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 12))
def test_it_grows_by_appending(sizes, k):
    index, known = NeighbourIndex(), MLPS[10 : 10 + sum(sizes)][:290]
    begin = 0
    for size in sizes:
        index.append(known[begin : begin + size])
        begin += size
    assert len(index) == len(known)
    k = min(k, len(known))
    found = index.query(MLPS[:5], k)
    assert found.numbers.tolist() == nearest_by_all(index.distance, MLPS[:5], known, k, False)[0].tolist()


def test_few_exact_distances_are_needed():
    found = NeighbourIndex(MLPS[20:]).query(MLPS[:20], 3)
    assert found.n_exact < 0.6 * 20 * 280


def test_those_appended_first():
    index = NeighbourIndex(MLPS[20:])
    found = index.query(MLPS[:20], 5, first=100)
    assert found.numbers.tolist() == nearest_by_all(index.distance, MLPS[:20], MLPS[20:120], 5, False)[0].tolist()


def test_all_of_them_and_none():
    index = NeighbourIndex(MLPS[:9])
    assert sorted(index.query(MLPS[20:21], 9).numbers[0]) == list(range(9))
    assert index.query([], 2).numbers.shape == (0, 2)


@pytest.mark.parametrize("k", [0, 10, -1])
def test_k_is_at_most_the_number_of_networks(k):
    with pytest.raises(OptionError, match=rf"k: expected 1 to 9, .* got {k}"):
        NeighbourIndex(MLPS[:9]).query(MLPS[:1], k)


def test_one_kind_in_an_index():
    index = NeighbourIndex(MLPS[:9])
    with pytest.raises(VocabularyError, match="holds networks of kind mlp-reg; got some of kind cnn"):
        index.append(CNNS[:2])
    assert len(index) == 9


def test_packs_are_joined_and_taken_as_if_packed_together():
    distance = Otmann()
    parts = [distance.pack(MLPS[:4]), distance.pack(MLPS[4:30]), distance.pack(MLPS[30:31])]
    chosen = np.array([29, 3, 3, 17, 30, 0])
    whole = distance.pack(MLPS[:31])
    for made, packed in ((joined(parts), whole), (whole.taken(chosen), distance.pack([MLPS[i] for i in chosen]))):
        assert distance.cross(MLPS[40:50], made).d.tolist() == distance.cross(MLPS[40:50], packed).d.tolist()
        assert made.class_masses() == pytest.approx(packed.class_masses())
        for name in ("order", "masses", "labels", "offsets", "hops", "walks", "label_costs", "total_masses"):
            assert np.array_equal(getattr(made, name), getattr(packed, name)), name


def one_sided_by_hand(distance, a, b) -> float:
    """The slow twin of ``Otmann.bounds``: what is in one place cancelled, the larger of both sides, class by class."""
    total = 0.0
    packed_a, packed_b = distance.pack([a]), distance.pack([b])
    for begin_a, end_a, begin_b, end_b in zip(*packed_a.offsets.T, *packed_b.offsets.T, strict=True):
        rows, columns = slice(begin_a, end_a), slice(begin_b, end_b)
        label = packed_b.label_costs[packed_a.labels[rows], columns]
        n_lengths = len(packed_a.hops) + len(packed_a.walks)
        apart = np.abs(packed_a.hops[:, rows, None] - packed_b.hops[:, None, columns]).sum(axis=0) / n_lengths
        apart = apart + np.abs(packed_a.walks[:, rows, None] - packed_b.walks[:, None, columns]).sum(axis=0)
        left_a, left_b = packed_a.masses[rows].copy(), packed_b.masses[columns].copy()
        for x, y in np.argwhere((apart == 0) & (label == 0)):
            matched = min(left_a[x], left_b[y])
            left_a[x] -= matched
            left_b[y] -= matched
        for weight in distance.structural_weights:
            cost = np.minimum(label + weight * apart, 2.0)[left_a > 0][:, left_b > 0]
            sides = ((left_a[left_a > 0], left_b[left_b > 0], cost), (left_b[left_b > 0], left_a[left_a > 0], cost.T))
            total += max(_of_one_side(mass, other, costs) for mass, other, costs in sides)
    return total / len(distance.structural_weights)


def _of_one_side(mass, other, cost) -> float:
    least, room, total = cost.min(axis=1, initial=2.0), other.sum(), other.sum() - mass.sum()
    for i in np.argsort(least, kind="stable"):
        matched = min(mass[i], room)
        room -= matched
        total += matched * least[i] + (mass[i] - matched) * 2.0
    return float(total)


@pytest.mark.parametrize("networks", [MLPS[:60], CNNS[:60]], ids=["mlp", "cnn"])
@pytest.mark.parametrize("distance", [Otmann(), Otmann(preset="log-mass", structural_weights=[0.5])])
def test_bounds_are_close_and_never_above_the_distance(networks, distance):
    others = distance.pack(networks)
    for arch in networks[:12]:
        one = distance.pack([arch])
        bounds, d = distance.bounds(one, others), distance.cross(one, others).d.mean(axis=0)[0]
        rounding = 1e-9 * (one.total_masses + others.total_masses)
        by_hand = np.array([one_sided_by_hand(distance, arch, other) for other in networks])
        assert np.all(bounds <= d + rounding)
        assert np.all(np.abs(bounds - by_hand) <= rounding)
        assert np.median(bounds[d > 0] / d[d > 0]) > 0.9


def test_packs_in_files_answer_alike(monkeypatch):
    in_memory = NeighbourIndex(MLPS[20:]).query(MLPS[:10], 5)
    monkeypatch.setattr("nasbot.otmann.neighbours.MAPPED_FROM", 100)
    monkeypatch.setattr("nasbot.otmann.neighbours.N_PER_PACK", 37)
    index = NeighbourIndex(MLPS[20:])
    in_file = [pack for pack in index._packs if isinstance(pack.hops.base, np.memmap)]
    assert len(in_file) > 1, "those in files are not joined again, which would take all of them into memory"
    assert max(map(len, in_file)) < 200
    in_files = index.query(MLPS[:10], 5)
    assert in_files.numbers.tolist() == in_memory.numbers.tolist()
    assert in_files.distances.tolist() == in_memory.distances.tolist()


@pytest.mark.slow
def test_a_thousand_queries_of_twenty_thousand_networks():
    from benchmarks.scale import indexed

    assert indexed(20_000, 1000)["exact_answers"] == 1000


def test_landmarks_are_some_spread_evenly_and_then_always_the_farthest(monkeypatch):
    monkeypatch.setattr("nasbot.otmann.neighbours.N_SPREAD", 3)
    monkeypatch.setattr("nasbot.otmann.neighbours.N_FARTHEST", 4)
    index = NeighbourIndex(MLPS[:41])
    mean = index.distance.pairwise(MLPS[:41]).d.mean(axis=0)
    chosen = [0, 20, 40]
    for _ in range(4):
        chosen.append(int(mean[:, chosen].min(axis=1).argmax()))
    np.testing.assert_allclose(index._to_landmarks.all, mean[:, chosen], atol=1e-12)


def test_what_is_packed_already_is_appended_as_it_is():
    packed = NeighbourIndex()
    packed.append(Otmann().pack(MLPS[20:60]))
    assert packed.query(MLPS[:5], 3).numbers.tolist() == NeighbourIndex(MLPS[20:60]).query(MLPS[:5], 3).numbers.tolist()
