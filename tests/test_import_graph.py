"""Packages of nasbot import each other in one direction only, imports inside functions included."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import networkx as nx

import nasbot

ROOT = Path(nasbot.__file__).parent


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(node, known):
    """Absolute names of the modules that are imported at run time, wherever in the file."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            members = [f"{child.module}.{alias.name}" for alias in child.names]
            if not all(member in known for member in members):  # else it is they that are wanted, not their package
                yield child.module
            yield from members
        yield from imports(child, known)


def modules():
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(("nasbot", *(parts[:-1] if parts[-1] == "__init__" else parts))), path


def room(name, known):
    """The package directly below nasbot, or the module, that a name belongs to; None for others' and for nasbot."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and f"nasbot.{parts[1]}" in known else None


def graph(level):
    known = dict(modules())
    found = nx.DiGraph()
    for module, path in known.items():
        for name in imports(ast.parse(path.read_text(encoding="utf-8")), known):
            if not name.startswith("nasbot."):
                continue
            if level == "rooms":
                a, b = room(module, known), room(name, known)
            else:
                a, b = module, name if name in known else None
            if a is not None and b is not None and a != b:
                found.add_edge(a, b, why=f"{module} imports {name}")
    return found


def test_no_room_imports_back():
    rooms = graph("rooms")
    assert len(rooms) > 20
    assert rooms.has_edge("automl", "exporting"), "imports inside functions count"
    cycles = [sorted(group) for group in nx.strongly_connected_components(rooms) if len(group) > 1]
    why = [data["why"] for group in cycles for a, b, data in rooms.edges(data=True) if a in group and b in group]
    assert not cycles, "\n".join(why)


def test_no_module_imports_back():
    assert [group for group in nx.strongly_connected_components(graph("modules")) if len(group) > 1] == []


def test_only_the_storages_know_which_of_them_a_study_is_kept_in():
    """Others ask ``open_storage``, so that what works on a file works on a database."""
    own = {"SqliteStorage", "PostgresStorage"}
    paths = [path for _, path in modules() if "storage" not in path.relative_to(ROOT).parts]
    assert len(paths) > 200
    naming = [
        f"{path.name}:{node.lineno}"
        for path in [*paths, *(ROOT.parents[1] / "benchmarks").glob("*.py")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and getattr(node, "id", getattr(node, "attr", "")) in own
    ]
    assert not naming


def test_the_contracts_name_every_room():
    """A room that a contract leaves out may import what it likes: new ones must be entered."""
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["name"]: contract for contract in project["tool"]["importlinter"]["contracts"]}
    rooms = {
        f"nasbot.{path.stem}" for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    rooms -= {"nasbot.__init__", "nasbot.testing"}
    layers = set(re.findall(r"nasbot\.\w+", " ".join(contracts["Imports point down"]["layers"])))
    assert layers == rooms - {"nasbot.__main__"}
    beside = next(contract for name, contract in contracts.items() if name.startswith("nasbot.testing stands"))
    assert set(beside["source_modules"]) == rooms


DISTRIBUTIONS = {"PIL": "pillow", "mlflow": "mlflow-skinny", "sklearn": "scikit-learn"}


def test_whatever_is_imported_is_declared_and_bounded_where_its_private_names_are_used():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [wanted for extra in project["optional-dependencies"].values() for wanted in extra]
    declared = {re.match(r"[\w.-]+", wanted)[0]: wanted for wanted in (*project["dependencies"], *extras)}
    found = {
        name.partition(".")[0] for file in ROOT.rglob("*.py") for name in imports(ast.parse(file.read_text()), set())
    }
    others = found - sys.stdlib_module_names - {"nasbot"}
    assert {"PIL", "h11", "numpy"} <= others
    assert {DISTRIBUTIONS.get(name, name) for name in others} <= set(declared)
    for name in ("h11", "uvicorn", "starlette", "numba", "llvmlite"):
        assert "<" in declared[name], declared[name]
