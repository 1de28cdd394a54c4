"""Every searcher keeps the promises of the seam, on each kind of network."""

import pytest

from nasbot.architecture import SearchSpace
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.testing.searcher_conformance import SearcherConformance
from tests.searchers.problems import made


class TestNASBOT(SearcherConformance):
    @pytest.fixture(autouse=True, params=["mlp", "cnn", "cells"])
    def choose(self, request):
        self.problem = request.param

    def make_searcher(self):
        return made(NASBOT, self.problem)


class TestNASBOTAsItComes(SearcherConformance):
    """All defaults: the built-in pool, sampled hyper-parameters."""

    n_in_a_row = 2

    def make_searcher(self):
        return NASBOT(space=SearchSpace("mlp-reg"))


class TestNASBOTByBoca(SearcherConformance):
    def make_searcher(self):
        return made(NASBOT, fidelity="boca")


class TestRandomSearch(SearcherConformance):
    @pytest.fixture(autouse=True, params=["mlp", "cnn", "cells"])
    def choose(self, request):
        self.problem = request.param

    def make_searcher(self):
        return made(RandomSearch, self.problem)


class TestEvolutionSearch(SearcherConformance):
    @pytest.fixture(autouse=True, params=["mlp", "cnn", "cells"])
    def choose(self, request):
        self.problem = request.param

    def make_searcher(self):
        return made(EvolutionSearch, self.problem)


class TestTreeBO(SearcherConformance):
    """Cells branch, so not on those."""

    @pytest.fixture(autouse=True, params=["mlp", "cnn"])
    def choose(self, request):
        self.problem = request.param

    def make_searcher(self):
        return made(TreeBO, self.problem)
