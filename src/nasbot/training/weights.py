"""Weights and predictions on disk: files that are whole or not there. Reading one never runs code."""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from nasbot._files import file_errors, write_whole
from nasbot.data.parts import stored_array
from nasbot.errors import FileError, StorageError
from nasbot.training.module import Network

WAITS_FOR_ROOM = (1.0, 2.0, 4.0)  # seconds, on a full disk: a score waits behind them


def save_weights(network: Network, path: str | Path, *, about: Mapping[str, str] | None = None) -> None:
    """Write all parameters and buffers by their names; ``about`` is kept in the file's header.

    The file appears whole: a process that is killed meanwhile leaves the old one, or none. Where the disk is full it
    tries again a few times before it raises FileError.
    """
    state = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in network.state_dict().items()}
    header = {"kind": network.arch.kind, "fingerprint": network.arch.fingerprint, **(about or {})}
    _write(Path(path), save(state, metadata=header), "weights")


def save_predictions(valid: np.ndarray, test: np.ndarray, path: str | Path) -> None:
    """Write the predictions for the validation rows and, behind them, the test rows as one array."""
    content = io.BytesIO()
    np.save(content, np.concatenate([valid, test]), allow_pickle=False)
    _write(Path(path), content.getvalue(), "predictions")


def read_predictions(path: str | Path, n_valid: int) -> tuple[np.ndarray, np.ndarray]:
    """What ``save_predictions`` wrote: for the validation rows, of which there are ``n_valid``, and the test rows."""
    stored = stored_array(path)
    if (
        not isinstance(stored, np.ndarray)
        or stored.dtype not in (np.float32, np.float64)
        or stored.ndim != 2
        or len(stored) < n_valid
    ):
        raise StorageError(f"{path}: not the predictions for {n_valid:,} validation rows and the test rows")
    return stored[:n_valid], stored[n_valid:]


def _write(place: Path, content: bytes, what: str) -> None:
    with file_errors(f"{place}: the {what} cannot be written"):
        place.parent.mkdir(parents=True, exist_ok=True)
        for seconds in WAITS_FOR_ROOM:
            try:
                write_whole(place, content, sync=True)
                return
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                time.sleep(seconds)
        write_whole(place, content, sync=True)


def load_weights(network: Network, path: str | Path) -> None:
    """Give the network the weights of a file; StorageError where they are another network's."""
    set_weights(network, read_weights(path), path)


def set_weights(network: Network, state: Mapping[str, Tensor], path: str | Path) -> None:
    """The same of weights that were read from there."""
    wanted = network.state_dict()
    if {name: tuple(t.shape) for name, t in state.items()} != {name: tuple(t.shape) for name, t in wanted.items()}:
        raise StorageError(f"{path}: these are not the weights of this network")
    network.load_state_dict(dict(state))


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """Tensors by their names."""
    with file_errors(f"{path}: cannot be read"):
        try:
            state: dict[str, Tensor] = load_file(str(path))
        except FileNotFoundError:
            raise FileError(f"{path}: no weights there") from None
        except SafetensorError as error:
            raise StorageError(f"{path}: not a safetensors file: {str(error)[:120]}") from None
    return {name: torch.clone(tensor) for name, tensor in state.items()}
