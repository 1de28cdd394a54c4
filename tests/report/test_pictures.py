"""The pictures in docs/images are those that the code draws today; docs/make_pictures.py renews them."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    runpy.run_path(str(DOCS / "make_pictures.py"))["draw_all"](folder)
    return folder


def test_every_picture_is_committed_as_drawn(drawn):
    names = sorted(path.relative_to(drawn) for path in drawn.rglob("*.svg"))
    assert len(names) == 20 + 5 + 2
    stale = [str(name) for name in names if (DOCS / "images" / name).read_bytes() != (drawn / name).read_bytes()]
    assert stale == [], "run .venv/bin/python docs/make_pictures.py and look at what changed"


def test_no_picture_is_left_over(drawn):
    committed = {path.relative_to(DOCS / "images") for path in (DOCS / "images").rglob("*.svg")}
    assert committed == {path.relative_to(drawn) for path in drawn.rglob("*.svg")}


def test_pictures_are_small(drawn):
    assert sum(path.stat().st_size for path in drawn.rglob("*.svg")) < 400_000
