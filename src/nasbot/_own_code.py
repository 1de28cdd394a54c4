"""A person's own code, named by where it is: ``file.py:name`` or ``module:name``. Naming it runs it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from nasbot.errors import FileError, OptionError

FILE_MODULE = "nasbot_own_"  # how the module of a file that is run by its path begins: it cannot be imported by name


def own_function(where: str, *, what: str, expected: str) -> Callable[..., Any]:
    """The function of the file or module, which is run: it is the caller's own code, never a study's.

    Args:
        where: FILE.py:FUNCTION, or MODULE:FUNCTION of a module that can be imported from here.
        what: the option, for messages.
        expected: what is expected of it, for messages.
    Raises:
        OptionError, FileError: in one line, where there is no such file or function, or it fails.
    """
    function = own_object(where, what=what, expected=expected)
    if not callable(function):
        place, _, name = where.rpartition(":")
        raise OptionError(f"{what}: {place} has no function {name!r}")
    return function


def own_object(where: str, *, what: str, expected: str) -> object:
    """What the file or module has under that name, None where it has nothing; otherwise as ``own_function``."""
    place, separator, name = where.rpartition(":")
    if not separator or not place or not name.isidentifier():
        raise OptionError(f"{what}: {expected}, got {where[:80]!r}")
    module = _file(place, what, expected) if place.endswith(".py") else _module(place, what, expected)
    return getattr(module, name, None)


def _file(place: str, what: str, expected: str) -> ModuleType:
    path = Path(place)
    if not path.is_file():
        raise FileError(f"{place}: no such file; {expected}")
    spec = importlib.util.spec_from_file_location(f"{FILE_MODULE}{path.stem}", path)
    if spec is None or spec.loader is None:
        raise OptionError(f"{what}: {place} is not a Python file; {expected}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and others look their own module up
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        said = f"sys.exit({str(error.code)[:60]})"
        raise OptionError(f"{what}: {place} ends the process when it is run ({said}); {expected}") from None
    except Exception as error:  # noqa: BLE001  somebody's own code
        raise OptionError(f"{what}: {place} cannot be run: {_said(error)}") from None
    return module


def _module(place: str, what: str, expected: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # a command has its own folder there instead; trainings in other processes follow
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{what}: no module {str(error.name)[:60]!r} to import {place[:60]} from; {expected}"
        ) from None
    except Exception as error:  # noqa: BLE001  somebody's own code
        raise OptionError(f"{what}: {place[:60]} cannot be imported: {_said(error)}") from None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"
