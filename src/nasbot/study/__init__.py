"""The only loop in the package: from a history to the next proposal, to its evaluation, to a longer history.

Names load when they are first asked for: whoever only wants to know where a study lives (``nasbot.storage.paths``), as
the live page does, is spared the searchers and 50 MB of scipy with them.
"""

from nasbot._lazy import stubbed

__getattr__, __dir__, __all__ = stubbed(__name__)
