"""What people get wrong with their data, metrics, splits, limits, devices and models: one line, the documented code.

``THEIRS`` is about their question, rows and machine, ``MODELS`` about budgets, refits, ensembles, folds, exports and
estimators: sixty of each. Nothing is trained and nothing is written by any of them.
"""

import contextlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nasbot
from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.automl import search
from nasbot.data.dataset import dataset_of
from nasbot.errors import DataError, FileError, OptionError, StudyError
from nasbot.estimators import NASBOTClassifier, NASBOTRegressor

from .conftest import Run

OPTION, FILE, STUDY, STORAGE, DATA = 2, 3, 8, 9, 11
N = 80
SMALL = [chain("mlp-reg", [Layer("relu", 8)]), chain("mlp-reg", [Layer("tanh", 8)])]


def table(n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 10, n), "rooms": rng.integers(1, 6, n)})
    frame["city"] = rng.choice(["Ulm", "Kiel"], n)
    frame["day"] = [f"2020-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(n)]
    frame["count"] = rng.uniform(1, 2, n)
    frame["kind"] = np.where(frame["size"] > 55, "large", "small")
    frame["price"] = 3 * frame["size"] + frame["rooms"]
    return frame


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    place = tmp_path_factory.mktemp("mistakes")
    with contextlib.chdir(place):
        frame = table()
        frame.to_csv("good.csv", index=False)
        frame.assign(count=-1.0).to_csv("negative.csv", index=False)
        frame.assign(count=0.0).to_csv("weightless.csv", index=False)
        frame.assign(count="heavy").to_csv("heavy.csv", index=False)
        frame.assign(count=[None, *frame["count"][1:]]).to_csv("weight_gap.csv", index=False)
        frame.assign(day="2020-01-01").to_csv("one_day.csv", index=False)
        frame.assign(day=[None, *frame["day"][1:]]).to_csv("day_gap.csv", index=False)
        frame.assign(day=["soon", *frame["day"][1:]]).to_csv("soon.csv", index=False)
        frame.assign(city="Ulm").to_csv("one_city.csv", index=False)
        frame.assign(price=[None if i % 4 else 1.5 * i for i in range(N)]).to_csv("unlabelled.csv", index=False)
        frame.assign(price=[0.0, *frame["price"][1:]], size=1).to_csv("zero.csv", index=False)
        frame.assign(price=np.where(np.arange(N) < 2, "rare", "common")).to_csv("rare.csv", index=False)
        frame.drop(columns="rooms").to_csv("no_rooms.csv", index=False)
        frame.drop(columns=["size", "rooms", "city", "day", "count", "kind"]).to_csv("only_price.csv", index=False)
        frame.assign(rooms="many").to_csv("many_rooms.csv", index=False)
        frame.assign(kind="huge").to_csv("huge.csv", index=False)
        frame.iloc[:0].to_csv("no_rows.csv", index=False)
        frame.assign(size=np.where(np.arange(N) == 5, "ca. 50", frame["size"].astype(str))).to_csv(
            "ca.csv", index=False
        )
        np.savez("pictures.npz", X=np.random.default_rng(0).random((20, 8, 8)), y=np.arange(20) % 2)
        Path("metric.py").write_text(
            "def good(truth, predicted):\n    return 0.0\ngood.higher_is_better = True\n"
            "def which(truth, predicted):\n    return 0.0\n"
            "def text_score(truth, predicted):\n    return 'high'\n"
            "def broken_score(truth, predicted):\n    raise ValueError('no idea')\n"
            "number_score = 3\n"
        )
        X = frame[["size", "rooms", "city"]]
        options = {"budget": 2, "workers": 1, "start_from": SMALL, "task": "regression", "refit": False, "folds": 1}
        search(X, frame["price"], name="done.sqlite", **options).close()
        with nasbot.automl.FoundStudy.open("done.sqlite") as study:
            study.export("done.safetensors")
        Path("folder").mkdir()
        Path("text.sqlite").write_text("no study")
        Path("text.safetensors").write_text("no model")
        Path("taken.csv").write_text("prediction\n1\n")
        Path("taken.onnx").write_text("mine")
    return place


def run_on(file, *options, target="price"):
    return ("run", file, "--target", target, *options)


GOOD = run_on("good.csv")

THEIRS = [
    # metrics
    ((*GOOD, "--metric", "auc"), OPTION, "auc is for classification, the target asks for regression"),
    ((*GOOD, "--metric", "f1"), OPTION, "f1 is for classification"),
    (run_on("good.csv", "--metric", "mae", target="kind"), OPTION, "mae is for regression"),
    ((*GOOD, "--metric", "rmsle"), OPTION, "did you mean rmse?"),
    ((*GOOD, "--metric", ""), OPTION, "metric: expected one of"),
    ((*GOOD, "--metric", "AUC"), OPTION, "metric: expected one of"),
    (run_on("zero.csv", "--metric", "mape"), OPTION, "mape divides by the target, which is 0"),
    ((*GOOD, "--metric", "metric.py:bad"), OPTION, "bad"),
    ((*GOOD, "--metric", "nowhere.py:good"), FILE, "nowhere"),
    ((*GOOD, "--metric", "nowhere:good"), OPTION, "nowhere"),
    ((*GOOD, "--metric", "metric.py:which"), OPTION, "higher_is_better"),
    ((*GOOD, "--metric", "metric.py:text_score"), DATA, "text_score"),
    ((*GOOD, "--metric", "metric.py:broken_score"), DATA, "no idea"),
    ((*GOOD, "--metric", "metric.py:number_score"), OPTION, "number_score"),
    # weights
    (run_on("negative.csv", "--weight", "count"), DATA, "negative in 80 rows"),
    (run_on("weightless.csv", "--weight", "count"), DATA, "sample_weight: 0 in every one"),
    (run_on("heavy.csv", "--weight", "count"), DATA, "sample_weight: expected numbers"),
    (run_on("weight_gap.csv", "--weight", "count"), DATA, "1 of 80 rows have no value"),
    ((*GOOD, "--weight", "cuont"), DATA, "did you mean 'count'?"),
    ((*GOOD, "--class-weight", "balanced"), OPTION, "the target is a number"),
    (run_on("good.csv", "--class-weight", "even", target="kind"), OPTION, "expected 'balanced', 'none' or"),
    (run_on("good.csv", "--class-weight", "huge=2", target="kind"), OPTION, "no class 'huge'"),
    (run_on("good.csv", "--class-weight", "large=-2", target="kind"), OPTION, "expected a number above 0"),
    (run_on("good.csv", "--class-weight", "large=much", target="kind"), OPTION, "rare=5,common=1"),
    # splits
    ((*GOOD, "--group", "town"), DATA, "groups: there is no column 'town'"),
    (run_on("one_city.csv", "--group", "city"), DATA, "groups: 1 different; expected at least 3"),
    ((*GOOD, "--group", "city"), DATA, "groups: 2 different; expected at least 3"),
    ((*GOOD, "--time", "dya"), DATA, "did you mean 'day'?"),
    ((*GOOD, "--time", "city"), DATA, "expected a column of dates or numbers"),
    (run_on("one_day.csv", "--time", "day"), DATA, "too many rows have the same time"),
    (run_on("day_gap.csv", "--time", "day"), DATA, "1 of 80 rows have no value"),
    (run_on("soon.csv", "--time", "day"), DATA, "time: 1 of 80 values are no dates"),
    ((*GOOD, "--time", "day", "--group", "city"), OPTION, "at most one of"),
    ((*GOOD, "--valid", "no_rooms.csv"), DATA, "no column 'rooms'"),
    ((*GOOD, "--valid", "many_rooms.csv"), DATA, "column 'rooms' holds 'many'; expected numbers, as in"),
    ((*GOOD, "--valid", "no_rows.csv"), OPTION, "only test may be empty"),
    ((*GOOD, "--test", "missing.csv"), FILE, "missing.csv: no such file"),
    ((*GOOD, "--valid", "good.csv", "--time", "day"), OPTION, "valid and test files divide the rows"),
    ((*GOOD, "--split", "0.6,0.4"), OPTION, "three shares"),
    ((*GOOD, "--split", "1,0,0"), OPTION, "the first two above 0"),
    # columns and rows
    (run_on("unlabelled.csv"), DATA, "60 of 80 rows have no value; remove these rows, or say --drop-unlabelled"),
    (run_on("ca.csv"), DATA, "'size': numbers, but 1 of 80 rows hold none, such as 'ca. 50'"),
    ((*GOOD, "--as", "city"), OPTION, "--as: expected COLUMN=KIND"),
    ((*GOOD, "--as", "city=colour"), OPTION, "as: city: expected one of number, category, date"),
    ((*GOOD, "--as", "town=category"), DATA, "as: there is no column 'town'"),
    ((*GOOD, "--as", "city=number"), DATA, "column 'city': expected numbers, got"),
    ((*GOOD, "--drop", "size,town"), DATA, "drop: there is no column 'town'"),
    (("inspect", "good.csv", "--target", "prize"), DATA, "did you mean 'price'?"),
    (("inspect", "missing.csv"), FILE, "missing.csv"),
    # devices and limits
    ((*GOOD, "--device", "gpu"), OPTION, "device: expected"),
    ((*GOOD, "--device", "cuda"), OPTION, "cuda"),
    ((*GOOD, "--device", "cuda:99"), OPTION, "cuda:99"),
    ((*GOOD, "--max-latency", "fast"), OPTION, "latency"),
    ((*GOOD, "--max-latency", "1us"), OPTION, "max_latency"),
    ((*GOOD, "--max-size", "small"), OPTION, "max_size"),
    ((*GOOD, "--max-size", "1kB"), OPTION, "max_size"),
    ((*GOOD, "--max-parameters", "3"), OPTION, "max_parameters"),
    ((*GOOD, "--max-layers", "0"), OPTION, "max_layers"),
    ((*GOOD, "--image-size", "32"), OPTION, "is no folder of images"),
    (("run", "pictures.npz", "--as", "x=category"), OPTION, "images have no columns"),
]

STUDY_FILE = "done.sqlite"
MODELS = [
    # predicting
    (("predict", STUDY_FILE, "no_rooms.csv"), DATA, "no column 'rooms', which the model looks at"),
    (("predict", STUDY_FILE, "only_price.csv", "--fill-missing"), DATA, "none of the columns that the model looks at"),
    (("predict", STUDY_FILE, "many_rooms.csv"), DATA, "column 'rooms': expected numbers, got 'many'"),
    (("predict", STUDY_FILE, "no_rows.csv"), DATA, "there are no rows to predict from"),
    (("predict", STUDY_FILE, "missing.csv"), FILE, "missing.csv: no such file"),
    (("predict", STUDY_FILE, "folder"), DATA, "expected rows to predict from"),
    (("predict", STUDY_FILE, "metric.py"), DATA, "expected rows to predict from"),
    (("predict", STUDY_FILE, "good.csv", "-o", "taken.csv"), FILE, "taken.csv"),
    (("predict", STUDY_FILE, "good.csv", "-o", "no/out.csv"), FILE, "no/out.csv"),
    (("predict", "missing.sqlite", "good.csv"), FILE, "missing.sqlite"),
    (("predict", "nowhere", "good.csv"), FILE, "nowhere"),
    (("predict", "text.sqlite", "good.csv"), STORAGE, "text.sqlite"),
    (("predict", "text.safetensors", "good.csv"), STORAGE, "not a safetensors file"),
    (("predict", "missing.safetensors", "good.csv"), FILE, "missing.safetensors"),
    (("predict", STUDY_FILE, "good.csv", "--metric", "mae"), STUDY, "not by mae"),
    (("predict", STUDY_FILE), OPTION, "FILE"),
    # exporting
    (("export", STUDY_FILE, "--to", "pickle"), OPTION, "pickle"),
    (("export", STUDY_FILE, "--to", "onnx", "--out", "taken.onnx"), FILE, "taken.onnx"),
    (("export", STUDY_FILE, "--to", "code", "--out", "no/model.py"), FILE, "no/model"),
    (("export", STUDY_FILE), OPTION, "--to"),
    (("export", "missing.sqlite", "--to", "code"), FILE, "missing.sqlite"),
    (("export", "text.sqlite", "--to", "code"), STORAGE, "text.sqlite"),
    (("export", STUDY_FILE, "--to", "code", "--metric", "mae"), STUDY, "not by mae"),
    # budgets, folds, refits, trainings
    ((*GOOD, "--budget", "soon"), OPTION, "budget"),
    ((*GOOD, "--budget", "-5m"), OPTION, "budget"),
    ((*GOOD, "--budget", "0 trials"), OPTION, "budget"),
    ((*GOOD, "--budget", "5 trails"), OPTION, "budget"),
    ((*GOOD, "--budget", "1.5 trials"), OPTION, "budget"),
    ((*GOOD, "--budget", "5 weeks"), OPTION, "budget"),
    ((*GOOD, "--folds", "0"), OPTION, "folds: expected auto, or a whole number from 1 to"),
    ((*GOOD, "--folds", "1000"), OPTION, "folds: expected auto, or a whole number from 1 to 64"),
    ((*GOOD, "--folds", "many"), OPTION, "folds: expected auto"),
    ((*GOOD, "--folds", "2.5"), OPTION, "folds: expected auto"),
    ((*GOOD, "--folds", "3", "--time", "day"), OPTION, "folds would mix them; expected 1"),
    ((*GOOD, "--folds", "3", "--valid", "good.csv"), OPTION, "folds would mix them; expected 1"),
    ((*GOOD, "--refit=yes"), OPTION, "--refit"),
    ((*GOOD, "--seconds-per-trial", "0"), OPTION, "seconds_per_trial: expected a number above 0"),
    ((*GOOD, "--seconds-per-trial", "nan"), OPTION, "seconds_per_trial"),
    ((*GOOD, "--tune", "learning_rate,luck"), OPTION, "got 'luck'"),
    ((*GOOD, "--tune", ""), OPTION, "tune: expected auto, none, or some of"),
    ((*GOOD, "--pool", "big"), OPTION, "pool: expected default or paper"),
    ((*GOOD, "--recipe", "fastest"), OPTION, "recipe: expected fast or paper"),
    ((*GOOD, "--searcher", "nasbto"), OPTION, "searcher: expected one of"),
    ((*GOOD, "--fork", "new"), STUDY, "to fork"),
    ((*GOOD, "--name", "text.sqlite"), STORAGE, "text.sqlite"),
    ((*GOOD, "--name", "done.sqlite"), STUDY, "begun on other data"),
    ((*GOOD, "--name", "done.sqlite", "--metric", "mae"), STUDY, "begun with metric validation loss, not mae"),
    (("delete", "missing.sqlite", "--yes"), FILE, "missing.sqlite"),
    (("delete", "good.csv", "--yes"), FILE, "good.csv"),
    (("show", STUDY_FILE, "99"), STUDY, "99"),
]


def begin(arguments):
    brief = arguments[:1] == ("run",) and "--budget" not in arguments
    return (*arguments, "--budget", "1 trials") if brief else arguments


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [*THEIRS, *MODELS],
    ids=lambda value: " ".join(value)[:80] if isinstance(value, tuple) else None,
)
def test_one_line_and_its_code(folder, run: Run, arguments, code, said):
    before = sorted(folder.iterdir())
    result = run(*begin(arguments))
    result.check_refused(code, said)
    assert sorted(folder.iterdir()) == before, "nothing was written"


# -- in Python ---------------------------------------------------------------------------------------------------------


def searched(**options):
    frame = table()
    return nasbot.search(frame[["size", "rooms"]], frame["price"], **{"name": None, "budget": 1, **options})


X, Y = np.arange(60.0).reshape(20, 3), np.arange(20.0)
IN_PYTHON = {
    "a list for a budget": (lambda: searched(budget=[1]), OptionError, "budget"),
    "folds in words": (lambda: searched(folds="five"), OptionError, "folds: expected auto"),
    "a pool of words": (lambda: searched(pool="large"), OptionError, "pool: expected default or paper"),
    "a param of words": (lambda: searched(tune={"dropout": 0.1}), OptionError, "expected Float, Integer or Choice"),
    "workers of none": (lambda: searched(workers=0), OptionError, "workers"),
    "a search for nothing": (lambda: nasbot.search(X), DataError, "nothing is said about what to predict"),
    "a target too short": (lambda: nasbot.search(X, Y[:-1], name=None), DataError, "one value for each of 20 rows"),
    "a number for classes": (lambda: NASBOTClassifier(budget=1).fit(X, np.zeros(20)), DataError, "one class"),
    "a wrong metric": (lambda: NASBOTRegressor(budget=1, metric="auc").fit(X, Y), OptionError, "auc is for"),
    "no such model": (lambda: nasbot.load_model("no.safetensors"), FileError, "cannot read no.safetensors"),
    "no such study": (lambda: nasbot.automl.FoundStudy.open("no.sqlite"), FileError, "no.sqlite"),
    "kinds that are none": (lambda: dataset_of(table(), "price", kinds={"city": "town"}), OptionError, "as: city"),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_in_python_too(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, error, said = IN_PYTHON[name]
    with pytest.raises(error, match=said) as caught:
        wrong()
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_there_are_sixty_of_each():
    assert len(THEIRS) >= 60
    assert len(MODELS) + len(IN_PYTHON) >= 60
    assert StudyError.exit_code == STUDY
