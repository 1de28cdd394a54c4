"""``nasbot run`` and ``nasbot demo``: small searches from beginning to end, resumed, as JSON, interrupted."""

import ast
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasbot.architecture import Architecture
from nasbot.automl.tuning import searched_attributes
from nasbot.cli.run import run as nasbot_run
from nasbot.domain import Fidelity
from nasbot.errors import DivergedError
from nasbot.study import StudyView
from nasbot.training.objective import TrainingObjective

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--workers", "1", "--seconds-per-trial", "1")
PATIENCE = 400


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a little table in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 10, 120), "city": rng.choice(["Ulm", "Kiel"], 120)})
    frame["price"] = 3 * frame["size"] + 20 * (frame["city"] == "Ulm") + rng.normal(0, 1, 120)
    frame["fair"] = np.where(frame["price"] > frame["price"].median(), "dear", "cheap")
    frame.to_csv("houses.csv", index=False)
    return tmp_path


def test_trainings_on_shares_of_the_rows(folder, run: Run):
    options = ("--target", "price", "--drop", "fair", "--no-refit", "--folds", "1", "--searcher", "random", *QUICK)
    result = run("run", "houses.csv", "--budget", "1 trials", "--fidelity", "rows", *options)
    assert result.code == 0, result.err
    with StudyView.read("houses-price") as view:
        assert view.searcher.domain.fidelity == Fidelity(of="rows")
        assert len(view.history.finished) == 1
    other = run("run", "houses.csv", "--budget", "2 trials", "--fidelity", "steps", *options)
    assert other.code == 8
    assert "fidelity.of: stored rows, given steps" in other.err
    wrong = run("run", "houses.csv", "--budget", "2 trials", "--fidelity", "epochs", *options)
    assert wrong.code == 2
    assert "fidelity: expected none, steps, rows, boca, or Fidelity(...), got 'epochs'" in wrong.err


def test_a_table_from_file_to_best_network_and_on(folder, run: Run):
    result = run("run", "houses.csv", "--target", "price", "--drop", "fair", "--budget", "3 trials", *QUICK)
    assert result.code == 0, result.err
    assert "target: price, a number: regression" in result.err
    assert result.err.count("\ntrial ") == 4  # one begun, three ended
    assert "best network: trial" in result.out
    assert "studies/houses-price.files/best.svg" in result.out
    assert (folder / "studies/houses-price.files/best.svg").exists()
    assert "Next, try:" in result.out
    shown = run("status", "houses-price").out
    assert re.search(r"best +validation mse [0-9.]+ \(trial [0-9]\), of the standardised target\n", shown), shown

    again = run("run", "houses.csv", "--target", "price", "--drop", "fair", "--budget", "4 trials", *QUICK, "--json")
    assert again.code == 0, again.err
    assert "goes on" in again.err
    assert again.err.count("\ntrial ") == 1
    assert "  standardised mse 0." in again.err or "  standardised mse 1." in again.err, "units come at the end"
    record = json.loads(again.out)
    assert again.out.count("\n") == 1
    assert record["trials"] == record["completed"] == 4
    assert (record["study"], record["file"]) == ("houses-price", "studies/houses-price.sqlite")
    assert Architecture.load(record["network"]).kind == "mlp-reg"
    assert 0 < record["best_value"] < 3
    with StudyView.read("houses-price") as view:
        assert view.best_value == record["best_value"]
        assert len(view.history.finished) == 4

    for changed, said in (
        (("--seed", "1", "--name", "houses-price"), "other data"),  # the seed divides the rows
        (("--recipe", "paper"), "recipe fast, not paper"),
        (("--searcher", "random"), "searcher NASBOT, not RAND"),
    ):
        refused = run("run", "houses.csv", "--target", "price", "--drop", "fair", "--budget", "5 trials", *changed)
        assert (refused.code, refused.out) == (8, "")
        assert said in refused.err


def test_options_of_single_layers(folder, run: Run):
    options = ("--target", "price", "--drop", "fair", "--no-refit", "--folds", "1", "--tune", "none", *QUICK)
    result = run("run", "houses.csv", "--budget", "1 trials", "--attributes", "norm", *options)
    assert result.code == 0, result.err
    with StudyView.read("houses-price") as view:
        assert searched_attributes(view.settings["searcher"]["modifiers"]) == ("norm",)
    other = run("run", "houses.csv", "--budget", "2 trials", *options)
    assert other.code == 8
    assert "begun with attributes norm, not none" in other.err
    wrong = run("run", "houses.csv", "--budget", "2 trials", "--attributes", "nrom", *options)
    assert wrong.code == 2
    assert "attributes: expected all, none, or some of dropout, norm, weight_decay; got 'nrom'" in wrong.err


def test_every_option_is_handed_on():
    """--attributes was documented and forgotten."""
    [function] = [
        node
        for node in ast.parse(Path(inspect.getfile(nasbot_run)).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == "run"
    ]
    named = {node.id for line in function.body for node in ast.walk(line) if isinstance(node, ast.Name)}
    assert {option.arg for option in function.args.args} - named == set()


def test_no_network_is_no_success(folder, run: Run, monkeypatch):
    """Whoever goes on by the exit code must not go on to a model that is not there."""

    def diverges(*arguments, **options):
        raise DivergedError("loss: expected finite numbers, got nan")

    monkeypatch.setattr(TrainingObjective, "__call__", diverges)
    options = ("--target", "price", "--max-failures", "0", "--executor", "here", "--no-refit", *QUICK)
    result = run("run", "houses.csv", "--budget", "1 trials", *options)
    assert result.code == 8
    assert "best: none yet" in result.out
    assert "the same with a longer --budget goes on" in result.out, "how to go on is said all the same"
    assert result.err.splitlines()[-1] == (
        "nasbot: error: no network was trained in 1 trial: there is no model yet; the same command with more goes on"
    )


def test_two_workers_and_a_named_set(folder, run: Run):
    result = run("run", "wine", "--budget", "4 trials", "--workers", "2", "--seconds-per-trial", "1", "--json")
    assert result.code == 0, result.err
    record = json.loads(result.out)
    assert record["trials"] == 4
    assert record["study"] == "wine"
    assert "3 classes" in result.err
    weights = list((folder / "studies/wine.files/weights").glob("*.safetensors"))
    assert f"trial-{record['best_trial']}.safetensors" in {path.name for path in weights}
    for part in ("baseline", "single", "ensemble", "model"):
        assert set(record[part]) >= {"validation", "test", "metric"}, part
    assert record["model"]["metric"] == "log-loss"
    assert record["seconds"] > 0


MODEL = """
import torch

def build():
    return torch.nn.Sequential(
        torch.nn.Linear(13, 24), torch.nn.ReLU(), torch.nn.Linear(24, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
    )
"""


def test_own_model_to_begin_with(folder, run: Run):
    (folder / "mine.py").write_text(MODEL)
    result = run("run", "wine", "--budget", "1 trials", *QUICK, "--start-from", "mine.py:build", "--json")
    assert result.code == 0, result.err
    with StudyView.read("wine") as view:
        assert [layer.units for layer in view.history[0].arch.layers if layer.units] == [24, 16]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\n\ndef build():\n    sys.exit('no model')\n", "build() ends the process (sys.exit(no model))"),
        ("import sys\nsys.exit(3)\n", "mine.py ends the process when it is run (sys.exit(3))"),
    ],
)
def test_an_own_model_that_exits_says_so(folder, run: Run, text: str, said: str):
    (folder / "mine.py").write_text(text)
    result = run("run", "wine", "--budget", "1 trials", *QUICK, "--start-from", "mine.py:build")
    assert result.code == 2
    assert said in result.err


def test_the_demo(folder, run: Run):
    result = run("demo", "--out", "shown", "--budget", "1 trials", "--workers", "1")
    assert result.code == 0, result.err
    assert "10 classes" in result.err
    assert (folder / "shown/digits.files/best.svg").exists()
    suggestions = result.out.partition("Next, try:\n")[2].splitlines()
    for command in ("predict shown/digits.sqlite FILE", "what-if shown/digits.sqlite"):
        assert any(command in line for line in suggestions)
    for line in suggestions:
        program = line.split()[0]
        assert program in ("nasbot", "Open") or Path(program).resolve().name == "nasbot"


def test_an_interrupt_leaves_with_everything_recorded_and_the_same_command_goes_on(folder, run: Run):
    command = [sys.executable, "-m", "nasbot", "run", "houses.csv", "--target", "fair", *QUICK]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--budget", "1000 trials"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell in the background makes its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if "log-loss" in line:
                process.send_signal(signal.SIGINT)
                break
        out, rest = process.communicate(timeout=PATIENCE)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    assert process.returncode == 130, "".join(said) + rest
    assert out == ""
    assert "everything is recorded" in rest
    assert "resume: " in rest
    assert "Traceback" not in rest
    with StudyView.read("houses-fair") as view:
        n = len(view.history.finished)
        assert n >= 1
    result = run("run", "houses.csv", "--target", "fair", *QUICK, "--budget", f"{n + 1} trials", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["trials"] == n + 1
