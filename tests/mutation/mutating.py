"""Mutants of a module: the same code but for one small slip, of kinds that people make."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATIONS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
COUNTED_BELOW = 16  # whole numbers from here on are limits and sizes that somebody chose
# Where a slip cannot matter to anybody, or only to what a message looks like.
SKIPPED_FUNCTIONS = {"__repr__", "__str__", "_repr_html_"}
PATIENCE = (
    "SECONDS",
    "AT_A_TIME",
)  # twice as long until something is tried again, twice as much at once: nobody sees it
SKIPPED_KEYWORDS = {"strict", "stacklevel", "cache", "nogil", "fastmath", "inline", "encoding"}


@dataclass(frozen=True)
class Mutant:
    """One slip: where, and the line before and after."""

    path: Path
    function: str
    line: int
    before: str
    after: str
    number: int  # in its file

    def source(self, root: Path) -> str:
        """The whole file, with the slip."""
        tree = ast.parse((root / self.path).read_text(encoding="utf-8"))
        for number, (_, _, slip) in enumerate(_slips_of(tree)):
            if number == self.number:
                with slip:
                    return ast.unparse(tree)
        raise ValueError(f"{self.path} has no slip {self.number}")

    @property
    def name(self) -> str:
        """The same in every version of the code that has this line."""
        return f"{self.path.as_posix()}::{self.function}: {self.before}  ->  {self.after}"


def mutants(path: Path, root: Path) -> list[Mutant]:
    """All mutants of a file, in the order of its lines."""
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    found = []
    for number, (statement, function, slip) in enumerate(_slips_of(tree)):
        before = _shown(statement)
        with slip:
            after = _shown(statement)
        if before != after:
            found.append(Mutant(path, function, statement.lineno, before, after, number))
    return found


def _slips_of(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, _Slip]]:
    for node, statement, function in _places(tree):
        for slip in _slips(node):
            yield statement, function, slip


class _Slip:
    """A change of a tree that is undone at the end of its ``with``."""

    def __init__(self, node: ast.AST, field: str, value: object) -> None:
        self.node, self.field, self.value, self.old = node, field, value, getattr(node, field)

    def __enter__(self) -> None:
        setattr(self.node, self.field, self.value)

    def __exit__(self, *_: object) -> None:
        setattr(self.node, self.field, self.old)


def _slips(node: ast.AST) -> Iterator[_Slip]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield _Slip(node, "ops", [COMPARISONS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATIONS:
        yield _Slip(node, "op", OPERATIONS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _Slip(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield _Slip(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        # 300 or 301 is the same to anybody, 3 or 4 is not: a count is off by one, what was chosen is off by a factor.
        is_count = type(node.value) is int and abs(node.value) < COUNTED_BELOW
        yield _Slip(node, "value", node.value + 1 if is_count else (node.value or 0.5) * 2)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield _Slip(node, "id", NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _Slip(node, "attr", NAMES[node.attr])
    elif (
        isinstance(node, ast.If | ast.IfExp | ast.While)
        and not isinstance(node.test, ast.Constant)
        and not _is_for_types(node)
    ):
        yield _Slip(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif (isinstance(node, ast.Return) and node.value is not None and not _is_false_or_none(node.value)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield _Slip(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Raise) and node.exc is not None:
        yield _Slip(node, "exc", _nothing(node))


def _nothing(node: ast.Raise) -> ast.expr:
    """What is raised instead, where an error should be: none of ours."""
    return ast.Call(ast.Name("ArithmeticError", ast.Load()), [], [])


def _is_false_or_none(node: ast.AST) -> bool:
    """Neither becomes None: one is it, the other is as false to whoever asks, and the slip to True is made anyway."""
    return isinstance(node, ast.Constant) and (node.value is None or node.value is False)


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.stmt, str]]:
    """Every node where a slip could matter, with its statement and the function around it."""

    def walk(node: ast.AST, statement: ast.stmt | None, function: str) -> Iterator[tuple[ast.AST, ast.stmt, str]]:
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if statement is not None:
            yield node, statement, function or "module"
        for child in _children(node):
            yield from walk(child, statement, function)

    yield from walk(tree, None, "")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if _is_for_types(node) or _is_patience(node):
        return
    for name, value in ast.iter_fields(node):
        if name == "test" and _reads_to_the_end(value):
            continue
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.FunctionDef) and child.name in SKIPPED_FUNCTIONS:
                continue
            if isinstance(child, ast.keyword) and child.arg in SKIPPED_KEYWORDS:
                continue
            if isinstance(child, ast.AST):
                yield child


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_patience(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(name := node.targets[0], ast.Name)
        and name.id.isupper()
        and any(word in name.id for word in PATIENCE)
    )


def _reads_to_the_end(test: ast.expr) -> bool:
    """Of ``while block := file.read(2**20)``: the same bytes come in pieces of any size, and the loop takes them all.

    A number that is not written there, but counted, is what somebody wants of the file, and no such size.
    """
    return (
        isinstance(test, ast.NamedExpr)
        and isinstance(test.value, ast.Call)
        and isinstance(test.value.func, ast.Attribute)
        and test.value.func.attr == "read"
        and not any(isinstance(node, ast.Name) for size in test.value.args for node in ast.walk(size))
    )


def _shown(statement: ast.stmt) -> str:
    """The first line of a statement, without the body of a block."""
    short = copy.copy(statement)
    if isinstance(short, ast.FunctionDef | ast.ClassDef | ast.If | ast.For | ast.While | ast.With):
        short.body = [ast.Pass()]
        if isinstance(short, ast.FunctionDef | ast.ClassDef):
            short.decorator_list = []
        else:
            short.orelse = []
    elif isinstance(short, ast.Try):
        short.body, short.handlers, short.orelse, short.finalbody = [ast.Pass()], [], [], [ast.Pass()]
    return " ".join(ast.unparse(short).removesuffix("pass").split())
