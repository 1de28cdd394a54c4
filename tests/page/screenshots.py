"""The pictures of docs/how-to/watch-a-study.md, by the tests' browser: ``python -m tests.page.screenshots``.

A short search on a synthetic function, some of its trials made to fail; the same every time but for its clock.
"""

import math
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from nasbot import NASBOT, SearchSpace, Study, StudyView
from nasbot.page.html import report_html
from nasbot.plots.snapshot import Snapshot
from nasbot.synthetic import f1
from nasbot.trial import Scored
from tests.conftest import ROOT, browser_or_skip
from tests.page.conftest import FLAGS, PATIENCE

FOLDER = ROOT / "docs" / "images" / "page"
SHOTS = {
    "overview": ("overview", 1280, 860, "light"),
    "trial": ("trial/22", 1280, 860, "light"),
    "map": ("map", 1280, 800, "dark"),
    "phone": ("lineage", 390, 780, "light"),
}


def objective(arch, trial):
    """f1, learned in twelve steps."""
    value = f1(arch)
    if trial.number % 9 == 5:
        raise MemoryError("the network does not fit")
    for step in range(12):
        trial.report(step, value * (1 - math.exp(-step / 3)))
    return Scored(value, {"parameters": int(arch.total_mass)})


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file, page_file = Path(folder) / "synthetic.sqlite", Path(folder) / "page.html"
        with Study.open(file, NASBOT(space=SearchSpace("cnn")), seed=1) as study:
            study.optimise(objective, 40, max_consecutive_failures=None)
        with StudyView.read(file) as view:
            snapshot = Snapshot.of(view, name="synthetic")
            page_file.write_text(report_html(snapshot, file=file.name, status=view.status()), encoding="utf-8")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_or_skip(), args=list(FLAGS))
            for name, (page_name, width, height, scheme) in SHOTS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.set_default_timeout(PATIENCE)
                page.goto(f"{page_file.as_uri()}#/{page_name}")
                page.wait_for_selector("main h2")
                page.wait_for_timeout(1000)
                page.screenshot(path=FOLDER / f"{name}.png")
                page.close()
            browser.close()


if __name__ == "__main__":
    main()
