"""The only loop in the package: from a history to the next proposal, to its evaluation, to a longer history.

Names load when they are first asked for: whoever only wants to know where a study lives (``nasbot.study.places``), as
the live page does, is spared the searchers and 50 MB of scipy with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nasbot.study.budget import Budget
    from nasbot.study.deciding import DecidingTime
    from nasbot.study.optimise import maximise, minimise
    from nasbot.study.places import study_path
    from nasbot.study.requests import ask_study
    from nasbot.study.settings import Direction
    from nasbot.study.status import StudyState, StudyStatus, status_of
    from nasbot.study.study import Study
    from nasbot.study.view import StudyView

_LATER = {
    "Budget": "budget",
    "DecidingTime": "deciding",
    "Direction": "settings",
    "Study": "study",
    "StudyState": "status",
    "StudyStatus": "status",
    "StudyView": "view",
    "ask_study": "requests",
    "maximise": "optimise",
    "minimise": "optimise",
    "status_of": "status",
    "study_path": "places",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'nasbot.study' has no attribute {name!r}")
    value = getattr(import_module(f"nasbot.study.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "Budget",
    "DecidingTime",
    "Direction",
    "Study",
    "StudyState",
    "StudyStatus",
    "StudyView",
    "ask_study",
    "maximise",
    "minimise",
    "status_of",
    "study_path",
]
