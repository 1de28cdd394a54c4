"""Writes a golden file: what a study's file of the present version of the tables looks like.

    python -m tests.storage.make_golden        # tests/storage/golden/version-N.sqlite and .json, N the present version

Run it once when a version of the tables is released, and never again for that version: the file must be what the code
of its time wrote, so that a migration is tested against the past and not against our idea of it.
"""

import json
import os
from pathlib import Path

from nasbot.architecture.space import SearchSpace
from nasbot.domain import Choice, Fidelity, Float
from nasbot.searchers import RandomSearch
from nasbot.storage import SqliteStorage, _schema, post_request
from nasbot.study import Study
from nasbot.testing.storage_conformance import every_kind_of_trial
from nasbot.trial import Failed, Trial

FOLDER = Path(__file__).with_name("golden")


def fill(study):
    """Trials in every state, with curves, ranks that do not follow numbers, and one that is left running."""
    asked = [study.ask() for _ in range(5)]
    study.report(asked[0], 1, 0.25)
    study.report(asked[0], 2, 0.5)
    study.tell(asked[1], 0.1 + 0.2)
    study.tell(asked[0], -7.25)
    study.tell(asked[2], float("nan"))
    for trial in every_kind_of_trial():
        if isinstance(trial.outcome, Failed):
            study.tell(study.ask(), trial.outcome)


def request_things(study, path):
    """From version 2 on: requests that were heeded and refused, and a run that was closed."""
    post_request(path, "retry", 2)
    post_request(path, "pause")
    study.ask()
    study.close()


def as_record(trial: Trial):
    """A trial in words that do not depend on the storage."""
    return {
        "number": trial.number,
        "state": str(trial.state),
        "value": None if trial.value is None else trial.value.hex(),
        "rank": trial.rank,
        "attempts": trial.attempts,
        "notes": sorted(trial.notes),
        "params": dict(trial.candidate.params),
        "fidelity": trial.fidelity,
        "promoted_from": trial.promoted_from,
        "origin": {name: entry for name, entry in trial.origin.to_dict().items() if name != "seconds"},
        "forecast": None if trial.forecast is None else trial.forecast.to_dict(),
        "curve": [[point.step, point.value.hex()] for point in trial.curve],
        "fingerprint": trial.arch.fingerprint,
    }


def make() -> Path:
    path = FOLDER / f"version-{_schema.VERSION}.sqlite"
    assert not path.exists(), f"{path} is released"
    os.chdir("/")  # the record of a run says where it was driven
    params = {"learning_rate": Float(1e-3, 1e-1, log=True), "schedule": Choice("cosine", "constant")}
    searcher = RandomSearch(space=SearchSpace("mlp-reg"), params=params, fidelity=Fidelity())
    with Study.open(path, searcher, seed=5, direction="minimise", context={"data": "golden"}) as study:
        fill(study)
        request_things(study, path)
    reader = SqliteStorage(path, read_only=True)
    record = {"settings": reader.settings(), "trials": [as_record(trial) for trial in reader.history()]}
    reader.close()
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    for beside in ("-wal", "-shm", ".lock"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    print(make())
