"""Adding an activation is one row in one file: a copy of the package gets one, and every room knows it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nasbot

ROOT = Path(nasbot.__file__).parent
ROW = '    "hard-swish": Activation("torch.nn.functional.hardswish", "rectifier", (Node("HardSwish"),)),\n'
USE = """
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import nn

import nasbot
from nasbot import Layer, explain
from nasbot.architecture import BUILT_IN, chain
from nasbot.data.dataset import dataset_of

assert [x.name for x in BUILT_IN.values() if "hard-swish" in x.by_name] == ["mlp-reg+", "mlp-class+"]
arch = chain("mlp-reg+", [Layer("hard-swish", 16), Layer("tanh", 8), Layer("hard-swish", 8)])
otherwise = chain("mlp-reg+", [Layer("relu", 16), Layer("tanh", 8), Layer("hard-swish", 8)])
assert 0 < explain(arch, otherwise).distance < 20  # one rectifier for another

X = np.random.default_rng(0).normal(size=(400, 4))
trained = nasbot.train(arch, dataset_of(X, X[:, 0] * X[:, 1], seed=0), seed=1)
assert trained.loss < 0.5, trained.loss  # the target is standardised

x = torch.linspace(-4, 4, 80).reshape(20, 4)
expected = trained.network(x).detach().numpy()
nasbot.export(trained.network, "model.onnx")
session = onnxruntime.InferenceSession("model.onnx")
np.testing.assert_allclose(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0], expected, atol=1e-5)
nasbot.export(trained.network, "model.py")
assert Path("model.py").read_text().count("torch.nn.functional.hardswish(") == 2

model = nn.Sequential(nn.Linear(4, 8), nn.Hardswish(), nn.Linear(8, 1))
traced = nasbot.trace(model, kind="mlp-reg+")
assert [layer.label for layer in traced.layers] == ["ip", "hard-swish", "linear", "op"]
print("known everywhere")
"""


def test_one_row_in_one_file_is_enough(tmp_path):
    copy = tmp_path / "src" / "nasbot"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    table = copy / "architecture" / "activations.py"
    text = table.read_text(encoding="utf-8")
    before, after = text.rsplit("}\n", 1)
    table.write_text(before + ROW + "}\n" + after, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy.parent), "NASBOT_PLAIN_SOLVER": "1"}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("known everywhere\n")
