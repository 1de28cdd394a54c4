"""oneDNN's products instead of MKL's: the same numbers, and the process's switch is given back."""

from __future__ import annotations

import threading

import pytest
import torch

from nasbot.architecture import Layer, chain
from nasbot.training import products
from nasbot.training.products import is_worth_it, keeps_precision, quick_products


def switch() -> str:
    return torch.backends.mkldnn.matmul.fp32_precision


def allowed() -> str:
    return "bf16" if keeps_precision() else "none"


def test_products_are_of_single_precision_either_way():
    a, b = torch.randn(256, 192, generator=torch.Generator().manual_seed(0)), torch.ones(192, 128) / 3
    exact = a.double() @ b.double()
    with quick_products(True):
        quick = a @ b
    for found in (quick, a @ b):
        assert float((found.double() - exact).abs().max() / exact.abs().max()) < products.SINGLE_PRECISION


def test_a_library_that_rounds_to_lower_precision_is_not_used(monkeypatch):
    monkeypatch.setattr(products, "SINGLE_PRECISION", 0.0)  # as if the products had been rounded
    keeps_precision.cache_clear()
    try:
        assert not keeps_precision()
        with quick_products(True):
            assert switch() == "none"
    finally:
        monkeypatch.undo()
        keeps_precision.cache_clear()


def test_the_switch_is_given_back_as_it_was():
    assert switch() == "none"
    with quick_products(True):
        assert switch() == allowed()
        with quick_products(True):
            pass
        assert switch() == allowed()
    assert switch() == "none"
    with quick_products(False):
        assert switch() == "none"


def test_of_two_threads_the_last_turns_it_back():
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with quick_products(True):
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=work)
    with quick_products(True):
        other.start()
        assert inside.wait(10)
    assert switch() == allowed()  # the other still computes
    leave.set()
    other.join(10)
    assert switch() == "none"


@pytest.mark.parametrize(
    ("units", "expected"), [((64, 64), False), ((128,) * 5, True), ((256,) * 3, True), ((16,), False)]
)
def test_only_networks_of_large_products_are_worth_it(units, expected):
    arch = chain("mlp-reg", [Layer("relu", n) for n in units])
    assert is_worth_it(arch, (9,), 1, 256) is expected


def test_images_are_left_alone():
    arch = chain("cnn", [Layer("conv3", 256, 1), Layer("conv3", 256, 1)])
    assert not is_worth_it(arch, (3, 16, 16), 10, 256)
