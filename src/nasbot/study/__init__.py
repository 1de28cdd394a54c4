"""The only loop in the package: from a history to the next proposal, to its evaluation, to a longer history."""

from nasbot.study.budget import Budget
from nasbot.study.deciding import DecidingTime
from nasbot.study.optimise import maximise, minimise
from nasbot.study.places import study_path
from nasbot.study.settings import Direction
from nasbot.study.study import Study, StudyView

__all__ = ["Budget", "DecidingTime", "Direction", "Study", "StudyView", "maximise", "minimise", "study_path"]
