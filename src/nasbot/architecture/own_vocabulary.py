"""Vocabularies of one's own, named by their import path: the caller names one, and this process knows its kind.

A study remembers the path, and no more: what is read from a file is never imported, the caller names it again.
"""

from __future__ import annotations

import sys

from nasbot._own_code import FILE_MODULE, own_object
from nasbot.architecture.labels import Vocabulary
from nasbot.architecture.vocabularies import BUILT_IN, OWN
from nasbot.errors import OptionError, VocabularyError

EXPECTED = "expected MODULE:NAME or FILE.py:NAME, where NAME is a nasbot.Vocabulary"
_PATHS: dict[str, str] = {}  # by the name of the vocabulary


def use_vocabulary(where: str) -> Vocabulary:
    """Import a vocabulary of your own, and know its kind from then on: in files, studies and ``SearchSpace(kind)``.

    Args:
        where: MODULE:NAME, of a module that can be imported from here, or FILE.py:NAME. It is run.
    Returns:
        The vocabulary.
    Raises:
        OptionError, FileError: there is no such file, module or name, or it fails.
        VocabularyError: it has the name of a built-in one, or of another one that is in use.
    """
    given: object = where
    if not isinstance(given, str):
        got = f"got {type(given).__name__}"
        raise OptionError(f"vocabulary: {EXPECTED}, {got}; an object is passed to what needs it, as vocabulary=")
    found = own_object(where, what="vocabulary", expected=EXPECTED)
    if not isinstance(found, Vocabulary):
        has = "nothing of that name" if found is None else f"a {type(found).__name__} there"
        raise OptionError(f"vocabulary: {where[:80]} has {has}; {EXPECTED}")
    if found.name in BUILT_IN or OWN.get(found.name, found) != found:
        raise VocabularyError(f"vocabulary: {where[:80]} is called {found.name!r}, as another one is; rename it")
    OWN[found.name] = found
    _PATHS[found.name] = where
    return found


def paths_in_use() -> tuple[str, ...]:
    """What ``use_vocabulary`` was called with, for other processes of the same caller."""
    return tuple(_PATHS.values())


def import_path_of(vocabulary: Vocabulary) -> str | None:
    """Where the vocabulary can be imported from: as it was named, or the module that holds it; None if unknown."""
    if OWN.get(vocabulary.name) == vocabulary:
        return _PATHS[vocabulary.name]
    for name, module in sorted(sys.modules.items()):
        if name != "__main__" and not name.startswith(FILE_MODULE):
            for attribute, value in list(getattr(module, "__dict__", {}).items()):
                if value is vocabulary:
                    return f"{name}:{attribute}"
    return None
