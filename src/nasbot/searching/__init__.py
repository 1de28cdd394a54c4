"""From data to the best network: the one call ``nasbot.search``, and what ``nasbot run`` is made of."""

from nasbot.searching.driving import Search, default_workers, plan_search, search
from nasbot.searching.found import FoundStudy, FoundTrial, files_of
from nasbot.searching.place import Place
from nasbot.searching.plan import Plan, pool_for, seconds_per_trial, space_for

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
