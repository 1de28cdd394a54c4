"""What networks are trained on: the CPU, or graphics cards, one to a worker.

The driver never touches CUDA: which cards there are is asked of another process, and the process of each evaluation
sees only its own card.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nasbot.errors import OptionError

WORDS = "auto, cpu, cuda, cuda:1 (a card's number) or mps"
VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS_TO_ASK = 60.0
QUESTION = """
import json, torch
mps = getattr(torch.backends, "mps", None)
print(json.dumps({"cuda": torch.cuda.device_count(), "mps": bool(mps and mps.is_available())}))
"""


@dataclass(frozen=True)
class Found:
    """What a machine has: cards as CUDA_VISIBLE_DEVICES calls them, and whether it is a Mac with one of its own."""

    cards: tuple[str, ...] = ()
    mps: bool = False


@dataclass(frozen=True)
class Devices:
    """What each training is told, and the card that each worker owns; none on a CPU, on a Mac and on a cluster."""

    device: str = "cpu"
    cards: tuple[str, ...] = ()


def devices_of(
    asked: str, *, on_cluster: bool = False, gpus_per_trial: float = 0, find: Callable[[], Found] | None = None
) -> Devices:
    """The devices that this word means here; OptionError, with what there is, where it means none.

    On a cluster the nodes have the cards, and Ray hands them out: nothing is looked for here, and "auto" is "cuda"
    where each training reserves some.
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", asked):
        raise OptionError(f"device: expected {WORDS}, got {asked[:40]!r}")
    if on_cluster and asked == "cpu" and gpus_per_trial:
        raise OptionError("gpus_per_trial: a training on the cpu uses none; expected device cuda beside it")
    if asked == "cpu" or (on_cluster and asked == "auto" and not gpus_per_trial):
        return Devices()
    if on_cluster:
        if asked not in ("auto", "cuda"):
            raise OptionError(f"device: a cluster hands out its cards itself; expected cpu or cuda, got {asked}")
        return Devices("cuda")
    found = (find or found_here)() if asked != "auto" or may_have_any() or find is not None else Found()
    if asked == "auto":
        return Devices("cuda", found.cards) if found.cards else Devices("mps" if found.mps else "cpu")
    if asked == "mps":
        if not found.mps:
            raise OptionError(f"device: there is no mps here; {_there_is(found)}")
        return Devices("mps")
    number = int(asked.partition(":")[2] or -1)
    if number >= len(found.cards) or not found.cards:
        raise OptionError(f"device: there is no {asked} here; {_there_is(found)}")
    return Devices("cuda", found.cards if number < 0 else (found.cards[number],))


def may_have_any() -> bool:
    """Whether it is worth asking: PyTorch takes seconds to load."""
    return sys.platform == "darwin" or Path("/dev/nvidia0").exists() or Path("/dev/kfd").exists()


def found_here() -> Found:
    """What PyTorch sees here, asked of another process so that this one stays clear of CUDA."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", QUESTION], capture_output=True, text=True, timeout=SECONDS_TO_ASK, check=True
        )
        answer = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return Found()
    named = [name for name in os.environ.get(VISIBLE, "").split(",") if name]
    n = int(answer["cuda"])
    return Found(tuple(named[:n]) if len(named) >= n > 0 else tuple(map(str, range(n))), bool(answer["mps"]))


def _there_is(found: Found) -> str:
    there = ["cpu", *(f"cuda:{i}" for i in range(len(found.cards))), *(["mps"] if found.mps else [])]
    return f"there is {', '.join(there)}"
