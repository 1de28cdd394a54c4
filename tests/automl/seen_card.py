"""An objective that says which card its process may see."""

import os
import time


def card_seen(arch):
    """The card's number, after a moment in which others run beside it."""
    time.sleep(0.05)
    return float(os.environ["CUDA_VISIBLE_DEVICES"])
