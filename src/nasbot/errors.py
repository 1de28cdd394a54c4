"""Every mistake a person can make with nasbot, as one family of exceptions.

Each class carries the exit code that the command line returns for it (docs/reference/exit-codes.md lists them), so the
mapping from mistake to code is said once, here. Messages say what was wrong, where, what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Violation:
    """One broken rule: its name, what exactly was found, and the layer it was found at (None: the whole network)."""

    rule: str
    message: str
    layer: int | None = None

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class NasbotError(Exception):
    """Base of everything nasbot raises on purpose."""

    exit_code: ClassVar[int] = 1


class OptionError(NasbotError, ValueError):
    """Invalid argument or option."""

    exit_code = 2


class FileError(NasbotError, OSError):
    """A file cannot be read or written."""

    exit_code = 3


class CodecError(NasbotError, ValueError):
    """Bytes or a mapping do not describe a network in the format of docs/reference/architecture-json.md."""

    exit_code = 4


class InvalidArchitectureError(NasbotError, ValueError):
    """A layer graph breaks a rule of its vocabulary; ``violations`` lists which, ``layer`` names the first culprit."""

    exit_code = 5
    shown = 3
    shown_characters = 400

    def __init__(self, message: str, *, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)

    @property
    def layer(self) -> int | None:
        """Index of the layer at fault in the first violation, None where the network as a whole is."""
        return self.violations[0].layer if self.violations else None

    @classmethod
    def of(cls, violations: Sequence[Violation]) -> InvalidArchitectureError:
        """The error for these broken rules: the first few in the message, all of them in ``violations``."""
        texts = [str(violation) for violation in violations[: cls.shown]]
        while len(texts) > 1 and len("; ".join(texts)) > cls.shown_characters:
            texts.pop()
        message = "; ".join(texts)
        if len(message) > cls.shown_characters:
            message = message[: cls.shown_characters] + "…"
        if (hidden := len(violations) - len(texts)) > 0:
            message += f"; and {hidden} more"
        return cls(message, violations=violations)


class OutsideSpaceError(InvalidArchitectureError):
    """A valid network lies outside the limits of a search space."""


class TraceError(InvalidArchitectureError):
    """A PyTorch model does something that no layer graph of its vocabulary can say; the message names the operation."""


class VocabularyError(NasbotError, ValueError):
    """A vocabulary contradicts itself, is unknown, or two networks that must share one do not."""

    exit_code = 6


class PenaltyError(VocabularyError):
    """A table of label penalties is not a pseudo-distance on labels."""


class SolverError(NasbotError, RuntimeError):
    """The transport solver did not reach a proven optimum; its result was thrown away."""

    exit_code = 7


class StudyError(NasbotError, RuntimeError):
    """A study was asked for what it cannot do now: told twice, driven twice, resumed with other settings."""

    exit_code = 8


class ExhaustedError(StudyError):
    """A searcher finds no network in its space that is not evaluated, pending or known to fail."""


class FailingError(StudyError):
    """Too many trials in a row failed; what was learned is stored, and the message says how they failed."""


class ClaimLostError(StudyError):
    """A trial that this driver began was given to another one, because nothing was heard of this one for long."""


class StorageError(NasbotError, RuntimeError):
    """A study's file is damaged, not a study, or of a version that this nasbot does not read."""

    exit_code = 9


class RefusedError(NasbotError, RuntimeError):
    """For objectives to raise: this network is not worth starting (too large, say). The trial fails as refused."""

    exit_code = 10


class DataError(NasbotError, ValueError):
    """Data cannot be learned from as they are: what is wrong, in which column, and what to do about it."""

    exit_code = 11


class ExportError(NasbotError, RuntimeError):
    """A file written for use elsewhere does not give the network's own outputs; it was not kept."""

    exit_code = 12


class DivergedError(NasbotError, ArithmeticError):
    """Training reached a loss that is not a finite number, or near it. The trial fails as nan."""

    exit_code = 13


def missing_extra(what: str, extra: str) -> OptionError:
    """The error where the package behind an optional part is not installed."""
    return OptionError(f"{what} needs a package that is not installed; get it with: pip install 'nasbot[{extra}]'")
