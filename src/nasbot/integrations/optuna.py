"""Networks suggested inside Optuna's trials, and a study of ours in Optuna's storage, for its dashboard and plots.

networks = NetworkSuggester("mlp-reg")


def objective(trial):
    arch = networks.suggest(trial)
    return train(arch, learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True))


optuna.create_study().optimize(objective, n_trials=50)
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nasbot._rng import Role, checked_seed, stream
from nasbot.architecture import Architecture, SearchSpace
from nasbot.domain import Float, Integer, Param, params_from_dict
from nasbot.errors import OptionError, missing_extra
from nasbot.searchers import NASBOT
from nasbot.searchers.base import Searcher
from nasbot.study import StudyView
from nasbot.trial import Direction, Failed, FailureCause, History, Outcome, Scored, Trial, TrialState

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState as OptunaState
except ImportError:
    raise missing_extra("nasbot.integrations.optuna", "optuna") from None

NETWORK = "network"  # the user attribute of a trial that holds the network, as JSON
NUMBER = "nasbot_trial"  # and in an exported study the number of our trial


class NetworkSuggester:
    """Suggests networks to Optuna's trials by a searcher of nasbot; Optuna's sampler goes on suggesting the rest.

    The networks so far and their values are read from Optuna's own storage, so that workers, resuming and storages are
    Optuna's matter. The searcher sees networks and values only: what else an objective varies is noise to it.
    """

    def __init__(self, space: SearchSpace | Searcher | str, *, seed: int = 0) -> None:
        """Prepare to suggest networks.

        Args:
            space: which networks, ``"cnn"`` or a SearchSpace, searched by NASBOT; or a searcher of nasbot.
            seed: random seed of the searcher; with the trial's number it fixes what is drawn.

        Raises:
            OptionError: the searcher has params or fidelities of its own.
        """
        given = SearchSpace(space) if isinstance(space, str) else space
        self.searcher: Searcher = NASBOT(space=given) if isinstance(given, SearchSpace) else given
        self.seed = checked_seed(seed)
        if self.searcher.domain.params or self.searcher.domain.fidelity is not None:
            raise OptionError(
                "space: the searcher varies params or fidelities, which are Optuna's here (trial.suggest_float, "
                "pruners); expected a searcher of networks alone"
            )

    def suggest(self, trial: Any) -> Architecture:
        """The network of this trial: the same one however often it is asked for.

        First come those of the searcher's initial pool, by the trial's number; then what the searcher proposes. Trials
        that run are known to it. A pruned trial counts with the value it reported last.

        Args:
            trial: ``optuna.trial.Trial``, or a finished one, whose network is read.

        Returns:
            The network, which is also kept as the trial's user attribute ``network``.

        Raises:
            OptionError: a finished trial without a network, or a study of several objectives.
            ExhaustedError: no network of the space is left.
        """
        if (known := trial.user_attrs.get(NETWORK)) is not None:
            return self._read(known)
        study = getattr(trial, "study", None)
        if study is None:
            raise OptionError(f"trial {trial.number} is finished and has no network; suggest to a running one")
        if len(study.directions) != 1:
            raise OptionError(f"expected a study of one objective, got one of {len(study.directions)}")
        others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        history = self.history(others, _direction(study))
        pool = self.searcher.initial_pool()
        if trial.number < len(pool) and pool[trial.number].fingerprint not in history.seen:
            arch: Architecture = pool[trial.number].arch
        else:
            arch = self.searcher.propose(history, rng=stream(self.seed, trial.number, Role.PROPOSAL)).arch
        trial.set_user_attr(NETWORK, arch.to_json())
        return arch

    def history(self, trials: Iterable[Any], direction: str = Direction.MAXIMISE) -> History:
        """Optuna's trials that have a network, as the searcher sees them."""
        found: list[Trial] = []
        rank = 0
        for trial in sorted(trials, key=lambda trial: trial.number):
            if (text := trial.user_attrs.get(NETWORK)) is None:
                continue
            candidate = self.searcher.domain.candidate(self._read(text))
            ours = Trial(number=len(found), candidate=candidate)
            if trial.state.is_finished():
                # By number, not by time: what the searcher sees must not depend on which clock was ahead.
                ours = ours.begun(0.0).ended(_outcome(trial), at=0.0, rank=rank)
                rank += 1
            found.append(ours)
        return History(found, Direction.of(direction))

    def _read(self, text: str) -> Architecture:
        return Architecture.from_json(text, vocabulary=self.searcher.domain.networks.vocabulary)


def to_optuna(
    study: StudyView | str | Path,
    *,
    name: str | None = None,
    storage: Any = None,
) -> optuna.Study:
    """Copy a study of nasbot into Optuna: trials, values, curves, params, failures; called again, what has ended since.

    Every trial also has params ``layers``, ``edges`` and ``mass`` of its network, so that Optuna's plots of importance
    and slices have something to show, and the network itself as user attribute ``network``.

    Args:
        study: a study, or the name or file of one.
        name: of Optuna's study.
        storage: Optuna's, or its address (``"sqlite:///study.db"``); in memory by default.

    Returns:
        Optuna's study.

    Raises:
        OptionError: Optuna's study of this name is not an export, or has another direction.
        StudyError, StorageError, FileError: the study cannot be read.
    """
    if not isinstance(study, StudyView):
        with StudyView.read(study) as view:
            return to_optuna(view, name=name, storage=storage)
    is_maximised = study.direction is Direction.MAXIMISE
    direction = optuna.study.StudyDirection.MAXIMIZE if is_maximised else optuna.study.StudyDirection.MINIMIZE
    theirs = optuna.create_study(storage=storage, study_name=name, direction=direction, load_if_exists=True)
    known = theirs.get_trials(deepcopy=False)
    if theirs.direction is not direction or any(NUMBER not in trial.user_attrs for trial in known):
        raise OptionError(f"name: Optuna's study {name!r} is not an export of this study; choose another name")
    there = {trial.user_attrs[NUMBER] for trial in known}
    begun = study.runs[0].begun if study.runs else 0.0
    params = params_from_dict(study.settings.get("params", {}))
    for trial in study.history:
        if trial.state.is_final and trial.number not in there:
            theirs.add_trial(_exported(trial, params, begun))
    return theirs


def _direction(study: Any) -> str:
    return Direction.MAXIMISE if study.direction.name == "MAXIMIZE" else Direction.MINIMISE


def _outcome(trial: Any) -> Outcome:
    value = trial.value if trial.value is not None else _last_reported(trial)
    if trial.state is OptunaState.FAIL or value is None:
        return Failed(FailureCause.EXCEPTION, f"{trial.state.name.lower()} in Optuna")
    return Scored(value) if math.isfinite(value) else Failed(FailureCause.NAN)


def _last_reported(trial: Any) -> float | None:
    return None if trial.last_step is None else float(trial.intermediate_values[trial.last_step])


_STATES: Mapping[TrialState, OptunaState] = {
    TrialState.COMPLETED: OptunaState.COMPLETE,
    TrialState.FAILED: OptunaState.FAIL,
    TrialState.STOPPED: OptunaState.PRUNED,
    TrialState.CANCELLED: OptunaState.FAIL,
}


def _exported(trial: Trial, params: Mapping[str, Param], begun: float) -> optuna.trial.FrozenTrial:
    figures: dict[str, Any] = {
        "layers": len(trial.arch.processing_layers),
        "edges": len(trial.arch.edges),
        "mass": float(trial.arch.total_mass),
    }
    distributions: dict[str, BaseDistribution] = {
        "layers": IntDistribution(0, 10_000),
        "edges": IntDistribution(0, 1_000_000),
        "mass": FloatDistribution(0.0, 1e12),
    }
    for name, value in trial.candidate.params.items():
        figures[name] = value
        distributions[name] = _distribution(params[name])
    attributes = {
        NUMBER: trial.number,
        NETWORK: trial.arch.to_json(),
        "fidelity": trial.fidelity,
        "origin": json.dumps(trial.origin.to_dict()),
    }
    if trial.cause is not None:
        attributes["failure"] = f"{trial.cause}: {trial.message}"[:500]
    return optuna.trial.FrozenTrial(
        number=trial.number,
        state=_STATES[trial.state],
        value=trial.value,
        datetime_start=_moment(begun, trial.started if trial.started is not None else trial.finished),
        datetime_complete=_moment(begun, trial.finished),
        params=figures,
        distributions=distributions,
        user_attrs=attributes,
        system_attrs={},
        intermediate_values={point.step: point.value for point in trial.curve},
        trial_id=trial.number,
    )


def _moment(begun: float, seconds: float | None) -> datetime.datetime | None:
    return None if seconds is None else datetime.datetime.fromtimestamp(begun + seconds)


def _distribution(param: Param) -> BaseDistribution:
    if isinstance(param, Float):
        return FloatDistribution(param.low, param.high, log=param.log)
    if isinstance(param, Integer):
        return IntDistribution(param.low, param.high, log=param.log)
    return CategoricalDistribution(param.values)
