"""What training does to batches."""

import numpy as np
import pytest
import torch

from nasbot.training.augmentation import augmented, mixed
from nasbot.training.losses import training_loss
from nasbot.training.module import build
from nasbot.training.recipes import FAST
from nasbot.training.steps import autograd_stepper
from tests.training.test_loop import CNN

N, HEIGHT, WIDTH = 40, 16, 24


def pictures():
    return torch.from_numpy(np.random.default_rng(0).random((N, 2, HEIGHT, WIDTH), dtype=np.float32) + 1)


def test_flips_mirror_about_half_of_the_images():
    x = pictures()
    out = augmented(x, "flips", rng=np.random.default_rng(1))
    mirrored = [torch.equal(out[i], x[i].flip(2)) for i in range(N)]
    same = [torch.equal(out[i], x[i]) for i in range(N)]
    assert all(a != b for a, b in zip(mirrored, same, strict=True))
    assert 8 < sum(mirrored) < 32


def test_crops_shift_each_image_over_zeros():
    x = pictures()
    out = augmented(x, "crops", rng=np.random.default_rng(1))
    padded = torch.nn.functional.pad(x, (3, 3, 2, 2))
    found = set()
    for i in range(N):
        places = [
            (a, b)
            for a in range(5)
            for b in range(7)
            if torch.equal(out[i], padded[i, :, a : a + HEIGHT, b : b + WIDTH])
        ]
        assert len(places) == 1, i
        found.update(places)
    assert len(found) > 15
    assert {a for a, _ in found} == set(range(5))


def test_the_generator_decides():
    x = pictures()
    a, b, c = (augmented(x, "flips+crops", rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert a.is_contiguous(memory_format=torch.channels_last)


def test_mixing_is_the_same_for_samples_and_truths():
    x = pictures()
    out, others, share = mixed(x, 0.4, rng=np.random.default_rng(3))
    assert 0 < share < 1
    assert sorted(others.tolist()) == list(range(N))
    torch.testing.assert_close(out, share * x + (1 - share) * x[others])


def test_a_mixed_step_goes_down_the_mixed_loss():
    settings = FAST.changed(mixup=0.4).images
    network = build(CNN, input_shape=(2, HEIGHT, WIDTH), n_outputs=3, seed=0)
    x, y = pictures(), torch.arange(N) % 3
    out, others, share = mixed(x, 0.4, rng=np.random.default_rng(5))
    network.train()
    answer = network(out).detach()
    wanted = share * training_loss(answer, y, settings, classifies=True)
    wanted = wanted + (1 - share) * training_loss(answer, y[others], settings, classifies=True)
    taken = autograd_stepper(network, settings, rng=np.random.default_rng(5))(x, y, 0.0)
    assert taken == pytest.approx(float(wanted), rel=1e-5)
