"""Networks in Optuna's trials, and our studies in Optuna's storage, with the real Optuna."""

import sys

import pytest

import nasbot
from nasbot.trial import Cancelled, Failed, FailureCause, Stopped, TrialState

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'nasbot[optuna]'")

from nasbot.integrations.optuna import _STATES, NETWORK, NUMBER, NetworkSuggester, to_optuna  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)


STOPPED = Stopped(step=3, value=0.7, bar=0.5, expected=0.6, share=0.4, place=4, among=4)


def depth_score(arch):
    return -abs(len(arch.processing_layers) - 7) - abs(sum(layer.units or 0 for layer in arch.layers) - 500) / 500


def searched(n_trials, *, seed=0, storage=None, direction="maximize", space="mlp-reg"):
    networks = NetworkSuggester(space, seed=seed)
    sign = 1 if direction == "maximize" else -1

    def objective(trial):
        trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True)
        return sign * depth_score(networks.suggest(trial))

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction=direction, sampler=sampler, storage=storage)
    study.optimize(objective, n_trials=n_trials)
    return study, networks


def test_it_suggests_what_our_own_search_would():
    """The pool in its order, then the searcher's proposals: all new, within the space, and the same again."""
    study, networks = searched(14)
    archs = [networks.suggest(trial) for trial in study.trials]
    pool = [candidate.arch for candidate in networks.searcher.initial_pool()]
    assert archs[: len(pool)] == pool
    assert len({arch.fingerprint for arch in archs}) == len(archs)
    for arch in archs:
        nasbot.SearchSpace("mlp-reg").check(arch)
    ours = nasbot.maximise(depth_score, "mlp-reg", name=None, trials=14, seed=0)
    assert archs == [trial.arch for trial in ours.history]


def test_minimising_turns_values_once():
    high, networks = searched(13)
    low, _ = searched(13, direction="minimize")
    assert [networks.suggest(trial) for trial in high.trials] == [networks.suggest(trial) for trial in low.trials]


def test_a_trial_keeps_its_network():
    study, networks = searched(1)
    again = NetworkSuggester("mlp-reg", seed=9)
    assert again.suggest(study.best_trial) == networks.suggest(study.best_trial)
    trial = study.ask()
    assert networks.suggest(trial) == networks.suggest(trial)


def test_running_failed_and_pruned_trials_are_known():
    networks = NetworkSuggester(nasbot.RandomSearch(space=nasbot.SearchSpace("mlp-reg")))
    study = optuna.create_study(direction="maximize")
    running, failed, pruned, silent, infinite, plain = (study.ask() for _ in range(6))
    for trial in (running, failed, pruned, silent, infinite):
        networks.suggest(trial)
    pruned.report(0.25, step=1)
    pruned.report(0.5, step=2)
    study.tell(failed, state=optuna.trial.TrialState.FAIL)
    study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    study.tell(silent, state=optuna.trial.TrialState.PRUNED)
    study.tell(infinite, float("inf"))
    study.tell(plain, 1.0)  # without a network
    history = networks.history(study.trials)
    assert len(history) == 5
    assert len(history.seen) == 5
    assert [trial.number for trial in history.pending] == [0]
    assert [trial.value for trial in history.completed] == [0.5]
    assert [trial.outcome.cause for trial in history.failed] == ["exception", "exception", "nan"]


def test_a_storage_is_shared(tmp_path):
    """Another process would see no more than another study object on the same storage."""
    address = f"sqlite:///{tmp_path / 'optuna.db'}"
    study, networks = searched(3, storage=address)
    other = optuna.load_study(study_name=study.study_name, storage=address)
    assert networks.suggest(other.ask()) == networks.searcher.initial_pool()[3].arch


def test_what_is_refused(tmp_path):
    tuned = nasbot.NASBOT(space=nasbot.SearchSpace("mlp-reg"), params={"dropout": nasbot.Float(0, 0.5)})
    with pytest.raises(nasbot.OptionError, match="which are Optuna's here"):
        NetworkSuggester(tuned)
    networks = NetworkSuggester("mlp-reg")
    with pytest.raises(nasbot.OptionError, match="one of 2"):
        networks.suggest(optuna.create_study(directions=["minimize", "maximize"]).ask())
    study = optuna.create_study()
    study.tell(study.ask(), 1.0)
    with pytest.raises(nasbot.OptionError, match="finished and has no network"):
        networks.suggest(study.trials[0])
    with pytest.raises(nasbot.OptionError, match="not an export of this study"):
        to_optuna(
            nasbot.maximise(depth_score, "mlp-reg", name=None, trials=1), name=study.study_name, storage=study._storage
        )


def test_a_study_of_ours_in_optuna(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = {
        "rate": nasbot.Float(1e-4, 1e-1, log=True),
        "epochs": nasbot.Integer(1, 9),
        "schedule": nasbot.Choice("cosine", "flat"),
    }
    searcher = nasbot.NASBOT(space=nasbot.SearchSpace("mlp-reg"), params=params)
    with nasbot.Study.open("ours", searcher, direction="minimise") as study:
        first = study.ask()
        study.report(first, 1, 0.75)
        study.tell(first, 0.5)
        study.tell(study.ask(), Failed(FailureCause.OOM, "too large"))
        study.tell(study.ask(), STOPPED)
        study.tell(study.ask(), Cancelled())
        running = study.ask()
        address = "sqlite:///optuna.db"
        exported = to_optuna(study, name="ours", storage=address)
        assert [trial.user_attrs[NUMBER] for trial in exported.trials] == [0, 1, 2, 3]
        study.tell(running, 0.25)
        exported = to_optuna(study, name="ours", storage=address)
        assert to_optuna(study, name="ours", storage=address).trials == exported.trials
        ours = study.history.trials[:5]  # the rest of the pool waits
    assert exported.direction is optuna.study.StudyDirection.MINIMIZE
    assert [trial.value for trial in exported.trials] == [0.5, None, None, None, 0.25]
    assert [trial.state.name for trial in exported.trials] == ["COMPLETE", "FAIL", "PRUNED", "FAIL", "COMPLETE"]
    assert exported.trials[0].intermediate_values == {1: 0.75}
    assert exported.trials[1].user_attrs["failure"] == "oom: too large"
    for trial, theirs in zip(ours, exported.trials, strict=True):
        assert {name: theirs.params[name] for name in params} == trial.candidate.params
        assert theirs.params["layers"] == len(trial.arch.processing_layers)
        assert nasbot.Architecture.from_json(theirs.user_attrs[NETWORK]) == trial.arch
        assert theirs.duration.total_seconds() == pytest.approx(trial.seconds, abs=1e-3)
    assert set(_STATES) == {state for state in TrialState if state.is_final}
    assert to_optuna("ours").best_value == 0.25  # by its name


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "nasbot.integrations.optuna")
    with pytest.raises(nasbot.OptionError, match=r"pip install 'nasbot\[optuna\]'"):
        __import__("nasbot.integrations.optuna")
