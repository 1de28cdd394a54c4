"""What was found out about a study's recommended model, from the file that a search leaves beside the study."""

from __future__ import annotations

import json
import os
from pathlib import Path

from nasbot._files import open_regular
from nasbot._typing import Json
from nasbot.errors import FileError

PLACE = ".files", "understanding.json"
MOST_BYTES = 1_000_000


def understood(path: Path) -> dict[str, Json] | None:
    """Of the study in this file; None where there is none, or nothing that can be read. Links are not followed."""
    folder = path.with_name(f"{path.name.removesuffix(path.suffix)}{PLACE[0]}")
    if folder.is_symlink() or not folder.is_dir():
        return None
    try:
        with os.fdopen(open_regular(folder / PLACE[1], os.O_RDONLY), "rb") as file:
            record = json.loads(file.read(MOST_BYTES))
    except (FileError, OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
