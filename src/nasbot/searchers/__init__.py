"""What to evaluate next: searchers, all stateless functions of a history.

Searchers load when they are first asked for: a study with a searcher of one's own begins without the scipy of the
others.
"""

from nasbot._lazy import stubbed

__getattr__, __dir__, __all__ = stubbed(__name__)
