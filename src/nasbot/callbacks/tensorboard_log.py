"""A study in TensorBoard: ``TensorBoardLog("logs")`` as a callback, then ``tensorboard --logdir logs``.

value, best, seconds, deciding    one point per finished trial, at its number
failed                            how many have failed by then
network                           a drawing of each network that became the best
trial-0012/curve                  the learning curve of trial 12, a run of its own, so that curves lie over each other
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasbot._files import file_errors
from nasbot.callbacks.follower import Ended, Follower
from nasbot.drawing.draw import draw
from nasbot.errors import missing_extra
from nasbot.plots.style import short
from nasbot.trial import Direction, History, Point, Trial


class TensorBoardLog(Follower):
    """Writes event files that TensorBoard reads; needs the extra ``tensorboard``.

    ``curves=False`` leaves out the learning curves, of which each is a run; ``networks=False`` the drawings.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        direction: str = Direction.MAXIMISE,
        history: History | None = None,
        curves: bool = True,
        networks: bool = True,
    ) -> None:
        super().__init__(direction=direction, history=history)
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise missing_extra("TensorBoardLog", "tensorboard") from None
        self._event, self._summary, self._writer_of = event_pb2.Event, summary_pb2.Summary, EventFileWriter
        self.folder = Path(folder)
        self._with_curves, self._with_networks = curves, networks
        self._n_failed = 0 if history is None else len(history.failed)
        self._writers: dict[str, Any] = {}
        self._writer("")  # so that a folder that cannot be written is noticed at once

    def reported(self, trial: Trial, points: Sequence[Point]) -> None:
        """Points of the curve."""
        if self._with_curves:
            run = f"trial-{trial.number:04d}"
            for point in points:
                self._write(run, point.step, self._scalar("curve", point.value))

    def ended(self, trial: Trial, end: Ended) -> None:
        """The outcome."""
        self._n_failed += bool(end.cause)
        figures = {
            "value": end.value,
            "best": end.best,
            "seconds": trial.seconds,
            "deciding": trial.origin.seconds.get("deciding"),
            "failed": float(self._n_failed),
        }
        for name, figure in figures.items():
            if figure is not None:
                self._write("", trial.number, self._scalar(name, figure))
        if end.is_record and end.value is not None and self._with_networks:
            self._write("", trial.number, self._picture(trial, end.value))
        self._writers[""].flush()
        self._close(f"trial-{trial.number:04d}")

    def interrupted(self, trial: Trial) -> None:
        """Its curve begins again."""
        self._close(f"trial-{trial.number:04d}")

    def close(self) -> None:
        """Write what is left and close all files."""
        for run in list(self._writers):
            self._close(run)

    def _write(self, run: str, step: int, value: Any) -> None:
        import time

        event = self._event(wall_time=time.time(), step=step, summary=self._summary(value=[value]))
        self._writer(run).add_event(event)

    def _writer(self, run: str) -> Any:
        if run not in self._writers:
            with file_errors(f"cannot write logs to {self.folder / run}"):
                self._writers[run] = self._writer_of(str(self.folder / run))
        return self._writers[run]

    def _close(self, run: str) -> None:
        writer = self._writers.pop(run, None)
        if writer is not None:
            writer.close()

    def _scalar(self, name: str, value: float) -> Any:
        return self._summary.Value(tag=name, simple_value=value)

    def _picture(self, trial: Trial, value: float) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = draw(trial.arch, Path(folder) / "network.png", title=f"trial {trial.number}: {short(value)}")
            content = path.read_bytes()
        width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))  # from the PNG's header
        image = self._summary.Image(height=height, width=width, colorspace=3, encoded_image_string=content)
        return self._summary.Value(tag="network", image=image)
