"""What training does to a batch before it learns from it: images flipped and shifted, samples mixed.

All randomness is the given generator's, so that a seed decides it in any process and on any device.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

LARGEST_SHIFT = 1 / 8  # of height and width: 4 of 32 pixels (He et al., 2016, Section 4.2)


def augmented(x: Tensor, kind: str, *, rng: np.random.Generator) -> Tensor:
    """Images (n, channels, height, width): half of them mirrored ("flips"), each shifted over zeros ("crops")."""
    if "flips" in kind:
        mirrored = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
        x = torch.where(mirrored[:, None, None, None], x.flip(3), x)
    if "crops" in kind:
        x = _shifted(x, rng)
    return x.contiguous(memory_format=torch.channels_last)


def _shifted(x: Tensor, rng: np.random.Generator) -> Tensor:
    n, _, height, width = x.shape
    most = [max(1, round(LARGEST_SHIFT * size)) for size in (height, width)]
    top, left = (torch.from_numpy(rng.integers(0, 2 * far + 1, n)).to(x.device) for far in most)
    padded = functional.pad(x, (most[1], most[1], most[0], most[0]))
    rows = top[:, None] + torch.arange(height, device=x.device)
    columns = left[:, None] + torch.arange(width, device=x.device)
    sample = torch.arange(n, device=x.device)[:, None, None]
    # Advanced indices with a slice between them come first: (n, height, width, channels).
    return padded[sample, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def mixed(x: Tensor, alpha: float, *, rng: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """Each sample with another of the batch: the mixture, who the others are, and the share of the first.

    Zhang et al., 2018: the loss is mixed in the same shares. One share for the whole batch, as in their code.
    """
    share = float(rng.beta(alpha, alpha))
    others = torch.from_numpy(rng.permutation(len(x))).to(x.device)
    return torch.lerp(x.index_select(0, others), x, share), others, share
