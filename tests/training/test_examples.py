"""The vocabularies of examples/: their layers keep their promises, train, and are searched and drawn."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import nasbot
from examples import mobilenets, vision_transformers
from nasbot.data.dataset import dataset_of
from nasbot.training.module import build
from nasbot.training.recipes import recipe_of

VOCABULARIES = {
    "vision transformers": (vision_transformers.VIT, vision_transformers.POOL),
    "mobilenets": (mobilenets.MOBILE, mobilenets.POOL),
}
each = pytest.mark.parametrize(("vocabulary", "pool"), VOCABULARIES.values(), ids=VOCABULARIES)


@pytest.fixture(scope="module")
def images():
    X, y = load_digits(return_X_y=True)
    return np.kron(X[:300].reshape(-1, 1, 8, 8) / 16, np.ones((2, 2))).astype("float32"), y[:300]


@each
@pytest.mark.parametrize("side", [16, 5, 1])
def test_layers_give_the_channels_and_pixels_that_are_counted(vocabulary, pool, side):
    for arch in pool:
        network = build(arch, input_shape=(3, side, side), n_outputs=4, seed=0).eval()
        assert network(torch.zeros(2, 3, side, side)).shape == (2, 4)


@each
def test_every_network_of_the_pool_learns(vocabulary, pool, images):
    data = dataset_of(*images, seed=0)
    for arch in pool:
        untrained, trained = (
            nasbot.train(arch, data, recipe_of("fast").changed(n_steps=n, batch_size=32), seed=0).loss for n in (1, 120)
        )
        assert trained < 0.8 * untrained


@each
def test_a_search_proposes_networks_of_it_and_draws_the_best(vocabulary, pool, images, tmp_path):
    study = nasbot.search(
        *images,
        space=vocabulary,
        pool=pool,
        budget=5,
        recipe=recipe_of("fast").changed(n_steps=10, batch_size=32),
        executor="here",
        name=None,
        folds=1,
        refit=False,
    )
    proposed = [trial for trial in study.history if trial.origin.searcher == "NASBOT"]
    assert proposed
    assert all(trial.value is not None for trial in study.history)
    assert study.best.arch.draw(tmp_path / "best.svg").read_text().startswith("<")
