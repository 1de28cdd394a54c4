"""Callbacks, and the two loggers behind them."""

import builtins
import warnings

import pytest

from nasbot.callbacks.follower import Callbacks, CallbackWarning, Follower, OnBest
from nasbot.callbacks.mlflow_log import MLflowLog
from nasbot.callbacks.tensorboard_log import TensorBoardLog
from nasbot.errors import FileError, OptionError
from nasbot.execution import SimulatedExecutor
from nasbot.searchers import RandomSearch
from nasbot.study import Study
from nasbot.trial import Cancelled
from tests.plots.studies import by_hand
from tests.searchers.problems import made


def objective(arch, trial):
    """Values 10, 9, 8, …; trial 2 fails."""
    if trial.number == 2:
        return float("nan")
    trial.report(1, 20.0 - trial.number)
    trial.report(2, 10.0 - trial.number)
    return 10.0 - trial.number


def driven(callback, n=5):
    study = Study.in_memory(made(RandomSearch), direction="minimise")
    study.optimise(objective, n, executor=SimulatedExecutor(1, duration=lambda arch: 5.0), on_change=callback)
    return study


class Recorder(Follower):
    def __init__(self, **options):
        super().__init__(**options)
        self.events = []

    def began(self, trial):
        self.events.append(("began", trial.number))

    def reported(self, trial, points):
        self.events.append(("points", trial.number, [tuple(point) for point in points]))

    def ended(self, trial, end):
        self.events.append(("ended", trial.number, *end))

    def interrupted(self, trial):
        self.events.append(("interrupted", trial.number))


def test_a_follower_hears_of_every_event_once_in_the_objective_s_sense():
    recorder = Recorder(direction="minimise")
    driven(recorder, 4)
    assert recorder.events == [
        ("began", 0),
        ("points", 0, [(1, 20.0), (2, 10.0)]),
        ("ended", 0, 10.0, "", 10.0, True),
        ("began", 1),
        ("points", 1, [(1, 19.0), (2, 9.0)]),
        ("ended", 1, 9.0, "", 9.0, True),
        ("began", 2),
        ("ended", 2, None, "nan", 9.0, False),
        ("began", 3),
        ("points", 3, [(1, 17.0), (2, 7.0)]),
        ("ended", 3, 7.0, "", 7.0, True),
    ]


def test_a_trial_that_runs_again_is_told_again():
    recorder = Recorder()
    study = Study.in_memory(made(RandomSearch))
    trial = study.ask()
    recorder(trial)
    recorder(study.report(trial, 1, 0.5))
    recorder(study._driver.requeue(trial.number, interrupted=False))
    recorder(study.ask())
    recorder(study.tell(trial.number, Cancelled()))
    assert [event[0] for event in recorder.events] == ["began", "points", "interrupted", "began", "ended"]
    assert recorder.events[-1][2:] == (None, "", None, False)


def test_a_resumed_study_knows_its_best():
    recorder = Recorder(history=by_hand())
    study = Study.in_memory(made(RandomSearch))
    recorder(study.tell(study.ask(), 4.0))
    assert recorder.events[-1] == ("ended", 0, 4.0, "", 5.0, False)


def test_on_best():
    told = []
    driven(OnBest(lambda trial, value: told.append((trial.number, value)), direction="minimise"))
    assert told == [(0, 10.0), (1, 9.0), (3, 7.0), (4, 6.0)]


def test_a_callback_that_raises_is_reported_once_and_the_study_goes_on():
    heard = []

    def broken(trial):
        raise OSError("the disk is full")

    with pytest.warns(CallbackWarning, match="broken raised OSError at trial 0.*the disk is full") as caught:
        study = driven(Callbacks(broken, heard.append))
    assert len(caught) == 1
    assert len(study.history.finished) == 5
    assert {trial.number for trial in heard} == {0, 1, 2, 3, 4}
    with pytest.raises(OSError, match="disk"):
        driven(Callbacks(broken, strict=True))


def test_what_is_no_callback_is_refused():
    with pytest.raises(OptionError, match="functions of a trial, got str"):
        Callbacks("logs")


@pytest.mark.parametrize(("package", "make"), [("tensorboard", lambda: TensorBoardLog("x")), ("mlflow", MLflowLog)])
def test_a_missing_extra_is_named(package, make, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OptionError, match=rf"pip install 'nasbot\[{package}\]'"):
        make()


# -- TensorBoard -----------------------------------------------------------------------------------------------------


def events_of(folder):
    """(tag, step, value) of all scalars in a folder's event files, by TensorBoard's own reader; images as sizes."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in LegacyEventFileLoader(str(path)).Load():
            for value in event.summary.value:
                entry = value.image.width if value.HasField("image") else round(value.simple_value, 4)
                found.append((value.tag, event.step, entry))
    return found


def test_tensorboard_has_values_curves_and_drawings(tmp_path):
    log = TensorBoardLog(tmp_path / "logs", direction="minimise")
    driven(log)
    log.close()
    log.close()
    found = events_of(tmp_path / "logs")
    assert [(step, value) for tag, step, value in found if tag == "value"] == [(0, 10.0), (1, 9.0), (3, 7.0), (4, 6.0)]
    best = [(step, value) for tag, step, value in found if tag == "best"]
    assert best == [(0, 10.0), (1, 9.0), (2, 9.0), (3, 7.0), (4, 6.0)]
    assert [value for tag, _, value in found if tag == "failed"] == [0, 0, 1, 1, 1]
    assert [step for tag, step, value in found if tag == "network" and value > 50] == [0, 1, 3, 4]
    assert {value for tag, _, value in found if tag == "seconds"} == {5.0}
    assert [value for _, _, value in events_of(tmp_path / "logs" / "trial-0001")] == [19.0, 9.0]
    assert not (tmp_path / "logs" / "trial-0002").exists()


def test_curves_and_drawings_can_be_left_out(tmp_path):
    log = TensorBoardLog(tmp_path, direction="minimise", curves=False, networks=False)
    driven(log, 2)
    log.close()
    assert {tag for tag, _, _ in events_of(tmp_path)} == {"value", "best", "seconds", "failed"}
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_folder_that_cannot_be_written_is_noticed_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot write logs"):
        TensorBoardLog(tmp_path / "file" / "logs")


# -- MLflow ----------------------------------------------------------------------------------------------------------


def test_mlflow_has_a_run_for_the_study_and_one_for_each_trial(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # no server is needed for a test
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")  # nor does a test tell anybody that it ran
    with warnings.catch_warnings():
        # Warnings of MLflow about itself are not ours to mend; those of our own code are still errors.
        warnings.filterwarnings("ignore", module="mlflow")
        uri = (tmp_path / "runs").as_uri()
        log = MLflowLog(tracking_uri=uri, experiment="protein", name="mine", direction="minimise")
        driven(log, 4)
        log.close()
        log.close()
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("protein").experiment_id
        runs = {run.info.run_name: run for run in client.search_runs([experiment])}
        assert set(runs) == {"mine", "trial 0", "trial 1", "trial 2", "trial 3"}
        assert runs["mine"].info.status == "FINISHED"
        best = client.get_metric_history(log.run_id, "best")
        assert sorted((metric.step, metric.value) for metric in best) == [(0, 10.0), (1, 9.0), (2, 9.0), (3, 7.0)]
        first = runs["trial 1"]
        assert first.data.tags["mlflow.parentRunId"] == log.run_id
        assert first.data.metrics["value"] == 9.0
        curve = client.get_metric_history(first.info.run_id, "curve")
        assert [(metric.step, metric.value) for metric in curve] == [(1, 19.0), (2, 9.0)]
        assert runs["trial 2"].info.status == "FAILED"
        assert runs["trial 2"].data.tags["nasbot.cause"] == "nan"
        assert [entry.path for entry in client.list_artifacts(first.info.run_id)] == ["network.json"]
        again = MLflowLog(tracking_uri=uri, experiment="protein", run_id=log.run_id)
        assert again.run_id == log.run_id
