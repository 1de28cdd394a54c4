"""The pictures in docs/images are those that the code draws today; docs/make_pictures.py renews them."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from nasbot.plots.plot import PLOTS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    runpy.run_path(str(DOCS / "make_pictures.py"))["draw_all"](folder)
    return folder


def test_every_picture_is_committed_as_drawn(drawn):
    names = sorted(path.relative_to(drawn) for path in drawn.rglob("*.svg") if path.parent.name != "study")
    assert len(names) == 20 + 5 + 2
    stale = [str(name) for name in names if (DOCS / "images" / name).read_bytes() != (drawn / name).read_bytes()]
    assert stale == [], "run .venv/bin/python docs/make_pictures.py and look at what changed"


NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
NAME = re.compile(r'(id="|#)[\w-]+')  # matplotlib's names are made from the last digits of everything


def parts(path):
    """The text of a plot without its numbers, and the numbers."""
    text = NAME.sub(r"\1", path.read_text(encoding="utf-8"))
    return NUMBER.sub("0", text), np.array([float(number) for number in NUMBER.findall(text)])


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_is_committed_as_drawn(drawn, name):
    """To half a point, a tenth of which nobody sees: another processor may round the last digit otherwise."""
    again = "run .venv/bin/python docs/make_pictures.py and look at what changed"
    words, numbers = parts(DOCS / "images" / "study" / f"{name}.svg")
    drawn_words, drawn_numbers = parts(drawn / "study" / f"{name}.svg")
    assert drawn_words == words, again
    np.testing.assert_allclose(drawn_numbers, numbers, atol=0.5, err_msg=again)


def test_the_gallery_shows_every_plot():
    page = (DOCS / "how-to" / "see-a-study.md").read_text(encoding="utf-8")
    assert [name for name in PLOTS if f"../images/study/{name}.svg" not in page] == []


def test_no_picture_is_left_over(drawn):
    committed = {path.relative_to(DOCS / "images") for path in (DOCS / "images").rglob("*.svg")}
    assert committed == {path.relative_to(drawn) for path in drawn.rglob("*.svg")}


def test_pictures_are_small(drawn):
    assert sum(path.stat().st_size for path in drawn.rglob("*.svg") if path.parent.name != "study") < 400_000
    assert sum(path.stat().st_size for path in (DOCS / "images" / "study").iterdir()) < 1_500_000
