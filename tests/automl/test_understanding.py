"""What the recommended model goes by and where it errs: against scikit-learn, and in every place where it is shown."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import confusion_matrix

import nasbot
from nasbot.automl.model import refitted_trials, validation_predictions
from nasbot.automl.summary import record_of
from nasbot.automl.understanding import LEVELS, MOST_ROWS, Understanding, save_understanding, understanding_of
from nasbot.cli import main
from nasbot.data.dataset import Dataset
from nasbot.errors import StudyError
from nasbot.page.beside import understood
from nasbot.training import predicting
from nasbot.training.objective import computing_threads
from nasbot.training.recipes import FAST

QUICK = {"workers": 1, "recipe": FAST.changed(n_steps=150, n_validations=5), "executor": "here"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)


def table(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=n), "weak": rng.normal(size=n), "strong": rng.normal(size=n)})
    frame["town"] = rng.choice(["north", "south", "west"], size=n)
    frame["price"] = 100 + 30 * frame.strong + 5 * frame.weak + frame.town.map({"north": 0, "south": 15, "west": -15})
    return frame


def test_columns_residuals_and_calibration_of_numbers(tmp_path):
    frame = table()
    with nasbot.search(frame, "price", budget=4, name="houses", **QUICK) as study:
        known = study.understanding()
        assert (known.part, known.n_rows, known.metric) == ("test", 80, "mse")
        assert [name for name, _ in known.importance][:2] == ["strong", "town"]
        by_name = dict(known.importance)
        assert by_name["strong"] > 10 * abs(by_name["noise"])
        # A shuffled standard normal of slope 30 adds 2 * 30^2 to the error, in squared units of the target.
        assert by_name["strong"] == pytest.approx(1800, rel=0.4)
        data, model = study.dataset, study.model()
        rows = np.argsort(frame.index)  # the test rows again, raw, by their prices
        truth = data.preprocessing.restored(data.test.y).reshape(-1)
        raw = frame.iloc[[int(np.abs(frame.price[rows] - price).argmin()) for price in truth]]
        residuals = np.quantile(raw.price - model.predict(raw.drop(columns="price")), LEVELS)
        assert known.residuals["price"] == pytest.approx(residuals, abs=1e-3)
        assert sum(rows for _, _, rows in known.calibration) == 80
        assert known.calibration_error < 10
        assert understanding_of(study) == known  # nothing is drawn anew
        shown = study.summary()
        assert "columns that matter (mse of test rows worse by, when shuffled): strong" in shown
        assert "residuals of price: median" in shown
        assert record_of(study)["understanding"] == known.to_dict()
        save_understanding(study)
        shown = understood(study.files.with_name("houses.sqlite"))
        assert shown == json.loads(json.dumps(known.to_dict() | {"results": study.results().to_dict()}))
        page = study.report("report.html").read_text()
        assert "when the column is shuffled" in page
        assert "nasbot.search(X, y, name=" in page
        assert str(study.files.with_name("houses.sqlite")) in page
    assert main(["report", "houses", "-o", "other.html"]) == 0
    assert '"column":"strong"' in (tmp_path / "other.html").read_text().replace(" ", "")


def test_confusion_and_calibration_of_classes():
    frame = table()
    frame["price"] = np.where(frame.price > 120, "high", np.where(frame.price > 90, "middle", "low"))
    with nasbot.search(frame, "price", budget=3, name=None, metric="f1", **QUICK) as study:
        known = study.understanding(rows="validation")
        assert (known.part, known.metric, known.classes) == ("validation", "f1", ("high", "low", "middle"))
        truth = np.concatenate([study.dataset.train.y, study.dataset.valid.y])  # 5 folds: all of them judge
        said = validation_predictions(study).argmax(axis=1)
        assert known.confusion == tuple(map(tuple, confusion_matrix(truth, said, labels=range(3)).tolist()))
        assert 0 <= known.calibration_error < 0.5
        assert "predicted (test rows): high: " in study.summary()
        with pytest.raises(StudyError, match="rows: expected validation or test, got 'train'"):
            study.understanding(rows="train")


@pytest.mark.parametrize("folds", [1, 5])
@pytest.mark.parametrize("single", [False, True])
def test_validation_rows_are_judged_by_networks_that_have_not_learned_from_them(folds, single):
    """Of a model that was trained once more on them nothing else is said than before it was."""
    options = {**QUICK, "recipe": FAST.changed(n_steps=400, n_validations=5), "folds": folds, "budget": 3}
    frame = table(150)
    frame["price"] += 30 * np.random.default_rng(1).normal(size=len(frame))
    found = [nasbot.search(frame, "price", name=None, refit=refit, **options) for refit in (True, False)]
    with found[0] as study, found[1] as before:
        assert refitted_trials(study)
        assert refitted_trials(before) == ()
        known, expected = (one.understanding(rows="validation", single=single) for one in (study, before))
        assert known == expected
        assert known.n_rows == (30 if folds == 1 else 120)
        truth = study.preprocessing.restored(study.judged.y).reshape(-1, 1)
        valid = study.results().single.validation if single else study.results().model.validation
        said = validation_predictions(study, single=single)
        assert np.square(said - truth).mean() == pytest.approx(valid)
        assert known.residuals["price"] == pytest.approx(np.quantile(truth - said, LEVELS))


def test_what_is_looked_at_meanwhile_does_not_see_the_test_rows(monkeypatch):
    with nasbot.search(table(), "price", budget=2, name=None, **QUICK) as study:
        known = study.understanding(rows="validation")
        load = Dataset.load

        def without_test(folder):
            data = load(folder)
            return replace(data, test=replace(data.test, X=np.full_like(data.test.X, np.nan), y=data.test.y * np.nan))

        monkeypatch.setattr(Dataset, "load", without_test)
        assert study.understanding(rows="validation") == known


def test_many_rows_are_thinned_and_images_have_no_columns():
    rng = np.random.default_rng(1)
    images = rng.integers(0, 255, size=(60, 8, 8)).astype(np.uint8)
    labels = (images[:, :4].mean(axis=(1, 2)) > images[:, 4:].mean(axis=(1, 2))).astype(int)
    with nasbot.search(images, labels, budget=1, name=None, **QUICK) as study:
        known = study.understanding()
        assert known.importance == ()
        assert known.n_rows == len(study.dataset.test) < MOST_ROWS
    wide = table(12_000)
    with nasbot.search(wide, "price", budget=1, name=None, split=(0.1, 0.1, 0.8), **QUICK) as study:
        assert study.understanding().n_rows == MOST_ROWS


def test_a_file_of_somebody_else_is_not_believed(tmp_path):
    folder = tmp_path / "toy.files"
    assert understood(tmp_path / "toy.sqlite") is None
    folder.mkdir()
    for content in ("[1]", "nonsense", "{" * 100_000):
        (folder / "understanding.json").write_text(content)
        assert understood(tmp_path / "toy.sqlite") is None
    (folder / "understanding.json").unlink()
    (tmp_path / "secret.json").write_text("{}")
    (folder / "understanding.json").symlink_to(tmp_path / "secret.json")
    assert understood(tmp_path / "toy.sqlite") is None


def test_every_answer_is_computed_by_one_thread(monkeypatch):
    """Two that wait for each other took 12.8 s of CPU time for a table of 64 columns on a busy machine, one 0.8."""
    seen, plain = [], predicting.outputs_of

    def watched(*args, **options):
        seen.append(torch.get_num_threads())
        return plain(*args, **options)

    with nasbot.search(table(100), "price", budget=1, name=None, **QUICK) as study:
        monkeypatch.setattr(predicting, "outputs_of", watched)
        with computing_threads(2):
            study.understanding()
            assert torch.get_num_threads() == 2
    assert len(seen) > 4
    assert set(seen) == {1}


def test_lines_leave_out_classes_without_rows_and_name_the_target_of_the_calibration():
    classes = ("no", "rare", "yes")
    known = Understanding("test", 5, "error", (("a", 999.7),), {}, classes, ((2, 0, 1), (0, 0, 0), (0, 0, 2)), ())
    said = "columns that matter (error of test rows worse by, when shuffled): a 1,000"
    assert known.lines()[:2] == [said, "predicted (test rows): no: 2 as no, 1 as yes; yes: 2 as yes"]
    assert known.lines()[-1] == "calibration: off by 0 on average (5 test rows)"
    numbers = replace(known, classes=(), confusion=(), residuals={"a b": (0.0,) * 5, "c": (0.0,) * 5})
    assert numbers.lines()[-1] == "calibration of a b: off by 0 on average (5 test rows)"
