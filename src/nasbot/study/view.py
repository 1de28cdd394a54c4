"""A study to look at: what is recorded of it, what its searcher believes, and whether anybody drives it.

Reading changes nothing; ``study.py`` has the study that is driven, ``driver.py`` what drives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from nasbot._display import display
from nasbot._rng import Role, checked_seed, stream
from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.errors import NasbotError, StudyError
from nasbot.searchers.base import Explains, ExplainsParams, Proposal, ProposesMany, Recommends, Searcher
from nasbot.searchers.effect import Effect, Effects, ParamEffect, Start
from nasbot.searchers.promotion import why
from nasbot.storage import Address, PartedStorage, Run, Storage, open_storage
from nasbot.study.deciding import DecidingTime
from nasbot.study.runs import numeric_differences
from nasbot.study.settings import fidelity_of_settings, naming_vocabulary
from nasbot.study.settled import Outlook, outlook_of
from nasbot.study.status import StudyStatus, status_of
from nasbot.trial import NOT_PROPOSED, Direction, History, Scored, Trial

if TYPE_CHECKING:
    import pandas as pd


MOST_AT_ONCE = 2000  # trials of a study that is only read


def _start(history: History, trial: Trial) -> Start:
    """What became of a network that was chosen before anything was known; ranked among trainings as long as its own."""
    turned = history.direction.turned
    alike = [turned(t.value) for t in history.completed if t.fidelity == trial.fidelity and t.value is not None]
    rank = None if trial.value is None else 1 + sum(value > turned(trial.value) for value in alike)
    children = tuple(t.number for t in history if trial.number in t.origin.parents)
    return Start(trial.candidate, trial.origin.searcher, trial.value, rank, len(alike), children)


def _row(trial: Trial) -> dict[str, object]:
    """What is known of a trial, flat: its params and its numeric details under their own names."""
    row: dict[str, object] = {
        "number": trial.number,
        "state": str(trial.state),
        "value": trial.value,
        "failure": None if trial.cause is None else str(trial.cause),
        "message": trial.message or None,
        "started": trial.started,
        "finished": trial.finished,
        "seconds": trial.seconds,
        "fidelity": trial.fidelity,
        "layers": len(trial.arch.processing_layers),
        "mass": float(trial.arch.total_mass),
        "searcher": trial.origin.searcher,
        "fingerprint": trial.arch.fingerprint,
    }
    row |= {f"params.{name}": value for name, value in trial.candidate.params.items()}
    details = trial.details if isinstance(trial.outcome, Scored) else {}
    plain = {name: value for name, value in details.items() if isinstance(value, int | float)}
    return row | {f"details.{name}": value for name, value in plain.items()}


class StudyView:
    """A study to look at. Of one that is being driven elsewhere it shows what is recorded at the moment."""

    def __init__(self, storage: Storage, searcher: Searcher | None = None) -> None:
        self._storage = storage
        self._searcher = searcher
        settings = storage.settings()
        if settings is None:
            raise StudyError("there is no study yet")
        self.settings: Mapping[str, Json] = settings
        self.direction = Direction.of(str(settings.get("direction", Direction.MAXIMISE)))
        self.seed = checked_seed(settings.get("seed"))

    @classmethod
    def read(
        cls, where: str | Path | Address, *, vocabulary: Vocabulary | None = None, searcher: Searcher | None = None
    ) -> StudyView:
        """The study of this name, file or address, for reading; it may be running.

        ``vocabulary`` is needed where it is neither built in nor named by ``nasbot.use_vocabulary``; ``searcher`` where
        it is not built in, and only for explanations.
        """
        storage = open_storage(where, vocabulary=vocabulary, read_only=True)
        try:
            return StudyView(storage, searcher)
        except BaseException:
            storage.close()
            raise

    @property
    def history(self) -> History:
        """All trials so far."""
        with naming_vocabulary(self._storage):
            return self._storage.history()

    @property
    def best(self) -> Trial | None:
        """The best trial so far, None while none is completed."""
        return self.history.best

    @property
    def best_value(self) -> float | None:
        """The best value so far, as the objective gave it."""
        best = self.best
        return None if best is None else best.value

    def status(self) -> StudyStatus:
        """Whether somebody drives the study, who, since when, and how to go on where nobody does."""
        return status_of(self._storage)

    @property
    def runs(self) -> Sequence[Run]:
        """Every stretch of driving so far, the last one last."""
        return self._storage.runs()

    def to_frame(self) -> pd.DataFrame:
        """The trials as a data frame of pandas, a row for each by its number; times are the study's own, in seconds."""
        from nasbot.data.frames import frame_of

        return frame_of([_row(trial) for trial in self._each()], index="number")

    def _each(self) -> Iterator[Trial]:
        """Every trial; of a large study a part at a time, so that few of its networks are held at once."""
        storage = self._storage
        n = storage.n_trials() if isinstance(storage, PartedStorage) and storage.read_only else 0
        if not isinstance(storage, PartedStorage) or n <= MOST_AT_ONCE:
            yield from self.history
            return
        for first in range(0, n, MOST_AT_ONCE):
            yield from storage.some(range(first, min(n, first + MOST_AT_ONCE)))

    # -- beliefs -------------------------------------------------------------------------------------------------------

    @property
    def searcher(self) -> Searcher:
        """What chooses the networks. Of a study that is only read, it is made again from the settings stored.

        That is possible for the built-in searchers and distances, and for vocabularies that are built in or in use;
        StudyError says where it is not.
        """
        if self._searcher is None:
            from nasbot.study.rebuilding import searcher_of_study  # which knows all searchers, and takes its time

            self._searcher = searcher_of_study(self.settings, self.history)
        return self._searcher

    def explain(self, trial: Trial | int) -> Effect | Start:
        """What the searcher believed of this trial's network when it chose it; a Start where nothing was known yet."""
        history = self.history
        known, searcher = known_trial(history, trial), self._explaining()
        before = history.at_proposal(known.number)
        if not before.completed:
            return _start(history, known)
        return searcher.explain(before, known, rng=self._stream(before))

    def why(self, trial: Trial | int) -> str:
        """Why this training was stopped, promoted, discarded or a final, in words; empty where nothing is to be said.

        A training below the full length is "promoted" once its candidate is trained longer, "promotable" while it is
        among the best of its rung, and "discarded" below them.
        """
        return why(self.history, self._known_trial(trial), fidelity_of_settings(self.settings))

    def outlook(self) -> Outlook | None:
        """What the next trials promise against the noise, and whether that settles it; None where nobody can say."""
        return outlook_of(self.history)

    def what_if(self) -> Effects:
        """What the searcher expects of every one-step edit of the best network so far, the most promising first."""
        history = self.history
        return self._explaining().what_if(history, rng=self._stream(history))

    def param_effects(self) -> tuple[ParamEffect, ...]:
        """How much each param matters, and what its values would give the best candidate; the most important first."""
        history, searcher = self.history, self.searcher
        if not isinstance(searcher, ExplainsParams):
            raise StudyError(f"{searcher.name} has no beliefs about params; searchers with a surrogate (NASBOT) have")
        return searcher.param_effects(history, rng=self._stream(history))

    def recommend(self) -> Trial | None:
        """The trial whose network to train again: the best as its searcher believes, noise taken out of the values.

        The best of many noisy values is partly luck, and a searcher with a surrogate (NASBOT, TreeBO) knows what the
        networks near it were worth. Of a searcher without one, or one of a user's own that is not at hand, it is
        ``best``; None while no trial is completed.
        """
        history = self.history
        try:
            searcher = self.searcher
        except StudyError:
            return history.best
        if not isinstance(searcher, Recommends):
            return history.best
        return searcher.recommend(history, rng=self._stream(history))

    def deciding_time(self) -> DecidingTime:
        """How long choosing networks has taken so far, and with what."""
        return DecidingTime.of(self.history)

    def replay(self) -> Iterator[tuple[Trial, Proposal]]:
        """Every trial that was proposed, with the proposal that its history gives now: they should agree."""
        history = self.history
        batch: tuple[int, Sequence[Proposal]] = (-1, ())
        for trial in history:
            if trial.origin.searcher in NOT_PROPOSED:
                continue
            first, size = _batch_of(trial)
            if size and first != batch[0]:
                batch = (first, self._propose_many(history.at_proposal(first), size))
            place = trial.number - first
            if size and place < len(batch[1]):
                yield trial, batch[1][place]
            else:
                yield trial, self._propose(history.at_proposal(trial.number))

    def replay_differences(self) -> list[str]:
        """Why a replay may propose other networks here: what its last bits depend on and is other than in the runs.

        Nothing where processor features, BLAS kernels and versions are those of every run.
        """
        return list(dict.fromkeys(line for run in self.runs for line in numeric_differences(run)))

    def _propose(self, history: History) -> Proposal:
        return self.searcher.propose(history, rng=self._stream(history))

    def _propose_many(self, history: History, n: int) -> Sequence[Proposal]:
        assert isinstance(self.searcher, ProposesMany)
        return self.searcher.propose_many(history, n, rng=self._stream(history))

    def _stream(self, history: History) -> np.random.Generator:
        """The random numbers for the trial that follows this history."""
        return stream(self.seed, len(history), Role.PROPOSAL)

    def _explaining(self) -> Explains:
        if not isinstance(self.searcher, Explains):
            raise StudyError(
                f"{self.searcher.name} has no beliefs to explain; searchers with a surrogate (NASBOT) have"
            )
        return self.searcher

    def _known_trial(self, trial: Trial | int) -> Trial:
        return known_trial(self.history, trial)

    def __repr__(self) -> str:
        described = self.settings.get("searcher")
        searcher = described.get("name", "") if isinstance(described, Mapping) else ""
        return f"<{type(self).__name__}: {self._counted()}{searcher}, {self.direction}, seed {self.seed}>"

    def _counted(self) -> str:
        """Trials by state and the best value, where the study is still open."""
        try:
            history = self.history
        except NasbotError:
            return ""
        best = history.best
        return f"{history.counted()}{'' if best is None else f', best {best.value:.6g} (trial {best.number})'}; "

    def _repr_html_(self) -> str:
        return str(display("study.html")(self))

    def close(self) -> None:
        """Let go of the study's file."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def known_trial(history: History, trial: Trial | int) -> Trial:
    """The trial of this number as the history has it; StudyError where there is none."""
    number: object = trial.number if isinstance(trial, Trial) else trial
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(history):
        raise StudyError(f"there is no trial {str(number)[:40]}; the study has {len(history)}, numbered from 0")
    return history[number]


def _batch_of(trial: Trial) -> tuple[int, int]:
    """The number of the first trial of those chosen together, and how many were wanted; size 0: chosen alone."""
    batch = trial.notes.get("batch")
    if not isinstance(batch, Mapping):
        return trial.number, 0
    first, size = batch.get("first"), batch.get("size")
    is_one = isinstance(first, int) and isinstance(size, int) and 0 <= first <= trial.number and size > 1
    return (first, size) if is_one else (trial.number, 0)  # type: ignore[return-value]  # just checked
