"""Decisions of every searcher in every kind of study are the recorded ones: no constant changes by accident."""

import json

import pytest

from tests.searchers.recorded import CASES, FILE, decisions

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_the_recorded_ones(case):
    assert decisions(case) == RECORDED[case]
