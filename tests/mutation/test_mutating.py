"""The mutants themselves: each is another program that Python can read, and the faults made by hand still apply."""

import ast
import json
from pathlib import Path

import pytest

from tests.mutation.hand_made import FAULTS
from tests.mutation.mutants import EQUIVALENT, PACKAGES, Result, report, sampled, stages_of
from tests.mutation.mutating import mutants

ROOT = Path(__file__).resolve().parents[2]
CODE = '''
"""A module of 3 lines."""
LIMIT: int = 5


def least(values, *, strict=True):
    """The least above 7."""
    if not values or max(values) < LIMIT:
        raise ValueError(f"expected {1 + 1}")
    values.sort()
    return min(values) + 1
'''


def test_slips_are_made_where_they_can_matter(tmp_path):
    (tmp_path / "m.py").write_text(CODE)
    found = mutants(Path("m.py"), tmp_path)
    changes = {(mutant.function, mutant.after) for mutant in found}
    assert ("module", "LIMIT: int = 6") in changes
    assert ("least", "if not values and max(values) < LIMIT:") in changes
    assert ("least", "if not values or min(values) < LIMIT:") in changes
    assert ("least", "if not values or max(values) <= LIMIT:") in changes
    assert ("least", "if not (not values or max(values) < LIMIT):") in changes
    assert ("least", "raise ArithmeticError()") in changes
    assert ("least", "None") in changes
    assert ("least", "return min(values) - 1") in changes
    assert ("least", "return None") in changes
    sources = {mutant.source(tmp_path) for mutant in found}
    assert len(sources) == len(found)
    plain = ast.unparse(ast.parse(CODE))
    for source in sources:
        assert ast.unparse(ast.parse(source)) != plain
        assert "3 lines" in source  # texts are left alone
        assert "1 + 1" in source or "ArithmeticError" in source  # and so are messages


def test_the_same_seed_gives_the_same_sample():
    first = [mutant.name for _, mutant in sampled(("acquisition",), 3)]
    assert first == [mutant.name for _, mutant in sampled(("acquisition",), 3)]
    assert first != [mutant.name for _, mutant in sampled(("acquisition",), 4)]
    assert len(first) > 100


def test_every_package_has_mutants_and_tests():
    for package, mutant in sampled(PACKAGES, 0)[: len(PACKAGES)]:
        stages = stages_of(mutant, package)
        assert all((ROOT / test).exists() for stage in stages for test in stage)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_faults_made_by_hand_still_apply(fault):
    ast.parse(fault.source(ROOT))
    assert all((ROOT / test).exists() for test in fault.tests)


def test_survivors_count_unless_they_are_known_to_change_nothing():
    (_, first), (_, second), (_, third) = sampled(("gp",), 0)[:3]
    results = [
        Result(first, "gp", True, "x", 1.0),
        Result(second, "gp", False, "", 1.0),
        Result(third, "gp", False, "", 1.0),
    ]
    text = report(results, ("gp",), {third.name: "equal"})
    assert "1 of    2 killed    50%   1 equivalent" in text
    assert f"SURVIVED: {second.name}" in text
    assert "[equal]" in text
    assert all(json.loads(EQUIVALENT.read_text()).values())
