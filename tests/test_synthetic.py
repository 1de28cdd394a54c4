"""The synthetic objectives by hand on one small network each, and their guards."""

from math import exp

import pytest

from nasbot.architecture import Architecture, Layer
from nasbot.errors import VocabularyError
from nasbot.synthetic import Noisy, f1, f2, f3, released_cnn, released_mlp

CNN = Architecture(
    "cnn",
    [Layer("ip"), Layer("conv3", 16, 2), Layer("conv5", 32, 1), Layer("max-pool"), Layer("softmax"), Layer("op")],
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 3)][:5],
)
MLP = Architecture(
    "mlp-reg",
    [Layer("ip"), Layer("relu", 64), Layer("tanh", 32), Layer("linear"), Layer("linear"), Layer("op")],
    [(0, 1), (1, 2), (2, 3), (1, 4), (3, 5), (4, 5)],
)


def f0(mean_mass: float, degree: float, shortest: int, layers: int, edges: int) -> float:
    return (
        exp(-0.001 * abs(mean_mass - 1000))
        + exp(-0.5 * abs(degree - 5))
        + exp(-0.5 * abs(degree - 5))
        + exp(-0.1 * abs(shortest - 5))
        + exp(-0.1 * abs(layers - 30))
        + exp(-0.05 * abs(edges - 100))
    )


def test_f1_on_a_small_cnn() -> None:
    processing = 16 + 16 * 32 + 32
    mean_mass = processing * 1.3 / 6
    expected = f0(mean_mass, 5 / 6, 5, 6, 5) + 1.0 + exp(-0.3 * 44) + exp(-0.001 * (500 - mean_mass)) + 1 / 6
    assert f1(CNN) == pytest.approx(expected, rel=1e-12)


def test_f2_and_f3_on_a_small_mlp() -> None:
    mean_mass = (64 + 64 * 32) * 1.3 / 6
    base = f0(mean_mass, 1.0, 3, 6, 6)
    assert f3(MLP) == pytest.approx(base + 1 / 6, rel=1e-12)
    assert f2(MLP) == pytest.approx(base + exp(-0.001 * (2000 - mean_mass)) + exp(-0.1 * 44) + 1 / 6, rel=1e-12)


def test_the_released_functions() -> None:
    common = exp(-0.002 * (1000 - 24)) + exp(-0.4 * (5 - 5 / 6)) + exp(-0.2 * 5) + exp(-0.5 * 2) + exp(-0.5 * 3)
    common += exp(-0.1 * 24) + exp(-0.05 * 95)
    assert released_cnn(CNN) == pytest.approx(common + exp(-0.001 * (500 - 24)) + exp(-0.3 * 44) + 1.0 + 1 / 3)
    common = exp(-0.002 * (1000 - 48)) + exp(-0.4 * 4) + exp(-0.2 * 7) + exp(-0.5 * 1) + exp(-0.5 * 3)
    common += exp(-0.1 * 24) + exp(-0.05 * 94)
    assert released_mlp(MLP) == pytest.approx(common + exp(-0.1 * 44) + exp(-0.001 * (2000 - 48)) + 1 / 3)


def test_the_wrong_kind_is_refused() -> None:
    with pytest.raises(VocabularyError, match="f1 is defined for networks of kind cnn, got mlp-reg"):
        f1(MLP)
    with pytest.raises(VocabularyError, match="f3 is defined for networks of kind mlp-reg or mlp-class, got cnn"):
        f3(CNN)


def test_noise_is_a_function_of_seed_and_network() -> None:
    noisy = Noisy(f3, 0.5, seed=1)
    assert noisy(MLP) == noisy(MLP) != f3(MLP)
    assert noisy(MLP) != Noisy(f3, 0.5, seed=2)(MLP)
