"""The compiled kernels run uncompiled too and give the same numbers: what is read is what runs."""

import json
import os
import subprocess
import sys

import numpy as np

import nasbot
from nasbot.testing.networks import random_architecture

SCRIPT = """
import json, numpy as np, nasbot
from nasbot.testing.networks import random_architecture
import nasbot.otmann._kernels.bitset_simplex as simplex
archs = [random_architecture("cnn", rng=np.random.default_rng(seed), n_layers=12) for seed in range(4)]
table = nasbot.pairwise(archs, threads=1)
simplex.PIVOTS_PER_NODE = 0
try:
    nasbot.pairwise(archs, threads=1)
    capped = "no error"
except nasbot.SolverError as error:
    capped = str(error)
print(json.dumps({"compiled": hasattr(simplex.optimise, "py_func"), "d": table.d.tolist(), "capped": capped}))
"""


def test_uncompiled_kernels_give_the_same_table_and_a_pivot_cap_raises() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    archs = [random_architecture("cnn", rng=np.random.default_rng(seed), n_layers=12) for seed in range(4)]
    assert answer["compiled"] is False
    np.testing.assert_allclose(answer["d"], nasbot.pairwise(archs).d, rtol=1e-13)
    assert "did not converge" in answer["capped"]
