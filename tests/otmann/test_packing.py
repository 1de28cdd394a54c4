"""The compiled pass against its obvious twins in ``architecture``."""

import numpy as np
import pytest

from nasbot.architecture import (
    CNN,
    MLP_REG,
    Architecture,
    Label,
    LabelPenalties,
    Layer,
    Role,
    Vocabulary,
    layer_masses,
)
from nasbot.errors import InvalidArchitectureError, VocabularyError
from nasbot.otmann.packing import pack
from nasbot.otmann.presets import FIGURE, LOG_MASS, PAPER, RELEASE, RuleSet
from nasbot.testing.networks import random_architecture


def networks(kind: str, n: int = 30) -> list[Architecture]:
    sizes = np.random.default_rng(7).integers(8, 60, n)
    return [random_architecture(kind, rng=np.random.default_rng(i), n_layers=int(size)) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
@pytest.mark.parametrize("rules", [PAPER, RELEASE, FIGURE, LOG_MASS], ids=lambda rules: rules.name)
def test_the_compiled_pass_gives_the_masses_and_path_lengths_of_the_plain_one(kind: str, rules: RuleSet) -> None:
    archs = networks(kind)
    packed = pack(archs, rules)
    class_of = rules.penalties_for(packed.vocabulary).exchange_classes
    assert (np.diff(packed.total_masses[packed.order]) >= 0).all()
    for i, number in enumerate(packed.order):
        arch = archs[number]
        masses = layer_masses(arch, rules.mass_rules)
        lengths = arch.path_lengths.features
        labels = [arch.vocabulary.index[layer.label] for layer in arch.layers]
        assert packed.total_masses[number] == pytest.approx(masses.sum(), rel=1e-14)
        for c, offsets in enumerate(packed.offsets):
            rows = slice(offsets[i], offsets[i + 1])
            members = [u for u, label in enumerate(labels) if class_of[label] == c]
            members.sort(key=lambda u: -masses[u])
            np.testing.assert_array_equal(packed.labels[rows], [labels[u] for u in members])
            np.testing.assert_allclose(packed.masses[rows], masses[members], rtol=1e-14)
            is_walk = np.arange(lengths.shape[1]) % 6 >= 4
            np.testing.assert_array_equal(packed.hops[:, rows].T, lengths[members][:, ~is_walk])
            np.testing.assert_array_equal(packed.walks[:, rows].T, lengths[members][:, is_walk] / len(is_walk))
            penalties = rules.penalties_for(packed.vocabulary).matrix
            np.testing.assert_array_equal(packed.label_costs[:, rows], penalties[:, [labels[u] for u in members]])


def test_layers_without_mass_are_left_out_and_totals_may_be_zero() -> None:
    linear_model = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    packed = pack([linear_model], PAPER)
    assert len(packed.masses) == 0
    assert packed.total_masses.tolist() == [0.0]


def test_networks_of_two_vocabularies_are_refused_by_name() -> None:
    archs = [
        random_architecture("mlp-reg", rng=np.random.default_rng(0), n_layers=8),
        random_architecture("cnn", rng=np.random.default_rng(0), n_layers=8),
    ]
    with pytest.raises(VocabularyError, match="network 0 is mlp-reg, network 1 is cnn"):
        pack(archs, PAPER)


def test_a_users_vocabulary_keeps_its_own_penalties_under_every_preset() -> None:
    assert RELEASE.penalties_for(CNN).penalty("max-pool", "avg-pool") == 0.5
    assert RELEASE.penalties_for(MLP_REG) is MLP_REG.penalties
    own = type(CNN)("cnn", CNN.labels, CNN.penalties, rules=(lambda arch: (),))
    assert RELEASE.penalties_for(own).penalty("max-pool", "avg-pool") == 0.25


def test_masses_beyond_floating_point_are_refused_by_both_passes() -> None:
    labels = (
        Label(name="ip", role=Role.INPUT),
        Label(name="op", role=Role.OUTPUT),
        Label(name="vast", takes_units=True, mass_factor=1e306),
    )
    vocabulary = Vocabulary("vast", labels, LabelPenalties.from_pairs(("ip", "op", "vast"), {}))

    def network(units: int) -> Architecture:
        return Architecture(vocabulary, [Layer("ip"), Layer("vast", units), Layer("op")], [(0, 1), (1, 2)])

    assert pack([network(10)], PAPER).total_masses[0] == pytest.approx(layer_masses(network(10)).sum())
    for compute in (layer_masses, lambda arch: pack([arch], PAPER)):
        with pytest.raises(InvalidArchitectureError, match="mass beyond 8e\\+307"):
            compute(network(1000))


def test_a_pack_in_a_file_is_the_same_pack_though_some_of_its_arrays_are_empty() -> None:
    """A file of no bytes cannot be mapped: a slim pack has no costs of labels, a massless one no layers at all."""
    linear_model = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    others = networks("mlp-reg", 3)
    for archs in ([linear_model], [*others, linear_model]):
        packed = pack(archs, PAPER)
        mapped = packed.slim().mapped()
        assert mapped.label_costs.shape == (0, 0)
        again = mapped.taken(np.arange(len(archs)))
        for name in ("order", "hops", "walks", "masses", "labels", "label_costs", "offsets", "total_masses"):
            array, expected = getattr(again, name), getattr(packed, name)
            assert array.dtype == expected.dtype, name
            np.testing.assert_array_equal(array, expected, err_msg=name)
