"""The Protein bar's script, on a little set and a budget of trials: it runs, keeps what it did, and says who won."""

import json

from benchmarks import protein


def test_a_seed_from_search_to_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(protein, "REPEATS", 1)
    arguments = ["--data", "diabetes", "--budget", "2 trials", "--seeds", "0", "--workers", "1"]
    arguments += ["--out", str(tmp_path / "out.jsonl"), "--studies", str(tmp_path)]
    protein.main(arguments)
    first = capsys.readouterr().out
    record = json.loads((tmp_path / "out.jsonl").read_text())
    assert record["trials"] == 2
    assert not record["found_by_search"]  # two trials are the pool's
    assert record["test"]["found"] == record["test"]["pool"]
    assert set(record["scikit-learn"]) == set(protein.OTHERS)
    assert 0.3 < record["scikit-learn"]["HistGradientBoosting"]["test"] < 1.0
    assert "on 0 of 1 seeds" in first
    protein.main(arguments)  # nothing is run again
    assert capsys.readouterr().out == first
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
