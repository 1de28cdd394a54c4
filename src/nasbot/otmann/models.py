"""Networks as people have them: an Architecture, or a PyTorch model that becomes one when it is compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Union

from nasbot._display import display
from nasbot.architecture import Architecture
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from torch.nn import Module

Network: TypeAlias = Union[Architecture, "Module"]
Some = TypeVar("Some")


def as_architecture(network: Network) -> Architecture:
    """The network itself, or the layer graph of a PyTorch model as ``nasbot.trace`` gives it."""
    if isinstance(network, Architecture):
        return network
    if not _is_model(network):
        raise OptionError(f"expected an Architecture or a torch.nn.Module, got {type(network).__name__}")
    traced: Architecture = display("model.architecture")(network)
    return traced


def several(networks: Iterable[Some]) -> list[Some]:
    """Networks as a list; OptionError for one alone, or for what holds none."""
    if isinstance(networks, Architecture) or _is_model(networks) or not isinstance(networks, Iterable):
        raise OptionError(f"expected a list of networks, got {type(networks).__name__}: put one network into a list")
    return list(networks)


def _is_model(network: object) -> bool:
    # Whoever hands in a model has imported torch; asking so costs nobody else the second that the import takes.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(network, torch.nn.Module)
