"""Networks as people have them: an Architecture, or a PyTorch model that becomes one when it is compared."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias, Union

from nasbot._display import display
from nasbot.architecture import Architecture
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from torch.nn import Module

Network: TypeAlias = Union[Architecture, "Module"]


def as_architecture(network: Network) -> Architecture:
    """The network itself, or the layer graph of a PyTorch model as ``nasbot.trace`` gives it."""
    if isinstance(network, Architecture):
        return network
    # Whoever hands in a model has imported torch; asking so costs nobody else the second that the import takes.
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(network, torch.nn.Module):
        raise OptionError(f"expected an Architecture or a torch.nn.Module, got {type(network).__name__}")
    traced: Architecture = display("model.architecture")(network)
    return traced
