"""A person's own PyTorch model as a network to begin a search with: ``model.py:build``."""

from __future__ import annotations

import torch
from torch import nn

from nasbot._own_code import own_function
from nasbot.architecture import Architecture
from nasbot.data.dataset import Dataset
from nasbot.errors import NasbotError, OptionError
from nasbot.tracing.trace import trace

EXPECTED = "expected FILE.py:FUNCTION, where FUNCTION() returns a torch.nn.Module"


def built(where: str) -> nn.Module:
    """What the function of the file returns. The file is run: it is the caller's own code.

    Raises OptionError or FileError, in one line, where there is no such file or function, or either fails.
    """
    build = own_function(where, what="start-from", expected=EXPECTED)
    name = where.rpartition(":")[2]
    try:
        model = build()
    except SystemExit as error:
        raise OptionError(f"start-from: {name}() ends the process ({_exit(error)}); {EXPECTED}") from None
    except Exception as error:  # noqa: BLE001  somebody's own code
        raise OptionError(f"start-from: {name}() raised {type(error).__name__}: {str(error)[:160]}") from None
    if not isinstance(model, nn.Module):
        raise OptionError(f"start-from: {name}() returned {type(model).__name__}; expected a torch.nn.Module")
    return model


def _exit(error: SystemExit) -> str:
    return f"sys.exit({str(error.code)[:60]})"


def traced_model(model: nn.Module, data: Dataset) -> Architecture:
    """The model's network, of the kind that the data ask for; it must take inputs of their shape."""
    example = torch.zeros(2, *data.input_shape)
    try:
        return trace(model, example, kind=data.kind)
    except NasbotError as error:
        error.args = (f"start-from: {error}",)
        raise
