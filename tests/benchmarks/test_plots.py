"""The benchmark of the plots draws all of them, of a study that has everything to show."""

from benchmarks import plots
from nasbot.plots import series
from nasbot.plots.plot import PLOTS


def test_every_plot_is_measured():
    figures, (bar,) = plots.run(1, n_trials=14)
    assert set(figures["seconds"]) == set(figures["bytes"]) == set(PLOTS)
    assert bar.measured == max(figures["seconds"].values())
    assert bar.bar == plots.SECONDS


def test_the_study_has_everything_to_show():
    found = plots.study(30)
    assert [make(found).message for make in (series.surrogate, series.acquisition, series.ledger, series.curves)] == [
        ""
    ] * 4
    assert series.failures(found).n_failed == 2
    assert series.timeline(found).n_workers == plots.N_WORKERS
