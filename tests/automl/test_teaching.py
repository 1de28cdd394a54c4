"""Trees as teachers: what they say of rows that they have not seen, and who learns it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.tree import ExtraTreeClassifier
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_limits

import nasbot
from nasbot import Layer
from nasbot._rng import Role, derived_seed
from nasbot.architecture import chain
from nasbot.automl import lengths, refits, searching, teaching
from nasbot.automl.calibration import Calibration, calibrated
from nasbot.automl.card import model_card
from nasbot.automl.files import DATA
from nasbot.automl.members import learned_from_trees, members_of
from nasbot.automl.removing import remove_study
from nasbot.automl.summary import record_of
from nasbot.automl.teaching import (
    ROUNDS,
    Teacher,
    affordable_teacher,
    can_teach,
    lessons_for,
    what_boosting_says,
    what_extra_trees_say,
)
from nasbot.candidate import Candidate
from nasbot.data.dataset import dataset_of, named_dataset
from nasbot.domain import Choice
from nasbot.errors import CodecError, OptionError, StorageError
from nasbot.training.distilling import TREES, targets_of
from nasbot.training.folds import fold_numbers, rows_of_share, with_share
from nasbot.training.loop import train
from nasbot.training.objective import TrainingObjective, trained_as
from nasbot.training.recipes import FAST
from nasbot.training.refitting import RefitObjective, length_of, with_all_rows
from nasbot.trial import Scored
from tests.automl.test_refits import same, weights_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 3))
STEPS = np.floor(2 * X[:, 0]) * np.sign(X[:, 1]) + RNG.normal(size=900)
NOISY = dataset_of(X, STEPS, task="regression", name="steps")
ARCH = chain("mlp-reg", [Layer("relu", 16)])


def said_of(data, rounds=100, loss="squared", seed=0):
    return what_boosting_says(data, rounds, loss=loss, seed=seed)


def changed(data, part, rows, by):
    one = getattr(data, part)
    y = np.array(one.y)
    y[rows] += by
    return replace(data, **{part: replace(one, y=y)})


# -- what they say -----------------------------------------------------------------------------------------------------


def test_each_fold_is_told_by_trees_of_all_others():
    """By hand, with scikit-learn."""
    data, fold = NOISY, fold_numbers(len(NOISY.train), 5)
    expected, valid = np.zeros(len(data.train)), []
    for i in range(5):
        model = HistGradientBoostingRegressor(
            max_iter=200, learning_rate=0.12, early_stopping=True, validation_fraction=0.15, random_state=3
        ).fit(data.train.X[fold != i], data.train.y[fold != i, 0])
        expected[fold == i] = model.predict(data.train.X[fold == i])
        valid.append(model.predict(data.valid.X))
    said = said_of(data, rounds=200, seed=3)[:, 0]
    np.testing.assert_allclose(said, [*expected, *np.mean(valid, axis=0)], rtol=1e-5, atol=1e-6)


def test_nothing_said_of_a_row_knows_its_truth():
    n, fold = len(NOISY.train), fold_numbers(len(NOISY.train), 5)
    before = said_of(NOISY)
    rows = np.flatnonzero(fold == 2)
    after = said_of(changed(NOISY, "train", rows, 100.0))
    np.testing.assert_array_equal(before[rows], after[rows])
    assert np.abs(before[:n][fold != 2] - after[:n][fold != 2]).mean() > 1  # the others learn from these
    for part in ("valid", "test"):
        np.testing.assert_array_equal(before, said_of(changed(NOISY, part, slice(None), 100.0)))


def test_folds_are_told_beside_each_other_by_one_thread_each(monkeypatch):
    """A limit on OpenMP's threads holds for the thread that sets it alone."""
    seen = []

    def fitted(model, data, rows):
        seen.append(_openmp_effective_n_threads())
        return SimpleNamespace(predict=lambda X: np.zeros(len(X)))

    monkeypatch.setattr(teaching, "_fitted", fitted)
    with threadpool_limits(2, user_api="openmp"):
        said_of(NOISY)
    assert seen == [1] * 5


def test_classes_are_told_by_probabilities_of_all():
    data = named_dataset("digits")
    said = said_of(data)
    assert said.shape == (len(data.train) + len(data.valid), 10)
    np.testing.assert_allclose(said.sum(axis=1), 1.0, atol=1e-5)
    assert (said.argmax(axis=1) == np.concatenate([data.train.y, data.valid.y])).mean() > 0.9
    fold = fold_numbers(len(data.train), 5, data.train.y)
    model = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.24, early_stopping=True, validation_fraction=0.15, random_state=0
    ).fit(data.train.X[fold != 4], data.train.y[fold != 4])
    np.testing.assert_allclose(
        said[: len(data.train)][fold == 4], model.predict_proba(data.train.X[fold == 4]), rtol=1e-5, atol=1e-7
    )


def test_of_a_row_only_those_of_the_extra_trees_speak_that_did_not_draw_it():
    """By hand, tree by tree; and trees that draw a row know its truth."""
    data, trees = named_dataset("digits"), 30
    told, n = what_extra_trees_say(data, trees, seed=2), len(data.train)
    row, votes, valid = 5, [], []
    for i in range(trees):
        drawn = np.bincount(np.random.default_rng([2, i]).integers(n, size=n), minlength=n)
        tree = ExtraTreeClassifier(max_features="sqrt", random_state=i)
        tree.fit(data.train.X, data.train.y, sample_weight=drawn)
        said = tree.predict_proba(data.train.X)
        assert (said.argmax(axis=1) == data.train.y)[drawn > 0].all()
        votes += [] if drawn[row] else [said[row]]
        valid.append(tree.predict_proba(data.valid.X))
    assert 5 < len(votes) < 20
    np.testing.assert_allclose(told[row], np.mean(votes, axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(told[n:], np.mean(valid, axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(told.sum(axis=1), 1.0, atol=1e-5)
    assert 0.8 < (told[:n].argmax(axis=1) == data.train.y).mean() < 1.0


def test_extra_trees_hear_nothing_of_validation():
    data = dataset_of(X, (STEPS > 0).astype(int), task="classification")
    flipped = replace(data, valid=replace(data.valid, y=1 - data.valid.y))
    np.testing.assert_array_equal(what_extra_trees_say(flipped, 20, seed=0), what_extra_trees_say(data, 20, seed=0))


def test_who_was_drawn_by_all_trees_is_told_as_much_of_each_class():
    data = named_dataset("digits")
    n = len(data.train)
    drawn = np.random.default_rng([0, 0]).integers(n, size=n)
    told = what_extra_trees_say(data, 1, seed=0)
    np.testing.assert_array_equal(told[np.unique(drawn)], np.float32(0.1))


def test_weights_of_rows_and_absolute_errors_count():
    weights = np.where(STEPS > 0, 5.0, 0.1)
    weighted = dataset_of(X, STEPS, sample_weight=weights, task="regression")
    assert said_of(weighted).mean() > said_of(NOISY).mean() + 0.1
    skewed = dataset_of(X, np.exp(STEPS), task="regression")
    assert said_of(skewed, loss="absolute").mean() < said_of(skewed).mean() - 0.05  # the median, not the mean


def test_whom_they_can_teach():
    assert can_teach(NOISY, 1)
    assert not can_teach(NOISY, 5)  # all rows judge
    assert not can_teach(dataset_of(X, np.stack([STEPS, STEPS], axis=1), task="regression"), 1)
    images = load_digits()
    assert not can_teach(dataset_of(images.images.astype(np.float32), images.target), 1)
    for n, teaches in ((teaching.LEAST_OF_A_CLASS, True), (teaching.LEAST_OF_A_CLASS - 1, False)):
        y = np.concatenate([np.zeros(100), np.ones(n), [0, 1]]).astype(int)
        indices = [np.arange(100 + n), [100 + n, 101 + n], []]
        assert can_teach(dataset_of(X[: len(y)], y, indices=indices, task="classification"), 1) == teaches


# -- for how long they grow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a_round", "rounds"), [(0.0, 400), (0.0024, 400), (0.0026, 200), (0.0097, 100), (0.0101, None), (9.0, None)]
)
def test_as_many_rounds_as_fit_into_their_share_of_the_budget(monkeypatch, a_round, rounds):
    """On two cores five folds take as long as 2.4 fits of all rows, and half of the rounds are expected."""
    clock = [0.0]

    def fitted(model, data, rows):
        assert len(rows) == len(data.train)
        clock[0] += 0.1 + a_round * model.max_iter

    monkeypatch.setattr(teaching, "_fitted", fitted)
    monkeypatch.setattr(teaching.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(teaching, "n_cores", lambda: 2)
    timing = 3 * 0.1 + 8 * a_round
    budget = (2.4 * (0.1 + 200 * 0.0025) + timing) / teaching.SHARE
    assert budget < teaching.MOST_SECONDS / teaching.SHARE or a_round > 1
    teacher = None if rounds is None else Teacher(rounds=rounds)
    assert affordable_teacher(NOISY, budget, loss="squared", seed=0) == teacher


@pytest.mark.parametrize(("slow", "timed"), [(1, [1]), (2, [1, 1]), (3, [1, 1, 6])])
def test_a_crowded_machine_is_not_timed_for_longer_than_the_share(monkeypatch, slow, timed):
    """From the ``slow``-th fit on each takes as long as all that trees may take."""
    clock, fits = [0.0], []

    def fitted(model, data, rows):
        fits.append(model.max_iter)
        clock[0] += 8.0 if len(fits) >= slow else 0.0

    monkeypatch.setattr(teaching, "_fitted", fitted)
    monkeypatch.setattr(teaching.time, "monotonic", lambda: clock[0])
    assert affordable_teacher(NOISY, 100.0, loss="squared", seed=0) is None
    assert fits == timed


@pytest.mark.parametrize(
    ("a_tree", "trees"), [(0.0, 200), (0.014, 200), (0.016, 100), (0.05, 50), (0.1, None), (9.0, None)]
)
def test_extra_trees_teach_classes_where_boosting_takes_too_long(monkeypatch, a_tree, trees):
    """Timing boosting takes three of eight seconds here, and says that there is no time for it."""
    clock = [0.0]

    def fitted(model, data, rows):
        clock[0] += 0.0 if model.max_iter == 1 else 3.0

    def said(data, trees, *, seed):
        clock[0] += trees * a_tree

    monkeypatch.setattr(teaching, "_fitted", fitted)
    monkeypatch.setattr(teaching, "what_extra_trees_say", said)
    monkeypatch.setattr(teaching.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(teaching, "n_cores", lambda: 2)
    left = 3.2  # for six trees that are timed, and all
    budget = (3.0 + left) / teaching.SHARE
    found = affordable_teacher(named_dataset("digits"), budget, loss="squared", seed=0)
    assert found == (None if trees is None else Teacher(trees=trees))
    assert trees is None or trees * a_tree <= left - 6 * a_tree
    weighted = dataset_of(X, (STEPS > 0).astype(int), sample_weight=np.abs(STEPS) + 1, task="classification")
    for numbers_or_weights in (NOISY, weighted):
        assert affordable_teacher(numbers_or_weights, budget, loss="squared", seed=0) is None


def test_no_rounds_without_a_budget_in_time():
    assert affordable_teacher(NOISY, None, loss="squared", seed=0) is None
    assert affordable_teacher(NOISY, 19.9, loss="squared", seed=0) is None


def lessons(begun_with=None, budget=None, *, folds=1, is_named=False, **options):
    given = {"folds": folds, "is_named": is_named, "loss": "squared", "seed": 0, **options}
    return lessons_for(NOISY, budget, begun_with, **given)


@pytest.mark.parametrize(("slow", "is_named", "folds"), [(1.0, False, 5), (9.0, False, 3), (9.0, True, 5)])
def test_trees_that_take_much_longer_than_they_were_timed_at_are_given_up(monkeypatch, slow, is_named, folds):
    """They have 8 s; those of a fold take ``slow``, where three fits to time them took 0.3 together."""
    clock, fits = [0.0], []

    def fitted(model, data, rows):
        fits.append(model.max_iter)
        clock[0] += 0.1 if len(fits) <= 3 else slow
        return SimpleNamespace(predict=lambda X: np.zeros(len(X)))

    monkeypatch.setattr(teaching, "_fitted", fitted)
    monkeypatch.setattr(teaching.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(teaching, "n_cores", lambda: 1)
    found = lessons(budget=100.0, is_named=is_named)
    assert (found is not None) == (folds == 5)
    assert len(fits) == 3 + folds


def test_no_extra_tree_is_begun_after_the_end():
    with pytest.raises(TimeoutError):
        Teacher(trees=50).say(named_dataset("digits"), loss="log", seed=0, end=teaching.time.monotonic())


def test_who_asks_for_them_by_name_waits_for_them():
    assert lessons() is None
    assert lessons(is_named=True).teacher == Teacher(rounds=ROUNDS[-1])
    assert lessons(is_named=True, folds=5) is None


def test_a_study_that_goes_on_has_the_trees_it_began_with():
    first = lessons(is_named=True)
    again = lessons(first.to_dict())
    assert again.teacher == first.teacher
    np.testing.assert_array_equal(again.said, first.said)
    assert lessons({}, is_named=True) is None
    with pytest.raises(StorageError, match="context: trees: expected rounds among"):
        lessons({"trees": {"rounds": 7, "share": 0.6}})
    with pytest.raises(CodecError, match="rounds"):
        lessons({"trees": {"rounds": "many", "share": 0.6}})
    for neither in ({}, {"rounds": 100, "trees": 100}, {"trees": 7}):
        with pytest.raises(StorageError, match="or trees among"):
            lessons({"trees": {**neither, "share": 0.6}})


def test_a_study_of_classes_goes_on_with_the_extra_trees_it_began_with():
    data = named_dataset("digits")
    begun_with = {"trees": {"trees": 50, "share": 0.3}}
    again = lessons_for(data, None, begun_with, folds=1, is_named=False, loss="squared", seed=4)
    assert (again.teacher, again.share) == (Teacher(trees=50), 0.3)
    assert again.to_dict() == begun_with
    np.testing.assert_array_equal(again.said, what_extra_trees_say(data, 50, seed=4))


# -- whether to learn from them ----------------------------------------------------------------------------------------


def best_of(*targets):
    options = {"seconds": 1e9, "most_steps": 900, "least_steps": 20, "tries_full": False, "seed": 0}
    return calibrated(ARCH, NOISY, FAST, targets=targets, **options).best_targets


def test_short_trainings_say_which_targets_are_better_than_the_truth():
    truth = NOISY.train.y
    noiseless = (np.floor(2 * X[:, 0]) * np.sign(X[:, 1]))[:, None]
    target = NOISY.preprocessing.target
    prepared = (noiseless - target.centres) / target.scales
    rows = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in unprepared(NOISY)])
    clean = np.asarray(prepared[rows], dtype=np.float32)
    options = {"seconds": 1e9, "most_steps": 900, "least_steps": 20, "tries_full": True, "seed": 0}
    found = calibrated(ARCH, NOISY, FAST, targets=[-truth, clean], **options)
    for steps, loss in found.losses:  # of all lengths with the best, by hand
        assert loss == train(ARCH, NOISY, FAST.changed(n_steps=steps), seed=0, targets=clean).loss
    assert [steps for steps, _ in found.losses] == [100, 300, 900]
    assert best_of(-truth, clean, (truth + clean) / 2) in (1, 2)
    assert best_of(clean) == 0
    assert best_of(-truth) is None
    assert best_of() is None


def unprepared(data):
    """The rows of the training part as they came."""
    columns = data.preprocessing.inputs.columns
    scales, centres = (np.array([getattr(c, name) for c in columns]) for name in ("scale", "centre"))
    found = data.train.X * scales + centres
    return np.array([X[np.abs(X - row).sum(axis=1).argmin()] for row in found])


# -- searches ----------------------------------------------------------------------------------------------------------

OPTIONS = {
    "budget": 3,
    "workers": 1,
    "recipe": FAST.changed(n_steps=60),
    "tune": "preparation,from_trees",
    "task": "regression",
    "folds": 1,
    "pool": "default",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    place = tmp_path_factory.mktemp("taught") / "taught.sqlite"
    with nasbot.search(X, STEPS, name=place, refit=False, **OPTIONS) as found:
        yield found


def test_the_baseline_learns_the_truth_and_the_others_from_trees_too(study):
    shares = [trial.candidate.params["from_trees"] for trial in study.history.completed]
    assert shares[0] == 0.0
    assert shares[1] == 0.6
    domain = study.searcher.domain.params["from_trees"]
    assert (domain.values, domain.ordered, domain.default) == ((0.0, 0.3, 0.6), True, 0.6)


def test_a_taught_network_is_one_trained_by_hand_on_the_mean_of_truth_and_trees(study):
    trial, data = study.history[1], study.dataset
    truth, said = data.train.y, said_of(data)[: len(data.train)]
    recipe, prepared = trained_as(study.recipe, data, {"preparation": trial.candidate.params["preparation"]})
    targets = np.float32(0.4) * truth + np.float32(0.6) * np.clip(said, truth.min(), truth.max())
    seed = derived_seed(0, 1, Role.OBJECTIVE)
    by_hand = train(trial.arch, prepared, recipe, seed=seed, targets=targets)
    assert by_hand.loss == pytest.approx(study.history[1].outcome.value, rel=1e-4)
    plain = train(trial.arch, prepared, recipe, seed=seed)
    assert plain.loss != pytest.approx(by_hand.loss, rel=1e-3)


def test_a_network_trained_anew_learns_what_its_trial_did(study):
    again = study.found(study.history[1]).fit(seed=derived_seed(0, 1, Role.OBJECTIVE))
    assert same(weights_of(again), weights_of(study.found(study.history[1]).model()))
    rows = study.found(study.history[1]).fit(X, STEPS, seed=1)  # others' truth: trees have said nothing of them
    assert not same(weights_of(again), weights_of(rows))


def test_refits_learn_all_rows_as_their_trials_did(study):
    data = study.dataset
    objective = RefitObjective(TrainingObjective(study.files / DATA, study.recipe), study.files / DATA, "nowhere", {})
    every, said = np.concatenate([data.train.y, data.valid.y]), said_of(data)
    own = objective.targets_of(data, {"from_trees": 0.6})
    np.testing.assert_allclose(own, 0.4 * every + 0.6 * np.clip(said, every.min(), every.max()), rtol=1e-4, atol=1e-5)
    assert objective.targets_of(data, {"from_trees": 0.0}) is None
    both = replace(objective, lesson=(np.zeros_like(every), 0.5))  # an ensemble, which knows what trees told it
    for from_trees, left in ((0.6, 0.4), (0.3, 0.5), (0.0, 0.5)):
        np.testing.assert_allclose(
            both.targets_of(data, {"from_trees": from_trees}), left * every, rtol=1e-5, atol=1e-6
        )


def test_who_learned_much_from_trees_is_not_refitted_for_longer():
    """Which got better to its end because of them."""
    details = {"steps": 100, "best_step": 100, "stopped": "steps"}
    trials = []
    for number, from_trees in enumerate((0.0, 0.3, 0.6)):
        candidate = Candidate(ARCH, {"from_trees": from_trees})
        done = {"outcome": Scored(0.1, details), "started": 0.0, "finished": 1.0, "rank": number}
        trials.append(nasbot.Trial(number=number, candidate=candidate, **done))
    base = TrainingObjective("nowhere", FAST.changed(n_steps=100))

    def steps(share, longer=2.0):
        found = refits._refits(range(3), lambda n: refits._as_its_trial(trials[n], NOISY, base), longer, share)
        return [refit.length.steps for refit in found]

    assert steps(0.5) == [200, 200, 100]
    assert steps(0.2) == [200, 100, 100]
    assert steps(0.5, longer=1.0) == [100, 100, 100]


def test_a_refit_of_a_taught_trial_is_that_training(study):
    trial, data = study.history[1], study.dataset
    base = TrainingObjective(study.files / DATA, study.recipe)
    length = length_of(trial, data, base)
    objective = RefitObjective(base, study.files / DATA, study.files / "weights", {1: length})
    seed = derived_seed(0, 1, Role.OBJECTIVE)

    class Live:
        number, fidelity, params = 1, 1.0, trial.candidate.params

    Live.seed = seed
    done = objective(trial.arch, trial.candidate.params, Live())
    recipe, prepared = trained_as(study.recipe.changed(n_steps=round(60 * 0.8 / 0.6)), data, trial.candidate.params)
    targets = targets_of(data, study.files / DATA, 0.6, all_rows=True)
    by_hand = train(
        trial.arch, with_all_rows(prepared), recipe, seed=seed, stop_after=length.stop_after, targets=targets
    )
    assert done.value == by_hand.loss


def test_who_learned_from_trees_is_said(study):
    pool = [Candidate(ARCH, {"from_trees": share}) for share in (0.3, 0.6)]
    with nasbot.search(X, STEPS, name=None, **{**OPTIONS, "tune": "from_trees", "pool": pool, "budget": 2}) as found:
        shares = learned_from_trees(found)
        assert shares == {
            n: (0.3, 0.6)[n] for n in dict.fromkeys((*members_of(found).trials, found.history.best.number))
        }
        said = ", ".join(f"{n} ({share:.0%})" for n, share in shares.items())
        assert f"learned from trees too, which are no part of the model: trials {said}" in found.summary()
        assert record_of(found)["from_trees"] == {str(n): share for n, share in shares.items()}
        assert "some networks learned a part of what trees say" in model_card(found, name="m", form="code")
    assert all(study.history[n].candidate.params["from_trees"] for n in learned_from_trees(study))


def test_a_share_of_the_rows_learns_its_own_targets(study):
    trial = study.history[1]
    base = TrainingObjective(study.files / DATA, study.recipe, fidelity_of="rows")

    class Live:
        number, seed, fidelity, params = 5, 7, 1 / 3, trial.candidate.params

        def report(self, step, value):
            pass

    done = base(trial.arch, trial=Live())
    recipe, prepared = trained_as(study.recipe, study.dataset, trial.candidate.params)
    targets = targets_of(study.dataset, study.files / DATA, 0.6)[rows_of_share(study.dataset, 1 / 3)]
    by_hand = train(trial.arch, with_share(prepared, 1 / 3), recipe, seed=7, steps_share=1 / 3, targets=targets)
    assert done.value == by_hand.loss


def test_a_study_goes_on_though_what_the_trees_said_was_lost(study):
    path, kept = study.files / DATA / TREES, (study.files / DATA / TREES).read_bytes()
    path.unlink()
    with nasbot.search(
        X, STEPS, name=study.files.parent / "taught.sqlite", refit=False, **{**OPTIONS, "budget": 4}
    ) as more:
        assert len(more.history.completed) == 4
        assert "from_trees" in more.history[3].candidate.params
    assert path.read_bytes() == kept


def test_what_the_trees_said_is_not_asked_again(study, monkeypatch):
    monkeypatch.setattr(teaching, "what_boosting_says", None)
    again = lessons(study.context, folder=study.files / DATA)
    np.testing.assert_array_equal(again.said, said_of(study.dataset))
    assert (again.teacher, again.share) == (Teacher(rounds=100), 0.6)


def test_a_deleted_study_leaves_nothing(tmp_path):
    with nasbot.search(X, STEPS, name=tmp_path / "a.sqlite", **{**OPTIONS, "budget": 1}) as found:
        assert (found.files / DATA / TREES).is_file()
    assert remove_study(tmp_path / "a.sqlite").left == ()


def test_who_cannot_be_taught_is_told(tmp_path):
    with pytest.raises(OptionError, match=r"tune: expected auto, none, or some of .*; got 'from_trees'"):
        nasbot.search(X, STEPS, name=None, **{**OPTIONS, "folds": 5})
    with pytest.raises(OptionError, match=r"tune: from_trees may be 1\.5, which training refuses"):
        nasbot.search(X, STEPS, name=None, **{**OPTIONS, "tune": {"from_trees": Choice(0.0, 1.5)}})


@pytest.mark.parametrize(("best", "share"), [(0, 0.3), (1, 0.6), (None, None)])
def test_auto_offers_trees_where_a_short_training_gained(monkeypatch, best, share):
    """The clock and the calibration are stand-ins; the rest is a search."""
    asked = []

    def settled(*arguments, targets, **options):
        asked.append(targets)
        return Calibration(60, 1e-4, (), 0.0, best)

    monkeypatch.setattr(teaching, "affordable_teacher", lambda *arguments, **options: Teacher(rounds=100))
    monkeypatch.setattr(lengths, "calibrated", settled)
    options = {**OPTIONS, "tune": "auto", "budget": "3s", "recipe": "fast", "yardstick": False, "refit": False}
    with nasbot.search(X, STEPS, name=None, **options) as found:
        params = found.searcher.domain.params
        assert (params["from_trees"].default if "from_trees" in params else None) == share
        assert found.context.get("trees") == (None if share is None else {"rounds": 100, "share": share})
        assert (found.files / DATA / TREES).exists() == (share is not None)
        truth, said = found.dataset.train.y, said_of(found.dataset)[: len(found.dataset.train)]
    np.testing.assert_allclose(asked[0], [0.7 * truth + 0.3 * said, 0.4 * truth + 0.6 * said], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("gone", "asks"), [(5.9, True), (6.1, False)])
def test_auto_asks_no_trees_where_getting_ready_took_long(monkeypatch, gone, asks):
    """Of a budget of 20 s the yardstick has taken so many; those asked for by name are grown all the same."""
    passed, asked = [0.0], []

    class Begins(Exception):
        pass

    def taken(*arguments, **options):
        passed[0] += gone

    def begins(prepared):
        raise Begins

    monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: passed[0]))
    monkeypatch.setattr(searching, "measured_trees", taken)
    monkeypatch.setattr(searching, "lessons_for", lambda *arguments, **options: asked.append(options["is_named"]))
    for tune in ("auto", "from_trees"):
        with pytest.raises(Begins):
            nasbot.search(X, STEPS, name=None, **{**OPTIONS, "tune": tune, "budget": "20s"}, on_start=begins)
    assert asked == ([False, True] if asks else [True])


def test_a_searcher_of_ones_own_may_ask_for_them():
    searcher = nasbot.RandomSearch(
        space=nasbot.SearchSpace("mlp-reg"),
        params={"from_trees": Choice(0.0, 0.5)},
        pool=(Candidate(ARCH, {"from_trees": 0.5}),),
    )
    options = {name: value for name, value in OPTIONS.items() if name not in ("tune", "pool")}
    with nasbot.search(X, STEPS, name=None, searcher=searcher, refit=False, **options) as found:
        assert len(found.history.completed) == 3
        assert (found.files / DATA / TREES).is_file()


def test_a_pool_of_ones_own_learns_as_it_says():
    pool = [Candidate(ARCH, {"from_trees": 0.3})]
    with nasbot.search(X, STEPS, name=None, **{**OPTIONS, "tune": "from_trees", "pool": pool, "budget": 1}) as found:
        assert found.history[0].candidate.params == {"from_trees": 0.3}
