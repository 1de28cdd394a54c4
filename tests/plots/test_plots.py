"""Every plot draws what its series says, whatever the study, without a warning."""

import itertools
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text as Words

from nasbot.architecture import Architecture, Layer
from nasbot.cli.plot import NAMES
from nasbot.drawing.diff import Change, EdgeChange, LayerChange, NetworkDiff, network_diff
from nasbot.drawing.diff_drawing import diff_scene
from nasbot.drawing.layout import Box
from nasbot.drawing.scene import Rectangle, Text
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.plots import plot as plots
from nasbot.plots import series, style
from nasbot.plots.plot import PLOTS, AxesPlot, PlotOptions, ScenePlot, figure, plot
from nasbot.plots.snapshot import Snapshot
from nasbot.trial import Direction, Failed, FailureCause, History, Provenance
from tests.drawing.geometry import overlapping

from .studies import ALL_FAILED, EXTREMES, ONE, as_minimised, by_hand, completed, failed, grown

ON_AXES = [name for name, entry in PLOTS.items() if isinstance(entry, AxesPlot)]
SCENES = [name for name, entry in PLOTS.items() if isinstance(entry, ScenePlot)]


@pytest.fixture(scope="module")
def sixty():
    history = History(grown(60).trials, Direction.MINIMISE)
    return Snapshot(history, "sixty", {"searcher": {"name": "NASBOT", "acquisition": "log-ei"}})


@pytest.fixture(scope="module")
def images():
    return Snapshot(grown(60, "cnn"), name="images")


def drawn(made):
    """Rendered once, so that every warning of layout and fonts has had its chance."""
    FigureCanvasAgg(made).draw()
    return made


def texts(made):
    return " ".join(text.get_text() for ax in made.axes for text in ax.texts)


ELSEWHERE = ("rungs", "importance", "slice")  # there are no rungs and no params: test_rungs.py, test_params.py


@pytest.mark.parametrize("name", [name for name in ON_AXES if name not in ELSEWHERE])
def test_every_plot_shows_data(name, sixty):
    made = drawn(figure(sixty, name))
    panels = [ax for ax in made.axes if ax.get_label() != "<colorbar>"]
    assert all(ax.has_data() for ax in panels)
    assert all(ax.get_title(loc="left") for ax in panels)


@pytest.mark.parametrize("name", ["map", "lineage", "layers", "costs"])
def test_networks_of_images_too(name, images):
    assert drawn(figure(images, name)).axes[0].has_data()


@pytest.mark.parametrize("name", ON_AXES)
def test_a_study_half_way_is_drawn(name):
    drawn(figure(as_minimised(), name))


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", ON_AXES)
def test_a_study_with_little_to_show_says_so_or_shows_it(name, extreme):
    made = drawn(figure(EXTREMES[extreme], name))
    for ax in made.axes:
        if ax.get_label() != "<colorbar>":
            assert ax.has_data() or ax.texts
    if extreme == "no trials":
        assert all(word in texts(made) for word in ("no",))
        assert not any(ax.axison for ax in made.axes)


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", SCENES)
def test_drawings_of_networks_cope_with_little_too(name, extreme):
    scene = PLOTS[name].scene(Snapshot(EXTREMES[extreme]), PlotOptions())
    assert scene.shapes
    if extreme != "one value":
        words = " ".join(shape.content for shape in scene.shapes if isinstance(shape, Text))
        assert "no trial" in words


# -- the numbers in the picture --------------------------------------------------------------------------------------


def axes_with(draw, found, **options):
    made = Figure()
    ax = made.subplots()
    draw(found, ax, **options)
    return ax


def test_history_is_drawn_as_it_is():
    found = series.history(as_minimised())
    ax = axes_with(plots.plot_history, found)
    line = next(line for line in ax.lines if len(line.get_xdata()) == 6)
    assert list(line.get_ydata()) == [-1.0, -3.0, -3.0, -3.0, -5.0, -5.0]
    assert list(line.get_xdata()) == [1, 2, 3, 4, 5, 6]
    assert any("−5" in text.get_text() and "trial 4" in text.get_text() for text in ax.texts)
    by_time = axes_with(plots.plot_history, found, by="seconds")
    assert any(list(line.get_xdata()) == [10, 20, 25, 40, 45, 45] for line in by_time.lines)


def test_one_terrible_value_does_not_flatten_the_others():
    history = History((*(completed(n, float(n), rank=n) for n in range(9)), completed(9, -1e9, rank=9)))
    ax = axes_with(plots.plot_history, series.history(history))
    low, high = ax.get_ylim()
    assert -30 < low < 0
    assert 8 < high < 12
    assert any("1 beyond the axis" in text.get_text() for text in ax.texts)


@pytest.mark.parametrize("name", ["history", "curves", "compare", "costs"])
@pytest.mark.parametrize("values", [(1e308, -1e308, 5.0), (2.0, 2.0, 2.0), (1e-320, 0.0, 2e-320)], ids=str)
def test_values_of_any_size_are_drawn(name, values):
    trials = [completed(n, value, rank=n, curve=[(0, value), (0, value)]) for n, value in enumerate(values)]
    drawn(figure(History(tuple(trials)), name))


def test_every_trial_has_its_bar():
    ax = axes_with(plots.plot_timeline, series.timeline(by_hand()))
    bars = [path.get_extents() for collection in ax.collections for path in collection.get_paths()]
    assert sorted((bar.x0, bar.x1) for bar in bars) == [(0, 10), (0, 20), (10, 25), (20, 40), (25, 45), (40, 45)]


def test_the_front_is_a_line():
    history = History(
        tuple(
            completed(n, value, rank=n, started=0.0, finished=seconds)
            for n, (seconds, value) in enumerate([(5.0, 2.0), (1.0, 1.0), (3.0, 4.0)])
        )
    )
    ax = axes_with(plots.plot_costs, series.costs(history, "seconds"))
    assert [list(line.get_ydata()) for line in ax.lines] == [[1.0, 4.0]]


def test_forecasts_have_their_intervals():
    ax = axes_with(plots.plot_forecasts, series.surrogate(by_hand()))
    spans = [segment.tolist() for c in ax.collections if hasattr(c, "get_segments") for segment in c.get_segments()]
    assert sorted(spans) == [[[2.0, 1.5], [2.0, 3.5]], [[5.0, 2.0], [5.0, 4.5]]]


def test_lineage_lights_the_winner_s_line():
    ax = axes_with(plots.plot_lineage, series.lineage(by_hand()))
    lit = [c for c in ax.collections if hasattr(c, "get_segments") and c.get_linewidths()[0] > 2]
    assert [segment.tolist() for c in lit for segment in c.get_segments()] == [[[0, 1], [0.5, 1], [0.5, 1], [1, 1]]]
    words = [text.get_text() for text in ax.texts]
    assert [words[words.index("1") + i] for i in range(3)] == ["1", "3", "pool"]
    assert "skip, swap_label" in words


@pytest.mark.parametrize(("n", "n_line"), [(12, 5), (60, 30), (300, 22), (1200, 600)])
def test_labels_of_a_crowded_lineage_do_not_overlap(n, n_line):
    """Boxes of all words as they are drawn, with values and numbers of many digits, and many modifiers."""
    trials = [completed(0, -0.0123456 * n, rank=0)]
    for number in range(1, n):
        parent = number - 1 if number >= n - n_line else number * 7919 % number
        modifiers = ("swap_label", "increase_en_masse", "duplicate_path", "skip")[: 1 + number % 4]
        origin = Provenance(parents=(parent,), modifiers=modifiers)
        trials.append(completed(number, -0.0123456 * (n - number), rank=number, origin=origin))
    made = drawn(figure(History(tuple(trials)), "lineage"))
    renderer = made.canvas.get_renderer()
    words = [word for word in made.findobj(Words) if word.get_visible() and word.get_text().strip()]
    assert len(words) > 30
    places = {word: word.get_window_extent(renderer) for word in words}
    for one, other in itertools.combinations(words, 2):
        assert not places[one].overlaps(places[other]), (one.get_text(), other.get_text())


def test_a_long_ancestry_is_shortened():
    trials = [completed(0, 0.0, rank=0)]
    trials += [completed(n, float(n), rank=n, origin=Provenance(parents=(n - 1,))) for n in range(1, 80)]
    words = [t.get_text() for t in axes_with(plots.plot_lineage, series.lineage(History(tuple(trials)))).texts]
    assert "58 steps" in words
    assert "79" in words
    assert "40" not in words


def test_the_map_has_every_network_once(images):
    found = series.architecture_map(images)
    ax = axes_with(plots.plot_map, found)
    n_marks = [len(c.get_offsets()) for c in ax.collections]
    assert n_marks[:3] == [55, 5, 0]
    assert n_marks[3:] == [len(found.path), 1]


def test_comparison_has_mean_and_band():
    groups = {"a": [ONE, History((completed(0, 3.5, rank=0), completed(1, 4.0, rank=1)))], "b": [by_hand()]}
    ax = axes_with(plots.plot_comparison, series.comparison(groups))
    assert [list(line.get_ydata()) for line in ax.lines] == [[2.5], [1.0, 3.0, 3.0, 3.0, 5.0, 5.0]]
    assert len(ax.collections) == 1
    assert [text.get_text().split()[0] for text in ax.texts if text.get_text()[0] in "ab"] == ["a", "b"]


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["history", "map", "diff"])
def test_svg_is_well_formed_and_always_the_same(name, sixty, tmp_path):
    first, second = (plot(sixty, name, tmp_path / f"{i}.svg").read_bytes() for i in range(2))
    assert first == second
    assert ET.fromstring(first).tag.endswith("svg")


@pytest.mark.parametrize("name", PLOTS)
def test_png_is_a_picture(name, tmp_path):
    path = plot(by_hand(), name, tmp_path / "a.png")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_names_and_messages_are_text_and_nothing_else(tmp_path):
    hostile = "$\\frac{1}$ <script>alert(1)</script> & $x_"
    trials = (*by_hand(), replace(failed(8, "oom", rank=6), outcome=Failed(FailureCause.OOM, hostile)))
    snapshot = Snapshot(History(trials), name=hostile)
    for name in ("failures", "history"):
        root = ET.parse(plot(snapshot, name, tmp_path / f"{name}.svg")).getroot()
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert any("<script>" in (element.text or "") for element in root.iter())


@pytest.mark.parametrize(
    ("name", "file", "options", "error", "words"),
    [
        ("histoy", "a.svg", {}, OptionError, "expected one of history, timeline"),
        ("history", "a.gif", {}, OptionError, ".svg or .png or .pdf"),
        ("history", "absent/a.svg", {}, FileError, "No such file"),
        ("diff", "absent/a.svg", {}, FileError, "No such file"),
        ("history", "a.svg", {"by": "weeks"}, OptionError, "trials or seconds"),
        ("costs", "a.svg", {"cost": "money"}, OptionError, "parameters, mass, seconds"),
        ("network", "a.svg", {"trial": 60}, StudyError, "no trial 60"),
        ("diff", "a.svg", {"other": -1}, StudyError, "no trial -1"),
        ("layers", "a.svg", {"n_best": 0}, OptionError, "at least 1"),
    ],
)
def test_mistakes(name, file, options, error, words, tmp_path):
    with pytest.raises(error, match=words.replace(".", r"\.")):
        plot(by_hand(), name, tmp_path / file, options=PlotOptions(**options))


def test_drawings_of_networks_are_no_figures():
    with pytest.raises(OptionError, match="drawing of networks"):
        figure(by_hand(), "network")


def test_the_command_names_every_plot():
    assert NAMES.split(", ") == list(PLOTS)


# -- differences -----------------------------------------------------------------------------------------------------


def test_a_difference_laid_over_each_other(sixty):
    shown = 0
    for node in series.lineage(sixty).nodes:
        if node.parent is None or shown == 8:
            continue
        shown += 1
        scene = diff_scene(network_diff(sixty.history[node.parent].arch, sixty.history[node.trial].arch))
        assert overlapping(boxes(scene)) == []
        assert len(boxes(scene)) >= len(sixty.history[node.trial].arch.layers)
    assert shown == 8


def test_layers_in_another_order_stand_side_by_side():
    """relu and tanh have changed places: no picture from top to bottom has both orders."""

    def chain(*labels):
        layers = [Layer("ip"), *(Layer(label, 64) for label in labels), Layer("linear"), Layer("op")]
        return Architecture("mlp-reg", layers, [(i, i + 1) for i in range(len(layers) - 1)])

    kept = [LayerChange(Change.KEPT, u, v, "") for u, v in ((0, 0), (2, 1), (1, 2), (3, 3), (4, 4))]
    edges = [EdgeChange(Change.REMOVED, edge, None) for edge in ((0, 1), (1, 2), (2, 3))]
    edges += [EdgeChange(Change.ADDED, None, edge) for edge in ((0, 1), (1, 2), (2, 3))]
    edges.append(EdgeChange(Change.KEPT, (3, 4), (3, 4)))
    diff = NetworkDiff(chain("relu", "tanh"), chain("tanh", "relu"), tuple(kept), tuple(edges), 1.0, 0.1)
    scene = diff_scene(diff, names=("here", "there"))
    words = [shape.content for shape in scene.shapes if isinstance(shape, Text)]
    assert {"here", "there"} <= set(words)
    assert len(boxes(scene)) == 10
    assert overlapping(boxes(scene)) == []


def boxes(scene):
    """The boxes of layers in a drawing; those of the legend are smaller."""
    found = [shape for shape in scene.shapes if isinstance(shape, Rectangle) and shape.height > 15]
    return [Box(shape.x, shape.y, shape.width, shape.height) for shape in found]


# -- style -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (-3.14159, "−3.142"), (12345.0, "12.35k"), (3.4e6, "3.4M"), (float("nan"), "-"), (1e-9, "1e−09")],
)
def test_short_numbers(value, words):
    assert style.short(value) == words


def test_labels_are_moved_apart_and_keep_their_order():
    placed = style.apart([1.0, 1.0, 5.0, 1.1], 1.0)
    ordered = sorted(placed)
    assert min(np.diff(ordered)) >= 1.0 - 1e-9
    assert placed[2] == 5.0
    assert placed[0] < placed[1] < placed[3]


@pytest.mark.parametrize("up", [True, False])
def test_limits_hold_all_that_is_good(up):
    values = [float(v if up else -v) for v in (1, 2, 3, 4, 5, -1000)]
    low, high, n = style.reaching_limits(values, higher_is_better=up)
    assert low < min(values[:5]) < max(values[:5]) < high
    assert n == 1
    assert style.reaching_limits([2.0], higher_is_better=up)[0] < 2.0


def test_all_failed_is_drawn_in_the_colour_of_failure():
    ax = axes_with(plots.plot_failures, series.failures(ALL_FAILED))
    assert [bar.get_width() for bar in ax.patches] == [2, 1]
