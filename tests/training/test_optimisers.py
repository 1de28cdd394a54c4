"""Steps against torch's own optimisers."""

import pytest
import torch
from torch import nn

from nasbot.architecture import Layer
from nasbot.architecture.blocks import chain
from nasbot.training import optimisers
from nasbot.training.module import build
from nasbot.training.optimisers import BETA1, EPSILON, groups_of, optimiser_of, plain_adamw, plain_sgd
from nasbot.training.recipes import Settings

SETTINGS = [
    Settings(weight_decay=0.1),
    Settings(weight_decay=0.1, reference_width=None),
    Settings(optimiser="sgd", weight_decay=0.1),
    Settings(optimiser="sgd", momentum=0.9, weight_decay=0.1),
]


def networks():
    arch = chain("cnn", [Layer("conv3", 70), Layer("res3", 6, 2), Layer("fc", 5)])
    pair = [build(arch, input_shape=(3, 6, 6), n_outputs=3, seed=1) for _ in range(2)]
    return [network.to(memory_format=torch.channels_last) for network in pair]


def torchs_own(network, settings):
    groups = [
        {
            "params": list(group.parameters),
            "lr": 0.01 * group.factor,
            "weight_decay": settings.weight_decay * group.decay,
        }
        for group in groups_of(network, settings)
    ]
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(groups, lr=0.01, betas=(BETA1, settings.beta2), eps=EPSILON)
    return torch.optim.SGD(groups, lr=0.01, momentum=settings.momentum)


@pytest.fixture
def fresh():
    """What was found out about torch's kernels is forgotten, before and after."""
    for found in (optimisers.adamw_update, optimisers.sgd_update):
        found.cache_clear()
    yield
    for found in (optimisers.adamw_update, optimisers.sgd_update):
        found.cache_clear()


def changed(*_, **__):
    raise TypeError("_fused_adamw_() missing 1 required keyword argument")


@pytest.mark.parametrize("kernels", ["fused", "absent", "changed"])
@pytest.mark.parametrize("settings", SETTINGS, ids=["adamw", "adamw, one step size", "sgd", "momentum"])
def test_steps_are_those_of_torch(settings, kernels, fresh, monkeypatch):
    for name in ("_fused_adamw_", "_fused_sgd_"):
        if kernels == "absent":
            monkeypatch.delattr(torch, name)
        elif kernels == "changed":
            monkeypatch.setattr(torch, name, changed)
    is_plain = {optimisers.adamw_update("cpu") is plain_adamw, optimisers.sgd_update("cpu") is plain_sgd}
    assert is_plain == {kernels != "fused"}
    ours, theirs = networks()
    groups = groups_of(ours, settings)
    mine, other = optimiser_of(groups, settings), torchs_own(theirs, settings)
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            p.grad = torch.empty_like(p).normal_(generator=generator)
            q.grad = p.grad.clone()
        with torch.no_grad():
            mine.step([[p.grad for p in group.parameters] for group in groups], 0.01)
        other.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_wide_layers_take_smaller_steps_and_only_weights_decay():
    network = nn.Sequential(nn.Linear(128, 32), nn.Linear(32, 2), nn.BatchNorm1d(2))
    groups = groups_of(network, Settings(reference_width=64))
    found = {(group.factor, group.decay): [tuple(p.shape) for p in group.parameters] for group in groups}
    assert found == {(0.5, True): [(32, 128)], (1.0, True): [(2, 32)], (1.0, False): [(32,), (2,), (2,), (2,)]}
    assert {group.factor for group in groups_of(network, Settings(reference_width=None))} == {1.0}
    assert {group.factor for group in groups_of(network, Settings(optimiser="sgd"))} == {1.0}
