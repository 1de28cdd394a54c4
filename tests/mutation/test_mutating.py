"""The mutants themselves: each is another program that Python can read, and the faults made by hand still apply."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue

import pytest

from nasbot.otmann import solver
from tests.faults.watching import PATIENCE
from tests.mutation import mutants as tool
from tests.mutation.hand_made import FAULTS, HandMade
from tests.mutation.mutants import (
    COMPILED,
    EQUIVALENT,
    PACKAGES,
    PLAIN,
    Chosen,
    Copy,
    Result,
    chosen_for,
    everything_reached,
    report,
    sampled,
    tried,
)
from tests.mutation.mutating import mutants
from tests.mutation.own_time import Stopwatch
from tests.mutation.reaching import Reached, blocks_of, marked, read_results

ROOT = Path(__file__).resolve().parents[2]
CODE = '''
"""A module of 3 lines."""
LIMIT: int = 5


if TYPE_CHECKING:
    import decimal


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
    assert not any("TYPE_CHECKING" in change for _, change in changes)
    sources = {mutant.source(tmp_path) for mutant in found}
    assert len(sources) == len(found)
    plain = ast.unparse(ast.parse(CODE))
    for source in sources:
        assert ast.unparse(ast.parse(source)) != plain
        assert "3 lines" in source  # texts are left alone
        assert "1 + 1" in source or "ArithmeticError" in source  # and so are messages


def test_no_becomes_yes_but_not_none(tmp_path):
    (tmp_path / "m.py").write_text("def is_it():\n    return False")
    assert [mutant.after for mutant in mutants(Path("m.py"), tmp_path)] == ["return True"]


@pytest.mark.parametrize(
    ("line", "n"),
    [
        ("BUSY_SECONDS = 5.0", 0),
        ("ROWS_AT_A_TIME = 20_000", 0),
        ("_SECONDS = {'minute': 60.0}", 1),
        ("MOST_ROWS = 9", 1),
    ],
)
def test_waiting_twice_as_long_is_no_slip(tmp_path, line, n):
    (tmp_path / "m.py").write_text(line)
    assert len(mutants(Path("m.py"), tmp_path)) == n


@pytest.mark.parametrize(("number", "slip"), [("0", "1"), ("15", "16"), ("16", "32"), ("300", "600"), ("0.5", "1.0")])
def test_counts_are_off_by_one_and_sizes_by_a_factor(tmp_path, number, slip):
    (tmp_path / "m.py").write_text(f"SIZE = {number}")
    assert [mutant.after for mutant in mutants(Path("m.py"), tmp_path)] == [f"SIZE = {slip}"]


def test_the_same_seed_gives_the_same_sample():
    first = [mutant.name for _, mutant in sampled(("acquisition",), 3)]
    assert first == [mutant.name for _, mutant in sampled(("acquisition",), 3)]
    assert first != [mutant.name for _, mutant in sampled(("acquisition",), 4)]
    assert len(first) > 100


def test_every_package_has_mutants_and_tests():
    assert {package for package, _ in sampled(PACKAGES, 0)[: len(PACKAGES)]} == set(PACKAGES)
    assert all((ROOT / "tests" / package).is_dir() for package in PACKAGES)
    assert all((ROOT / test).exists() for test in COMPILED.values())
    assert {solver.SWITCH: "1"} == PLAIN


BRANCHES = """'''A module.'''
from __future__ import annotations
LIMIT = 3

def sign(x):
    '''1 or -1.'''
    if x < 0:
        return -1
    elif x > LIMIT:
        raise ValueError
    try:
        return 1 // x
    except ZeroDivisionError:
        return 1
"""
TESTS = """
import os, subprocess, sys
import pytest
from m import sign

def test_below(): assert sign(-1) == -1

def test_zero(): assert sign(0) == 1

def test_wrong(): assert sign(1) == 7

@pytest.mark.parametrize("way", ["fork", "another"])
def test_elsewhere(way):
    if way == "another":
        assert subprocess.run([sys.executable, "-c", "import m; m.sign(-2)"]).returncode == 0
    elif (child := os.fork()) == 0:
        sign(-2)
        os._exit(0)
    else:
        os.waitpid(child, 0)
"""
SEEN = """
import sys
from pathlib import Path
import pytest
from tests.mutation.reaching import Watcher

watcher = Watcher(Path.cwd(), Path("seen.jsonl"))
watcher.begin()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "test_m.py"], plugins=[watcher]))
"""


def test_what_a_test_reaches_is_seen_in_every_process_that_it_starts(tmp_path):
    (tmp_path / "m.py").write_text(marked(BRANCHES, "m.py"))
    (tmp_path / "test_m.py").write_text(TESTS)
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'src'}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SEEN], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {row.test.split("::")[1]: row.blocks for row in read_results(tmp_path, tmp_path / "seen.jsonl")}
    below, above, divided = {"m.py:6", "m.py:8"}, "m.py:9", "m.py:12"
    assert found == {  # what fails without a mutant is left out
        "test_below": below,
        "test_zero": {"m.py:6", above, divided, "m.py:14"},
        "test_elsewhere[fork]": below,
        "test_elsewhere[another]": below,
    }
    lines = blocks_of(BRANCHES, "m.py")
    assert (lines[3], lines[7], lines[8], lines[9], lines[10]) == ("m.py", "m.py:6", "m.py:8", above, "m.py:10")
    assert (lines[11], lines[12], lines[14]) == ("m.py:6", divided, "m.py:14")


def test_tests_that_reach_a_mutant_are_chosen_near_and_quick_ones_first():
    package, mutant = next(
        row for row in sampled(("storage",), 0) if row[1].path.stem == "memory" and row[1].function != "module"
    )
    name = mutant.path.as_posix()
    block = blocks_of((ROOT / mutant.path).read_text(), name)[mutant.line]
    assert block != name
    reached = [
        Reached("tests/study/test_a.py::near", 0.1, frozenset({block})),
        Reached("tests/storage/test_memory.py::own", 1.0, frozenset({block})),
        Reached("tests/storage/test_memory.py::elsewhere", 0.1, frozenset({f"{name}:0"})),
        Reached("tests/storage/test_memory.py::long", 40.0, frozenset({block})),
        Reached("tests/storage/test_b.py::quick", 0.1, frozenset({block})),
    ]
    chosen = chosen_for(mutant, package, reached, 20.0)
    assert [test.split("::")[1] for test in chosen.tests] == ["quick", "own", "near"]
    assert chosen.longest == 1.0
    case = "tests/storage/test_memory.py::case"
    cases = [Reached(f"{case}[{n}]", 0.1, frozenset({block})) for n in range(30)]
    chosen = chosen_for(mutant, package, [*reached, *cases], 2.0)
    order = [test.split("::")[1] for test in chosen.tests]
    assert order[0] == "case[0]"
    assert 0 < order.index("quick") < order.index("own") < len(order) - 1  # further cases of one test stand behind
    assert chosen_for(mutant, package, reached[2:3], 20.0).tests == ()
    assert len(chosen_for(mutant, package, reached[3:4], 20.0).tests) == 1  # at least one, however long


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_faults_made_by_hand_still_apply(fault):
    ast.parse(fault.source(ROOT))
    assert all((ROOT / test).exists() for test in fault.tests)


def test_tests_that_name_a_function_or_a_constant_come_first(tmp_path):
    code, tests = tmp_path / "src/nasbot/gp/m.py", tmp_path / "tests/gp/test_m.py"
    for file in (code, tests):
        file.parent.mkdir(parents=True)
    code.write_text("LIMIT, OTHER = 5, 6\n\n\ndef least(values):\n    return min(values)\n")
    tests.write_text(
        "def test_a():\n    run()\n\n\n"
        "@pytest.mark.parametrize('n', [m.LIMIT])\ndef test_b(n):\n    run(n)\n\n\n"
        "class TestIt:\n    def test_c(self):\n        m.least([1])\n"
    )
    path = code.relative_to(tmp_path)
    found = {mutant.function: mutant for mutant in mutants(path, tmp_path)}
    blocks = frozenset(blocks_of(code.read_text(), path.as_posix()).values())
    names = ("test_a", "test_b[5]", "TestIt::test_c", "TestIt::test_inherited")
    reached = [Reached(f"tests/gp/test_m.py::{name}", 1.0, blocks) for name in names]
    for function, nearest in (("module", "test_b[5]"), ("least", "TestIt::test_c")):
        chosen = chosen_for(found[function], "gp", reached, 20.0, tmp_path)
        assert chosen.tests[0] == f"tests/gp/test_m.py::{nearest}"
        assert len(chosen.tests) == 4


def test_a_table_of_constants_and_defaults_is_about_each_of_them(tmp_path):
    code, tests = tmp_path / "src/nasbot/gp/m.py", tmp_path / "tests/gp/test_m.py"
    for file in (code, tests):
        file.parent.mkdir(parents=True)
    code.write_text("LIMIT = 5\n\n\nclass Walk:\n    def __init__(self, steps=3):\n        self.steps = steps\n")
    tests.write_text(
        "TABLE = {\n    'm': {'LIMIT': 5},\n    m.Walk: {'steps': 3},\n}\nOTHER = 1\n\n\n"
        "def test_table():\n    assert all(map(is_so, TABLE))\n\n\ndef test_other():\n    assert OTHER\n"
    )
    found = mutants(code.relative_to(tmp_path), tmp_path)
    assert [mutant.line for mutant in found] == [1, 5]
    names = ("test_other", "test_table")
    nothing_reached = [Reached(f"tests/gp/test_m.py::{name}", 0.1, frozenset()) for name in names]
    for mutant in found:
        assert chosen_for(mutant, "gp", nothing_reached, 20.0, tmp_path).tests == ("tests/gp/test_m.py::test_table",)


def test_how_much_is_read_at_once_until_the_end_is_no_slip(tmp_path):
    (tmp_path / "m.py").write_text(
        "def read(file):\n"
        "    while block := file.read(2**20):\n        use(block)\n"
        "    while block := file.read(4 * n):\n        use(block)\n"
    )
    found = [mutant for mutant in mutants(Path("m.py"), tmp_path) if mutant.line in (2, 4)]
    assert [mutant.after for mutant in found if mutant.line == 2] == ["while not (block := file.read(2 ** 20)):"]
    assert len([mutant for mutant in found if mutant.line == 4]) == 3


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


def test_what_is_known_to_change_nothing_is_still_there_and_has_a_reason():
    known = json.loads(EQUIVALENT.read_text())
    assert all(known.values())
    assert set(known) <= {mutant.name for _, mutant in sampled(PACKAGES, 0)}


def test_tests_are_run_again_when_they_or_the_code_have_changed(tmp_path, monkeypatch):
    (tmp_path / "tests/gp").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    code, first, second = (tmp_path / name for name in ("src/m.py", "tests/gp/test_a.py", "tests/gp/test_b.py"))
    for file in (code, first, second):
        file.write_text("")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "MAP", tmp_path / "build/map.json")
    runs = []

    def seen(tests, place, *, kernels=False):
        runs.append(list(tests))
        return [Reached(f"{test}::test_it[{len(runs)}]", 0.1, frozenset({"m.py:1"})) for test in tests]

    monkeypatch.setattr(tool, "reached_by", seen)
    places = Queue()
    places.put(Copy(tmp_path))

    def reached(*, trust=False):
        runs.clear()
        return sorted(row.test for row in everything_reached(("gp",), places, 1, trust=trust))

    both = ["tests/gp/test_a.py", "tests/gp/test_b.py"]
    assert reached() == [f"{file}::test_it[1]" for file in both]
    assert runs == [both]
    assert len(reached()) == 2
    assert runs == []
    second.write_text("# other")
    assert len(reached()) == 2
    assert runs == [both[1:]]
    code.write_text("# other")
    assert len(reached(trust=True)) == 2
    assert runs == []
    assert len(reached()) == 2  # who does not trust, sees for himself
    assert runs == [both]
    code.write_text("# again")
    second.write_text("# again")
    assert len(reached(trust=True)) == 2
    assert runs == [both[1:]]
    assert len(reached()) == 2
    assert runs == [both[:1]]
    first.unlink()
    assert reached() == ["tests/gp/test_b.py::test_it[1]"]


def test_nobody_is_killed_by_a_busy_machine():
    """Four processes on one core: the seconds of one are its own."""
    spin = (
        sys.executable,
        "-c",
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass",
    )
    others = [subprocess.Popen(spin) for _ in range(4)]
    try:
        watch, begun = Stopwatch(others[0].pid), time.monotonic()
        while (own := watch.read()) < 0.5:
            assert time.monotonic() - begun < PATIENCE
            time.sleep(0.05)
        assert time.monotonic() - begun > 2 * own
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_processes_that_sleep_have_their_seconds_too():
    sleep = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    sleeper = subprocess.Popen([sys.executable, "-c", sleep], process_group=0)
    try:
        watch, begun = Stopwatch(sleeper.pid), time.monotonic()
        while watch.read() < 1.0:
            assert time.monotonic() - begun < PATIENCE
            time.sleep(0.05)
        watch.start()
        assert watch.read() < 0.5
    finally:
        os.killpg(sleeper.pid, signal.SIGKILL)
        sleeper.wait()


@pytest.mark.parametrize("wait", ["time.sleep(60)", "while True: pass"])
def test_a_test_that_hangs_with_the_mutant_only_is_killed_by_time(tmp_path, monkeypatch, wait):
    monkeypatch.setattr(tool, "START", 2.0)
    (tmp_path / "size.py").write_text("SIZE = 3\n")
    (tmp_path / "test_it.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "def test_first(): pass\n"
        f"def test_it():\n    if '3' not in Path('size.py').read_text():\n        {wait}\n"
    )
    fault = HandMade("another size", "gp", Path("size.py"), "SIZE = 3", "SIZE = 4", ())
    result = tried(fault, "gp", Copy(tmp_path), Chosen(("test_it.py",), 0.1))
    assert (result.killed, result.by) == (True, "time in test_it.py::test_it")
    text = report([result], ("gp",), {})
    assert "1 by time" in text
    assert f"killed by time in test_it.py::test_it: {fault.name}" in text


def test_a_test_that_fails_without_the_mutant_kills_nothing(tmp_path):
    """By a tree of two modules: one test notices the change of a constant, the other fails whatever is there."""
    (tmp_path / "size.py").write_text("SIZE = 3\n")
    sound, broken = tmp_path / "test_sound.py", tmp_path / "test_broken.py"
    sound.write_text("from pathlib import Path\ndef test_it():\n    assert '3' in Path('size.py').read_text()\n")
    broken.write_text("def test_it():\n    assert False\n")
    fault = HandMade("another size", "gp", Path("size.py"), "SIZE = 3", "SIZE = 4", ())
    place = Copy(tmp_path)
    assert tried(fault, "gp", place, Chosen(("test_sound.py",), 1.0)).killed
    luck = tried(fault, "gp", place, Chosen(("test_broken.py",), 1.0))
    assert (luck.killed, luck.by) == (False, "test_broken.py::test_it fails without it, too")
    assert (tmp_path / "size.py").read_text() == "SIZE = 3\n"
