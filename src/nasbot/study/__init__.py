"""The only loop in the package: from a history to the next proposal, to its evaluation, to a longer history.

Names load when they are first asked for: whoever only wants to know where a study lives (``nasbot.storage.paths``), as
the live page does, is spared the searchers and 50 MB of scipy with them.
"""

from typing import TYPE_CHECKING

from nasbot._lazy import lazy_names

if TYPE_CHECKING:
    from nasbot.storage.paths import study_path
    from nasbot.study.budget import Budget
    from nasbot.study.deciding import DecidingTime
    from nasbot.study.optimise import maximise, minimise
    from nasbot.study.requests import ask_study
    from nasbot.study.status import StudyState, StudyStatus, status_of
    from nasbot.study.study import Study
    from nasbot.study.view import StudyView
    from nasbot.trial import Direction

_LATER = {
    "Budget": "nasbot.study.budget",
    "DecidingTime": "nasbot.study.deciding",
    "Direction": "nasbot.trial",
    "Study": "nasbot.study.study",
    "StudyState": "nasbot.study.status",
    "StudyStatus": "nasbot.study.status",
    "StudyView": "nasbot.study.view",
    "ask_study": "nasbot.study.requests",
    "maximise": "nasbot.study.optimise",
    "minimise": "nasbot.study.optimise",
    "status_of": "nasbot.study.status",
    "study_path": "nasbot.storage.paths",
}

__getattr__, __dir__ = lazy_names(__name__, _LATER)

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
