"""``nasbot.search``: from data to a model, in memory and on disk, resumed and refused."""

import logging
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits, load_wine

import nasbot
from nasbot import Layer, LocalExecutor, RandomSearch, SearchSpace
from nasbot.architecture import chain
from nasbot.automl import FoundStudy, FoundTrial, lengths, searching
from nasbot.automl.calibration import Calibration
from nasbot.automl.files import WEIGHTS, files_of
from nasbot.automl.going_on import default_name
from nasbot.automl.summary import record_of
from nasbot.data.dataset import dataset_of, named_dataset, read_dataset
from nasbot.domain import Float
from nasbot.errors import FileError, OptionError, StorageError, StudyError
from nasbot.execution import SerialExecutor
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT
from nasbot.training import fitting
from nasbot.training.recipes import FAST
from nasbot.trial import FINAL, POOL

SHORT = FAST.changed(n_steps=30)
QUICK = {"workers": 1, "recipe": SHORT}
SMALL = [chain("mlp-class", [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
NUMBERS = [chain("mlp-reg", [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
OTHERS = [chain("mlp-class", [Layer(label, 8)]) for label in ("relu", "tanh", "elu")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def test_from_data_to_a_model_and_on(wine, elsewhere):
    X, y = wine
    study = nasbot.search(X, y, budget=2, name="wine", **QUICK)
    assert isinstance(study, FoundStudy)
    assert len(study.history.finished) == 2
    best = study.best
    assert isinstance(best, FoundTrial)
    assert best.value == study.history.best.value
    best.draw("best.svg")
    assert (elsewhere / "best.svg").stat().st_size > 1000
    assert set(best.predict(X)) <= set(y)
    assert "best network: trial" in study.summary()
    assert study.metrics()

    model = best.fit(X, y, seconds=2)
    assert isinstance(model, torch.nn.Module)
    inputs = torch.from_numpy(study.preprocessing.X(X))
    classes = study.preprocessing.restored(model(inputs).detach().numpy())
    assert (classes == y.to_numpy()).mean() > 0.5

    longer = nasbot.search(X, y, budget=3, name="wine", **QUICK)
    assert len(longer.history.finished) == 3
    assert FoundStudy.open("wine").best_value == longer.best_value
    with pytest.raises(StudyError, match="other data"):
        nasbot.search(X.iloc[::-1], y, budget=3, name="wine", **QUICK)


def test_a_search_that_keeps_nothing(wine, elsewhere):
    study = nasbot.search(*wine, budget=1, name=None, **QUICK)
    assert study.best is not None
    assert study.best.fit(seconds=1) is not None
    assert not (elsewhere / "studies").exists()


def test_what_is_recommended_is_named(wine, monkeypatch):
    study = nasbot.search(*wine, budget=3, name="wine", **QUICK)
    other = next(trial for trial in study.history.completed if trial.number != study.best.number)
    monkeypatch.setattr(type(study.searcher), "recommend", lambda self, history, *, rng: history[other.number])
    assert isinstance(study.recommend(), FoundTrial)
    assert study.recommend().number == other.number
    assert study.model(single=True).details["trials"] == [study.best.number]
    assert record_of(study)["recommended_trial"] == other.number


def test_without_its_searcher_a_study_recommends_its_best(wine, monkeypatch):
    def refused(*everything):
        raise StudyError("the searcher of this study cannot be made again")

    nasbot.search(*wine, budget=2, name="wine", **QUICK)
    monkeypatch.setattr("nasbot.study.rebuilding.searcher_of_study", refused)
    with FoundStudy.open("wine") as study:
        assert study.recommend().number == study.best.number


def test_the_same_seed_finds_the_same(wine):
    values = [nasbot.search(*wine, budget=5, name=None, seed=5, **QUICK).best_value for _ in range(2)]
    assert values[0] == values[1]


def test_names_are_made_from_the_data(wine, elsewhere):
    data = dataset_of(*wine)
    assert default_name(data, 0) == f"data-{data.fingerprint[:8]}"
    assert default_name(dataset_of(*wine, seed=3), 3).endswith("-seed3")
    assert default_name(named_dataset("wine"), 0) == "wine"
    nasbot.search(named_dataset("wine"), budget=1, **QUICK)
    assert (elsewhere / "studies" / "wine.sqlite").exists()


@pytest.mark.parametrize(
    ("file", "target", "name"),
    [
        ("customers.csv", "churned", "customers-churned"),
        ("customers.csv", ["ash", "hue"], "customers-ash-hue"),
        ("customers.csv", "y", "customers"),  # what a target without a name is called
        ("arrays.npz", None, "arrays"),
        ("arrays.npz", "y", "arrays"),
        ("arrays.npz", "z", "arrays-z"),
    ],
)
def test_files_are_named_after_their_target_too(wine, elsewhere, file, target, name):
    X, y = wine
    table = X[["ash", "hue", "alcohol"]]
    table.assign(churned=y, y=y).to_csv("customers.csv", index=False)
    np.savez("arrays.npz", X=table, y=y, z=y[::-1])
    data = read_dataset(file, target, seed=2)
    assert (default_name(data, 0), default_name(data, 2)) == (name, f"{name}-seed2")
    study = nasbot.search(file, target, budget=1, searcher="random", **QUICK)
    assert study.files.name == f"{name}.files"


@pytest.mark.parametrize("before", ["customers", "customers-y"])  # by Python, by the shell
def test_a_study_under_an_earlier_default_name_goes_on(wine, elsewhere, before):
    table, begun = wine[0].assign(y=wine[1]), {"searcher": "random", **QUICK}
    table.to_csv("customers.csv", index=False)
    table.rename(columns={"y": "grape"}).to_csv("grapes.csv", index=False)
    nasbot.search("customers.csv", "y", budget=1, name=before, **begun)
    assert len(nasbot.search("customers.csv", "y", budget=2, **begun).history.finished) == 2
    nasbot.search("grapes.csv", "grape", budget=1, name="grapes", **begun)
    assert len(nasbot.search("grapes.csv", "grape", budget=2, **begun).history.finished) == 2
    assert len(nasbot.search("grapes.csv", "hue", budget=1, **begun).history.finished) == 1, "another target"
    names = sorted(path.name for path in (elsewhere / "studies").glob("*.sqlite"))
    assert names == [f"{before}.sqlite", "grapes-hue.sqlite", "grapes.sqlite"]


def test_what_cannot_be_read_under_an_earlier_name_hinders_nothing(wine, elsewhere):
    wine[0].assign(grape=wine[1]).to_csv("grapes.csv", index=False)
    (elsewhere / "studies").mkdir()
    (elsewhere / "studies" / "grapes.sqlite").write_text("no study")
    nasbot.search("grapes.csv", "grape", budget=1, searcher="random", **QUICK)
    (elsewhere / "studies" / "grapes-grape.sqlite").write_text("no study")
    with pytest.raises(StorageError, match="grapes-grape"):
        nasbot.search("grapes.csv", "grape", budget=1, searcher="random", **QUICK)


# -- going on ----------------------------------------------------------------------------------------------------------


def test_a_study_goes_on_with_the_options_it_was_begun_with_whatever_the_defaults_are_by_now(wine):
    options = {"name": "old", "tune": None, **QUICK}
    space = SearchSpace("mlp-class", input_shape=(13,), n_outputs=3, max_layers=20)
    begun = NASBOT(space=space, distance=Otmann(preset="log-mass"), pool=SMALL)
    nasbot.search(*wine, budget=1, searcher=begun, space=space, **options)
    seen = []
    again = nasbot.search(*wine, budget=2, space=space, pool=SMALL, on_start=seen.append, **options)
    assert (seen[0].is_resumed, seen[0].searcher.distance) == (True, begun.distance)
    assert len(again.history.finished) == 2
    other = replace(begun, distance=Otmann(structural_weights=(0.3,)))
    with pytest.raises(StudyError, match=r"begun with other settings: searcher\.distance.*; resume it with its own"):
        nasbot.search(*wine, budget=3, searcher=other, space=space, **options)


def test_a_study_goes_on_with_its_stored_plan(wine, monkeypatch):
    """The clock is asked once: how long trainings are stays as it was, with another budget and on another machine."""
    data, plans = dataset_of(*wine, name="w"), []
    monkeypatch.setattr(lengths, "calibrated", lambda *a, **k: Calibration(50, 0.01, (), 0.1))
    options = {"workers": 1, "executor": "here", "on_start": lambda prepared: plans.append(prepared.plan)}
    options["folds"] = 1
    study = nasbot.search(data, budget="2s", **options)
    n = len(study.history.completed)
    assert n > 0
    assert study.recipe == FAST.changed(n_steps=50)
    monkeypatch.setattr(lengths, "calibrated", lambda *a, **k: pytest.fail("the study knows it"))
    again = nasbot.search(data, budget=n + 2, **options)
    assert len(again.history.completed) == n + 2
    assert [(plan.n_steps, plan.seconds_per_trial) for plan in plans] == [(50, plans[0].seconds_per_trial)] * 2
    with pytest.raises(StudyError, match="n_steps"):
        nasbot.search(data, budget=n + 3, recipe=FAST.changed(n_steps=7), **options)


def test_a_network_is_trained_again_by_the_recipe_in_the_studys_file(wine, tmp_path, monkeypatch):
    own, taken = FAST.changed(n_steps=7), []
    nasbot.search(*wine, budget=2, recipe=own, name=tmp_path / "seven.sqlite", workers=1, folds=1, refit=False).close()
    train = fitting.train

    def counted(*args, **options):
        trained = train(*args, **options)
        taken.append(trained.steps)
        return trained

    monkeypatch.setattr(fitting, "train", counted)
    with FoundStudy.open(tmp_path / "seven.sqlite") as study:  # all that another process knows
        assert study.recipe == own
        study.best.fit()
    assert taken == [7]


@pytest.mark.parametrize("searcher", ["nasbot", "random"])
def test_compiling_comes_before_the_clock_and_is_not_counted(wine, monkeypatch, searcher):
    """A compilation of an hour leaves a budget of two seconds as it is; who needs no distances compiles nothing."""
    happened, passed = [], [0.0]

    class Compiling:
        def join(self):
            happened.append("compiled")
            passed[0] += 3600.0

    def calibration(*args, **options):
        happened.append("timed")
        return Calibration(50, 0.01, (), 0.1)

    class Begins(Exception):
        pass

    def stop(prepared):
        assert prepared.plan.budget.seconds == 2.0
        assert prepared.plan.search.seconds > 0.5  # LEAST_SECONDS of it are what would be left
        raise Begins

    monkeypatch.setattr(searching, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(searching, "compile_in_background", Compiling)
    monkeypatch.setattr(lengths, "calibrated", calibration)
    monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: passed[0]))
    options = {"workers": 1, "executor": "here", "folds": 1}
    with pytest.raises(Begins):
        nasbot.search(*wine, budget="2s", searcher=searcher, name=None, on_start=stop, **options)
    assert happened == (["compiled", "timed"] if searcher == "nasbot" else ["timed"])


@pytest.mark.parametrize(("budget", "gone", "left"), [(300, 299, 16.0), (300, 200, 100.0), (10, 40, 1.5)])
def test_getting_ready_hardly_makes_a_budget_longer(budget, gone, left):
    """At most 5 % and a second more than was asked for, on however crowded a machine it was."""
    assert searching._without(nasbot.Budget(seconds=budget), gone).seconds == pytest.approx(left)


def test_a_study_remembers_its_seconds_per_trial(wine):
    data, plans = dataset_of(*wine, name="w"), []
    nasbot.search(data, budget=1, seconds_per_trial=1.5, **QUICK)
    nasbot.search(data, budget=2, on_start=lambda prepared: plans.append(prepared.plan), **QUICK)
    assert plans[0].seconds_per_trial == 1.5


def test_a_recipe_with_its_own_length_needs_no_calibration(wine, monkeypatch):
    monkeypatch.setattr(lengths, "calibrated", lambda *a, **k: pytest.fail("the recipe says it"))
    study = nasbot.search(*wine, budget="1s", name=None, **QUICK)
    assert study.recipe == SHORT
    assert {trial.outcome.details["steps"] for trial in study.history.completed} <= set(range(31))


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_pool_then_search_then_finals(wine):
    study = nasbot.search(*wine, budget=8, name=None, pool=SMALL, tune=None, **QUICK)
    chosen = [trial.origin.searcher for trial in study.history]
    assert chosen == [POOL] * 3 + ["NASBOT"] * 3 + [FINAL] * 2
    finals = study.history[6:]
    ranked = sorted(study.history[:6], key=lambda trial: trial.value)
    assert [final.candidate for final in finals] == [trial.candidate for trial in ranked[:2]]
    assert [final.origin.of_trial for final in finals] == [trial.number for trial in ranked[:2]]
    assert finals[0].value != ranked[0].value, "another seed"


def test_a_target_with_a_long_tail_is_trained_as_a_rate(elsewhere, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(1.5 * X[:, 0])).astype(float)
    options = {**QUICK, "recipe": "fast", "folds": 1, "pool": NUMBERS}
    study = nasbot.search(X, y, budget=3, name="rates", **options)
    assert study.recipe.vectors.loss == "poisson"
    assert {trial.candidate.params["loss"] for trial in study.history} <= {"poisson", "squared"}
    assert study.model().predict(X).min() >= 0
    assert len(nasbot.search(X, y, budget=4, name="rates", **options).history.completed) == 4, "it goes on"
    plain = nasbot.search(X, y, budget=2, name="plain", **{**options, "recipe": FAST.changed(loss="squared")})
    assert plain.recipe.vectors.loss == "squared"
    assert all("loss" not in trial.candidate.params for trial in plain.history)


@pytest.mark.parametrize(("asks", "augmentation"), [("how high", "flips"), ("how far left", "none")])
def test_images_are_mirrored_in_training_where_that_changes_nothing(elsewhere, asks, augmentation):
    rng = np.random.default_rng(1)
    images = 0.3 * rng.normal(size=(200, 1, 8, 8)).astype("float32")
    places = rng.integers(0, 6, size=(200, 2))
    for image, (row, column) in zip(images, places, strict=True):
        image[0, row : row + 3, column : column + 3] += 2
    y = places[:, 0 if asks == "how high" else 1] > 2
    options = {**QUICK, "recipe": "fast", "pool": [chain("cnn", [Layer("conv3", 8, 1), Layer("conv3", 8, 2)])]}
    study = nasbot.search(images, y, budget=1, name="places", **options)
    assert study.recipe.images.augmentation == augmentation
    assert study.history[0].candidate.params["augmentation"] == augmentation
    again = nasbot.search(images, y, budget=2, name="places", **options)
    assert len(again.history.completed) == 2, "it goes on as it began"
    assert again.recipe == study.recipe


def test_networks_of_the_pool_that_wait_come_before_finals(wine):
    study = nasbot.search(*wine, budget=3, name=None, pool=SMALL, tune=None, **QUICK)
    assert [trial.origin.searcher for trial in study.history] == [POOL] * 3
    study = nasbot.search(*wine, budget=4, name=None, pool=[*SMALL, *OTHERS], tune=None, **QUICK)
    assert [trial.origin.searcher for trial in study.history.completed] == [POOL] * 4
    assert all(trial.origin.searcher == POOL for trial in study.history)


@pytest.mark.parametrize("load", [load_diabetes, load_digits])
@pytest.mark.parametrize("seconds", [3, 6])
def test_a_time_budget_is_kept(load, seconds, elsewhere):
    X, y = load(return_X_y=True)
    nasbot.search(X, y, budget=8, name=None, **QUICK)  # loads what the first decision needs
    begun = time.monotonic()
    study = nasbot.search(X, y, budget=f"{seconds}s", name=None)
    took = time.monotonic() - begun
    assert took <= 1.05 * seconds + 2 + LOADED, "the budget is passed"
    assert study.model().predict(X[:5]).shape == (5,)
    assert study.history[0].origin.searcher == POOL


LOADED = 2.0  # more seconds where others use the machine's cores


def test_what_is_cut_short_counts(wine, monkeypatch):
    """Trials that no time was left for are not given the same time again for finals."""
    X, y = wine
    begun = time.monotonic()
    study = nasbot.search(X, y, budget="2s", name=None, executor=Stuck())
    assert time.monotonic() - begun < 3.9 + LOADED
    assert not study.history.finished


def test_a_search_that_has_nothing_yet_goes_on_instead_of_refits(wine):
    """Processes may be slow to begin on a busy machine: what was cut short is begun once more."""
    study = nasbot.search(*wine, budget="6s", name=None, executor=SlowToBegin())
    assert study.history.completed
    assert study.history[0].attempts == 2


class SlowToBegin(SerialExecutor):
    """An executor whose first training never ends."""

    has_been_cancelled = False

    def wait(self, timeout=None):
        if self._job is None or self.has_been_cancelled:
            return super().wait(timeout)
        time.sleep(0.5 if timeout is None else timeout)
        return []

    def cancel(self, number):
        self.has_been_cancelled = True
        super().cancel(number)


class Stuck(SerialExecutor):
    """An executor whose trainings never end."""

    def wait(self, timeout=None):
        if self._job is None:
            return super().wait(timeout)
        time.sleep(0.5 if timeout is None else timeout)
        return []


def test_objects_are_taken_as_they_are(wine):
    space = SearchSpace("mlp-class", input_shape=(13,), n_outputs=3, max_layers=8)
    searcher = RandomSearch(space=space, params={"dropout": Float(0.0, 0.3)}, pool=SMALL[:1])
    executor = LocalExecutor(1)
    study = nasbot.search(
        *wine,
        budget=nasbot.Budget(trials=2),
        space=space,
        searcher=searcher,
        tune={"dropout": Float(0.0, 0.3)},
        recipe=SHORT,
        executor=executor,
        name=None,
    )
    assert study.searcher is searcher
    assert study.runs[-1].workers == 1
    assert {tuple(trial.candidate.params) for trial in study.history} == {("dropout",)}


def test_every_word_for_a_searcher(wine):
    for word, name in {"random": "RAND", "evolution": "EA", "treebo": "TreeBO"}.items():
        study = nasbot.search(*wine, budget=1, name=None, searcher=word, **QUICK)
        assert study.searcher.name == name


def test_the_papers_pool(wine):
    plain, paper = (
        nasbot.search(*wine, budget=1, name=None, pool=pool, **QUICK).searcher.initial_pool()
        for pool in ("default", "paper")
    )
    assert not set(plain) & set(paper)


# -- forks -------------------------------------------------------------------------------------------------------------


def test_a_fork_begins_with_the_completed_trials_and_their_weights(wine, elsewhere):
    old = nasbot.search(*wine, budget=3, name="old", searcher="random", **QUICK)
    forked = nasbot.search(*wine, budget=4, name="old", searcher="evolution", fork="new", **QUICK)
    assert [t.value for t in forked.history.completed[:3]] == [t.value for t in old.history.completed]
    np.testing.assert_array_equal(forked.found(0).predict(wine[0]), old.found(0).predict(wine[0]))
    assert forked.ensemble() is not None
    names = {path.name for path in (files_of(elsewhere / "studies" / "new.sqlite") / WEIGHTS).iterdir()}
    assert f"trial-{forked.best.number}.safetensors" in names
    seen = []
    nasbot.search(*wine, budget=5, name="old", searcher="evolution", fork="new", on_start=seen.append, **QUICK)
    assert seen[0].is_resumed
    with pytest.raises(StudyError, match=r"no study .* to fork"):
        nasbot.search(*wine, budget=1, name="absent", fork="newer", **QUICK)


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "soon"}, "budget"),
        ({"workers": 0}, "workers"),
        ({"workers": True}, "workers"),
        ({"seed": -1}, "seed"),
        ({"recipe": "slow"}, "recipe"),
        ({"searcher": "luck"}, "searcher"),
        ({"seconds_per_trial": 0.0}, "seconds_per_trial"),
        ({"name": "two words"}, "a name has"),
        ({"max_failures": 0}, "max_failures"),
        ({"tune": "luck"}, "tune"),
        ({"tune": 3}, "tune"),
        ({"tune": ("dropout", 3)}, "tune"),
        ({"pool": "large"}, "pool: expected default or paper"),
        ({"executor": "cloud"}, "executor: expected one of"),
        ({"executor": SerialExecutor(), "workers": 2}, "has its own"),
    ],
)
def test_options_that_cannot_be_meant(wine, options, message):
    with pytest.raises(OptionError, match=message):
        nasbot.search(*wine, **options)


def test_a_loss_that_the_target_cannot_have_is_refused_before_anything_is_trained(tmp_path):
    X, y = np.arange(60.0).reshape(30, 2), np.linspace(-1, 1, 30)
    with pytest.raises(OptionError, match="loss: expected a target that is nowhere negative"):
        nasbot.search(X, y, name=tmp_path / "s.sqlite", budget=1, **QUICK | {"recipe": FAST.changed(loss="poisson")})
    assert not (tmp_path / "s.sqlite").exists()


def test_a_dataset_needs_no_options_for_data(wine):
    with pytest.raises(OptionError, match="prepared already"):
        nasbot.search(dataset_of(*wine), task="classification")


def test_another_studys_file_is_not_taken(wine):
    nasbot.maximise(len_of, "mlp-class", name="mine", trials=1)
    with pytest.raises(StudyError, match="another objective"):
        nasbot.search(*wine, name="mine", budget=1)
    with pytest.raises(FileError, match="no such folder"):
        FoundStudy.open("mine")


def len_of(arch):
    return float(len(arch.layers))


def test_images_search_cnns():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(60, 8, 8), dtype=np.uint8)
    labels = np.where(np.arange(60) % 2, "cat", "dog")
    study = nasbot.search(images, labels, budget=1, name=None, **QUICK)
    assert study.best.arch.kind == "cnn"
    assert study.best.predict(images[:3]).tolist() != []


def test_a_budget_too_short_for_one_full_training_is_searched_and_said(wine, monkeypatch, caplog):
    monkeypatch.setattr(lengths, "calibrated", lambda *_, **__: Calibration(100, 1.0, (), 0.0))
    with caplog.at_level(logging.WARNING, logger="nasbot"):
        study = nasbot.search(*wine, budget="3s", name=None, folds=1, workers=1)
    assert ["one full training, which takes about 1e+02 s" in r.getMessage() for r in caplog.records] == [True]
    assert study.best is not None


@pytest.mark.parametrize("fidelity", ["rows", nasbot.Fidelity(1 / 4, 2, of="rows")])
def test_a_search_on_shares_of_the_rows(wine, fidelity):
    plain = (chain("mlp-class", [Layer("relu", 8)]),)
    study = nasbot.search(*wine, budget=6, fidelity=fidelity, pool=plain, name="wine", refit=False, folds=1, **QUICK)
    rungs = nasbot.Fidelity(of="rows").rungs if fidelity == "rows" else fidelity.rungs
    new = [trial for trial in study.history.completed if trial.origin.was_proposed and trial.promoted_from is None]
    assert {trial.fidelity for trial in new} == {rungs[0]}
    steps = {trial.fidelity: trial.outcome.details["steps"] for trial in study.history.completed}
    assert steps[1.0] == 30
    assert steps[rungs[0]] == round(30 * rungs[0])
    finished = len(study.history.finished)
    spent = sum(trial.fidelity for trial in study.history)
    assert finished > 6
    assert sum(trial.origin.searcher == FINAL for trial in study.history) == 1
    assert 4 <= spent <= 9  # about what so many full trainings cost; who is promoted is not planned
    study.close()
    with pytest.raises(StudyError, match=r"fidelity.*stored.*given nothing"):
        nasbot.search(*wine, budget=8, pool=plain, name="wine", refit=False, folds=1, **QUICK)
    with FoundStudy.open("wine") as kept:
        assert len(kept.history.finished) == finished


def test_a_search_in_a_database(wine, database, elsewhere):
    X, y = wine
    where = f"{database}#wine"
    study = nasbot.search(X, y, budget=2, name=where, shared=True, executor="here", recipe=SHORT)
    assert len(study.history.finished) == 2
    study.close()
    more = nasbot.search(X, y, budget=4, name=where, shared=True, executor="here", recipe=SHORT)
    assert len(more.history.finished) == 4
    assert more.files.resolve() == elsewhere / "studies/wine.files"
    assert set(more.model().predict(X)) <= set(y)
    more.close()
    (elsewhere / "studies").rename(elsewhere / "moved")
    with pytest.raises(FileError, match="NASBOT_STUDIES names the folder"):
        FoundStudy.open(where)


def test_a_file_has_one_driver(wine):
    with pytest.raises(OptionError, match="expected the address of a database"):
        nasbot.search(*wine, budget=2, name="wine", shared=True, **QUICK)


def test_values_from_elsewhere_are_learnt_from_and_the_model_is_made_here(wine):
    tune = {"dropout": Float(0.0, 0.4, default=0.0)}
    told = nasbot.Candidate(OTHERS[0], {"dropout": 0.2})
    known = [(told, 1e-6), (OTHERS[1], 2.0), (SMALL[0], 3.0)]  # the last is trained anyway: it is in the pool
    options = {"tune": tune, "pool": SMALL[:2], "known": known, **QUICK}
    study = nasbot.search(*wine, budget=5, name="wine", **options)
    added = [trial for trial in study.history if trial.origin.searcher == "added"]
    assert [(trial.candidate.arch, trial.value) for trial in added] == [(OTHERS[0], 1e-6), (OTHERS[1], 2.0)]
    assert added[1].candidate.params == {"dropout": 0.0}
    assert study.history.best == added[0]
    assert study.best.origin.searcher != "added"
    assert study.best.value == min(t.value for t in study.history.completed if t.origin.searcher != "added")
    assert set(study.model().predict(wine[0])) <= set(wine[1])
    assert f"trial {study.best.number}" in study.summary()
    again = nasbot.search(*wine, budget=5, name="wine", **options)
    assert len(again.history) == len(study.history)
    with pytest.raises(OptionError, match=r"known: entry 0: param dropout: expected a number from 0 to 0\.4"):
        nasbot.search(*wine, name=None, **options | {"known": [(nasbot.Candidate(OTHERS[0], {"dropout": 0.9}), 1.0)]})
    with pytest.raises(OptionError, match="known: entry 0: expected"):
        nasbot.search(*wine, name=None, **options | {"known": [OTHERS[0]]})


def test_the_target_may_be_named_as_such(wine, tmp_path):
    X, y = wine
    table = X.assign(kind=y)
    table.to_csv(tmp_path / "wine.csv", index=False)
    for data in (table, tmp_path / "wine.csv"):
        study = nasbot.search(data, target="kind", budget=1, name=None, **QUICK)
        assert study.best is not None
        assert "predicts kind" in repr(study.model())
        assert len(repr(study.model())) < 120
        assert repr(study.best).startswith(f"<Trial {study.best.number}: completed, ")
    with pytest.raises(OptionError, match="expected one of y and target"):
        nasbot.search(table, "kind", target="kind", budget=1, name=None, **QUICK)


def test_an_option_that_there_is_not_is_named_with_what_is_nearest():
    X = np.arange(60.0).reshape(20, 3)
    with pytest.raises(OptionError, match=r"search: unknown option 'bugdet'; did you mean budget\?"):
        nasbot.search(X, X[:, 0], bugdet=3, name=None)
    with pytest.raises(OptionError, match=r"search: unknown option 'valid'"):
        nasbot.search(X, X[:, 0], valid="other.csv", name=None)
