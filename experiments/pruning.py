"""Optuna's TPE with its own pruners on the flat space: our trainer, our clock, two processes that share a journal.

A training reports to Optuna at its validations and ends where the pruner says so: ``hyperband`` (brackets), or ``asha``
(asynchronous successive halving in one bracket). Both have rungs at a ninth and a third of a training's steps; ``none``
trains all to the end. Params are searched beside the network as ``nasbot.search(tune=...)`` has them: the same ranges,
and the baseline network with all defaults is enqueued first.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from experiments.flat import FlatSpace, distribution_of, from_optuna, to_optuna, without_notices
from nasbot import SearchSpace
from nasbot.automl.calibration import calibrated
from nasbot.automl.lengths import CROWDING
from nasbot.automl.plan import (
    LEAST_STEPS,
    SECONDS_FOR_CARE,
    SLACK,
    fitting_baseline,
    full_training_seconds,
    most_steps,
)
from nasbot.automl.tuning import params_of
from nasbot.data.dataset import Dataset
from nasbot.domain import Domain
from nasbot.errors import DivergedError, OptionError
from nasbot.study import Budget
from nasbot.training.loop import Report, train
from nasbot.training.objective import SHORTEST, computing_threads, trained_as
from nasbot.training.recipes import FAST

PRUNERS = ("hyperband", "asha", "none")
SAMPLERS = ("tpe", "gp")
FACTOR, LEAST = 3, 9  # between rungs, and the part of a training before the first
WORKERS = 2
STUDY = "flat"


def by_optuna(
    pruner: str, data: Dataset, seconds: float, seed: int, *, sampler: str = "tpe", tune: str = "auto"
) -> dict[str, Any]:
    """The best network by validation after so many seconds, finding the length of a training among them."""
    begun = time.monotonic()
    params = params_of(tune, data, FAST)
    n_steps, cap = length_of(data, seconds, seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data.save(folder / "data")
        study = _study(folder, pruner, n_steps, seed, sampler)
        flat, first = FlatSpace(), Domain(SearchSpace(data.kind), params).default()
        baseline = flat.of_network(fitting_baseline(data.kind, len(data.train)))
        study.enqueue_trial({**baseline, **to_optuna(params, first)})
        left = (folder, pruner, n_steps, cap, begun + seconds, sampler, tune)
        forked = multiprocessing.get_context("spawn")
        workers = [forked.Process(target=work, args=(*left, WORKERS * seed + i)) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        trials = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        n_all = len(study.trials)
    if not trials:
        raise OptionError(
            f"budget: no training came to its end in {seconds:g} s ({n_all} were begun); expected more time"
        )
    best = min(trials, key=lambda trial: float(trial.value or 0.0))
    test = best.user_attrs["test"]
    return {"single": test, "model": test, "loss": best.value, "trials": n_all, "n_steps": n_steps}


def length_of(data: Dataset, seconds: float, seed: int) -> tuple[int, float]:
    """The steps of a full training, found as a search on these data finds them, and the longest time of one."""
    full = full_training_seconds(Budget(seconds=seconds), WORKERS)
    assert full is not None
    longest = most_steps(len(data.train), FAST.settings(data.input_shape).batch_size_for(len(data.train)))
    found = calibrated(
        fitting_baseline(data.kind, len(data.train)),
        data,
        FAST,
        seconds=full,
        most_steps=longest,
        least_steps=min(LEAST_STEPS, longest),
        tries_full=seconds >= SECONDS_FOR_CARE,
        crowding=CROWDING,
        seed=seed,
    )
    return found.n_steps, SLACK * full


def work(folder: Path, pruner: str, n_steps: int, cap: float, until: float, sampler: str, tune: str, seed: int) -> None:
    """One worker: trainings until the time is up. ``until`` is on the clock of all processes of this machine."""
    from experiments.model import test_error

    data = Dataset.load(folder / "data")
    flat, recipe = FlatSpace(), FAST.changed(n_steps=n_steps)
    params = params_of(tune, data, FAST)
    domain = Domain(SearchSpace(data.kind), params)
    spaces = {**flat.distributions(), **{name: distribution_of(param) for name, param in params.items()}}
    study = _study(folder, pruner, n_steps, seed, sampler)

    def reports_to(trial: optuna.Trial) -> Report:
        def report(step: int, value: float) -> None:
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned

        return report

    while (left := until - time.monotonic()) > SHORTEST:
        trial = study.ask(spaces)
        chosen = domain.only_active(from_optuna(params, trial.params))
        changed, prepared = trained_as(recipe, data, chosen)
        arch = flat.network(data.kind, trial.params)
        try:
            with computing_threads(1):
                trained = train(
                    arch, prepared, changed, seed=trial.number, report=reports_to(trial), seconds=min(cap, left)
                )
        except optuna.TrialPruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        except DivergedError:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            trial.set_user_attr("test", test_error(prepared, trained))
            study.tell(trial, trained.loss)


def _study(folder: Path, pruner: str, n_steps: int, seed: int, sampler: str = "tpe") -> optuna.Study:
    if sampler not in SAMPLERS:
        raise OptionError(f"sampler: expected one of {', '.join(SAMPLERS)}, got {sampler[:40]!r}")
    if pruner not in PRUNERS:
        raise OptionError(f"pruner: expected one of {', '.join(PRUNERS)}, got {pruner[:40]!r}")
    least = max(1, n_steps // LEAST)
    ends: optuna.pruners.BasePruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=least, reduction_factor=FACTOR
    )
    if pruner == "hyperband":
        ends = optuna.pruners.HyperbandPruner(min_resource=least, max_resource=n_steps, reduction_factor=FACTOR)
    if pruner == "none":
        ends = optuna.pruners.NopPruner()
    with without_notices():
        chooses: optuna.samplers.BaseSampler = (
            optuna.samplers.GPSampler(seed=seed)
            if sampler == "gp"
            else optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        )
        return optuna.create_study(
            study_name=STUDY,
            storage=JournalStorage(JournalFileBackend(str(folder / "journal.log"))),
            sampler=chooses,
            pruner=ends,
            direction="minimize",
            load_if_exists=True,
        )
