"""The kernel for GPyTorch against our own formula, and BoTorch's models and acquisitions with it."""

import sys

import numpy as np
import pytest

import nasbot
from nasbot.gp.hyperparameters import Hyperparameters
from nasbot.gp.kernel import otmann_kernel
from nasbot.testing.networks import random_architecture

pytest.importorskip("botorch", reason="BoTorch is not installed: pip install 'nasbot[botorch]'")

import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.optim.optimize import optimize_acqf_discrete
from gpytorch.mlls import ExactMarginalLogLikelihood

from nasbot.integrations.botorch import NetworkKernel, network_gp


@pytest.fixture(scope="module")
def networks():
    rng = np.random.default_rng(0)
    return [random_architecture("mlp-reg", n_layers=int(rng.integers(5, 14)), rng=rng) for _ in range(24)]


def score(arch):
    return -abs(len(arch.layers) - 8) - np.log(float(arch.total_mass)) / 5


@pytest.mark.parametrize("powers", [(1.0, 1.0), (0.5, 1.5)])
def test_it_is_eq_7(networks, powers):
    kernel = NetworkKernel(networks, distance_power=powers[0], normalised_power=powers[1])
    given = {
        "scale": 0.7,
        "normalised_scale": 0.2,
        "decay": [0.1, 0.5, 0.2, 0.3],
        "normalised_decay": [1, 0.4, 0.3, 0.2],
    }
    for name, value in given.items():
        kernel.set_value(name, torch.tensor(value, dtype=torch.float64))
    table = nasbot.pairwise(networks)
    typical = [np.array([np.median(row[row > 0]) for row in d])[:, None, None] for d in (table.d, table.d_bar)]
    theta = Hyperparameters(
        scale=0.7,
        normalised_scale=0.2,
        decay=np.array(given["decay"]),
        normalised_decay=np.array(given["normalised_decay"]),
        noise_variance=1.0,
    )
    ours = otmann_kernel(
        table.d / typical[0], table.d_bar / typical[1], theta, distance_power=powers[0], normalised_power=powers[1]
    )
    x = kernel.inputs()
    assert np.allclose(kernel(x).to_dense().detach().numpy(), ours, rtol=1e-12, atol=0)
    assert np.allclose(kernel(x[:3], x[5:]).to_dense().detach().numpy(), ours[:3, 5:], rtol=1e-12, atol=0)
    assert np.allclose(kernel(x, diag=True).detach().numpy(), np.diag(ours), rtol=1e-12, atol=0)
    batch = torch.stack([x[:4], x[4:8]])
    assert np.allclose(kernel(batch).to_dense().detach().numpy(), [ours[:4, :4], ours[4:8, 4:8]], rtol=1e-12, atol=0)


def test_networks_that_arrive_later(networks):
    whole, grown = NetworkKernel(networks), NetworkKernel(networks[:20])
    arrived = grown.extend(networks[20:])
    assert arrived[:, 0].tolist() == [20, 21, 22, 23]
    for index, name in enumerate(("_d", "_d_bar")):
        ratio = torch.from_numpy(grown._typical[index] / whole._typical[index])[:, None, None]
        assert torch.allclose(getattr(grown, name) * ratio, getattr(whole, name), rtol=1e-12)
    assert grown.inputs([networks[21], networks[3]])[:, 0].tolist() == [21, 3]


def test_fitting_and_choosing(networks):
    """Fitting raises the likelihood; predictions order unseen networks; a batch of two is chosen among all."""
    torch.manual_seed(0)
    kernel = NetworkKernel(networks)
    values = torch.tensor([score(arch) for arch in networks])
    known, unseen = kernel.inputs(networks[:16]), kernel.inputs(networks[16:])
    model = network_gp(kernel, known, values[:16])
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)

    def evidence():
        model.train()
        return likelihood(model(*model.train_inputs), model.train_targets).item()

    before, decay = evidence(), kernel.value("decay").detach().clone()
    fit_gpytorch_mll(likelihood)
    assert evidence() > before
    assert not torch.allclose(kernel.value("decay"), decay)
    model.eval()
    predicted = model.posterior(unseen).mean[:, 0].detach().numpy()
    ranks = np.corrcoef(np.argsort(np.argsort(predicted)), np.argsort(np.argsort(values[16:].numpy())))[0, 1]
    assert ranks > 0.5
    chosen, _ = optimize_acqf_discrete(
        qLogExpectedImprovement(model, best_f=values[:16].max()), q=2, choices=kernel.inputs(), unique=True
    )
    assert len({int(number) for number in chosen[:, 0]}) == 2


def test_what_is_refused(networks):
    with pytest.raises(nasbot.OptionError, match="at least two, got 1"):
        NetworkKernel(networks[:1])
    with pytest.raises(nasbot.OptionError, match="above 0"):
        NetworkKernel(networks[:2], distance_power=0)
    kernel = NetworkKernel(networks[:3])
    with pytest.raises(nasbot.OptionError, match="number 0 is not one of the kernel's"):
        kernel.inputs([networks[5]])
    with pytest.raises(nasbot.OptionError, match="expected one for each of 3 inputs, got 2"):
        network_gp(kernel, kernel.inputs(), torch.zeros(2))


def test_without_botorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    monkeypatch.delitem(sys.modules, "nasbot.integrations.botorch")
    with pytest.raises(nasbot.OptionError, match=r"pip install 'nasbot\[botorch\]'"):
        __import__("nasbot.integrations.botorch")
