"""From data to the best network: the one call ``nasbot.search``, and what ``nasbot run`` is made of."""

from nasbot.automl.found import FoundStudy, FoundTrial, files_of
from nasbot.automl.place import Place
from nasbot.automl.plan import Plan, pool_for, seconds_per_trial, space_for
from nasbot.automl.searching import Search, default_workers, plan_search, search

__all__ = [
    "FoundStudy",
    "FoundTrial",
    "Place",
    "Plan",
    "Search",
    "default_workers",
    "files_of",
    "plan_search",
    "pool_for",
    "search",
    "seconds_per_trial",
    "space_for",
]
