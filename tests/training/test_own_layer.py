"""A person's own nn.Module as a label: built by the seed, trained, exported, never imported by a file."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nasbot
from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, Role, Vocabulary, chain, resources
from nasbot.errors import ExportError, StorageError, VocabularyError
from nasbot.exporting.export import export
from nasbot.exporting.model_file import load_model
from nasbot.training._dense_plan import DensePlan
from nasbot.training.module import build
from nasbot.training.recipes import FAST
from nasbot.training.steps import autograd_stepper
from nasbot.trial import TrialState
from tests.training.own_layers import Gated

PLACE = "tests.training.own_layers"


def vocabulary(module=f"{PLACE}:Gated"):
    labels = (
        Label(name="ip", role=Role.INPUT),
        Label(name="op", role=Role.OUTPUT),
        Label(name="relu", takes_units=True, activation="relu"),
        Label(name="gated", takes_units=True, mass_factor=2.0, module=module),
        Label(name="linear", role=Role.DECISION),
    )
    penalties = LabelPenalties.from_pairs([label.name for label in labels], {("relu", "gated"): 0.2})
    return Vocabulary("gated-mlp", labels, penalties)


def network(seed=0, module=f"{PLACE}:Gated"):
    arch = chain(vocabulary(module), [Layer("gated", 8), Layer("relu", 8)])
    return build(arch, input_shape=(5,), n_outputs=2, seed=seed)


def test_the_seed_decides_and_nothing_global_is_touched():
    before = torch.get_rng_state()
    first, second, other = network(3), network(3), network(4)
    assert torch.equal(before, torch.get_rng_state())
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])
    assert not torch.equal(first.layers["1"].module.shift, other.layers["1"].module.shift)


def test_it_is_trained_by_autograd():
    ours = network()
    assert not DensePlan.serves(ours)
    begun = ours.layers["1"].module.linear.weight.detach().clone()
    take_step = autograd_stepper(ours, FAST.vectors, rng=np.random.default_rng(0))
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((16, n)).astype(np.float32)) for n in (5, 2))
    losses = [take_step(x, y, 0.01) for _ in range(30)]
    assert losses[-1] < losses[0] / 2
    assert not torch.equal(begun, ours.layers["1"].module.linear.weight)


def test_it_counts_as_so_many_dense_layers():
    cost = resources(network().arch, (5,), 2).layers[1]
    assert (cost.shape, cost.parameters, cost.flops) == ((8,), 2 * 5 * 8 + 8, 2 * 2 * 5 * 8)


def test_onnx_goes_through_torch_and_code_is_refused(tmp_path):
    (path,) = export(network(), tmp_path / "net.onnx")  # compared with the network before it is put there
    assert path.stat().st_size > 100
    with pytest.raises(ExportError, match=r"layer 1 \(gated\) is a module of your own.*onnx or safetensors"):
        export(network(), tmp_path / "net.py")


def test_a_file_alone_imports_nothing(tmp_path, monkeypatch):
    ours = network().eval()
    (path,) = export(ours, tmp_path / "net.safetensors")
    monkeypatch.delitem(sys.modules, PLACE)
    with pytest.raises(StorageError, match="gated-mlp"):
        load_model(path)
    with pytest.raises(VocabularyError, match="gated-mlp"):
        Architecture.from_json(ours.arch.to_json())
    assert PLACE not in sys.modules
    x = torch.ones(3, 5)
    torch.testing.assert_close(load_model(path, vocabulary=vocabulary()).network(x), ours(x))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("no_such_package:Gated", "label gated: cannot import 'no_such_package:Gated': No module named"),
        (f"{PLACE}:Missing", "label gated: cannot import .*Missing"),
        (f"{PLACE}:fails", "label gated: its module cannot be made: ValueError: no such width"),
        (f"{PLACE}:number", r"label gated: expected a torch.nn.Module, got int"),
        ("os.system('true')", "label gated: module must be an import path such as"),
    ],
)
def test_what_cannot_be_made_is_said(module, message):
    with pytest.raises(VocabularyError, match=message):
        network(module=module)


def test_a_study_whose_module_is_gone_spends_no_trial_on_it(tmp_path, monkeypatch):
    here = SimpleNamespace(Gated=Gated)
    words = vocabulary("module_of_yesterday:Gated")
    X = np.random.default_rng(0).normal(size=(80, 5))
    options = {"space": words, "pool": [chain(words, [Layer("gated", n)]) for n in (8, 12)], "searcher": "random"}
    options |= {"recipe": FAST.changed(n_steps=5), "executor": "here", "name": tmp_path / "s.sqlite", "tune": None}
    options |= {"refit": False, "folds": 1}
    monkeypatch.setitem(sys.modules, "module_of_yesterday", here)
    nasbot.search(X, X[:, 0], budget=1, **options).close()
    monkeypatch.delitem(sys.modules, "module_of_yesterday")
    with pytest.raises(VocabularyError, match=r"^label gated: cannot import 'module_of_yesterday:Gated': No module"):
        nasbot.search(X, X[:, 0], budget=2, **options)
    monkeypatch.setitem(sys.modules, "module_of_yesterday", here)
    with nasbot.search(X, X[:, 0], budget=2, **options) as study:
        assert [trial.state for trial in study.history] == [TrialState.COMPLETED] * 2


def test_another_width_is_said():
    with pytest.raises(VocabularyError, match="label gated: expected 8 channels to leave it, got 7"):
        network(module=f"{PLACE}:narrow")(torch.zeros(2, 5))


def test_labels_that_do_not_fit_their_operation():
    with pytest.raises(VocabularyError, match="label x: unknown operation 'attention'; known: input"):
        Label(name="x", operation="attention")
    with pytest.raises(VocabularyError, match="label x: the operation res-dense needs takes_units=True, got False"):
        Label(name="x", operation="res-dense")
    assert "operation" not in repr(Label(name="x", takes_units=True)), "studies keep a digest of this"
