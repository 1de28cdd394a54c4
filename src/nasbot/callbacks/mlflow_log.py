"""A study in MLflow: a run for the study with a run inside it for each trial.

study.optimise(objective, 100, on_change=MLflowLog(tracking_uri="http://127.0.0.1:5000", experiment="protein"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nasbot.callbacks.follower import Ended, Follower
from nasbot.errors import missing_extra
from nasbot.trial import Cancelled, Direction, History, Point, Trial

PARENT = "mlflow.parentRunId"  # MLflow's own tag: shows a run inside another


class MLflowLog(Follower):
    """Logs to an MLflow tracking server or store; needs the extra ``mlflow``.

    The study's run has value and best at each trial's number. A trial's run has its network (``network.json``), where
    it came from, its curve and its value. ``run_id`` goes on with the run of an earlier part of the study.
    """

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str = "nasbot",
        name: str | None = None,
        run_id: str | None = None,
        direction: str = Direction.MAXIMISE,
        history: History | None = None,
    ) -> None:
        super().__init__(direction=direction, history=history)
        try:
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise missing_extra("MLflowLog", "mlflow") from None
        self._client: Any = MlflowClient(tracking_uri=tracking_uri)
        found = self._client.get_experiment_by_name(experiment)
        self._experiment = self._client.create_experiment(experiment) if found is None else found.experiment_id
        if run_id is None:
            made = self._client.create_run(
                self._experiment, run_name=name, tags={"nasbot.direction": str(self.direction)}
            )
            run_id = made.info.run_id
        self.run_id: str = run_id
        self._runs: dict[int, str] = {}
        self._is_open = True

    def began(self, trial: Trial) -> None:
        """A run for the trial, with its network."""
        made = self._client.create_run(
            self._experiment,
            run_name=f"trial {trial.number}",
            tags={PARENT: self.run_id, "nasbot.trial": str(trial.number)},
        )
        run = self._runs[trial.number] = made.info.run_id
        figures = {
            "layers": len(trial.arch.processing_layers),
            "edges": len(trial.arch.edges),
            "fingerprint": trial.arch.fingerprint[:12],
            "searcher": trial.origin.searcher,
            "parents": ", ".join(map(str, trial.origin.parents)),
            "modifiers": ", ".join(trial.origin.modifiers)[:500],
            **trial.candidate.params,
        }
        for name, figure in figures.items():
            self._client.log_param(run, name, figure)
        for name in ("median", "lower", "upper"):
            predicted = None if trial.forecast is None else getattr(trial.forecast, name)
            if predicted is not None:
                self._client.log_metric(run, f"predicted_{name}", predicted)
        self._client.log_dict(run, trial.arch.to_dict(), "network.json")

    def reported(self, trial: Trial, points: Sequence[Point]) -> None:
        """Points of the curve."""
        for point in points:
            self._client.log_metric(self._runs[trial.number], "curve", point.value, step=point.step)

    def ended(self, trial: Trial, end: Ended) -> None:
        """The outcome, in the trial's run and in the study's."""
        if trial.number not in self._runs:
            if trial.started is None:  # cancelled before it began
                return
            self.began(trial)
        run = self._runs.pop(trial.number)
        if end.value is not None:
            self._client.log_metric(run, "value", end.value)
            self._client.log_metric(self.run_id, "value", end.value, step=trial.number)
        if end.best is not None:
            self._client.log_metric(self.run_id, "best", end.best, step=trial.number)
        if trial.seconds is not None:
            self._client.log_metric(run, "seconds", trial.seconds)
        if end.cause:
            self._client.set_tag(run, "nasbot.cause", end.cause)
        if trial.message:
            self._client.set_tag(run, "nasbot.message", trial.message[:5000])
        status = "FAILED" if end.cause else "KILLED" if isinstance(trial.outcome, Cancelled) else "FINISHED"
        self._client.set_terminated(run, status)

    def interrupted(self, trial: Trial) -> None:
        """The trial's run ends here; it gets another one."""
        run = self._runs.pop(trial.number, None)
        if run is not None:
            self._client.set_terminated(run, "KILLED")

    def close(self) -> None:
        """End the study's run."""
        if self._is_open:
            self._is_open = False
            self._client.set_terminated(self.run_id, "FINISHED")
