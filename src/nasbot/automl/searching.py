"""``nasbot.search(X, y, budget="10m")``: from data to a model, in one call that the same call goes on with."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from nasbot._files import check_own_folder
from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot.architecture import Architecture, SearchSpace, Vocabulary
from nasbot.automl.devices import Devices, devices_of
from nasbot.automl.driving import drive
from nasbot.automl.executors import (
    check_executor,
    check_place,
    checked_workers,
    executor_of,
    is_too_short_for_processes,
)
from nasbot.automl.files import DATA, WEIGHTS, Temporary, files_of
from nasbot.automl.found import FoundStudy
from nasbot.automl.going_on import (
    check_same_search,
    check_same_searcher,
    context_of,
    default_place,
    forked,
    in_one_line,
    stored_settings,
    taken_over_from,
)
from nasbot.automl.judging import as_needed, balanced_for, check_loss
from nasbot.automl.lengths import length_of, seconds_for_refits, that_help
from nasbot.automl.limits import check_reachable, file_overhead
from nasbot.automl.options import (
    SEARCHERS,
    check_numbers,
    check_searcher,
    dataset_asked,
    limits_asked,
    searcher_asked,
    space_asked,
)
from nasbot.automl.plan import Plan, folds_of, most_steps, planned
from nasbot.automl.removing import remove_study
from nasbot.automl.teaching import can_teach, lessons_for, teacher_and_share
from nasbot.automl.tuning import SHARES, asks_for_trees, attributes_of, params_of
from nasbot.automl.yardstick import measured as measured_trees
from nasbot.automl.yardstick import seconds_for as trees_seconds
from nasbot.candidate import Candidate
from nasbot.data.metrics import Metric, metric_for
from nasbot.domain import Domain, Fidelity, Param, fidelity_of
from nasbot.errors import OptionError, StudyError
from nasbot.execution import Executor
from nasbot.execution._sending import stop_at_study
from nasbot.otmann.solver import compile_in_background
from nasbot.pacing import Pacer, pacer_of
from nasbot.storage import Address, MemoryStorage, Storage, is_begun, open_storage
from nasbot.storage.addresses import place_of
from nasbot.study import Budget, Study
from nasbot.study.loop import OnChange
from nasbot.study.optimise import known_pairs, tell_known
from nasbot.study.progress import with_progress
from nasbot.training.recipes import Recipe, recipe_of
from nasbot.trial import Direction, History, Trial, TrialState

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.searchers.base import Searcher

LOG = logging.getLogger("nasbot")
AUTOMATIC = "…"  # a name made from the data
FAILURES_IN_A_ROW = 3
LEAST_SHARE, LEAST_SECONDS = 0.05, 1.0  # and of a time budget, for searching, however long getting ready took
LATE = 0.3  # of a time budget: where so much is gone, on a crowded machine, no trees are grown to learn from


@dataclass(frozen=True)
class Prepared:
    """A search that is about to begin, for whoever wants to say so: the command line."""

    data: Dataset
    plan: Plan
    searcher: Searcher
    path: Path | Address | None  # of the study; None keeps nothing
    is_resumed: bool
    history: History  # of a study that goes on
    elapsed: Callable[[], float]  # the study's clock
    metric: Metric | None = None  # that values are of; None: the validation loss
    is_spent: bool = False  # whether the study has had its budget already, so that nothing will be trained


def search(
    X: Any,
    y: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    budget: Budget | int | str = "2m",
    metric: Metric | str | None = None,
    space: SearchSpace | Vocabulary | None = None,
    searcher: Searcher | str = "nasbot",
    tune: str | Sequence[str] | Mapping[str, Param] | None = "auto",
    attributes: str | Sequence[str] | None = None,
    fidelity: Fidelity | str | None = None,
    pacer: Pacer | str | None = None,
    recipe: Recipe | str = "fast",
    pool: str | Sequence[Candidate | Architecture] = "default",
    start_from: Sequence[Architecture] = (),
    known: Iterable[tuple[Candidate | Architecture, float]] = (),
    folds: int | str = "auto",
    refit: bool = True,
    yardstick: bool = True,
    executor: Executor | str = "auto",
    workers: int | None = None,
    memory_per_trial: int | None = None,
    address: str | None = None,
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
    device: str = "auto",
    seconds_per_trial: float | None = None,
    max_failures: int | None = FAILURES_IN_A_ROW,
    stop_when_settled: bool = False,
    max_parameters: int | None = None,
    max_layers: int | None = None,
    max_size: int | str | None = None,
    max_latency: float | str | None = None,
    seed: int = 0,
    name: str | Path | None = AUTOMATIC,
    fork: str | Path | None = None,
    shared: bool = False,
    fresh: bool = False,
    on_start: Callable[[Prepared], None] | None = None,
    on_change: OnChange | None = None,
    progress: bool | None = None,
    **data_options: Any,
) -> FoundStudy:
    """Search for the model that predicts these data best, and return the study.

        study = nasbot.search(X, y, budget="10m")
        print(study.summary())
        model = study.model()                  # predict(X): an ensemble of the best networks
        study.best.draw("best.svg")

    Args:
        X: a table, a data frame, images, tensors, or a ``Dataset``; a path to a file of any of these.
        y: the target, or the name of its column.
        target: the name of its column, or those of several, in place of ``y``.
        budget: time ("10m", "1h30m") or trials (50), in all: the same call goes on with the study.
        metric: what validation steps, trials and ensemble are chosen by: a name such as auc, f1, mae
            (docs/reference/metrics.md), or a function of your own, "module:function"; by default the validation loss.
        space: limits on the networks; by default the paper's, and none that cost many times the baseline. A vocabulary
            of your own stands for networks of it within those limits; it needs a ``pool``.
        searcher: what chooses the candidates; an object, or nasbot, random, evolution, treebo.
        tune: params searched with the networks: "auto", names, ``{"learning_rate": Float(...)}``, or None.
        attributes: options of single layers that the search changes: some of dropout, norm, weight_decay, or "all".
        fidelity: shorter trainings that decide who gets a full one: "steps", "rows" (fewer of them to learn from),
            "boca", or ``Fidelity(least=1/9, factor=3)``; None: full ones only.
        pacer: what ends trainings that fall behind others at the same step, "median" or an object; None: nothing does.
        recipe: how networks are trained; an object, "fast" or "paper".
        pool: the candidates to begin with: "default" (strong plain networks), "paper", or your own: a list, or
            "module:name" of one.
        start_from: networks to begin with, before the pool.
        known: pairs of a candidate (or a network, with params at their defaults) and its value by this metric, measured
            elsewhere; the search learns from them, the model is made of networks that are trained here.
        folds: of a cross-validation by which trials are judged, 1 for the validation rows; "auto": 5 where a table has
            fewer than 2,000 rows for training and validation.
        refit: whether the model's networks are at last trained on training and validation rows together.
        yardstick: whether trees are shown beside the results, where a time budget of 20 s or more is given: 4 % of it.
        executor: where networks are trained; an object, or auto, local, here, ray.
        workers: networks trained at a time; by default one for each card, or one per core up to two and half beyond.
        memory_per_trial: bytes that one training may take.
        address: address of the Ray head, host:port.
        cpus_per_trial: CPUs that one training reserves on the Ray cluster.
        gpus_per_trial: graphics cards that it reserves there; one where device is "cuda".
        device: what networks are trained on: auto, cpu, cuda, cuda:1 or mps; each worker has a card of its own.
        seconds_per_trial: longest training of one network; by default from the budget.
        max_parameters: of the recommended model, an ensemble's all together.
        max_layers: hidden layers of each network.
        max_size: bytes of the model file, "5MB".
        max_latency: time of the recommended model for one row, here, "2ms".
        max_failures: failures in a row after which the search ends; None: never.
        stop_when_settled: end the search, and begin the finals or refits, when the next twenty trials are expected to
            improve the best by less than the noise.
        seed: random seed (data split, initial weights, search).
        name: of the study, its file, or its address in a database; made from data and target by default; None: none.
        shared: whether other drivers that say so may work on the study at the same time.
        fork: the name of a new study that begins with the completed trials of ``name``.
        fresh: delete the study of this name, if there is one, and begin it anew.
        on_start: called with what is about to happen.
        on_change: called with every new state of a trial.
        progress: a line for each trial that ends, on standard error; by default on a terminal and in a notebook.
        **data_options: as of ``nasbot.data.dataset.dataset_of``: task, split, drop, sample_weight, …

    Returns:
        The study, open for reading.

    Raises:
        OptionError, DataError, StudyError: what is wrong with the call, the data, or the study that is there.
    """
    stop_at_study()
    compiling = compile_in_background() if searcher == "nasbot" or hasattr(searcher, "distance") else None
    begun = time.monotonic()
    if y is not None and target is not None:
        raise OptionError("expected one of y and target: both name what is to be predicted")
    data = dataset_asked(
        X, target if y is None else y, {"seed": seed, **data_options}, beside=signature(search).parameters
    )
    judged_by = None if metric is None else metric_for(metric, data)
    data = balanced_for(judged_by, data)
    total = Budget.of(budget)
    if executor == "auto" and is_too_short_for_processes(total.seconds) and memory_per_trial is None:
        executor, workers = "here", 1 if workers is None else workers
    on_what = (
        devices_of(device, on_cluster=executor == "ray", gpus_per_trial=gpus_per_trial)
        if isinstance(executor, str)
        else Devices()
    )
    check_executor(executor)
    n_workers = checked_workers(workers, on_what) if isinstance(executor, str) else executor.slots
    n_workers = 1 if executor == "here" else n_workers
    checked_seed(seed)
    check_numbers(seconds_per_trial, max_failures)
    rungs = fidelity_of(fidelity)
    paced = pacer_of(pacer)
    if stop_when_settled and isinstance(searcher, str) and searcher in SEARCHERS[1:]:
        raise OptionError(f"stop_when_settled: {searcher} has no beliefs from which to tell; expected searcher nasbot")
    if isinstance(executor, str):
        check_place(
            executor,
            memory_per_trial=memory_per_trial,
            address=address,
            cpus_per_trial=cpus_per_trial,
            gpus_per_trial=gpus_per_trial,
        )
    path = None if name is None else default_place(data, seed) if name == AUTOMATIC else place_of(name)
    source, path = (None, path) if fork is None else forked(path, fork)
    chosen = recipe_of(recipe)
    if fresh and path is not None and fork is None and is_begun(path):
        if isinstance(path, Address):
            raise OptionError("fresh: a study in a database is not deleted by nasbot; choose another name")
        remove_study(path)
    stored = stored_settings(path)
    check_same_search(path, stored, data, chosen, judged_by, seed)
    begun_with = context_of(stored if stored is not None else stored_settings(source))
    n_folds = 1 if folds == "auto" and chosen.name == "paper" else folds_of(folds, data, begun_with)
    few_rows = n_folds > 1
    chosen = as_needed(
        chosen, judged_by, data, few_rows=few_rows, begun_with=begun_with, seconds=total.seconds, seed=seed
    )
    check_searcher(searcher, space, tune, data, chosen)
    check_loss(chosen, data)
    where = space_asked(space, data, chosen)
    limits = limits_asked(max_parameters, max_layers, max_size, max_latency, begun_with, data)
    if limits:
        where = limits.space(where, file_overhead(data))
        check_reachable(limits, where, data, file_overhead(data))
    of_layers = attributes_of(attributes)
    measured_elsewhere = known_pairs(known)

    def finder_of(from_trees: float | None) -> Searcher:
        domain = Domain(where, params_of(tune, data, chosen, from_trees), rungs)
        return searcher_asked(searcher, domain, pool, start_from, len(data.train), stored, of_layers)

    is_named = asks_for_trees(tune if isinstance(searcher, str) else searcher.domain.params)
    _, share = teacher_and_share(begun_with) or (None, SHARES[-1] if is_named and can_teach(data, n_folds) else None)
    finder = finder_of(share)
    check_same_searcher(path, stored, finder, of_layers if isinstance(searcher, str) else None)
    begun += _waited_for(compiling)
    trees = lessons = None
    if yardstick and stored is None and (allowed := trees_seconds(total.seconds)) is not None:
        trees = measured_trees(data, seconds=allowed, seed=seed, metric=judged_by)
    is_late = stored is None and total.seconds is not None and time.monotonic() - begun > LATE * total.seconds
    if is_named or (tune == "auto" and isinstance(searcher, str) and not is_late):
        lessons = lessons_for(
            data,
            total.seconds,
            begun_with,
            folds=n_folds,
            is_named=is_named,
            loss=chosen.settings(data.input_shape).loss,
            seed=seed,
            folder=None if stored is None or path is None else files_of(path) / DATA,
        )
    length = length_of(total, n_workers, data, chosen, begun_with, seed, n_folds, lessons)
    if lessons is not None and begun_with is None and not is_named:
        lessons = that_help(lessons, length)
        finder = finder if lessons is None else finder_of(lessons.share)
    spent = 0.0 if stored is not None else time.monotonic() - begun  # a study's own clock begins with its first trial
    longest = most_steps(len(data.train), chosen.settings(data.input_shape).batch_size_for(len(data.train)))
    kept = seconds_for_refits(path, where.vocabulary, data, total, n_workers, length, n_folds) if refit else None
    plan = planned(
        _without(total, spent),
        n_workers,
        n_steps=None if length is None else length.n_steps,
        stored=begun_with,
        seconds=seconds_per_trial,
        most_steps=longest,
        refit_seconds=kept,
        folds=n_folds,
        training_seconds=None if length is None else length.n_steps * length.seconds_per_step * n_folds,
        takes_images=data.has_images,
        rungs=rungs,
        n_pool=len(finder.initial_pool()),
    )
    planned_at = time.monotonic()
    if plan.shortfall is not None:
        LOG.warning(plan.shortfall)
    has_length = plan.n_steps is None or chosen.settings(data.input_shape).n_steps is not None
    trained = chosen if has_length else chosen.changed(n_steps=plan.n_steps)
    context: dict[str, Json] = {
        "data": data.fingerprint,
        "data_name": data.name,
        "recipe": trained.to_dict(),
        **plan.to_dict(),
        **({} if judged_by is None else {"metric": judged_by.name}),
        **({} if lessons is None else lessons.to_dict()),
        **({"limits": limits.to_dict()} if limits else {}),
    }

    temporary = Temporary() if path is None else None
    files = temporary.path if temporary is not None else files_of(path or Path())
    for folder in (files, files / DATA, files / WEIGHTS):
        check_own_folder(folder)
    data.save(files / DATA)
    if lessons is not None:
        lessons.save(files / DATA, data)
    if trees is not None:
        trees.save(files)
    storage: Storage = MemoryStorage()
    if path is not None:
        storage = open_storage(path, vocabulary=where.vocabulary, shared=shared)
    try:
        taken_over = taken_over_from(source, path, finder, context) if storage.settings() is None else ()
        study = _study(storage, finder, seed, judged_by, context, taken_over, paced)
        tell_known(study, measured_elsewhere)
        if on_start is not None:
            is_spent = stored is not None and plan.end.is_spent(
                trials=sum(t.state is not TrialState.CANCELLED for t in study.history), seconds=study.elapsed()
            )
            begins = study.history, study.elapsed
            on_start(Prepared(data, plan, finder, path, stored is not None, *begins, judged_by, is_spent))
        runs_on = executor_of(
            executor,
            workers=workers,
            seconds=plan.seconds_per_trial * plan.stretch,
            memory_per_trial=memory_per_trial,
            address=address,
            cpus_per_trial=cpus_per_trial,
            gpus_per_trial=gpus_per_trial,
            devices=on_what,
        )
        told = with_progress(progress, on_change, plan.end if total.seconds is None else total, study.direction)
        study.plan = str(plan)
        gone, settles = time.monotonic() - planned_at, stop_when_settled
        drive(
            study, plan, trained, judged_by, limits, on_what.device, files, runs_on, max_failures, told, settles, gone
        )
    except BaseException:
        storage.close()
        raise
    if path is None:
        return FoundStudy(storage, files, finder, temporary, metric=judged_by)
    storage.close()
    again = open_storage(path, vocabulary=where.vocabulary, read_only=True)
    return FoundStudy(again, files, finder, metric=judged_by)


def _study(
    storage: Storage,
    searcher: Searcher,
    seed: int,
    metric: Metric | None,
    context: Mapping[str, Json],
    taken_over: Sequence[Trial],
    pacer: Pacer,
) -> Study:
    direction = Direction.MAXIMISE if metric is not None and metric.higher_is_better else Direction.MINIMISE
    try:
        return Study(
            storage, searcher, seed=seed, direction=direction, context=context, pacer=pacer, taken_over=taken_over
        )
    except StudyError as error:
        raise StudyError(in_one_line(str(error))) from None


def _waited_for(compiling: Thread | None) -> float:
    """The seconds until the distance solver was compiled, which is no part of any budget and of no timing."""
    begun = time.monotonic()
    if compiling is not None:
        compiling.join()
    return time.monotonic() - begun


def _without(budget: Budget, spent: float) -> Budget:
    """What is left of a time budget when the search begins, though never so little that nothing can be searched."""
    if budget.seconds is None or spent == 0.0:
        return budget
    return Budget(budget.trials, max(LEAST_SHARE * budget.seconds + LEAST_SECONDS, budget.seconds - spent))
