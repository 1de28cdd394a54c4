"""What is evaluated: a network, and the hyper-parameters with which it is trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from nasbot.architecture import Architecture
from nasbot.errors import OptionError

Params: TypeAlias = Mapping[str, float | int | str]  # of one candidate, by name


@dataclass(frozen=True)
class Candidate:
    """A network and its params; no params where the network alone is searched. Equal up to the numbering of layers."""

    arch: Architecture
    params: Params = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: object = self.params
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise OptionError(f"params: expected values by name, such as {{'dropout': 0.1}}, got {str(given)[:60]}")
        object.__setattr__(self, "params", {name: _plain(name, value) for name, value in sorted(self.params.items())})

    @cached_property
    def fingerprint(self) -> str:
        """The network's own where there are no params."""
        if not self.params:
            return self.arch.fingerprint
        content = f"{self.arch.fingerprint} {json.dumps(self.params, sort_keys=True)}"
        return hashlib.sha256(content.encode()).hexdigest()

    def __hash__(self) -> int:
        return hash((self.arch, tuple(self.params.items())))

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.params.items()
        )


def _plain(name: str, value: object) -> float | int | str:
    """Numbers of numpy as Python's, which JSON takes."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, float | int | str):
        raise OptionError(f"param {name[:40]}: expected a number or a text, got {type(value).__name__}")
    return plain
