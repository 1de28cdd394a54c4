"""Children with their parents' weights."""

import numpy as np
import pytest
import torch

from experiments import inheritance
from experiments.inheritance import Task, children_of, inherit, matched_layers, models, table, with_parents
from nasbot.architecture import Layer, SearchSpace, chain
from nasbot.data.dataset import dataset_of
from nasbot.evolution import MODIFIERS, MutationOperator
from nasbot.training.module import build

PARENT = chain("mlp-reg", [Layer("relu", 24), Layer("relu", 32), Layer("relu", 16)])
ROWS = torch.from_numpy(np.random.default_rng(1).normal(size=(200, 5)).astype(np.float32))


@pytest.fixture
def parent():
    return build(PARENT, input_shape=(5,), n_outputs=2, seed=1)


def change(before, after):
    """Squared difference of what two networks say, over the variance of the first."""
    with torch.no_grad():
        return float((before(ROWS) - after(ROWS)).square().mean() / before(ROWS).var())


@pytest.mark.parametrize("modifier", ["double_units", "inc_single", "inc_en_masse", "skip", "dup_path"])
def test_a_larger_child_says_what_its_parent_says(parent, modifier, monkeypatch):
    operator = MutationOperator(SearchSpace("mlp-reg"), (modifier,))
    child = operator.mutate(PARENT, 1, rng=np.random.default_rng(2)).arch
    assert child != PARENT
    noisy = change(parent, inherit(parent, child, seed=3))
    assert 0 < noisy < 0.01
    monkeypatch.setattr(inheritance, "NOISE", 0.0)
    assert change(parent, inherit(parent, child, seed=3)) < 1e-10
    assert change(parent, build(child, input_shape=(5,), n_outputs=2, seed=3)) > 0.1


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_new_rectifier_begins_as_the_identity_where_layers_are_alike(place, monkeypatch):
    """Where they are not, the plan may move a parent's layer by one place: it goes by mass and place, not by width."""
    monkeypatch.setattr(inheritance, "NOISE", 0.0)
    arch = chain("mlp-reg", [Layer("relu", 24)] * 3)
    parent = build(arch, input_shape=(5,), n_outputs=2, seed=1)
    child = chain("mlp-reg", [Layer("relu", 24)] * 4)
    hidden = [Layer("relu", 24)] * 3
    wedged = chain("mlp-reg", [*hidden[:place], Layer("leaky-relu", 24), *hidden[place:]])
    assert len(matched_layers(arch, child)) == len(matched_layers(arch, wedged)) == len(arch.layers)
    for other in (child, wedged):
        assert change(parent, inherit(parent, other, seed=3)) < 1e-10


def test_a_narrower_child_keeps_what_is_listened_to_most(parent, monkeypatch):
    monkeypatch.setattr(inheritance, "NOISE", 0.0)
    with torch.no_grad():
        parent.layers["2"].weight[:, 12:] = 0.0  # nobody listens to the second half of the first layer
    child = chain("mlp-reg", [Layer("relu", 12), *PARENT.layers[2:4]])
    assert change(parent, inherit(parent, child, seed=3)) < 1e-10


def test_any_child_gets_weights_that_are_numbers_and_the_same_ones_again(parent):
    operator = MutationOperator(SearchSpace("mlp-reg"), tuple(MODIFIERS))
    rng, network = np.random.default_rng(4), PARENT
    for _ in range(40):
        network = operator(network, rng=rng).arch
        one, other = inherit(parent, network, seed=3), inherit(parent, network, seed=3)
        assert all(torch.isfinite(x).all() for x in one.state_dict().values())
        assert all(torch.equal(x, other.state_dict()[name]) for name, x in one.state_dict().items())


def test_children_are_new_and_in_the_space(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 5))
    data = dataset_of(X, X @ np.arange(5.0))
    made = list(children_of(PARENT, data, Task("x", 1, 0, "", tmp_path)))
    assert len({PARENT, *(child for child, _ in made)}) == 1 + inheritance.CHILDREN


def test_equal_steps_are_compared(tmp_path):
    """Three parents and two of six children that erred by 1, against parents and all six, which err by 2 in one way."""
    folder, rng = tmp_path / "protein-7", np.random.default_rng(0)
    folder.mkdir()
    truth = {"valid_truth": np.zeros((600, 1)), "test_truth": np.zeros((600, 1))}

    def keep(name, spread, shared):
        said = {part: spread * rng.normal(size=(600, 1)) + shared for part in ("valid", "test")}
        np.savez(folder / f"{name}.npz", **said, **truth)

    for i in range(3):
        keep(f"parent-{i}", 30.0, 0.0)
    for i in range(6):
        keep(f"scratch-{i}", 1.0, 0.0)
        keep(f"inherited-{i}", 0.1, 2.0)
        keep(f"slower-{i}", 0.5, 0.0)
    found = models(folder)
    assert found["scratch"] == pytest.approx((1.0, 0.5), rel=0.2)  # two independent errors halve
    assert found["inherited"] == pytest.approx((4.0, 4.0), rel=0.2)  # shared ones do not
    assert found["slower"] == pytest.approx((0.25, 0.25 / 6), rel=0.3)
    record = dict.fromkeys(
        (
            "parent",
            "control",
            "scratch_third",
            "scratch",
            "begun",
            "inherited_ninth",
            "inherited_third",
            "slower_third",
        ),
        1.0,
    )
    shown = table([{"set": "protein", "seed": 7, **record, "inherited_third": 0.5}] * 6, tmp_path)
    assert "| protein, 7 | 6 | 1 | 1 | 1 | 1 | 1 | 1 | 0.5 | 1 | 6 of 6 |" in shown
    assert "| protein, 7 | slower | 0.2" in shown


def test_a_child_like_its_parent_adds_little_to_it(tmp_path):
    rng = np.random.default_rng(0)
    own, other = rng.normal(size=(2, 4000, 1))
    said = {"parent-1": own, "scratch-2": other, "scratch-3": other, "inherited-3": 0.9 * own}
    for name, error in said.items():
        np.savez(tmp_path / f"{name}.npz", test=error + 5.0, test_truth=np.full((4000, 1), 5.0))
    found = with_parents(tmp_path)
    assert found["scratch"] == pytest.approx((2, 1.0, 0.5, 0.0), abs=0.05)
    assert found["inherited"] == pytest.approx((1, 0.81, 0.9025, 1.0), abs=0.05)
    assert "slower" not in found
