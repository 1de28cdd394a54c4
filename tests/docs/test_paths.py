"""Files that comments, docstrings and pages name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "docs", "tests", "benchmarks", "experiments")
READ = sorted(
    [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "experiments").glob("*.md"),
    ]
)
# A path from the root of the repository, or from a package; then what a page links to.
NAMED = re.compile(rf"(?<![\w/.-])((?:{'|'.join(FOLDERS)})/[\w/.-]*\w\.(?:py|md|svg|png|toml|jsonl|json))\b")
LINKED = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
PAGE = re.compile(r"(?<![\w/.*{}-])([\w-]+\.md|test_\w+\.py)\b")
# Written by commands that the page shows, not part of the repository.
MADE = frozenset({"docs/results/records/NAME.jsonl"})


def missing(path):
    text = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md":  # which names what there was
        return set()
    absent = {name for name in NAMED.findall(text) if name not in MADE and not (ROOT / name).exists()}
    names = {file.name for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")} | {
        p.name for p in ROOT.iterdir()
    }
    absent |= {name for name in PAGE.findall(text) if name not in names}
    if path.suffix == ".md":
        absent |= {link for link in LINKED.findall(text) if not (path.parent / link).exists()}
    return absent


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_exists(path):
    assert missing(path) == set()
