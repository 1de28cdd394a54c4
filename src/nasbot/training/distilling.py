"""What an ensemble has understood, taught to one network: targets between the truth and what the ensemble says.

Hinton, Vinyals and Dean, 2015. A network that learns the truth of noisy rows by heart learns their noise; the mean of
several networks has less of it. Learning half of each, single networks had test errors 5 to 9 % lower on Protein, 3 to
7 % on Blog, 1 % on News and 2 % on Indoor, ensembles of them up to 4 %; and they could be trained twice as long, which
lowered both by 5 % more on Protein. Where there is little noise, as in Naval, the ensemble's errors are the larger
part, and learning from it is a third worse: so its share depends on what averaging has gained (``share_of``).
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from nasbot.data.dataset import Dataset
from nasbot.training.folds import joined
from nasbot.training.module import Network
from nasbot.training.predictions import predictions
from nasbot.training.steps import tensor_of

MOST = 0.5  # the share of the ensemble in what is learned
# Of the squared error of one network, what is left when several are averaged: down to the first it is one network's
# own, and the ensemble's too; from the second on it is mostly noise, which nobody can learn.
OWN, NOISE = 0.7, 0.9


@dataclass(frozen=True)
class Voice:
    """A network of the ensemble, the data prepared as it wants them, and its weight."""

    network: Network
    data: Dataset
    weight: float


def lesson_of(
    data: Dataset, voices: Iterable[Voice], share: float, *, device: str = "cpu", at_once: int = 1
) -> np.ndarray:
    """What to learn of the training rows and then the validation rows: numbers, or probabilities of classes.

    float32, (n, outputs): the truth, and by ``share`` what the ensemble says, which is asked about so many parts of the
    rows at once.
    """
    rows = joined(data.train, data.valid)
    truth = np.eye(data.n_outputs, dtype=np.float32)[rows.y] if data.is_classification else rows.y
    mean = np.zeros(truth.shape)
    for voice in voices:
        mean += voice.weight * _said(voice, device, at_once)
    np.clip(mean, truth.min(axis=0), truth.max(axis=0), out=mean)
    return np.asarray((1 - share) * truth + share * mean, dtype=np.float32)


def share_of(together: float, alone: float) -> float:
    """How much of what is learned is the ensemble's word, by the squared errors of it and of its networks alone."""
    left = together / alone if alone > 0 else 0.0
    return MOST * float(np.clip((left - OWN) / (NOISE - OWN), 0.0, 1.0))


def _said(voice: Voice, device: str, at_once: int) -> np.ndarray:
    """Of the training rows and then the validation rows."""
    network = voice.network.to(device)
    whole = (voice.data.train, voice.data.valid)
    parts = [tensor_of(x).to(device) for part in whole for x in np.array_split(part.X, at_once) if len(x)]
    with ThreadPoolExecutor(at_once) as threads:
        out = np.concatenate(list(threads.map(lambda x: predictions(network, x).cpu().numpy(), parts)))
    network.cpu()
    return np.exp(out) if voice.data.is_classification else out
