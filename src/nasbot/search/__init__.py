"""What to evaluate next: searchers, all stateless functions of a history."""

from nasbot.search.base import Explains, Proposal, Searcher

__all__ = ["Explains", "Proposal", "Searcher"]
