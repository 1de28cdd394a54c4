"""Shapes that people bring from torchvision, written by hand: exact, or with a line on each thing approximated."""

from collections import Counter

import pytest
import torch
from torch import nn

import nasbot
from nasbot.tracing.trace import trace
from tests.tracing.models import Bottleneck, DenseNetLike, MobileNetV2, ResNet, UNet, VisionTransformer, convnext


def labels(arch):
    return Counter(layer.label for layer in arch.layers)


def approximated(model, example=None):
    lines = []
    return trace(model, example, approximate=True, on_approximation=lines.append), lines


def test_resnet_50_is_sixteen_residual_layers_of_which_each_bottleneck_is_said():
    model = ResNet((3, 4, 6, 3), block=Bottleneck)
    with pytest.raises(nasbot.TraceError, match="1x1 16, 3x3 16, 1x1 64; a res layer has two"):
        trace(model)
    arch, lines = approximated(model)
    assert labels(arch) == {"ip": 1, "conv7": 1, "max-pool": 1, "res3": 16, "softmax": 1, "op": 1}
    assert len(lines) == 16
    assert all(line.startswith("add 'add") and "taken as res3" in line for line in lines)


def test_mobilenet_v2_is_said_block_by_block():
    model = MobileNetV2()
    with pytest.raises(nasbot.TraceError, match=r"features.3.conv.0' works in 32 groups"):
        trace(model)
    arch, lines = approximated(model)
    assert labels(arch)["res3"] == sum(n - 1 for _, _, n, _ in MobileNetV2.STAGES)
    assert sum(layer.stride == 2 for layer in arch.layers) == 5
    n_exact = 1  # of the convolutions: the stem
    assert len(lines) == labels(arch)["res3"] + labels(arch)["conv3"] - n_exact


def test_a_densenet_of_3x3_convolutions_is_exact():
    _, lines = approximated(DenseNetLike())
    assert lines == []


def test_a_convnext_leaves_out_its_scales_and_says_so():
    arch, lines = approximated(convnext())
    assert [str(layer) for layer in arch.layers] == [
        *("ip", "conv3 16 /2", "res7 16", "res7 16", "conv3 32 /2", "res7 32", "softmax", "op")
    ]
    assert sum("scales by weights of its own: left out" in line for line in lines) == 3
    assert any("has stride 4; a layer conv3 has 1 or 2: taken as conv3 16 /2" in line for line in lines)


@pytest.mark.parametrize(("model", "named"), [(UNet(), "ConvTranspose2d 'up'"), (VisionTransformer(), "transpose")])
@pytest.mark.parametrize("approximate", [False, True])
def test_what_gives_images_back_or_attends_is_refused_by_the_operation(model, named, approximate):
    with pytest.raises(nasbot.TraceError, match=f"^{named}.* cannot be expressed as a layer of cnn"):
        trace(model, approximate=approximate)


# -- pools of stride 3 -------------------------------------------------------------------------------------------------


def pooling(pool):
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), pool, nn.Flatten(), nn.LazyLinear(4))


@pytest.mark.parametrize("example", [None, torch.zeros(1, 3, 9, 9)])
def test_a_pool_of_stride_3_is_no_global_pool(example):
    model = pooling(nn.MaxPool2d(3, 3))
    with pytest.raises(nasbot.TraceError, match="MaxPool2d '2' has stride 3, and pools of a network have stride 2"):
        trace(model, example)
    arch, lines = approximated(model, example)
    assert labels(arch)["max-pool"] == 1
    assert lines == ["MaxPool2d '2' has stride 3, and pools of a network have stride 2: taken as stride 2"]


@pytest.mark.parametrize(("pool", "example"), [(nn.MaxPool2d(3, 3), torch.zeros(1, 3, 3, 3)), (nn.AvgPool2d(7), None)])
def test_a_pool_that_leaves_one_pixel_is_global(pool, example):
    assert "max-pool" not in labels(trace(pooling(pool), example))


def test_an_example_tells_a_wide_pool_from_a_global_one():
    with pytest.raises(nasbot.TraceError, match="AvgPool2d '2' has stride 4"):
        trace(pooling(nn.AvgPool2d(4)), torch.zeros(1, 3, 8, 8))


def test_activations_that_are_approximated_are_said():
    model = nn.Sequential(nn.Linear(4, 8), nn.Hardswish(), nn.Linear(8, 1))
    _, lines = approximated(model)
    assert len(lines) == 1
    assert lines[0].startswith("Hardswish '1' is no activation of an MLP: taken as ")
