"""The names of a package are written once, in its stub, and importing it costs next to nothing."""

import ast
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import nasbot

STUBBED = ("nasbot", "nasbot.searchers", "nasbot.study")


@pytest.mark.parametrize("name", STUBBED)
def test_every_name_is_written_once_and_is_what_the_stub_says(name):
    package = import_module(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    written = Counter(alias.asname for node in imports for alias in node.names)
    assert written
    assert set(written.values()) == {1}
    assert set(package.__all__) - {"__version__"} == set(written)
    for node in imports:
        for alias in node.names:
            assert alias.asname == alias.name, "only so is it exported"
            assert getattr(package, alias.name) is getattr(import_module(node.module), alias.name)


def test_rooms_load_when_they_are_asked_for():
    code = """
import sys, nasbot
assert not {"numpy", "scipy", "torch", "numba"} & set(sys.modules), "importing nasbot loads none of them"
assert nasbot.architecture.chain is not None
assert nasbot.initial_pool is nasbot.architecture.initial_pool
try:
    nasbot.architectures
except AttributeError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "module 'nasbot' has no attribute 'architectures'\n"
    assert "architecture" in dir(nasbot)
    assert getattr(nasbot, "architecture.graph", None) is None
