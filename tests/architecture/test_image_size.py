"""Image sizes: factors from strides and pools, sizes for an input, and every mismatch found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import Architecture, Layer
from nasbot.errors import InvalidArchitectureError
from nasbot.testing.strategies import architectures

IP, OP, SOFTMAX, POOL = Layer("ip"), Layer("op"), Layer("softmax"), Layer("max-pool")


def image_sizes(arch: Architecture, input_size: int) -> tuple[int | None, ...]:
    """For each layer the side of the image leaving it: ceil(ceil(n / a) / b) = ceil(n / ab), so factors are enough."""
    return tuple(None if factor is None else -(-input_size // factor) for factor in arch.downsampling)


def conv(stride: int | None = None) -> Layer:
    return Layer("conv3", 8, stride)


def chain(*layers: Layer) -> Architecture:
    return Architecture("cnn", layers, [(u, u + 1) for u in range(len(layers) - 1)])


def test_strides_and_pools_shrink_and_vectors_have_no_size() -> None:
    arch = chain(IP, conv(2), conv(), POOL, Layer("res5", 8, 2), Layer("fc", 16), SOFTMAX, OP)
    assert arch.downsampling == (1, 2, 2, 4, 8, None, None, None)
    assert image_sizes(arch, 33) == (33, 17, 17, 9, 5, None, None, None)
    assert image_sizes(arch, 1) == (1, 1, 1, 1, 1, None, None, None)


@given(architectures("cnn", max_layers=24), st.integers(1, 257))
def test_sizes_are_those_of_rounding_up_layer_by_layer(arch: Architecture, input_size: int) -> None:
    sizes: list[int | None] = [input_size]
    for u in range(1, len(arch.layers)):
        label = arch.vocabulary[arch.layers[u].label]
        if label.emits != "image":
            sizes.append(None)
            continue
        entering = {sizes[p] for p in arch.parents[u]}
        assert len(entering) == 1, "all parents of a layer that takes images emit one size"
        (size,) = entering
        stride = 2 if label.family == "pool" else arch.layers[u].stride
        sizes.append((size + stride - 1) // stride)
    assert image_sizes(arch, input_size) == tuple(sizes)


@pytest.mark.parametrize(
    ("merging", "short_cut"),
    [(conv(), (0, 3)), (conv(), (1, 3)), (Layer("res3", 8), (0, 3)), (Layer("res3", 8), (1, 3)), (POOL, (1, 3))],
)
def test_images_of_two_sizes_cannot_be_concatenated(merging: Layer, short_cut: tuple[int, int]) -> None:
    layers = [IP, conv(), conv(2), merging, SOFTMAX, OP]
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), short_cut]
    with pytest.raises(InvalidArchitectureError) as caught:
        Architecture("cnn", layers, edges)
    assert caught.value.layer == 3
    assert caught.value.violations[0].rule == "image size"
    sizes = f"{{{short_cut[0]}: 1/1, 2: 1/2}}"
    assert f"layer 3 ({merging.label}) concatenates" in str(caught.value)
    assert sizes in str(caught.value)


@pytest.mark.parametrize("merging", [Layer("fc", 8), SOFTMAX])
def test_layers_that_take_vectors_take_images_of_any_size(merging: Layer) -> None:
    edges = [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)]
    layers = [IP, conv(), conv(2), merging, OP]
    if merging.label == "fc":
        layers, edges = [*layers[:4], SOFTMAX, OP], [*edges, (4, 5)]
    assert Architecture("cnn", layers, edges).downsampling[:3] == (1, 1, 2)


def test_equal_shrinking_by_different_means_fits() -> None:
    layers = [IP, conv(), POOL, conv(2), conv(), SOFTMAX, OP]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6)]
    assert Architecture("cnn", layers, edges).downsampling[4] == 2
