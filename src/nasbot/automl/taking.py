"""Taking the best network of a search away, as the search scored it or trained once more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbot._typing import Json
from nasbot.automl.found import FoundStudy, metrics_of
from nasbot.errors import FileError, StudyError

if TYPE_CHECKING:
    from nasbot.automl.found import FoundTrial
    from nasbot.exporting.model_file import Model


def best_model(study: FoundStudy, *, retrain: bool = False, seed: int = 0) -> Model:
    """The best network so far, with its weights, its preprocessing, and where it comes from.

    With ``retrain`` the network that the study recommends is trained anew, without the search's limit on time.
    StudyError while no trial is completed, FileError where its weights are gone: then only ``retrain`` helps.
    """
    from nasbot.exporting.model_file import Model

    data = study.dataset
    best = _best(study, retrain=retrain)
    network: Any = None
    while network is None:
        try:
            network = best.fit(seed=seed) if retrain else best.model()
        except FileError as error:
            # A study that is being driven may have found a better network meanwhile, and thrown these weights away.
            if (now := _best(study, retrain=retrain)).number == best.number:
                raise FileError(f"{error}; retrain (--retrain) makes new ones") from None
            best = now
    details: dict[str, Json] = {
        "data": data.name,
        "trial": best.number,
        "loss": best.value,
        "retrained": retrain,
        "metrics": {} if retrain else dict(metrics_of(best)),
    }
    return Model(network, data.preprocessing, details)


def export_best(
    study: FoundStudy,
    path: str | Path,
    *,
    to: str | None = None,
    retrain: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write the best network of ``study``; forms, checks and errors are those of ``nasbot.export``."""
    from nasbot.exporting.export import export

    model = best_model(study, retrain=retrain, seed=seed)
    trials = len(study.history.completed)
    how = "trained anew" if retrain else f"validation loss {model.details['loss']:.5g}"
    name, number = study.dataset.name, model.details["trial"]
    title = f"The best of {trials} networks that nasbot tried on {name}: trial {number}, {how}."
    return export(model, path, to=to, title=title, overwrite=overwrite)


def file_name(study_path: Path) -> str:
    """A name for what is exported from a study: that of its file, such that Python can import it."""
    name = re.sub(r"\W", "_", study_path.stem, flags=re.ASCII) or "network"
    return f"network_{name}" if name[0].isdigit() else name


def _best(study: FoundStudy, *, retrain: bool) -> FoundTrial:
    best = study.recommend() if retrain else study.best
    if best is None:
        raise StudyError("no trial is completed yet, so there is no network to take away")
    return best
