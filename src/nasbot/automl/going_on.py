"""A study that is there already: whether it is the same search, and what a fork takes over from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nasbot._files import write_whole
from nasbot._typing import Json
from nasbot.automl.files import DATA, WEIGHTS, files_of
from nasbot.automl.tuning import searched_attributes
from nasbot.errors import FileError, NasbotError, OptionError, StorageError, StudyError
from nasbot.storage import Address, is_begun
from nasbot.storage.addresses import place_of
from nasbot.study import StudyView
from nasbot.trial import Trial

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.data.metrics import Metric
    from nasbot.searchers.base import Searcher
    from nasbot.training.recipes import Recipe


UNNAMED_TARGET = re.compile(r"y\d*|target")  # what a target is called that came without a name
LONGEST_NAME = 80


def default_name(data: Dataset, seed: int) -> str:
    """The name of a study that nobody named, in Python and in the shell: that of the data, of the target and the seed.

    Data without a name have the beginning of their fingerprint instead of a target.
    """
    stem = _fit_for_a_file(data.name)
    if stem in ("", "data"):
        return _of_seed(f"data-{data.fingerprint[:8]}", seed)
    targets = [name for name in data.preprocessing.target.names if not UNNAMED_TARGET.fullmatch(name)]
    return _of_seed(_fit_for_a_file("-".join([data.name, *targets])), seed)


def default_place(data: Dataset, seed: int) -> Path | Address:
    """Where a study that nobody named is: also one of the same data that was named by a rule of earlier versions."""
    with_target = "-".join([data.name, *data.preprocessing.target.names])
    earlier = (_fit_for_a_file(data.name)[:60], _fit_for_a_file(with_target))  # by Python, by the shell
    places = [place_of(default_name(data, seed)), *(place_of(_of_seed(name, seed)) for name in earlier if name)]
    return next((place for place in places if _is_of(place, data, seed)), places[0])


def _fit_for_a_file(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:LONGEST_NAME]


def _of_seed(stem: str, seed: int) -> str:
    return stem if seed == 0 else f"{stem}-seed{seed}"


def _is_of(place: Path | Address, data: Dataset, seed: int) -> bool:
    try:
        stored = stored_settings(place)
    except NasbotError:  # a file that cannot be read: if it is the one that is asked for, opening it will say so
        return False
    begun_with = context_of(stored) or {}
    return stored is not None and (begun_with.get("data"), stored.get("seed")) == (data.fingerprint, seed)


def forked(path: Path | Address | None, fork: str | Path) -> tuple[Path | Address, Path | Address]:
    if path is None:
        raise OptionError("fork: expected name= of the study to begin with beside it, got none")
    if not is_begun(path):
        raise StudyError(f"there is no study {path} to fork")
    return path, place_of(fork)


def stored_settings(path: Path | Address | None) -> Mapping[str, Json] | None:
    """The settings of the study that is there already, None where there is none."""
    if path is None or not is_begun(path):
        return None
    with StudyView.read(path) as view:
        return view.settings


def context_of(stored: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    context = None if stored is None else stored.get("context")
    return context if isinstance(context, Mapping) else None


def check_same_search(
    path: Path | Address | None,
    stored: Mapping[str, Json] | None,
    data: Dataset,
    recipe: Recipe,
    metric: Metric | None,
    seed: int,
) -> None:
    """StudyError, in one line, where the study that is there is not this search."""
    if stored is None:
        return
    context = context_of(stored)
    if context is None or "data" not in context:
        raise StudyError(f"{path} is a study of another objective, not a search on data; choose another name")
    asked = None if metric is None else metric.name
    if context.get("metric") != asked:
        raise _other(path, "metric", context.get("metric", "validation loss"), asked or "validation loss")
    if context["data"] != data.fingerprint:
        raise StudyError(
            f"{path} was begun on other data: {_what_differs(path, data)}; use those, choose another name, or say "
            "--fresh (fresh=True) to begin anew"
        )
    if stored.get("seed") != seed:
        raise _other(path, "seed", stored.get("seed"), seed)
    before = context.get("recipe")
    begun_with, now = (
        str(name).removesuffix("+")
        for name in (before.get("name") if isinstance(before, Mapping) else before, recipe.name)
    )
    if begun_with != now:
        raise _other(path, "recipe", begun_with, now)


def _what_differs(path: Path | Address | None, data: Dataset) -> str:
    from nasbot.data.comparing import differences
    from nasbot.data.dataset import Dataset

    try:
        before = Dataset.load(files_of(path or Path()) / DATA)
    except (FileError, StorageError):
        return "what they were is no longer there to compare"
    return "; ".join(differences(before, data)) or "prepared otherwise"


def _other(path: Path | Address | None, what: str, before: object, now: object) -> StudyError:
    return StudyError(
        f"{path} was begun with {what} {before}, not {now}; use that, choose another name, or fork it "
        "(--fork NEW begins a study with its completed trials, where they still hold)"
    )


def in_one_line(text: str) -> str:
    """A sentence that ends in a colon, the differences below it, and what to do."""
    first, *others = (line.strip() for line in text.splitlines())
    return " ".join([first, "; ".join(others)]).strip()


def taken_over_from(
    source: Path | Address | None, path: Path | Address | None, searcher: Searcher, context: Mapping[str, Json]
) -> Sequence[Trial]:
    """The trials of the study that is forked, with the weights that are kept of them."""
    if source is None or path is None:
        return ()
    from nasbot.study.forking import fork_of
    from nasbot.training.objective import predictions_path, weights_path

    domain = searcher.domain
    with StudyView.read(source, vocabulary=domain.networks.vocabulary) as old:
        fork = fork_of(old, domain, context=context, source=str(source))
    before, now = files_of(source) / WEIGHTS, files_of(path) / WEIGHTS
    now.mkdir(parents=True, exist_ok=True)
    for trial, number in zip(fork.trials, fork.numbers, strict=True):
        for place in (weights_path, predictions_path):
            with suppress(FileNotFoundError):  # of most trials they are not kept
                write_whole(place(now, trial.number), place(before, number).read_bytes())
    return fork.trials


def check_same_searcher(
    path: Path | Address | None,
    stored: Mapping[str, Json] | None,
    searcher: Searcher,
    attributes: Sequence[str] | None,
) -> None:
    """StudyError where another searcher, or one of other attributes, has begun the study."""
    described = None if stored is None else stored.get("searcher")
    if not isinstance(described, Mapping):
        return
    if described.get("name") != searcher.name:
        raise _other(path, "searcher", described.get("name"), searcher.name)
    modifiers = described.get("modifiers")
    before = searched_attributes(modifiers if isinstance(modifiers, Sequence) else ())
    if attributes is not None and before != tuple(attributes):
        raise _other(path, "attributes", ",".join(before) or "none", ",".join(attributes) or "none")
