"""How long a model takes for one row, here: measured, never guessed."""

from __future__ import annotations

import statistics
import time

import torch

from nasbot.data.preparations import Preparation
from nasbot.training.ensemble import Ensemble
from nasbot.training.module import Network

WARM_UP, BLOCKS, RUNS = 20, 15, 20
# The processor's time: what else runs here does not count. Where that clock is coarse, the wall's.
_clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter


def latency_of(network: Network | Ensemble, preparation: Preparation | None = None) -> float:
    """Seconds for one standardised row, with the preparation of its numbers, of one core: the median of blocks.

    It is what ``nasbot export --to code`` runs, batch of one; reading and standardising the row come on top.
    """
    model = network if isinstance(network, Ensemble) else Ensemble([network], [1.0], [preparation]).eval()
    x = torch.zeros(1, *model.input_shape)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            for _ in range(WARM_UP):
                model(x)
            blocks = []
            for _ in range(BLOCKS):
                begun = _clock()
                for _ in range(RUNS):
                    model(x)
                blocks.append((_clock() - begun) / RUNS)
    finally:
        torch.set_num_threads(before)
    return statistics.median(blocks)
