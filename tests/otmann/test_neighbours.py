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
