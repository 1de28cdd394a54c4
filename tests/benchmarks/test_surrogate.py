"""The benchmark of the belief says how well networks are ranked, and would say if they were not."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import surrogate
from benchmarks.surrogate import Problem, problems, skill


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogate, "N_FAMILY", 40)
    monkeypatch.setattr(surrogate, "N_KNOWN", (20,))
    monkeypatch.setattr(surrogate, "KINDS", {"f3": "mlp-reg"})


def test_what_distances_tell_is_ranked_and_what_they_do_not_tell_is_not(small: None) -> None:
    (family,) = problems(Path("nothing-there.jsonl"))
    deep = Problem("layers", family.networks, np.array([float(len(arch.layers)) for arch in family.networks]))
    chance = Problem("chance", family.networks, np.random.default_rng(0).random(len(family.networks)))
    assert skill(deep, "log-mass", 4).of_all > 0.8
    assert abs(skill(chance, "log-mass", 4).of_all) < 0.5


def test_trained_networks_come_from_records_and_numbers_are_printed(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (family,) = problems(tmp_path / "none.jsonl")
    records = tmp_path / "smoothness.jsonl"
    with records.open("w") as file:
        for i, arch in enumerate(family.networks):
            result = {"arch": arch.to_dict(), "error": 1.0 + i}
            line = {"experiment": "smoothness", "run": {"dataset": "naval"}, "result": result}
            file.write(json.dumps(line) + "\n")
    assert surrogate.main(["--splits", "1", "--records", str(records), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: set(row) for name, row in found.items()} == {n: set(surrogate.PRESETS) for n in ("naval", "f3")}
    assert all(-1 <= value <= 1 for row in found.values() for s in row.values() for value in s.values())
    assert surrogate.main(["--splits", "1", "--records", str(records)]) == 0
    assert "| naval | " in capsys.readouterr().out
