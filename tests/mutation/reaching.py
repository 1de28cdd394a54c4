"""Which tests reach which lines: the code with a mark in each block, and every test run once over it.

A mark notes that this block was reached during the test that runs now, in whatever process it is: the tests' own keeps
its notes in memory, the others append them to a file. So a mutant needs only the tests that reach its line, the
quickest first, and one that no test reaches has survived without running anything.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutation.own_time import clock

MODULE = "_reached"
MARKS = f"""
import mmap, os
from pathlib import Path

_folder, main, noted = Path(__file__).parent, 0, set()
with open(_folder / "{MODULE}.now", "r+b") as _file:
    now = memoryview(mmap.mmap(_file.fileno(), 8)).cast("q")  # the number of the test that runs
_seen, _last = set(), -1


def mark(block):
    global _last
    if now[0] != _last:
        _last = now[0]
        _seen.clear()
    if block in _seen:
        return
    _seen.add(block)
    if os.getpid() == main:
        noted.add(block)
        return
    try:
        with open(_folder / "{MODULE}.log", "a") as log:
            log.write(f"{{now[0]}} {{block}}\\n")
    except OSError:
        pass  # a trial without descriptors or room has more to say about those than about us
"""
HEADER = f"""
try:
    from {MODULE} import mark as {MODULE}
except ImportError:
    def {MODULE}(block): pass
"""


@dataclass(frozen=True)
class Reached:
    """One test that passes without any mutant: what it takes, and what it reaches."""

    test: str
    seconds: float
    blocks: frozenset[str]


def blocks_of(source: str, name: str) -> dict[int, str]:
    """The block of each line on which a statement begins; those outside functions belong to the module itself."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, block: str, *, is_inside: bool) -> None:
        for body in _bodies(node):
            is_code = is_inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inner = f"{name}:{body[0].lineno}" if is_code else block
            for statement in body:
                found.setdefault(statement.lineno, inner)
                walk(statement, inner, is_inside=is_code)

    walk(ast.parse(source), name, is_inside=False)
    return found


def marked(source: str, name: str) -> str:
    """The same code with a mark at the beginning of each block of a function."""
    tree = ast.parse(source)

    def walk(node: ast.AST, *, is_inside: bool) -> None:
        for body in _bodies(node):
            is_code = is_inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for statement in list(body):
                walk(statement, is_inside=is_code)
            if is_code:
                call = ast.parse(f"{MODULE}({f'{name}:{body[0].lineno}'!r})").body[0]
                is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
                body.insert(1 if is_text else 0, call)

    walk(tree, is_inside=False)
    at = 0
    while at < len(tree.body) and (
        (isinstance(tree.body[at], ast.Expr) and at == 0)
        or (isinstance(tree.body[at], ast.ImportFrom) and tree.body[at].module == "__future__")  # type: ignore[attr-defined]
    ):
        at += 1
    tree.body[at:at] = ast.parse(HEADER).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if isinstance(body, list) and body:
            yield body
    for field in ("handlers", "cases"):
        for part in getattr(node, field, ()):
            yield part.body


class Watcher:
    """A plugin of pytest that writes, for each test that passes, what it reached."""

    def __init__(self, folder: Path, results: Path) -> None:
        self.folder, self.results, self.number = folder, results, 0
        self.marks: ModuleType | None = None
        self.has_passed = True

    def begin(self) -> None:
        """To be called in the process of the tests, before any of our code is imported."""
        (self.folder / f"{MODULE}.now").write_bytes(bytes(8))
        (self.folder / f"{MODULE}.log").write_bytes(b"")
        (self.folder / f"{MODULE}.py").write_text(MARKS, encoding="utf-8")
        self.marks = __import__(MODULE)
        self.marks.main = os.getpid()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.has_passed = self.has_passed and report.passed

    def pytest_runtest_logstart(self) -> None:
        assert self.marks is not None
        self.number += 1
        self.marks.now[0], self.has_passed, self.began = self.number, True, clock()
        self.marks.noted.clear()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        assert self.marks is not None
        self.marks.now[0] = 0
        if self.has_passed:
            row = [self.number, nodeid, clock() - self.began, sorted(self.marks.noted)]
            with self.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def read_results(folder: Path, results: Path) -> list[Reached]:
    """What the watcher wrote, with what other processes noted."""
    others: dict[int, set[str]] = {}
    for line in (folder / f"{MODULE}.log").read_text(encoding="utf-8").splitlines():
        number, _, block = line.partition(" ")
        others.setdefault(int(number), set()).add(block)
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return [
        Reached(test, seconds, frozenset(blocks) | others.get(number, set())) for number, test, seconds, blocks in rows
    ]
