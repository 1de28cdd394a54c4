"""``nasbot.search(X, y, budget="2m")``: from data to the best network, in one call that the same call goes on with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbot._files import check_own_folder, write_whole
from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.automl.found import DATA, WEIGHTS, FoundStudy, Temporary, files_of
from nasbot.automl.place import Place
from nasbot.automl.plan import Plan, pool_for, seconds_per_trial, space_for
from nasbot.errors import OptionError, StudyError
from nasbot.storage import MemoryStorage, SqliteStorage, Storage
from nasbot.study import Budget, Direction, Study, StudyView, study_path
from nasbot.study.loop import OnChange
from nasbot.trial import Trial, TrialState

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.searchers.base import Searcher
    from nasbot.training.recipes import Recipe

AUTOMATIC = "…"  # a name made from the data
MAX_WORKERS = 256
FAILURES_IN_A_ROW = 3
SEARCHERS = {"nasbot": "NASBOT", "random": "RAND", "evolution": "EA", "treebo": "TreeBO"}  # and what studies call them


@dataclass(frozen=True)
class Search:
    """A search that is planned: what ``run`` will do, for those who want to say so first (the command line)."""

    data: Dataset
    plan: Plan
    searcher: Searcher
    recipe: Recipe
    recipe_name: str
    budget: Budget
    workers: int
    seed: int
    path: Path | None  # of the study; None keeps nothing
    is_resumed: bool
    place: Place = field(default_factory=Place)
    source: Path | None = None  # the study that a new one begins with
    takes_all: bool = False  # of a cluster: the number of workers was not given
    max_failures: int | None = FAILURES_IN_A_ROW  # in a row, after which the search ends; None: never

    def run(self, *, on_change: OnChange | None = None) -> FoundStudy:
        """Search until the budget is spent; whatever ends it, what was evaluated is recorded."""
        temporary = Temporary() if self.path is None else None
        files = temporary.path if temporary is not None else files_of(self.path or Path())
        for folder in (files, files / DATA, files / WEIGHTS):
            check_own_folder(folder)
        self.data.save(files / DATA)
        storage: Storage = (
            MemoryStorage()
            if self.path is None
            else SqliteStorage(self.path, vocabulary=self.searcher.domain.networks.vocabulary)
        )
        try:
            study = self._study(storage)
            self._drive(study, files, on_change)
        except BaseException:
            storage.close()
            raise
        if self.path is None:
            return FoundStudy(storage, files, self.searcher, temporary)
        storage.close()
        return FoundStudy(SqliteStorage(self.path, read_only=True), files, self.searcher)

    @property
    def context(self) -> dict[str, Json]:
        """What must not change between runs of the study."""
        return {
            "data": self.data.fingerprint,
            "data_name": self.data.name,
            "recipe": self.recipe_name,
            "seconds_per_trial": self.plan.seconds_per_trial,
        }

    def _study(self, storage: Storage) -> Study:
        taken_over = self._taken_over() if storage.settings() is None else ()
        try:
            return Study(
                storage,
                self.searcher,
                seed=self.seed,
                direction=Direction.MINIMISE,
                context=self.context,
                taken_over=taken_over,
            )
        except StudyError as error:
            raise StudyError(_in_one_line(str(error))) from None

    def _taken_over(self) -> Sequence[Trial]:
        """The trials of the study that is forked, with the weights that are kept of them."""
        if self.source is None or self.path is None:
            return ()
        from nasbot.study.forking import fork_of
        from nasbot.training.objective import weights_path

        name = str(self.source)
        domain = self.searcher.domain
        with StudyView.read(self.source, vocabulary=domain.networks.vocabulary) as old:
            fork = fork_of(old, domain, context=self.context, source=name)
        before, now = files_of(self.source) / WEIGHTS, files_of(self.path) / WEIGHTS
        now.mkdir(parents=True, exist_ok=True)
        for trial, number in zip(fork.trials, fork.numbers, strict=True):
            with suppress(FileNotFoundError):  # of most trials they are not kept
                write_whole(weights_path(now, trial.number), weights_path(before, number).read_bytes())
        return fork.trials

    def _drive(self, study: Study, files: Path, on_change: OnChange | None) -> None:
        from nasbot.training.objective import TrainingObjective, keep_best

        files = files.resolve()  # the workers' fork server may have begun in another folder
        weights = files / WEIGHTS
        objective = TrainingObjective(files / DATA, self.recipe, weights=weights, seconds=self.plan.seconds_per_trial)

        def tell(trial: Trial) -> None:
            if trial.state is TrialState.COMPLETED:
                keep_best(weights, study.history)
            if on_change is not None:
                on_change(trial)

        overtime = None if self.budget.seconds is None else self.plan.seconds_per_trial + 1.0
        executor = self.place.executor(self.workers, self.plan.seconds_per_trial, all_slots=self.takes_all)
        try:
            study.optimise(
                objective,
                self.budget,
                executor=executor,
                max_consecutive_failures=self.max_failures,
                overtime=overtime,
                on_change=tell,
            )
        finally:
            executor.close()


def search(
    X: Any,
    y: Any = None,
    *,
    budget: Budget | int | str = "2m",
    workers: int | None = None,
    seed: int = 0,
    name: str | Path | None = AUTOMATIC,
    recipe: str = "fast",
    searcher: str = "nasbot",
    start_from: Sequence[Architecture] = (),
    seconds_per_trial: float | None = None,
    place: Place | str = "auto",
    on_change: OnChange | None = None,
    **data_options: Any,
) -> FoundStudy:
    """Search for the network that learns these data best, and return the study.

    ``X`` and ``y`` are what ``nasbot.data.dataset.dataset_of`` takes (arrays, a data frame and the name of a column,
    tensors, images), or ``X`` is a Dataset; further options (``task``, ``split``, ``drop``, …) are handed on to it.
    ``budget`` is time ("10m", "1h30m") or trials (50), in all: the study is kept under ``name``, made from the data
    unless given, and the same call goes on with it (None keeps nothing). ``workers`` trains so many networks at a time,
    one per core, at most two, by default. ``start_from`` are networks to begin with, beside the initial pool. ``place``
    says where they are trained: in processes ("local"), here ("here"), or a ``Place`` for more, a Ray cluster say.

        study = nasbot.search(X, y, budget="10m")
        study.best.draw("best.svg")
        model = study.best.fit()               # a plain torch.nn.Module
        print(study.summary())
    """
    from nasbot.data.dataset import Dataset, dataset_of

    if isinstance(X, Dataset):
        if y is not None or data_options:
            raise OptionError("a Dataset is prepared already; expected no target and no options for data beside it")
        data = X
    else:
        data = dataset_of(X, y, **{"seed": seed, **data_options})
    planned = plan_search(
        data,
        budget=budget,
        workers=workers,
        seed=seed,
        name=name,
        recipe=recipe,
        searcher=searcher,
        start_from=start_from,
        seconds=seconds_per_trial,
        place=place,
    )
    return planned.run(on_change=on_change)


def plan_search(
    data: Dataset,
    *,
    budget: Budget | int | str = "2m",
    workers: int | None = None,
    seed: int = 0,
    name: str | Path | None = AUTOMATIC,
    recipe: str = "fast",
    searcher: str = "nasbot",
    start_from: Sequence[Architecture] = (),
    seconds: float | None = None,
    place: Place | str = "auto",
    max_failures: int | None = FAILURES_IN_A_ROW,
    fork: str | Path | None = None,
) -> Search:
    """Everything about a search that can be known before it runs; raises what is wrong with it.

    With ``fork``, the name of another study: that one is begun, with the completed trials of ``name`` that still hold.
    """
    from nasbot.training.recipes import recipe_of

    total, n = Budget.of(budget), _checked_workers(workers)
    checked_seed(seed)
    if seconds is not None and not 0 < seconds < float("inf"):
        raise OptionError(f"seconds_per_trial: expected a number above 0, got {seconds}")
    if max_failures is not None and max_failures < 1:
        raise OptionError(f"max_failures: expected at least 1, or None (0 on the command line), got {max_failures}")
    where = place if isinstance(place, Place) else Place(place)
    chosen = recipe_of(recipe)
    path = None if name is None else study_path(default_name(data, seed) if name == AUTOMATIC else name)
    source = None
    if fork is not None:
        if path is None or not path.exists():
            raise StudyError(f"there is no study {path} to fork")
        source, path = path, study_path(fork)
    stored = _stored(path)
    given: dict[str, Json] = {"data": data.fingerprint, "recipe": recipe, "seed": seed, "searcher": searcher}
    remembered = _check_same(path, stored, given)
    if remembered is None and source is not None:
        remembered = _seconds_of(_stored(source))
    per_trial = next(given for given in (seconds, remembered, seconds_per_trial(total, n)) if given is not None)
    space = space_for(
        data.kind,
        data.input_shape,
        data.n_outputs,
        n_rows=len(data.train),
        seconds=per_trial,
        batch_size=chosen.settings(data.input_shape).batches(len(data.train)),
    )
    pool = pool_for(space, first=start_from)
    plan = Plan(space, pool, per_trial)
    return Search(
        data,
        plan,
        _searcher(searcher, plan, stored),
        chosen,
        recipe,
        total,
        n,
        seed,
        path,
        is_resumed=stored is not None,
        place=where,
        takes_all=workers is None,
        source=source,
        max_failures=max_failures,
    )


def default_name(data: Dataset, seed: int) -> str:
    """A study's name made from that of the data: with the beginning of their fingerprint where they have none."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", data.name).strip("-_")[:60] or "data"
    if stem == "data":
        stem = f"data-{data.fingerprint[:8]}"
    return stem if seed == 0 else f"{stem}-seed{seed}"


def default_workers() -> int:
    """One per core, at most two: what a laptop bears while its owner works on it."""
    return max(1, min(2, len(os.sched_getaffinity(0))))


def _checked_workers(workers: int | None) -> int:
    if workers is None:
        return default_workers()
    if type(workers) is not int or not 1 <= workers <= MAX_WORKERS:
        raise OptionError(f"workers: expected a whole number from 1 to {MAX_WORKERS}, got {workers!r}")
    return workers


def _searcher(name: str, plan: Plan, stored: Mapping[str, Json] | None) -> Searcher:
    """The searcher of this name; of a study that goes on, with the options that it was begun with."""
    from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
    from nasbot.study.rebuilding import as_begun

    made: Mapping[str, Any] = dict(zip(SEARCHERS, (NASBOT, RandomSearch, EvolutionSearch, TreeBO), strict=True))
    if name not in made:
        raise OptionError(f"searcher: expected one of {', '.join(SEARCHERS)}, got {str(name)[:40]!r}")
    found: Searcher = made[name](space=plan.space, pool=plan.pool)
    return found if stored is None else as_begun(found, stored)


def _in_one_line(text: str) -> str:
    """A sentence that ends in a colon, the differences below it, and what to do."""
    first, *others = (line.strip() for line in text.splitlines())
    return " ".join([first, "; ".join(others)]).strip()


def _stored(path: Path | None) -> Mapping[str, Json] | None:
    """The settings of the study that is there already, None where there is none."""
    if path is None or not path.exists():
        return None
    with StudyView.read(path) as view:
        return view.settings


def _check_same(path: Path | None, stored: Mapping[str, Json] | None, given: Mapping[str, Json]) -> float | None:
    """The seconds per trial of the stored study; StudyError, in one line, where it is not this one."""
    if stored is None:
        return None
    context = stored.get("context")
    if not isinstance(context, Mapping) or "data" not in context:
        raise StudyError(f"{path} is a study of another objective, not a search on data; choose another name")
    if context["data"] != given["data"]:
        raise StudyError(
            f"{path} was begun on other data (or divided or prepared otherwise); use those, or choose another name"
        )
    searcher = stored.get("searcher")
    there = {
        "recipe": (context.get("recipe"), given["recipe"]),
        "seed": (stored.get("seed"), given["seed"]),
        "searcher": (
            searcher.get("name") if isinstance(searcher, Mapping) else None,
            SEARCHERS.get(str(given["searcher"])),
        ),
    }
    for what, (before, now) in there.items():
        if before != now:
            raise StudyError(
                f"{path} was begun with {what} {before}, not {now}; use that, choose another name, or fork it "
                "(--fork NEW begins a study with its completed trials, where they still hold)"
            )
    return _seconds_of(stored)


def _seconds_of(stored: Mapping[str, Json] | None) -> float | None:
    """The seconds per trial that a study was begun with."""
    context = stored.get("context") if stored is not None else None
    seconds = context.get("seconds_per_trial") if isinstance(context, Mapping) else None
    return float(seconds) if isinstance(seconds, int | float) else None
