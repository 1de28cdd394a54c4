"""What the site has beside docs/: the API reference, pages that are kept elsewhere, the tutorials as notebooks.

mkdocs calls the functions named on_… (mkdocs.yml names this file); `make docs` runs it.
"""

import inspect
import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import nasbot

ROOT = Path(__file__).resolve().parent.parent

# Page of the site: the file it is made of.
ELSEWHERE = {
    "readme.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "experiments.md": "experiments/README.md",
}

# Page of the API reference: its title, and the modules and packages of nasbot whose public names it has.
API = {
    "data-to-model": ("From data to a model", ("automl", "estimators")),
    "networks": ("Networks", ("architecture",)),
    "distances": ("Distances", ("otmann",)),
    "studies": ("Studies and trials", ("study", "trial", "candidate", "domain")),
    "searchers": ("Searchers and beliefs", ("searchers", "gp", "pacing")),
    "execution": ("Execution", ("execution",)),
    "training": ("Training", ("training",)),
    "exporting": ("Exporting and tracing", ("exporting", "tracing")),
    "following": ("Plots and callbacks", ("plots", "callbacks")),
    "integrations": ("Other libraries", ()),
    "errors": ("Errors", ("errors",)),
}

# Section of the site: by the folder of docs/ whose pages it has.
SECTIONS = {
    "tutorials": "Tutorials",
    "how-to": "How to",
    "explanation": "Explanation",
    "reference": "Reference",
    "results": "Results",
}

INTEGRATIONS = ("optuna.NetworkSuggester", "optuna.to_optuna", "botorch.NetworkKernel", "botorch.network_gp")

LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages that mkdocs.yml does not name stand at the end of their folder's section."""
    sections = {name: pages for entry in config.nav or [] for name, pages in entry.items()}
    named = str(sections)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        where = page.relative_to(ROOT / "docs")
        if f"'{where}'" not in named:
            sections[SECTIONS.get(where.parts[0], "Start")].append(str(where))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {page: _moved(ROOT / source) for page, source in ELSEWHERE.items()}
    made |= {f"reference/api/{page}": text for page, text in api_pages().items()}
    made |= {
        file.src_uri.replace(".md", ".ipynb"): notebook(file.content_string)
        for file in files.documentation_pages()
        if file.src_uri.startswith("tutorials/")
    }
    for where, text in made.items():
        files.append(File.generated(config, where, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with the links of the repository turned into those of the site."""
    folder = (ROOT / "docs" / page.file.src_uri).parent
    markdown = LINK.sub(lambda link: link[1] + _of_the_site(link[2], folder) + link[3], markdown)
    if page.file.src_uri.startswith("tutorials/"):
        here = Path(page.file.src_uri).with_suffix(".ipynb").name
        markdown = markdown.replace("\n", f"\n\n[This page as a notebook]({here}){{ download }}\n", 1)
    return markdown.replace("<details>", '<details markdown="1">')


def public_names() -> dict[str, list[str]]:
    """Public names by the page of the API reference that has them."""
    pages = {module: page for page, (_, modules) in API.items() for module in modules}
    found: dict[str, list[str]] = {page: [] for page in API}
    found["integrations"] = [f"nasbot.integrations.{name}" for name in INTEGRATIONS]
    for name in sorted(nasbot.__all__, key=lambda name: (name[0].isupper(), name)):  # functions first
        if name != "__version__":
            room = getattr(nasbot, name).__module__.split(".")[1]
            found[pages.get(room, "studies")].append(f"nasbot.{name}")
    return found


def api_pages() -> dict[str, str]:
    names = public_names()
    pages = {f"{page}.md": f"# {title}\n\n" + "".join(map(_entry, names[page])) for page, (title, _) in API.items()}
    rows = [
        f"| [{title}]({page}.md) | " + ", ".join(f"[`{name.split('.')[-1]}`][{name}]" for name in names[page]) + " |"
        for page, (title, _) in API.items()
    ]
    front = "# API\n\nEvery public name, with what it takes and promises.\n\n| page | names |\n|---|---|\n"
    return {"index.md": front + "\n".join(rows) + "\n"} | pages


def _entry(name: str) -> str:
    """What mkdocstrings makes the documentation of a name of; the estimators follow scikit-learn's style."""
    documented = inspect.getdoc(getattr(nasbot, name.removeprefix("nasbot."), None)) or ""
    style = "numpy" if "\n-------" in documented else "google"
    return f"::: {name}\n    options:\n      docstring_style: {style}\n\n"


def notebook(text: str) -> str:
    """A page as a Jupyter notebook: its python blocks as cells of code, what is between them as text."""
    cells = []
    for number, part in enumerate(FENCED_PYTHON.split(text)):
        if part.strip():
            kind = (
                {"cell_type": "code", "execution_count": None, "outputs": []}
                if number % 2
                else {"cell_type": "markdown"}
            )
            cells.append(kind | {"id": f"cell-{number}", "metadata": {}, "source": part.strip("\n").splitlines(True)})
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False
    )


def _moved(source: Path) -> str:
    """A page from outside docs/, with links as from docs/."""

    def link(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if not target.is_relative_to(ROOT / "docs"):
            return found[0]
        return found[1] + str(target.relative_to(ROOT / "docs")) + found[3]

    return LINK.sub(link, source.read_text(encoding="utf-8"))


def _of_the_site(link: str, folder: Path) -> str:
    """A link to a page that the site has elsewhere; other links as they are."""
    places = {(ROOT / source).resolve(): page for page, source in ELSEWHERE.items()}
    page = places.get((folder / link).resolve()) or places.get((ROOT / link).resolve())
    return str(Path(*[".."] * len(folder.relative_to(ROOT / "docs").parts), page)) if page else link
