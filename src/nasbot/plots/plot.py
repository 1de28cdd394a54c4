"""Every picture of a study by its name: what ``nasbot plot`` draws, and the documentation shows.

plot(study, "history", "history.svg")
figure(study, "map")                       # a matplotlib Figure, for a notebook
progress_plots.plot_history(series.history(study), ax)    # on axes of one's own
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot._files import file_errors
from nasbot.drawing.diff import network_diff
from nasbot.drawing.diff_drawing import diff_scene
from nasbot.drawing.draw import FAINT, FONT_SIZE, INK, TITLE_SIZE, network_scene
from nasbot.drawing.matching import matching_scene
from nasbot.drawing.render import ENDINGS, write_scene
from nasbot.drawing.scene import Scene, Text, text_width
from nasbot.errors import OptionError, StudyError
from nasbot.otmann.matching import explain
from nasbot.plots import series
from nasbot.plots.belief_plots import plot_acquisition, plot_coverage, plot_forecasts, plot_log_density
from nasbot.plots.network_plots import plot_layer_use, plot_ledger, plot_lineage, plot_map
from nasbot.plots.params import param_beliefs, plot_importance, plot_slice
from nasbot.plots.progress_plots import (
    plot_comparison,
    plot_costs,
    plot_curves,
    plot_failures,
    plot_history,
    plot_time_by_trial,
    plot_time_totals,
    plot_timeline,
)
from nasbot.plots.rungs import plot_rungs, rungs
from nasbot.plots.snapshot import Snapshot, Source, parent_of
from nasbot.plots.style import RC, SMALL_SIZE, short
from nasbot.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 160  # of PNG files


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What some plots take beside the study; the others take no notice of it."""

    by: str = "trials"  # history, compare: trials or seconds
    cost: str = "parameters"  # costs: parameters, mass or seconds
    trial: int | None = None  # network, diff, match: which; the best by default
    other: int | None = None  # diff, match: the other; the one it was made of by default
    param: str | None = None  # slice: which; the most important by default
    n_best: int = 10  # layers: how many are the best
    against: tuple[Snapshot, ...] = ()  # compare: the other studies


Draw = Callable[[Any, "Axes"], None]


@dataclass(frozen=True)
class AxesPlot:
    """A plot on one or more axes, all from one series."""

    summary: str
    series: Callable[[Snapshot, PlotOptions], Any]
    panels: Callable[[PlotOptions], tuple[Draw, ...]]
    size: tuple[float, float] = (7.2, 4.0)  # inches
    mosaic: str = "A"  # where panels A, B, … stand: rows apart by semicolons, the wider the oftener named

    def figure(self, snapshot: Snapshot, options: PlotOptions) -> Figure:
        """The plot as a matplotlib Figure of its own."""
        import matplotlib
        from matplotlib.figure import Figure

        found = self.series(snapshot, options)
        with matplotlib.rc_context(RC), np.errstate(all="ignore"):
            made = Figure(figsize=self.size, facecolor="white", layout="constrained")
            axes = made.subplot_mosaic("A" if found.message else self.mosaic)  # a message is said once
            for letter, draw in zip(sorted(axes), self.panels(options), strict=False):
                draw(found, axes[letter])
            if snapshot.name:
                made.suptitle(snapshot.name[:80], x=0.995, ha="right", fontsize=SMALL_SIZE, color=FAINT)
        return made

    def write(self, snapshot: Snapshot, path: Path, options: PlotOptions) -> None:
        """Draw to a .svg, .png or .pdf file."""
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        made = self.figure(snapshot, options)
        canvases = {".svg": FigureCanvasSVG, ".pdf": FigureCanvasPdf, ".png": FigureCanvasAgg}
        own = {".svg": {"Date": None, "Title": self.summary}, ".pdf": {"CreationDate": None, "Title": self.summary}}
        ending = path.suffix.lower()
        canvas = canvases[ending](made)
        metadata: dict[str, str | None] = own.get(ending, {"Software": None})
        with matplotlib.rc_context(RC), np.errstate(all="ignore"):
            canvas.print_figure(str(path), dpi=DPI, metadata=metadata, bbox_inches="tight", pad_inches=0.12)


@dataclass(frozen=True)
class ScenePlot:
    """A drawing of networks."""

    summary: str
    scene: Callable[[Snapshot, PlotOptions], Scene]

    def write(self, snapshot: Snapshot, path: Path, options: PlotOptions) -> None:
        """Draw to a .svg, .png or .pdf file."""
        write_scene(self.scene(snapshot, options), path)


def plot(source: Source, name: str, path: str | Path, *, options: PlotOptions | None = None, title: str = "") -> Path:
    """Draw the plot of this name to a .svg, .png or .pdf file; returns the path. ``title`` names the study in it."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise OptionError(f"cannot draw to {path.name!r}: the name must end in {' or '.join(ENDINGS)}")
    chosen = _chosen(name)
    snapshot = Snapshot.of(source, name=title)
    with file_errors(f"cannot write {path}"):
        chosen.write(snapshot, path, options or PlotOptions())
    return path


def figure(source: Source, name: str, *, options: PlotOptions | None = None, title: str = "") -> Figure:
    """The plot of this name as a matplotlib Figure. Drawings of networks have none: they are written to files."""
    chosen = _chosen(name)
    if not isinstance(chosen, AxesPlot):
        raise OptionError(f"{name} is a drawing of networks, not a matplotlib figure; plot() writes it to a file")
    return chosen.figure(Snapshot.of(source, name=title), options or PlotOptions())


def _chosen(name: str) -> AxesPlot | ScenePlot:
    if name not in PLOTS:
        raise OptionError(f"plot: expected one of {', '.join(PLOTS)}, got {str(name)[:40]!r}")
    return PLOTS[name]


# -- drawings of networks ----------------------------------------------------------------------------------------------


def _trial(snapshot: Snapshot, number: int) -> Trial:
    n = len(snapshot.history)
    if not 0 <= number < n:
        raise StudyError(f"there is no trial {number}; the study has {n}, numbered from 0")
    return snapshot.history[number]


def _chosen_trial(snapshot: Snapshot, options: PlotOptions) -> Trial | None:
    return snapshot.history.best if options.trial is None else _trial(snapshot, options.trial)


def _named(snapshot: Snapshot, trial: Trial) -> str:
    value = trial.value
    return f"trial {trial.number}" + (f" ({trial.state})" if value is None else f": {short(value)}")


def _network(snapshot: Snapshot, options: PlotOptions) -> Scene:
    trial = _chosen_trial(snapshot, options)
    if trial is None:
        return _said("The best network", _no_best(snapshot))
    return network_scene(trial.arch, title=_named(snapshot, trial))


def _pair(snapshot: Snapshot, options: PlotOptions) -> tuple[Trial, Trial] | str:
    """The two trials to compare, or why there are none."""
    trial = _chosen_trial(snapshot, options)
    if trial is None:
        return _no_best(snapshot)
    other = options.other if options.other is not None else parent_of(trial, len(snapshot.history))
    if other is None:
        return f"trial {trial.number} was made of no other network; name one to compare it with"
    return _trial(snapshot, other), trial


def _diff(snapshot: Snapshot, options: PlotOptions) -> Scene:
    pair = _pair(snapshot, options)
    if isinstance(pair, str):
        return _said("Difference of two networks", pair)
    first, second = pair
    names = (_named(snapshot, first), _named(snapshot, second))
    return diff_scene(network_diff(first.arch, second.arch, preset=snapshot.distance.rules), names=names)


def _match(snapshot: Snapshot, options: PlotOptions) -> Scene:
    pair = _pair(snapshot, options)
    if isinstance(pair, str):
        return _said("Match of two networks", pair)
    first, second = pair
    matching = explain(first.arch, second.arch, preset=snapshot.distance.rules)
    return matching_scene(matching, names=(_named(snapshot, first), _named(snapshot, second)))


def _no_best(snapshot: Snapshot) -> str:
    return series.history(snapshot).message


def _said(title: str, message: str) -> Scene:
    width = max(text_width(title, TITLE_SIZE), text_width(message, FONT_SIZE)) + 60
    texts = (Text(width / 2, 34, title, TITLE_SIZE, INK), Text(width / 2, 66, message, FONT_SIZE, FAINT))
    return Scene(int(width) + 1, 100, texts, f"{title}: {message}")


# -- the registry ------------------------------------------------------------------------------------------------------


def _compared(snapshot: Snapshot, options: PlotOptions) -> series.Comparison:
    return series.comparison(series.grouped([snapshot, *options.against]), by=options.by)


def _by(options: PlotOptions) -> tuple[Draw, ...]:
    if options.by not in ("trials", "seconds"):
        raise OptionError(f"by: expected trials or seconds, got {options.by[:40]!r}")
    return (partial(plot_history, by=options.by),)


def _slice(options: PlotOptions) -> tuple[Draw, ...]:
    return (partial(plot_slice, param=options.param),)


def _of(make: Callable[[Snapshot], Any]) -> Callable[[Snapshot, PlotOptions], Any]:
    """A series that takes no options."""
    return lambda snapshot, options: make(snapshot)


def _on(*draws: Draw) -> Callable[[PlotOptions], tuple[Draw, ...]]:
    """Panels that take no options."""
    return lambda options: draws


PLOTS: Mapping[str, AxesPlot | ScenePlot] = {
    "history": AxesPlot("every value, and the best so far", _of(series.history), _by),
    "timeline": AxesPlot("which worker did what, and when", _of(series.timeline), _on(plot_timeline), (7.2, 3.2)),
    "rungs": AxesPlot(
        "who was trained longer, who was discarded, and the cut", _of(rungs), _on(plot_rungs), (7.2, 4.4)
    ),
    "curves": AxesPlot("learning curves", _of(series.curves), _on(plot_curves)),
    "costs": AxesPlot(
        "value against parameters, mass or seconds, with the Pareto front",
        lambda snapshot, options: series.costs(snapshot, options.cost),
        _on(plot_costs),
    ),
    "compare": AxesPlot("this study against others: mean and standard error", _compared, _on(plot_comparison)),
    "network": ScenePlot("the best network, or that of a trial", _network),
    "diff": ScenePlot("what became of a network's parent in it, or the difference of two trials", _diff),
    "match": ScenePlot("how the distance matches two trials", _match),
    "map": AxesPlot(
        "all networks on a plane by their distances, and the way of the best",
        _of(series.architecture_map),
        _on(plot_map),
        (7.2, 5.6),
    ),
    "lineage": AxesPlot("which network was made of which", _of(series.lineage), _on(plot_lineage), (7.2, 5.6)),
    "modifiers": AxesPlot("what each modifier brought", _of(series.ledger), _on(plot_ledger)),
    "surrogate": AxesPlot(
        "was the surrogate right: predictions, coverage, density",
        _of(series.surrogate),
        _on(plot_forecasts, plot_coverage, plot_log_density),
        (10.0, 5.4),
        "AAAABBB;AAAACCC",
    ),
    "importance": AxesPlot(
        "how much each searched param matters", _of(param_beliefs), _on(plot_importance), (7.2, 3.6)
    ),
    "slice": AxesPlot("value expected along a searched param, with its interval", _of(param_beliefs), _slice),
    "acquisition": AxesPlot("what the networks promised", _of(series.acquisition), _on(plot_acquisition)),
    "layers": AxesPlot(
        "layer types among the best networks against all",
        lambda snapshot, options: series.layer_use(snapshot, options.n_best),
        _on(plot_layer_use),
    ),
    "failures": AxesPlot("failures by cause", _of(series.failures), _on(plot_failures), (7.2, 3.2)),
    "time": AxesPlot(
        "seconds of deciding and of training",
        _of(series.time_split),
        _on(plot_time_by_trial, plot_time_totals),
        (9.0, 3.6),
        "AAABB",
    ),
}


def file_name(study: str, name: str) -> str:
    """What ``nasbot plot`` calls the file of a plot where it is not told."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(study).stem).strip("-.") or "study"
    return f"{stem}-{name}.svg"
