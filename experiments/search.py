"""Figure 3 and Table 3: one search by one method on one data set, within a wall-clock budget that includes deciding.

A search is a study on disk; a run that was stopped or killed goes on from there, and its clock with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

import nasbot
from experiments.datasets import prepared
from experiments.flat import FlatRandom, FlatSpace, OptunaSearch
from experiments.networks import Anatomy, scaled_pool
from experiments.protocol import Protocol, Run
from experiments.records import Places
from experiments.rivals import ACTIVATIONS, ScikitMLP, boosted, refitted
from experiments.training import recipe_from, retrained
from nasbot import NASBOT, Architecture, EvolutionSearch, RandomSearch, SearchSpace, TreeBO
from nasbot._ranks import rank_correlation
from nasbot.data.dataset import Dataset
from nasbot.errors import OptionError
from nasbot.evolution import CNN_MODIFIERS
from nasbot.execution import Finished, Job, LocalExecutor, Objective
from nasbot.searchers import Recommends, Searcher
from nasbot.study import StudyView
from nasbot.training.objective import TrainingObjective
from nasbot.trial import POOL, Failed, Trial

FEWEST_FOR_BELIEF = 5
SCIKIT = "scikit-learn MLP"
BOOSTING = "gradient boosting"

Scores = list[dict[str, float]]  # of retrainings
Make = Callable[[SearchSpace, tuple[Architecture, ...]], Searcher]
METHODS: Mapping[str, Make] = {
    "NASBOT": lambda space, pool: NASBOT(space=space, pool=pool),
    "RAND": lambda space, pool: RandomSearch(space=space, pool=pool),
    "EA": lambda space, pool: EvolutionSearch(space=space, pool=pool),
    "TreeBO": lambda space, pool: TreeBO(space=space, pool=pool),
    # With NASBOT's modifiers of CNNs: what of its lead is theirs.
    "EA leaps": lambda space, pool: EvolutionSearch(space=space, pool=pool, modifiers=CNN_MODIFIERS),
    "Optuna TPE": lambda space, pool: OptunaSearch(space=space, sampler="tpe", name="Optuna TPE"),
    "Optuna GP": lambda space, pool: OptunaSearch(space=space, sampler="gp", name="Optuna GP"),
    SCIKIT: lambda space, pool: FlatRandom(space=space, flat=FlatSpace(activations=tuple(ACTIVATIONS)), name=SCIKIT),
}


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """Search, then train the best network again and see what it is worth on the test part."""
    folder, data = prepared(protocol, run["dataset"], places)
    if run["method"] == BOOSTING:
        return _yardstick(protocol, run, folder)
    if run["method"] not in METHODS:
        raise OptionError(f"method: expected one of {', '.join((*METHODS, BOOSTING))}; got {run['method']!r}")
    searcher = METHODS[run["method"]](*space_and_pool(protocol, data))
    objective = _objective(protocol, run, folder)
    name = f"{run['dataset']}-{run['method']}-{run['seed']}".replace(" ", "_")
    path = places.draft("studies", protocol.digest, f"{name}.sqlite")
    context = {"data": data.fingerprint, "recipe": protocol.settings["recipe"]}
    executor = LocalExecutor(protocol.settings["workers"], threads=1, preload=("torch",))
    try:
        warm_up(searcher, objective, executor)
        study = nasbot.minimise(
            objective,
            searcher.domain.networks,
            name=path,
            searcher=searcher,
            seed=run["seed"],
            seconds=protocol.settings["seconds"],
            trials=protocol.settings.get("trials"),
            context=context,
            executor=executor,
            max_consecutive_failures=None,
            overtime=0.0,
            progress=False,
        )
    finally:
        executor.close()
    with study:
        best, retrain = _best(_counted(study, protocol)), partial(_again, objective, protocol, run, folder)
        found = {**_outcome(study, protocol), "retrained": [] if best is None else retrain(best)}
        return {**found, "recommended": _recommended(study, best, found["retrained"], retrain)}


def warm_up(searcher: Searcher, objective: Objective, executor: LocalExecutor) -> None:
    """Have everything imported and compiled before the clock starts: hours would hide it, minutes do not.

    The method decides once on values that mean nothing, and the workers train the smallest network of the pool.
    """
    first = searcher.initial_pool()
    space, n = searcher.domain.networks, max(1, len(first)) + 1
    decided = nasbot.maximise(_size, space, name=None, searcher=searcher, trials=n, progress=False)
    trial = decided.history[-1]
    executor.start(objective)
    executor.submit(Job(0, min((*first, trial.candidate), key=lambda candidate: candidate.arch.total_mass)))
    while not any(isinstance(event, Finished) for event in executor.wait()):
        pass


def _size(arch: Architecture) -> float:
    return len(arch.layers)


def space_and_pool(protocol: Protocol, data: Dataset) -> tuple[SearchSpace, tuple[Architecture, ...]]:
    """Networks that can be trained here in seconds, and the pool of the paper made small enough to be among them."""
    settings = protocol.settings
    space = SearchSpace(
        data.kind,
        input_shape=data.input_shape,
        n_outputs=data.n_outputs,
        max_parameters=settings["max_parameters"],
        max_flops=settings.get("max_flops"),
        may_shrink_pixels=settings.get("may_shrink_pixels", True),
    )
    pool = scaled_pool(data.kind, settings["pool_divisor"])
    return space, tuple(arch for arch in pool if arch in space)[: settings.get("pool_size")]


def _objective(protocol: Protocol, run: Run, folder: Path) -> Objective:
    recipe = recipe_from(protocol.settings["recipe"])
    if run["method"] == SCIKIT:
        return ScikitMLP(folder, max_steps=recipe.vectors.n_steps or recipe.vectors.max_steps)
    return TrainingObjective(folder, recipe)


def _outcome(study: StudyView, protocol: Protocol) -> dict[str, Any]:
    history, counted = study.history, _counted(study, protocol)
    proposed = [trial for trial in history.finished if trial.origin.searcher != POOL]
    deciding = study.deciding_time()
    spent = [trial.seconds for trial in history.finished if trial.seconds is not None]
    return {
        # Two workers that end within milliseconds may be recorded in the other order.
        "times": list(accumulate((round(trial.finished or 0.0, 2) for trial in counted), max)),
        "values": [float(f"{trial.value or 0.0:.6g}") for trial in counted],
        "networks": len(history.finished),
        "failed": dict(Counter(str(t.outcome.cause) for t in history.failed if isinstance(t.outcome, Failed))),
        "deciding": round(deciding.total / max(1, deciding.n_proposals), 4),
        "training": round(float(np.mean(spent)), 3) if spent else 0.0,
        "proposed": _shares(proposed),
        "belief": _belief(counted),
        "pool_best": _pool_best(counted),
        "best": _described(best) if (best := _best(counted)) is not None else None,
    }


def _counted(study: StudyView, protocol: Protocol) -> list[Trial]:
    """What was completed within the budget."""
    return [t for t in study.history.completed if (t.finished or 0.0) <= protocol.settings["seconds"]]


def _recommended(
    study: StudyView, best: Trial | None, retrained: Scores, retrain: Callable[[Trial], Scores]
) -> dict[str, Any] | None:
    """The network that a searcher with a belief takes for the best, trained again too; None of a searcher without."""
    if best is None or not isinstance(study.searcher, Recommends):
        return None
    trial = study.recommend() or best
    return {**_described(trial), "retrained": retrained if trial.number == best.number else retrain(trial)}


def _belief(counted: list[Trial]) -> dict[str, float | None]:
    """Whether the searcher knew what it proposed: predicted means against values, in the order of ranks.

    Where a search does badly, this tells a belief that is wrong from a space that has nothing better.
    """
    forecasts = [(t.forecast.mean, t.value) for t in counted if t.forecast is not None]
    pairs = [(mean, -value) for mean, value in forecasts if mean is not None and value is not None]  # of losses
    if len(pairs) < FEWEST_FOR_BELIEF:
        return {"n": len(pairs), "rank_correlation": None}
    predicted, true = np.array(pairs, dtype=np.float64).T
    rho = rank_correlation(predicted, true)
    return {"n": len(pairs), "rank_correlation": round(rho, 4) if np.isfinite(rho) else None}


def _pool_best(counted: list[Trial]) -> float | None:
    """The lowest value among the networks that every method begins with."""
    first = [t.value for t in counted if t.value is not None and t.origin.searcher == POOL]
    return float(f"{min(first):.6g}") if first else None


def _best(counted: list[Trial]) -> Trial | None:
    return min(counted, key=lambda trial: (trial.value or 0.0, trial.rank or 0), default=None)


def _described(trial: Trial) -> dict[str, Any]:
    anatomy = asdict(Anatomy.of(trial.arch))
    return {"trial": trial.number, "arch": trial.arch.to_dict(), "anatomy": anatomy, "notes": _origin(trial)}


def _origin(trial: Trial) -> dict[str, Any]:
    said = trial.origin.to_dict()
    return {key: said[key] for key in ("searcher", "parents", "modifiers") if key in said}


def _shares(proposed: list[Trial]) -> dict[str, float]:
    """How many of the networks that were tried have what the paper found in the best ones: what chance would give."""
    found = [Anatomy.of(trial.arch) for trial in proposed]
    return {
        "n": len(found),
        "long_skip": round(float(np.mean([one.has_long_skip for one in found])), 4) if found else 0.0,
        "several_decisions": round(float(np.mean([one.has_several_decisions for one in found])), 4) if found else 0.0,
        "depth": round(float(np.mean([one.depth for one in found])), 3) if found else 0.0,
    }


def _again(objective: Objective, protocol: Protocol, run: Run, folder: Path, trial: Trial) -> Scores:
    """Scores of the trial's network, trained from other weights."""
    seeds = [100 * run["seed"] + i for i in range(protocol.settings["retrainings"])]
    if isinstance(objective, ScikitMLP):
        details = getattr(trial.outcome, "details", {})
        return [refitted(objective, trial.arch, details, seed=seed) for seed in seeds]
    recipe = recipe_from(protocol.settings.get("retraining_recipe", protocol.settings["recipe"]))
    return [retrained(trial.arch, folder, recipe, seed=seed) for seed in seeds]


def _yardstick(protocol: Protocol, run: Run, folder: Path) -> dict[str, Any]:
    found = boosted(folder, seed=run["seed"], max_iterations=protocol.settings["trees"])
    return {
        "times": [round(found["seconds"], 2)],
        "values": [float(f"{found['valid']:.6g}")],
        "networks": 1,
        "failed": {},
        "deciding": 0.0,
        "training": round(found["seconds"], 3),
        "proposed": _shares([]),
        "belief": _belief([]),
        "pool_best": None,
        "best": None,
        "retrained": [{"valid": found["valid"], "test": found["test"], "seconds": round(found["seconds"], 2)}],
    }
