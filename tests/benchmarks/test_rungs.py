"""The benchmark of rungs measures what it says."""

import json

import numpy as np
import pytest

from benchmarks import deciding, rungs
from nasbot.architecture import initial_pool
from nasbot.synthetic import SYNTHETIC


def test_a_history_on_rungs_has_as_many_evaluations_and_only_the_best_go_on():
    full = deciding.evaluated("mlp-reg", 26)
    history = rungs.on_rungs(full)
    counts = [sum(trial.fidelity == rung for trial in history.completed) for rung in rungs.RUNGS.rungs]
    assert counts == [18, 6, 2]
    best = {
        rung: {trial.candidate.fingerprint for trial in history.completed if trial.fidelity == rung}
        for rung in rungs.RUNGS.rungs
    }
    low, middle, high = best.values()
    assert high < middle < low


def test_a_fifth_of_the_networks_deceive_below_full_fidelity_and_none_at_it():
    networks = [trial.arch for trial in deciding.evaluated("cnn", 60)]
    f1 = SYNTHETIC["f1"]
    assert all(rungs.deceptive(arch, 1.0) == f1(arch) for arch in networks)
    deceiving = [arch for arch in networks if rungs.deceptive(arch, 1 / 3) != f1(arch)]
    assert 4 <= len(deceiving) <= 22
    values, shown = ([of(arch) for arch in deceiving] for of in (f1, lambda arch: rungs.deceptive(arch, 1 / 9)))
    np.testing.assert_array_equal(np.argsort(values), np.argsort(shown)[::-1])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["deciding", "--evaluations", "13", "--proposals", "1"], "deciding"),
        (["deceptive", "--cost", "10.5", "--seeds", "1"], "deceptive"),
    ],
)
def test_figures_and_verdicts(arguments, name, capsys):
    code = rungs.main(arguments)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    verdicts = [line for line in lines if name in line]
    assert verdicts
    assert code == (0 if all(line["passed"] for line in verdicts) else 1)


def test_a_search_spends_what_it_may(monkeypatch):
    spent = []
    monkeypatch.setattr(rungs, "deceptive", lambda arch, fidelity: spent.append(fidelity) or float(len(arch.layers)))
    rungs.best_for(11.0, 0, rungs.RUNGS)
    assert 10.0 < sum(spent) <= 11.0 + 1e-9
    assert len(spent) > len(initial_pool("cnn"))
