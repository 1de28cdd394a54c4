"""The comparison of surrogates: what they compare networks by, and the command."""

import numpy as np
import pytest

from experiments import surrogates
from nasbot.architecture import Layer, chain
from nasbot.otmann import Otmann


def networks():
    return [
        chain("mlp-reg", [Layer("relu", 16), Layer("tanh", 64)]),
        chain("mlp-reg", [Layer("tanh", 16), Layer("relu", 64)]),
        chain("mlp-reg", [Layer("relu", 16), Layer("tanh", 64)]),
    ]


def test_counts_do_not_see_order_and_neighbourhoods_do():
    a, b, c = surrogates.label_counts(networks())
    assert np.array_equal(a, b)
    a, b, c = surrogates.wl_counts(networks())
    assert np.array_equal(a, c)
    assert not np.array_equal(a, b)


def test_every_surrogate_sees_what_its_name_says():
    problem = surrogates.Problem("p", networks(), np.arange(3.0), 2, 0.5, Otmann())
    views = surrogates.Views(problem)
    known, asked = np.array([0, 1]), np.array([2])
    sizes = {name: views.rows(name, known, asked).sizes for name in surrogates.SURROGATES}
    assert sizes["OTMANN"] == (4, 4, 0, 0)
    assert sizes["features"] == (0, 0, 3, 0)
    assert sizes["WL"] == sizes["crude"] == (1, 1, 0, 0)
    assert sizes["OTMANN + features"] == (0, 4, 3, 0)
    assert sizes["crude + features"] == (0, 1, 3, 0)
    assert sizes["OTMANN + WL"] == (4, 1, 0, 0)
    for name in surrogates.SURROGATES:  # the third network is the first
        assert views.rows(name, known, asked).array[:, 0, 0] == pytest.approx(0.0, abs=1e-6), name  # a root of rounding


def test_the_command_prints_a_row_for_each_surrogate(capsys):
    surrogates.main(["--draws", "1", "--problems", "f3"])
    printed = capsys.readouterr().out
    assert "f3, 60 known of 140" in printed
    for name in surrogates.SURROGATES:
        row = next(line for line in printed.splitlines() if line.startswith(f"| {name} |"))
        of_all, of_best = (float(cell) for cell in row.split("|")[2:4])
        assert 0.3 < of_all <= 1.0
        assert -1.0 <= of_best <= 1.0


def test_values_are_warped_as_the_command_says(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(surrogates, "SURROGATES", ("crude",))
    monkeypatch.setattr(
        surrogates, "skill", lambda views, *_: seen.append(views) or surrogates.Skill(0.0, 0.0, 0.0, 0.0)
    )
    for options in ([], ["--warp", "best"]):
        surrogates.main(["--problems", "f3", *options])
    assert [views.problem.options.warp for views in seen] == ["rank", "best"]


def test_too_few_draws_are_refused(capsys):
    with pytest.raises(SystemExit):
        surrogates.main(["--draws", "0"])
    assert "--draws: expected a whole number >= 1, got 0" in capsys.readouterr().err
