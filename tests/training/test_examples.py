"""The vocabularies of examples/: their layers keep their promises, train, and are searched and drawn."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

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


def enlarged(X):
    """The digits as images of 16 x 16 pixels."""
    return np.kron(X.reshape(-1, 1, 8, 8) / 16, np.ones((2, 2))).astype("float32")


@pytest.fixture(scope="module")
def images():
    X, y = load_digits(return_X_y=True)
    return enlarged(X[:300]), y[:300]


@each
@pytest.mark.parametrize("side", [16, 5, 1])
def test_layers_give_the_channels_and_pixels_that_are_counted(vocabulary, pool, side):
    for arch in pool:
        network = build(arch, input_shape=(3, side, side), n_outputs=4, seed=0).eval()
        assert network(torch.zeros(2, 3, side, side)).shape == (2, 4)


@pytest.mark.parametrize(
    ("pool", "n_steps"), [(vision_transformers.POOL[:2], 600), (mobilenets.POOL, 100)], ids=VOCABULARIES
)
def test_networks_of_the_pool_learn_more_than_a_linear_model_does(pool, n_steps):
    """On the same rows of 1,797 digits of 16 x 16 pixels, against logistic regression on the pixels."""
    X, y = load_digits(return_X_y=True)
    data = dataset_of(enlarged(X), y, seed=0)
    flat = {part: getattr(data, part).X.reshape(len(getattr(data, part)), -1) for part in ("train", "valid")}
    linear = LogisticRegression(max_iter=2000).fit(flat["train"], data.train.y)
    baseline = log_loss(data.valid.y, linear.predict_proba(flat["valid"]))
    recipe = recipe_of("fast").changed(n_steps=n_steps, batch_size=64)
    losses = [nasbot.train(arch, data, recipe, seed=0).loss for arch in pool]
    print(f"logistic regression {baseline:.3f}, networks", *(f"{loss:.3f}" for loss in losses))
    assert min(losses) < 0.9 * baseline
    assert max(losses) < 0.5  # a guess has 2.3


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
