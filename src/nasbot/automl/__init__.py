"""From data to a model: ``nasbot.search``, its plan, finals and ensembles."""

from nasbot.automl.files import files_of
from nasbot.automl.found import FoundStudy, FoundTrial
from nasbot.automl.searching import Prepared, search

__all__ = ["FoundStudy", "FoundTrial", "Prepared", "files_of", "search"]
