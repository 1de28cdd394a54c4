"""The networks that a search begins with: plain, sized to the data, inside the space."""

import pytest

from nasbot.architecture import Layer, SearchSpace, chain, initial_pool
from nasbot.architecture.pools import narrower
from nasbot.automl.baselines import LEAST_WIDTH, baseline_of, paper_pool, plain_pool
from nasbot.automl.plan import space_for
from nasbot.domain import Choice, Domain
from nasbot.errors import OptionError

PREPARATION = {"preparation": Choice("standard", "robust", "quantile", "ple")}
SHAPES = [("mlp-reg", (9,), 1), ("mlp-class", (61,), 10), ("cnn", (1, 8, 8), 10), ("cnn", (3, 32, 32), 10)]


def units(arch):
    return [layer.units for layer in arch.layers if layer.units]


@pytest.mark.parametrize(("kind", "shape", "n_outputs"), SHAPES)
@pytest.mark.parametrize("n_rows", [30, 20_000])
@pytest.mark.parametrize("pool_of", [plain_pool, paper_pool])
def test_there_is_a_pool_in_every_space(kind, shape, n_outputs, n_rows, pool_of):
    domain = Domain(space_for(kind, shape, n_outputs, n_rows=n_rows, batch_size=64))
    pool = pool_of(domain, n_rows=n_rows) if pool_of is plain_pool else pool_of(domain)
    assert len(pool) >= 3
    assert all(candidate in domain for candidate in pool)
    assert len({candidate.fingerprint for candidate in pool}) == len(pool)


def test_the_first_is_the_baseline():
    domain = Domain(space_for("mlp-reg", (9,), 1, n_rows=20_000, batch_size=64))
    assert plain_pool(domain, n_rows=20_000)[0].arch == baseline_of("mlp-reg", 20_000)


def test_few_rows_have_narrow_networks():
    wide, middle, narrow = (units(baseline_of("mlp-reg", n)) for n in (20_000, 2_000, 20))
    assert wide > middle > narrow == [LEAST_WIDTH] * len(narrow)
    assert units(baseline_of("mlp-reg", 10**7)) == wide
    assert all(n % 8 == 0 for n in middle)


def test_they_differ_in_how_inputs_are_prepared_where_that_is_searched():
    space = space_for("mlp-reg", (9,), 1, n_rows=20_000, batch_size=64)
    pool = plain_pool(Domain(space, PREPARATION), n_rows=20_000)
    assert pool[0].params == {"preparation": "standard"}
    assert {candidate.params["preparation"] for candidate in pool} == set(PREPARATION["preparation"].values)
    assert all(not candidate.params for candidate in plain_pool(Domain(space), n_rows=20_000))


@pytest.mark.parametrize(("default", "shifted"), [("none", "crops"), ("flips", "flips+crops")])
def test_some_of_them_see_images_shifted_beside_what_is_done_to_all(default, shifted):
    space = space_for("cnn", (3, 16, 16), 10, n_rows=8000, batch_size=64)
    augmentation = {"augmentation": Choice("none", "flips", "crops", "flips+crops", default=default)}
    pool = plain_pool(Domain(space, augmentation), n_rows=8000)
    assert pool[0].params == {"augmentation": default}
    assert {candidate.params["augmentation"] for candidate in pool} == {default, shifted}


@pytest.mark.parametrize("pool_of", [lambda *a, **k: plain_pool(*a, n_rows=9000, **k), paper_pool])
def test_own_networks_come_first_once_and_must_fit(pool_of):
    domain = Domain(SearchSpace("mlp-reg", max_layers=9))
    mine = chain("mlp-reg", [Layer("tanh", 20)])
    assert pool_of(domain, first=[mine])[0].arch == mine
    assert len(pool_of(domain, first=[mine, mine])) == 1 + len(pool_of(domain))
    with pytest.raises(OptionError, match="start_from: network 1 does not fit"):
        pool_of(domain, first=[mine, chain("mlp-reg", [Layer("tanh", 20)] * 12)])


def test_with_room_enough_the_papers_pool_is_the_papers():
    domain = Domain(SearchSpace("mlp-reg"))
    assert [candidate.arch for candidate in paper_pool(domain)] == list(initial_pool("mlp-reg"))


def test_narrower_ends_at_the_least():
    sizes = [units(arch) for arch in narrower(chain("mlp-reg", [Layer("relu", 64), Layer("relu", 16)]), 8)]
    assert sizes == [[64, 16], [32, 8], [16, 8], [8, 8], [8, 8]]


def test_where_nothing_fits_it_is_said():
    space = SearchSpace("mlp-reg", input_shape=(5,), n_outputs=1, max_parameters=10)
    with pytest.raises(OptionError, match="not even the narrowest network of the pool"):
        plain_pool(Domain(space), n_rows=5000)


def test_few_rows_begin_with_small_networks_too():
    domain = Domain(SearchSpace("mlp-reg"))
    few, many = (plain_pool(domain, n_rows=n) for n in (300, 5000))
    assert len(few) == len(many) + 2
    assert [units(candidate.arch) for candidate in few[1:3]] == [[16], []]  # one layer, and a linear model
