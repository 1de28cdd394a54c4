"""Every name on the notation page is in the module that the page says."""

import ast
import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notation.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`" in line
]
NAMES = [
    (name, module)
    for _, code, where, _ in ROWS
    for module in re.findall(r"`([\w.]+)`", where)
    for name in re.findall(r"`\.?([A-Za-z_][\w.]*)[^`]*`", code)
]


def words(module):
    """Identifiers of a module, or of all modules of a package: also parameters, fields and local names."""
    path = Path(module.__file__)
    files = path.parent.glob("*.py") if path.name == "__init__.py" else [path]
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for kind, part in ((ast.Name, "id"), (ast.arg, "arg"), (ast.Attribute, "attr"), (ast.keyword, "arg")):
                if isinstance(node, kind):
                    found.add(getattr(node, part))
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
    return found


def test_the_page_covers_all_of_it():
    assert len(NAMES) > 60
    assert {module.split(".")[0] for _, module in NAMES} >= {"architecture", "otmann", "gp", "acquisition", "evolution"}


@pytest.mark.parametrize(("name", "module"), NAMES, ids=lambda part: str(part))
def test_it_is_where_the_page_says(name, module):
    known = words(importlib.import_module(f"nasbot.{module}"))
    for part in name.split("."):
        assert part in known | {"arch"}, f"nasbot.{module} has no {part}"
