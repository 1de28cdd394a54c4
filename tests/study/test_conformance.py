from nasbot.testing.searcher_conformance import SearcherConformance
from tests.study.searchers import Sensitive


class TestSensitive(SearcherConformance):
    """The suite itself, held against the searcher that the tests here use."""

    def make_searcher(self) -> Sensitive:
        return Sensitive()
