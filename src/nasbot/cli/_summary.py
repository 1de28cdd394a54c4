"""A study in a few lines, for ``list`` and ``status``: read from its file, without loading a searcher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasbot.plots.meaning import STANDARDISED, Meaning, meaning_of
from nasbot.storage import Address, Tally, open_storage
from nasbot.storage.addresses import place_of
from nasbot.storage.paths import SUFFIX, studies_folder
from nasbot.study.status import StudyStatus, status_of


@dataclass(frozen=True)
class Summary:
    """What a reader sees of a study at one moment."""

    name: str
    path: Path | Address
    status: StudyStatus
    tally: Tally
    meaning: Meaning | None = None  # of its values, of a search on data

    def to_dict(self) -> dict[str, Any]:
        """As plain data, the keys that ``list`` and ``status`` document."""
        return {
            "study": self.name,
            "file": str(self.path),
            **self.status.to_dict(),
            **self.tally.to_dict(),
            "seconds": self.tally.seconds,
        }

    @property
    def best(self) -> str:
        """The best value and its trial."""
        best, meaning = self.tally.best, self.meaning
        if best is None:
            return "none yet"
        shown = f"{best.value:.6g} (trial {best.trial})"
        if meaning is None:
            return shown
        # Beside the summary of a run, where the same metric is in the target's units.
        return f"{meaning.name} {shown}" + (f", {meaning.unit}" if meaning.unit == STANDARDISED else "")


class Watched:
    """A study's file, open for reading, to be summarised as often as one likes."""

    def __init__(self, study: str | Path | Address) -> None:
        self.path = place_of(study)
        self.storage = open_storage(self.path, read_only=True)

    def summary(self) -> Summary:
        """The study as it is now."""
        meaning = meaning_of(self.storage.settings() or {})
        known = None if meaning == Meaning("value") else meaning
        return Summary(name_of(self.path), self.path, status_of(self.storage), self.storage.tally(), known)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        self.storage.close()


def name_of(path: Path | Address) -> str:
    """What to call a study in a command: its name where it lives in the studies' folder, its path elsewhere."""
    if isinstance(path, Address):
        return str(path)
    is_at_home = path.parent == studies_folder() and path.suffix == SUFFIX
    return path.name.removesuffix(SUFFIX) if is_at_home else str(path)
