"""The site of `make docs`: it builds without a warning, nothing in it is broken, and it needs no other host."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nasbot

ROOT = Path(__file__).resolve().parents[2]


class Page(HTMLParser):
    """The links of a page, what it loads, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.ids |= {named[key] for key in ("id", "name") if named.get(key)}
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])
        if tag in {"script", "img", "iframe"} and named.get("src"):
            self.loaded.append(named["src"])
        if tag == "link" and named.get("rel") in {"stylesheet", "icon", "preload", "preconnect"}:
            self.loaded.append(named["href"])


def pages_of(site: Path) -> dict[Path, Page]:
    """All pages but the one for addresses that do not exist, whose links start at the server's root."""
    return {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def target(link: str, page: Path) -> tuple[Path, str]:
    parts = urlsplit(link)
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page, unquote(parts.fragment)


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def broken(pages: dict[Path, Page]) -> list[str]:
    found = []
    for path, page in pages.items():
        for link in filter(lambda link: not is_elsewhere(link), [*page.links, *page.loaded]):
            file, place = target(link, path)
            if not file.exists() or (place and file in pages and place not in pages[file].ids | {"__top"}):
                found.append(f"{path.name}: {link}")
    return found


def from_other_hosts(pages: dict[Path, Page]) -> list[str]:
    return [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in page.loaded
        if is_elsewhere(link) and not link.startswith("data:")
    ]


def unreachable(pages: dict[Path, Page], start: Path) -> set[str]:
    reached, waiting = set(), [start.resolve()]
    while waiting:
        here = waiting.pop()
        if here in pages and here not in reached:
            reached.add(here)
            waiting += [target(link, here)[0] for link in pages[here].links if not is_elsewhere(link)]
    return {path.name for path in pages.keys() - reached}


def test_the_site(tmp_path):
    """One test, because the site takes a few seconds to build."""
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = pages_of(site)
    assert len(pages) > 60
    assert broken(pages) == []
    assert from_other_hosts(pages) == []
    assert unreachable(pages, site / "index.html") == set()
    documented = set().union(*(page.ids for path, page in pages.items() if path.parent.name == "api"))
    assert {f"nasbot.{name}" for name in nasbot.__all__} - documented == {"nasbot.__version__"}
    assert (site / "search/search_index.json").stat().st_size > 100_000
    every_source = {path.with_suffix("").relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert every_source <= {path.with_suffix("").relative_to(site.resolve()) for path in pages}
    notebooks = [path.read_text(encoding="utf-8") for path in (site / "tutorials").glob("*.ipynb")]
    assert len(notebooks) == len(list((ROOT / "docs/tutorials").glob("*.md")))
    assert all(re.search(r'"cell_type": "code"', text) for text in notebooks)


def test_what_is_broken_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here">1</a><a href="other.html#gone">2</a><a href="gone.html">3</a>'
        '<script src="https://example.org/x.js"></script><a href="https://example.org">4</a>'
    )
    (tmp_path / "other.html").write_text('<h2 id="here">Here</h2>')
    (tmp_path / "alone.html").write_text('<a href="index.html">back</a>')
    pages = pages_of(tmp_path)
    assert broken(pages) == ["index.html: other.html#gone", "index.html: gone.html"]
    assert from_other_hosts(pages) == ["index.html: https://example.org/x.js"]
    assert unreachable(pages, tmp_path / "index.html") == {"alone.html"}
