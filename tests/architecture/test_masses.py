"""Layer masses: the paper's examples by hand, the rules of the rule sets, and the plain twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import Architecture, Layer, MassRules, layer_masses
from nasbot.errors import OptionError
from nasbot.otmann.packing import pack
from nasbot.otmann.presets import LOG_MASS, RuleSet
from nasbot.testing.reference import reference_masses
from nasbot.testing.strategies import architectures
from tests.architecture.cells import cell_vocabulary

IP, OP, SOFTMAX, POOL = Layer("ip"), Layer("op"), Layer("softmax"), Layer("max-pool")


def test_a_layer_s_mass_is_its_units_times_the_units_that_come_in() -> None:
    """Section 3 on the first figure: layer 5 of network b sees 16 + 16 channels, so its mass is 32 * 32."""
    conv = Layer("conv3", 16)
    layers = [IP, conv, conv, conv, conv, Layer("conv5", 32), POOL, Layer("fc", 16), SOFTMAX, OP]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]
    processing = [16, 256, 256, 256, 1024, 32, 51.2]
    share = 0.1 * sum(processing)
    masses = Architecture("cnn", layers, edges).masses
    np.testing.assert_allclose(masses, [share, *processing, share, share], rtol=1e-14)


def test_residual_layers_weigh_twice_and_pools_pass_channels_on() -> None:
    layers = [IP, Layer("res5", 8), POOL, Layer("avg-pool"), Layer("res3", 10), SOFTMAX, OP]
    arch = Architecture("cnn", layers, [(u, u + 1) for u in range(6)])
    np.testing.assert_allclose(arch.masses[1:5], [2 * 8, 8, 8, 2 * 10 * 8])


def test_parallel_pools_are_concatenated() -> None:
    layers = [IP, Layer("conv3", 8), POOL, Layer("avg-pool"), Layer("conv3", 4), SOFTMAX, OP]
    arch = Architecture("cnn", layers, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6)])
    assert arch.masses[4] == 4 * (8 + 8)


def test_decision_layers_share_equally_and_the_ends_do_not() -> None:
    layers = [IP, Layer("relu", 10), Layer("tanh", 5), *[Layer("linear")] * 3, OP]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (2, 5), (0, 5), (3, 6), (4, 6), (5, 6)]
    masses = Architecture("mlp-reg", layers, edges).masses
    np.testing.assert_allclose(masses, [6, 10, 50, 2, 2, 2, 6])


def test_a_skip_from_the_input_brings_one_channel_whatever_the_data() -> None:
    layers = [IP, Layer("elu", 10), Layer("elu", 5), Layer("softmax"), OP]
    arch = Architecture("mlp-class", layers, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    assert arch.masses[2] == 5 * (10 + 1)


def test_a_network_without_processing_layers_has_no_mass() -> None:
    arch = Architecture("mlp-reg", [IP, Layer("linear"), OP], [(0, 1), (1, 2)])
    np.testing.assert_array_equal(arch.masses, 0)
    assert arch.total_mass == 0


def test_crelu_emits_two_channels_a_unit_but_counts_units() -> None:
    """The paper's masses count units whatever the activation does to the width."""
    layers = [IP, Layer("crelu", 8), Layer("relu", 4), Layer("linear"), OP]
    assert Architecture("mlp-reg", layers, [(u, u + 1) for u in range(4)]).masses[2] == 4 * 8


def test_other_rules() -> None:
    layers = [IP, Layer("res3", 8), Layer("fc", 4), SOFTMAX, SOFTMAX, OP]
    arch = Architecture("cnn", layers, [(0, 1), (1, 2), (2, 3), (1, 4), (3, 5), (4, 5)])
    half = layer_masses(arch, MassRules(nonprocessing_mass=0.5))
    np.testing.assert_allclose(half, [9.6, 16, 3.2, 4.8, 4.8, 9.6])
    factors = layer_masses(arch, MassRules(factors={"res3": 1.0, "fc": 10.0}))
    np.testing.assert_allclose(factors[1:3], [8, 320])
    # The release's floor of 100 is for the ends and for all decision layers together.
    floor = layer_masses(arch, MassRules(nonprocessing_floor=100.0))
    np.testing.assert_allclose(floor, [100, 16, 3.2, 50, 50, 100])
    logarithms = layer_masses(arch, MassRules(logarithmic=True))
    share = 0.1 * np.log(17 * 4.2)
    np.testing.assert_allclose(logarithms, [share, np.log(17), np.log(4.2), share / 2, share / 2, share])


@pytest.mark.parametrize("zeta", [0.0, 1.0, -0.1, float("nan")])
def test_zeta_lies_between_0_and_1(zeta: float) -> None:
    with pytest.raises(OptionError, match=rf"ζ\) must lie between 0 and 1, got {zeta}"):
        MassRules(nonprocessing_mass=zeta)


@given(architectures(max_layers=40), st.sampled_from([0.0, 100.0]), st.floats(0.01, 0.99), st.booleans())
def test_masses_are_those_of_the_plain_twin(arch: Architecture, floor: float, zeta: float, logarithmic: bool) -> None:
    rules = MassRules(
        nonprocessing_mass=zeta,
        nonprocessing_floor=floor,
        factors={"res3": 1.0, "relu": 3.0},
        logarithmic=logarithmic,
    )
    np.testing.assert_allclose(layer_masses(arch, rules), reference_masses(arch, rules), rtol=1e-13)
    np.testing.assert_allclose(arch.masses, reference_masses(arch), rtol=1e-13)


@given(architectures(max_layers=30), st.sampled_from([0.25, 0.5]))
def test_masses_to_a_power_are_those_of_the_plain_twin(arch: Architecture, exponent: float) -> None:
    rules = RuleSet(name="power", mass_rules=MassRules(exponent=exponent))
    expected = reference_masses(arch, rules.mass_rules)
    np.testing.assert_allclose(layer_masses(arch, rules.mass_rules), expected, rtol=1e-13)
    assert pack([arch], rules).total_masses[0] == pytest.approx(sum(expected))


@pytest.mark.parametrize("exponent", [0.0, 1.5, float("nan")])
def test_the_power_of_masses_is_above_0_and_at_most_1(exponent: float) -> None:
    with pytest.raises(OptionError, match=rf"exponent of masses must be above 0 and at most 1, got {exponent}"):
        MassRules(exponent=exponent)


@given(architectures(cell_vocabulary(), min_layers=3, max_layers=8))
def test_fixed_masses_are_those_of_the_plain_twin_and_have_no_logarithm(arch: Architecture) -> None:
    np.testing.assert_allclose(arch.masses, reference_masses(arch), rtol=1e-13)
    rules = MassRules(logarithmic=True)
    np.testing.assert_array_equal(layer_masses(arch, rules), arch.masses)
    np.testing.assert_allclose(reference_masses(arch, rules), arch.masses, rtol=1e-13)
    assert pack([arch], LOG_MASS).total_masses[0] == pytest.approx(arch.total_mass)


@given(architectures(max_layers=30))
def test_the_ends_and_the_decisions_weigh_what_the_definition_says(arch: Architecture) -> None:
    work = arch.masses[list(arch.processing_layers)].sum()
    np.testing.assert_allclose(arch.masses[[0, -1]], 0.1 * work, rtol=1e-13)
    np.testing.assert_allclose(arch.masses[list(arch.decision_layers)].sum(), 0.1 * work, rtol=1e-13)
    assert arch.total_mass == pytest.approx(1.3 * work)
