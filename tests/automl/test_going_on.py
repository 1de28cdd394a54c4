"""Going on with a study: more time, other data, a metric of one's own, beginning anew, and deleting it."""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import nasbot
from nasbot import Fidelity, SearchSpace
from nasbot.automl.finals import final_fidelity, finals_of
from nasbot.automl.found import FoundStudy
from nasbot.automl.judging import as_needed
from nasbot.automl.plan import planned, stretch_of
from nasbot.automl.removing import remove_study
from nasbot.cli import main
from nasbot.data.comparing import differences
from nasbot.data.dataset import dataset_of
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.searchers.knowledge import Stopwatch
from nasbot.study import Budget, Study
from nasbot.training import loop, recipes
from nasbot.training.recipes import FAST, Recipe
from nasbot.training.steps import stepper
from nasbot.trial import FINAL
from tests.automl.test_finals import candidate, history
from tests.study.objectives import score
from tests.study.searchers import Sensitive

QUICK = {"workers": 1, "recipe": FAST.changed(n_steps=20, n_validations=4), "executor": "here"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    return frame.assign(price=2 * frame.a + rng.normal(size=n))


# -- more time ---------------------------------------------------------------------------------------------------------


def test_more_time_makes_trainings_longer():
    first = planned(Budget.of("100s"), 2, n_steps=700, stored=None, seconds=None, most_steps=10**6)
    same = planned(Budget.of("110s"), 2, n_steps=None, stored=first.to_dict(), seconds=None, most_steps=10**6)
    assert (first.stretch, same.stretch) == (1.0, 1.0)
    longer = planned(Budget.of("1h"), 2, n_steps=None, stored=first.to_dict(), seconds=None, most_steps=10**6)
    assert (longer.n_steps, longer.seconds_per_trial) == (first.n_steps, first.seconds_per_trial)
    assert longer.stretch == 6.0  # the square root of 36 times the time
    assert "finals; new trainings are 6 times as long, for there is more time than before" in str(longer)
    assert "finals; these are 6 times" in str(replace(longer, rungs=Fidelity()))
    capped = planned(Budget.of("1h"), 2, n_steps=None, stored=first.to_dict(), seconds=None, most_steps=1400)
    assert capped.stretch == 2.0  # more would teach these rows nothing
    said = planned(Budget.of("1h"), 2, n_steps=None, stored=first.to_dict(), seconds=9.0, most_steps=10**6)
    assert said.stretch == 1.0
    assert stretch_of(None, 700, 30.0, 10**6) == 1.0


def test_long_finals_are_of_the_best_and_given_up_where_they_gain_nothing():
    short = ((0, 0.5), (1, 0.3), (2, 0.4), (3, 0.6))
    known = history(*short)
    assert final_fidelity(known, 3.0) == 3.0
    assert final_fidelity(known, 1.0) == 1.0
    assert finals_of(known, 2, fidelity=3.0) == [candidate(1), candidate(2)]
    assert finals_of(known, 2, longest=2.9, fidelity=3.0) == []  # they took one second each
    assert finals_of(known, 2, longest=3.0, fidelity=3.0) == [candidate(1), candidate(2)]
    again = {"fidelities": (1.0,) * 4 + (3.0,) * 3}
    assert final_fidelity(history(*short, (0, 0.4), (1, 0.2), (2, 0.5), **again), 3.0) == 3.0
    assert final_fidelity(history(*short, (0, 0.6), (1, 0.2), (2, 0.5), **again), 3.0) == 1.0


@pytest.fixture
def tripled(monkeypatch):
    """Time itself is not waited for: what it would say is said."""

    def is_tripled(is_worth_it=True):
        monkeypatch.setattr("nasbot.automl.plan.stretch_of", lambda *_: 3.0)
        monkeypatch.setattr("nasbot.automl.finals.ENOUGH_PAIRS", 99 if is_worth_it else 1)
        if not is_worth_it:
            monkeypatch.setattr("nasbot.automl.finals.statistics.median", lambda _: -1.0)

    return is_tripled


def test_a_study_that_goes_on_with_more_time_has_longer_trainings(tripled):
    nasbot.search(table(), "price", budget=12, name="houses", **QUICK).close()
    tripled()
    with nasbot.search(table(), "price", budget=24, name="houses", **QUICK) as study:
        before, after = study.history[:12], study.history[12:]
        assert {trial.fidelity for trial in before} == {1.0}
        assert {trial.fidelity for trial in after} == {3.0}
        assert all(20 < trial.outcome.details["steps"] <= 60 for trial in after if trial.value is not None)
        first, proposed = after[:3], [trial for trial in after if trial.origin.searcher != FINAL]
        # The best of before come first, so that it is known what a longer training is worth.
        assert [trial.origin.searcher for trial in first] == [FINAL] * 3
        assert {trial.candidate for trial in first} <= {trial.candidate for trial in before}
        assert len(proposed) >= 3
        assert "new trainings are 3 times as long" in study.runs[-1].plan


def test_where_longer_trainings_gain_nothing_new_ones_have_the_old_length(tripled):
    nasbot.search(table(), "price", budget=12, name="houses", **QUICK).close()
    tripled(is_worth_it=False)
    with nasbot.search(table(), "price", budget=24, name="houses", **QUICK) as study:
        proposed = [trial for trial in study.history[15:] if trial.origin.searcher != FINAL]
        assert {trial.fidelity for trial in proposed} == {1.0}


def test_values_of_both_lengths_are_believed_on_one_scale():
    """What a longer training gains is taken off before networks are compared."""
    searcher = nasbot.NASBOT(space=SearchSpace("mlp-reg", input_shape=(2,), n_outputs=1))
    short = ((0, 0.5), (1, 0.3), (2, 0.4), (3, 0.6))
    known = history(*short, (0, 0.25), (1, 0.15), (2, 0.2), fidelities=(1.0,) * 4 + (2.0,) * 3)
    view = searcher._knowledge.view(known, np.random.default_rng(0), Stopwatch())
    values = view.belief.values
    np.testing.assert_allclose(values[:3], values[4:], atol=1e-9)
    assert values[3] == values.min()


def test_a_spent_budget_is_said(capsys):
    table().to_csv("houses.csv", index=False)
    command = ["run", "houses.csv", "--target", "price", "--budget", "2 trials", "--workers", "1", "--executor", "here"]
    assert main(command) == 0
    assert "is spent" not in capsys.readouterr().err
    assert main(command) == 0
    assert "the budget of 2 trials is spent; a larger --budget goes on with the study" in capsys.readouterr().err


# -- other data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t.assign(c=1.5 * t.a - t.b), {}, "columns that were not there: 'c'"),
        (lambda t: t.drop(columns="b"), {}, "columns that are no longer there: 'b'"),
        (lambda t: t.assign(b=t.b.gt(0).map({True: "y", False: "n"})), {}, "taken for something else than before: 'b'"),
        (lambda t: t.iloc[:-10], {}, "there were 150 rows, now 140"),
        (lambda t: t, {"split": (0.5, 0.3, 0.2)}, "divided otherwise: 90, 30, 30 rows .* now 75, 45, 30"),
        (lambda t: t.assign(a=t.a.where(t.index != 3, 9.0)), {}, "rows differ, or the same rows are divided otherwise"),
        (lambda t: t.rename(columns={"price": "cost"}), {}, "the target was 'price', now 'cost'"),
        (lambda t: t, {"sample_weight": np.linspace(1, 2, 150)}, "rows had no weights"),
    ],
)
def test_what_differs_is_said(change, options, message):
    now = change(table())
    nasbot.search(table(), "price", budget=1, name="houses", **QUICK).close()
    with pytest.raises(StudyError, match=f"begun on other data: .*{message}.*--fresh"):
        nasbot.search(now, now.columns[-1] if "cost" in now else "price", budget=1, name="houses", **QUICK, **options)


def test_equal_data_differ_in_nothing():
    assert differences(dataset_of(table(), "price"), dataset_of(table(), "price")) == []


# -- beginning anew, deleting ------------------------------------------------------------------------------------------


def test_fresh_begins_anew():
    nasbot.search(table(), "price", budget=2, name="houses", **QUICK).close()
    with nasbot.search(table(seed=1), "price", budget=1, name="houses", fresh=True, **QUICK) as study:
        assert len(study.history.completed) == 1
    with nasbot.search(table(), "price", budget=1, name="new", fresh=True, **QUICK) as study:
        assert len(study.history.completed) == 1


def test_delete_removes_the_studys_own_files_only(tmp_path, capsys):
    table().to_csv("houses.csv", index=False)
    assert main(["run", "houses.csv", "--target", "price", "--budget", "2 trials", "--executor", "here"]) == 0
    folder = tmp_path / "studies"
    files = folder / "houses-price.files"
    (files / "notes.txt").write_text("mine")
    (files / "data" / "mine.npy").write_text("mine")
    (folder / "houses-price.txt").write_text("mine")
    capsys.readouterr()
    assert main(["delete", "houses-price"]) == 2
    assert "nobody can be asked here; say --yes" in capsys.readouterr().err
    assert main(["delete", "houses-price", "--yes", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        "houses-price.txt",
        "mine.npy",
        "notes.txt",
    ]
    assert len(record["removed"]) >= 10
    assert {path.rpartition("/")[2] for path in record["left"]} == {"data", "mine.npy", "notes.txt"}
    assert main(["delete", "houses-price", "--yes"]) == FileError.exit_code
    assert "no such study" in capsys.readouterr().err


def test_what_is_no_study_or_is_driven_is_not_deleted(tmp_path):
    (tmp_path / "studies").mkdir()
    note = tmp_path / "studies" / "note.sqlite"
    note.write_text("dear diary")
    with pytest.raises(nasbot.NasbotError, match="not a nasbot study"):
        remove_study(note)
    assert note.read_text() == "dear diary"
    with Study.open("toy", Sensitive(), direction="minimise") as study:
        study.optimise(score, 2)
        with pytest.raises(StudyError):
            remove_study(tmp_path / "studies" / "toy.sqlite")
    remove_study(tmp_path / "studies" / "toy.sqlite")
    assert [path.name for path in (tmp_path / "studies").iterdir()] == ["note.sqlite"]
    (tmp_path / "studies" / "toy.sqlite").symlink_to(note)
    with pytest.raises(nasbot.NasbotError):
        remove_study(tmp_path / "studies" / "toy.sqlite")
    assert note.exists()


# -- a metric of one's own ---------------------------------------------------------------------------------------------

OWN = """
import numpy as np
def worst_error(truth, predicted):
    return np.abs(truth - predicted).max()
def hits(truth, predicted, sample_weight=None):
    return np.average(np.abs(truth - predicted)[:, 0] < 1, weights=sample_weight)
hits.higher_is_better = True
def odd(truth, predicted):
    return 1.0
def broken_error(truth, predicted):
    raise ValueError("no")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "ours_metrics.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "ours_metrics", raising=False)


def test_a_function_is_optimised_and_must_be_named_again(own, capsys, monkeypatch):
    with nasbot.search(
        table(), "price", budget=3, metric="ours_metrics:worst_error", name="own", **QUICK, refit=False
    ) as study:
        assert study.direction == "minimise"
        best = study.best_value
        assert study.results().single.validation == pytest.approx(best, rel=1e-5)
        assert "chosen by: ours_metrics:worst_error (lower is better)" in study.summary()
        study.model()
    monkeypatch.delitem(sys.modules, "ours_metrics")
    with FoundStudy.open("own") as study:
        assert study.best_value == best
        assert (study.metric.name, study.metric.sense) == ("ours_metrics:worst_error", "lower is better")
        study.model(single=True)
        with pytest.raises(StudyError, match="named again: metric='ours_metrics:worst_error', or --metric"):
            study.model()
        assert "ours_metrics" not in sys.modules  # a study's file alone imports nothing
    with FoundStudy.open("own", metric="ours_metrics:worst_error") as study:
        study.model()
    with pytest.raises(StudyError, match="judged by ours_metrics:worst_error, not by mae"):
        FoundStudy.open("own", metric="mae")
    with pytest.raises(StudyError, match="begun with metric ours_metrics:worst_error, not validation loss"):
        nasbot.search(table(), "price", budget=3, name="own", **QUICK)
    table().drop(columns="price").to_csv("new.csv", index=False)
    assert main(["predict", "own", "new.csv"]) == StudyError.exit_code
    assert main(["predict", "own", "new.csv", "--metric", "ours_metrics:worst_error", "-o", "out.csv"]) == 0
    assert len(pd.read_csv("out.csv")) == 150


def test_a_function_in_worker_processes_by_its_file_with_weights(own):
    options = {"name": None, "recipe": QUICK["recipe"], "workers": 1, "executor": "local"}
    weights = np.linspace(1, 2, 150)
    with nasbot.search(
        table(), "price", budget=2, metric="ours_metrics.py:hits", sample_weight=weights, **options
    ) as study:
        assert study.direction == "maximise"
        assert 0 < study.best_value <= 1


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("ours_metrics:odd", r"is a high or a low odd good\? Say it in its file: odd.higher_is_better = True"),
        ("ours_metrics:nothing", "ours_metrics has no function 'nothing'"),
        ("not_there:f_error", "no module 'not_there' to import not_there from; expected MODULE:FUNCTION"),
        ("not_there.py:f_error", "not_there.py: no such file"),
        ("ours_metrics:broken_error", "metric ours_metrics:broken_error: ValueError: no"),
        (":f", "expected MODULE:FUNCTION"),
    ],
)
def test_functions_that_are_none_are_refused_at_once(own, metric, message):
    with pytest.raises((OptionError, FileError, nasbot.NasbotError), match=message):
        nasbot.search(table(), "price", budget=1, metric=metric, name=None, **QUICK)


def test_weights_need_a_function_that_takes_them(own):
    with pytest.raises(OptionError, match="does not take sample_weight"):
        nasbot.search(
            table(), "price", budget=1, metric="ours_metrics:worst_error", sample_weight=[2.0] * 150, name=None, **QUICK
        )


# -- a recipe that has changed since -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budgeted", [{}, {"n_steps": 50}])
@pytest.mark.parametrize("then", [{"feature_scaling": 0.0}, {"label_smoothing": 0.0, "temperature_scaling": False}])
def test_a_study_goes_on_with_what_fast_was_when_it_began(then, budgeted):
    frame = table(3000)
    data = dataset_of(frame.drop(columns="price"), frame.price)
    before = Recipe("fast", replace(FAST.vectors, **then), FAST.images)
    stored = {"recipe": (before.changed(**budgeted) if budgeted else before).to_dict()}
    added = {"feature_scaling", "temperature_scaling"} & {*then}
    assert not added & {*stored["recipe"]["vectors"]}  # as studies of those days have it
    options = {"few_rows": False, "seconds": None, "seed": 0}
    assert as_needed(FAST, None, data, begun_with=stored, **options) == before
    assert as_needed(FAST, None, data, begun_with=None, **options) == FAST


def test_an_old_study_is_resumed_as_it_was_trained(monkeypatch):
    before = Recipe("fast", replace(FAST.vectors, feature_scaling=0.0, max_steps=60, min_steps=20), FAST.images)
    now = Recipe("fast", replace(before.vectors, feature_scaling=4.0), FAST.images)
    options = {"target": "price", "name": "old", "folds": 1, "workers": 1, "executor": "here", "yardstick": False}
    monkeypatch.setattr(recipes, "FAST", before)
    monkeypatch.setitem(recipes.RECIPES, "fast", before)
    nasbot.search(table(400), budget=2, refit=False, **options)
    monkeypatch.setattr(recipes, "FAST", now)
    monkeypatch.setitem(recipes.RECIPES, "fast", now)
    trained = []
    monkeypatch.setattr(loop, "stepper", lambda net, how, *a, **k: trained.append(how) or stepper(net, how, *a, **k))
    study = nasbot.search(table(400), budget=3, refit=False, **options)
    assert len(study.history.finished) == 3
    assert [settings.feature_scaling for settings in trained] == [0.0]
