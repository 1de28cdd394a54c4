"""The folder beside a study's file: its data, and the weights and predictions of its best trials."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from nasbot.storage.addresses import Address
from nasbot.storage.paths import studies_folder

DATA, WEIGHTS = "data", "weights"
FILES = ".files"


class Temporary:
    """A folder that is removed with the last object that refers to this one."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="nasbot-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def files_of(place: Path | Address) -> Path:
    """The folder beside a study's file with its data and weights; of one in a database, in the studies' folder.

    Drivers on several machines need one such folder for all of them: NASBOT_STUDIES names it.
    """
    if isinstance(place, Address):
        return studies_folder() / f"{place.name}{FILES}"
    path = place
    return path.with_name(f"{path.name.removesuffix(path.suffix)}{FILES}")
