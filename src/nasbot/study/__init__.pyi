"""Every public name of this room, once; each loads when it is first asked for."""

from nasbot.storage.paths import study_path as study_path
from nasbot.study.budget import Budget as Budget
from nasbot.study.deciding import DecidingTime as DecidingTime
from nasbot.study.optimise import (
    maximise as maximise,
    minimise as minimise,
)
from nasbot.study.requests import ask_study as ask_study
from nasbot.study.status import (
    StudyState as StudyState,
    StudyStatus as StudyStatus,
    status_of as status_of,
)
from nasbot.study.study import Study as Study
from nasbot.study.view import StudyView as StudyView
from nasbot.trial import Direction as Direction
