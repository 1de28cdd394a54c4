"""One network's picture: what stands in the boxes, whether it fits, how it is coloured."""

from itertools import pairwise

import pytest

from nasbot.architecture import Architecture, Layer
from nasbot.drawing.draw import (
    DECISION_COLOURS,
    END_COLOURS,
    layer_colours,
    layer_texts,
    network_scene,
    short_number,
    to_svg,
)
from nasbot.drawing.layout import Box
from nasbot.drawing.scene import Path, Rectangle, Text, text_width
from tests.drawing.geometry import (
    GRAPHS,
    NETWORKS,
    boxes_entered,
    mlp,
    network,
    network_with_label,
    overlapping,
    sampled,
)

HOSTILE_LABELS = (
    "<script>alert('&\"')</script>",
    "$x_1$",
    "Wm" * 20,
    "層" * 40,
    "😀" * 20,
    "%s{}\\n",
    "a" * 40,
    "]]>-->",
)


def cnn() -> Architecture:
    layers = [Layer("ip"), Layer("conv3", 16), Layer("conv5", 32, 2), Layer("max-pool"), Layer("fc", 8)]
    return Architecture("cnn", [*layers, Layer("softmax"), Layer("op")], [(u, u + 1) for u in range(6)])


def span(text: Text) -> tuple[float, float]:
    width = text_width(text.content, text.size)
    start = {"start": text.x, "middle": text.x - width / 2, "end": text.x - width}[text.anchor]
    return start, start + width


def check_scene(scene) -> None:
    """Boxes apart, each text in its box and clear of the others in it, no line through a box, all on the canvas."""
    rectangles = [shape for shape in scene.shapes if isinstance(shape, Rectangle)]
    boxes = [Box(r.x, r.y, r.width, r.height) for r in rectangles]
    assert overlapping(boxes) == []
    by_box: dict[int, list[tuple[float, float]]] = {}
    for text in (shape for shape in scene.shapes if isinstance(shape, Text)):
        left, right = span(text)
        assert left >= 0
        assert right <= scene.width
        for i, box in enumerate(boxes):
            if box.y < text.y < box.y + box.height and box.x < text.x < box.x + box.width:
                assert box.x < left < right < box.x + box.width
                assert text.size < box.height
                by_box.setdefault(i, []).append((left, right))
    for spans in by_box.values():
        ordered = sorted(spans)
        assert all(a[1] < b[0] for a, b in pairwise(ordered))
    for path in (shape for shape in scene.shapes if isinstance(shape, Path)):
        points = sampled(path.start, path.pieces)
        assert boxes_entered(points, boxes) == []
        assert points.min() >= 0
        assert points[:, 0].max() <= scene.width
        assert points[:, 1].max() <= scene.height


@pytest.mark.parametrize(("kind", "n"), NETWORKS)
@pytest.mark.parametrize("masses", [True, False])
def test_random_networks_have_clean_pictures(kind, n, masses):
    check_scene(network_scene(network(kind, n, seed=2), title=f"{kind} of {n}", masses=masses))


@pytest.mark.parametrize("name", ["the least", "58 branches", "skips 60/200 #0", "nested skips"])
def test_hard_graphs_have_clean_pictures(name):
    _, edges = GRAPHS[name]
    last = max(v for _, v in edges)
    lengthened = {(u, v) for u, v in edges if name == "58 branches" or v < last or u == last - 1}
    check_scene(network_scene(mlp(lengthened)))


@pytest.mark.parametrize("name", HOSTILE_LABELS)
def test_any_label_fits_its_box(name):
    check_scene(network_scene(network_with_label(name), title=name * 3))


def test_a_box_says_index_label_units_stride_and_mass():
    arch = cnn()
    texts = layer_texts(arch, arch.masses)
    names = ["ip", "conv3 16", "conv5 32 /2", "max-pool /2", "fc 8", "softmax", "op"]
    assert [text.name for text in texts] == names
    assert [text.index for text in texts] == list("0123456")
    assert [text.mass for text in texts[1:5]] == ["(16)", "(512)", "(32)", "(25.6)"]
    shown = {shape.content for shape in network_scene(arch).shapes if isinstance(shape, Text)}
    assert shown >= {"conv5 32 /2", "2", "(512)"}


def test_masses_can_be_left_out_and_a_title_put_on():
    scene = network_scene(cnn(), masses=False, title="A small one")
    contents = [shape.content for shape in scene.shapes if isinstance(shape, Text)]
    assert not any("(" in content for content in contents)
    assert "A small one" in contents
    assert scene.width < network_scene(cnn()).width
    assert scene.description == "A small one"


def test_ends_are_pink_decision_layers_green_and_families_told_apart():
    arch = cnn()
    colours = [layer_colours(arch, u) for u in range(7)]
    assert colours[0] == colours[6] == END_COLOURS
    assert colours[5] == DECISION_COLOURS
    assert colours[1] == colours[2]
    assert len({colours[1], colours[3], colours[4], END_COLOURS, DECISION_COLOURS}) == 5


def test_every_edge_gets_an_arrowhead_and_shared_stretches_are_painted_once():
    arch = network("cnn", 42)
    paths = [shape for shape in network_scene(arch).shapes if isinstance(shape, Path)]
    heads = [path for path in paths if path.fill != "none"]
    lines = [path for path in paths if path.fill == "none"]
    assert len(heads) == len(lines) == len(arch.edges)
    tips = {path.start for path in heads}
    assert len(tips) == len(arch.edges)
    pieces = [piece for path in lines for piece in path.pieces]
    assert len(set(pieces)) == len(pieces)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (16, "16"),
        (25.6, "25.6"),
        (0.125, "0.125"),
        (999.96, "1,000"),
        (4096, "4,096"),
        (1234.56, "1,235"),
        (1_048_576, "1.049M"),
        (1e12, "1T"),
        (2.5e20, "2.5e+20"),
    ],
)
def test_short_numbers(value, shown):
    assert short_number(value) == shown


def test_notebooks_get_the_same_svg():
    arch = cnn()
    assert arch._repr_svg_() == to_svg(arch)
    assert to_svg(arch).startswith("<svg ")
