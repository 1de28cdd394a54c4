"""What a trained network says of prepared rows, in double precision unless speed matters more.

In single precision the last digits of an output depend on how many rows are asked about together and on where in
memory they lie, because the libraries choose their kernels by both. In double precision nobody sees that: the same row
gets the same answer alone and among others.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.func import functional_call

from nasbot.training.ensemble import Ensemble
from nasbot.training.module import Network

NUMBERS_AT_A_TIME = 4_000_000  # of the inputs
ROWS_AT_A_TIME = 1024  # what layers give of them stays in the cache


def outputs_of(network: Network | Ensemble, X: np.ndarray, *, exact: bool = True) -> np.ndarray:
    """Outputs for prepared inputs, float64 (n, outputs); the network, in evaluation mode, is left as it is.

    Where they need not be ``exact`` single precision does, at half the time: they differ in the seventh digit.
    """
    kind = torch.float64 if exact else torch.float32
    state = {
        name: tensor.to(kind) if tensor.is_floating_point() else tensor for name, tensor in network.state_dict().items()
    }
    rows = max(1, min(ROWS_AT_A_TIME, NUMBERS_AT_A_TIME // max(1, int(np.prod(network.input_shape)))))
    parts = [np.zeros((0, network.n_outputs))]
    with torch.no_grad():
        for i in range(0, len(X), rows):
            x = torch.tensor(X[i : i + rows], dtype=kind)
            parts.append(functional_call(network, state, (x,)).numpy())
    return np.concatenate(parts)
