"""Targets that others helped to set: networks learn between the truth and what an ensemble, or trees, say of the rows.

Hinton, Vinyals and Dean, 2015. A network that learns the truth of noisy rows by heart learns their noise; the mean of
several networks has less of it. Learning half of each, single networks had test errors 5 to 9 % lower on Protein, 3 to
7 % on Blog, 1 % on News and 2 % on Indoor, ensembles of them up to 4 %; and they could be trained twice as long, which
lowered both by 5 % more on Protein. Where there is little noise, as in Naval, the ensemble's errors are the larger
part, and learning from it is a third worse: so its share depends on what averaging has gained (``share_of``).

Trees that have not seen a row say what is to be expected of it, and err otherwise than networks do. What they say is
kept beside the data (``save_trees``), and a candidate's param ``from_trees`` is their share in what its network learns:
docs/results/trees-as-teachers.md. The network itself has none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nasbot.data.dataset import Dataset, Part
from nasbot.errors import StorageError
from nasbot.training.folds import joined
from nasbot.training.module import Network
from nasbot.training.predictions import predictions
from nasbot.training.steps import tensor_of
from nasbot.training.weights import read_predictions, save_predictions

MOST = 0.5  # the share of the ensemble in what is learned
# Of the squared error of one network, what is left when several are averaged: down to the first it is one network's
# own, and the ensemble's too; from the second on it is mostly noise, which nobody can learn.
OWN, NOISE = 0.7, 0.9
TREES = "trees.npy"  # in the folder of the data


# -- an ensemble -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Voice:
    """A network of the ensemble, the data prepared as it wants them, and its weight."""

    network: Network
    data: Dataset
    weight: float


def said_together(data: Dataset, voices: Iterable[Voice], *, device: str = "cpu", at_once: int = 1) -> np.ndarray:
    """What they say of the training rows and then the validation rows: numbers, or probabilities of classes.

    float32, (n, outputs), no lower and no higher than the truth of these rows ever is. Each is asked about so many
    parts of the rows at once.
    """
    truth = truth_of(data, joined(data.train, data.valid))
    mean = np.zeros(truth.shape)
    for voice in voices:
        mean += voice.weight * _said(voice, device, at_once)
    return _within(truth, mean)


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


# -- trees -------------------------------------------------------------------------------------------------------------


def save_trees(folder: Path, data: Dataset, said: np.ndarray) -> None:
    """Keep beside the data what trees say of the training rows and then the validation rows, (n, outputs)."""
    save_predictions(said[: len(data.train)], said[len(data.train) :], folder / TREES)


def read_trees(folder: str | Path, data: Dataset) -> np.ndarray:
    """What ``save_trees`` kept; FileError or StorageError where it is not there, or is of other data."""
    path = Path(folder) / TREES
    train, valid = read_predictions(path, len(data.train))
    if (len(train), len(valid), train.shape[1]) != (len(data.train), len(data.valid), data.n_outputs):
        raise StorageError(f"{path}: not what trees say of the training and validation rows of {data.name}")
    return np.concatenate([train, valid])


def targets_of(data: Dataset, folder: str | Path, share: float, *, all_rows: bool = False) -> np.ndarray | None:
    """What a training learns of its rows: the truth, and by ``share`` what trees say; None: the truth alone.

    Of the training rows, or of these and then the validation rows.
    """
    if not share:
        return None
    said = read_trees(folder, data)
    truth = truth_of(data, joined(data.train, data.valid) if all_rows else data.train)
    return blended(truth, _within(truth, said[: len(truth)]), share)


# -- both --------------------------------------------------------------------------------------------------------------


def truth_of(data: Dataset, part: Part) -> np.ndarray:
    """(n, outputs): numbers, or of classes their probabilities, 0 and 1."""
    return np.eye(data.n_outputs, dtype=np.float32)[part.y] if data.is_classification else part.y


def blended(truth: np.ndarray, said: np.ndarray, share: float) -> np.ndarray:
    """The truth, and by ``share`` what somebody says instead; float32."""
    return np.asarray((1 - share) * truth + share * said, dtype=np.float32)


def _within(truth: np.ndarray, said: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(said, truth.min(axis=0), truth.max(axis=0)), dtype=np.float32)
