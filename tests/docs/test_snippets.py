"""Every ```python block of the README and of docs/**/*.md runs as it stands.

The blocks of one file run in order, in one fresh namespace and an empty temporary directory. Blocks that are not meant
to run are fenced as ```text, ```json or ```console.
"""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<language>[^\s`]*)[^`]*$")
LANGUAGES = {"", "console", "json", "python", "text", "toml"}


def blocks(text):
    """(language, line number of the first line, lines) of each fenced block; an open fence runs to the end."""
    found, opened = [], None
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened = fence
                found.append((fence["language"], number + 1, []))
        elif fence and fence["ticks"].startswith(opened["ticks"]) and not fence["language"]:
            opened = None
        else:
            found[-1][2].append(line.removeprefix(opened["indent"]))
    assert opened is None, f"the fence before line {found[-1][1]} is never closed"
    return found


def script(text):
    """The python blocks alone, each on the lines it has in the page, so that a traceback names the page's line."""
    lines = [""] * len(text.splitlines())
    for language, first, block in blocks(text):
        if language == "python":
            lines[first - 1 : first - 1 + len(block)] = block
    return "\n".join(lines) + "\n"


def pages_with_python():
    return [page for page in PAGES if script(page.read_text(encoding="utf-8")).strip()]


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages_with_python(), ids=named)
def test_snippets_run(page, tmp_path, monkeypatch):
    source = tmp_path / f"{page.stem}.md.py"
    source.write_text(script(page.read_text(encoding="utf-8")), encoding="utf-8")
    elsewhere = tmp_path / "empty"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    runpy.run_path(str(source), run_name="__main__")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_fences_name_a_language_that_is_run_or_known_not_to_be(page):
    """`py` or `pycon` would quietly not be run."""
    unknown = {language for language, _, _ in blocks(page.read_text(encoding="utf-8"))} - LANGUAGES
    assert not unknown, f"{named(page)}: fenced as {sorted(unknown)}; expected one of {sorted(LANGUAGES)}"


def test_the_pages_with_snippets_are_found():
    found = {named(page) for page in pages_with_python()}
    assert found >= {"README.md", "docs/how-to/own-vocabulary.md", "docs/reference/search-space.md"}


PAGE = """\
# A page

```python
x = [1]
```

- in a list:

  ```python
  if x:
      x.append(2)
  ```

```text
not python at all
```

````text
```python
raise ValueError
```
````

```python
{last}
```
"""


def run(page, tmp_path):
    source = tmp_path / "page.py"
    source.write_text(script(page))
    return runpy.run_path(str(source))


def test_blocks_share_one_namespace_and_only_python_runs(tmp_path):
    assert run(PAGE.format(last="x.append(3)"), tmp_path)["x"] == [1, 2, 3]


def test_a_broken_snippet_fails_at_the_line_of_the_page(tmp_path):
    page = PAGE.format(last="x.append(undefined)")
    with pytest.raises(NameError) as caught:
        run(page, tmp_path)
    assert page.splitlines()[caught.traceback[-1].lineno] == "x.append(undefined)"


def test_an_open_fence_is_noticed():
    with pytest.raises(AssertionError, match="before line 2 is never closed"):
        script("```python\nx = 1\n")
