"""The drawing of a matching: widths are masses, ends meet boxes, the numbers below are the matching's."""

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Architecture, Layer
from nasbot.drawing.layout import Box
from nasbot.drawing.matching import (
    HATCH,
    MIN_RIBBON,
    RIBBON_OPACITY,
    draw_plan,
    matching_scene,
    mismatch_colour,
)
from nasbot.drawing.scene import Path, Rectangle, Text
from nasbot.errors import OptionError, VocabularyError
from nasbot.otmann.matching import Matching
from tests.drawing.geometry import boxes_entered, network, network_with_label, overlapping, sampled
from tests.drawing.test_draw import HOSTILE_LABELS, span


def chain(*labels: tuple[str, int]) -> Architecture:
    layers = [Layer("ip"), *(Layer(label, units) for label, units in labels), Layer("linear"), Layer("op")]
    return Architecture("mlp-reg", layers, [(u, u + 1) for u in range(len(layers) - 1)])


def by_hand() -> Matching:
    """Layer 1 of the first is matched half with layer 1 (same label) and a quarter with layer 2; a quarter is left."""
    first, second = chain(("relu", 8)), chain(("relu", 8), ("tanh", 8))
    matched = np.zeros((4, 5))
    matched[0, 0] = matched[2, 3] = matched[3, 4] = 10.0
    matched[1, 1], matched[1, 2] = 50.0, 25.0
    label = np.where(np.eye(4, 5) > 0, 0.0, np.inf)
    label[1, 1], label[1, 2], label[2, 3], label[3, 4] = 0.0, 0.25, 0.0, 0.0
    return Matching(
        first,
        second,
        structural_weight=0.4,
        masses_1=np.array([10.0, 100.0, 10.0, 10.0]),
        masses_2=np.array([10.0, 50.0, 30.0, 10.0, 10.0]),
        label_cost=label,
        structural_cost=np.full((4, 5), 0.5),
        matched_mass=matched,
        unassigned_1=np.array([0.0, 25.0, 0.0, 0.0]),
        unassigned_2=np.array([0.0, 0.0, 5.0, 0.0, 0.0]),
    )


def parts(scene):
    """Layer boxes by column, ribbons (legend left out), stubs (legend left out), texts."""
    boxes = [shape for shape in scene.shapes if isinstance(shape, Rectangle) and shape.radius]
    stubs = [shape for shape in scene.shapes if isinstance(shape, Rectangle) and shape.stroke == HATCH]
    ribbons = [shape for shape in scene.shapes if isinstance(shape, Path) and shape.opacity == RIBBON_OPACITY]
    bottom = max(box.y + box.height for box in boxes)
    above = [ribbon for ribbon in ribbons if sampled(ribbon.start, ribbon.pieces)[:, 1].max() <= bottom]
    texts = [shape for shape in scene.shapes if isinstance(shape, Text)]
    return boxes, above, [stub for stub in stubs if stub.y < bottom], texts


def height(ribbon: Path) -> float:
    return ribbon.pieces[-1][-1][1] - ribbon.start[1]


def check(scene, matching: Matching) -> None:
    boxes, ribbons, stubs, texts = parts(scene)
    frames = [Box(box.x, box.y, box.width, box.height) for box in boxes]
    assert overlapping(frames) == []
    assert len(boxes) == len(matching.first.layers) + len(matching.second.layers)
    assert len(ribbons) == len(list(matching.pairs()))
    assert len(stubs) == np.count_nonzero(matching.unassigned_1) + np.count_nonzero(matching.unassigned_2)
    for path in (shape for shape in scene.shapes if isinstance(shape, Path)):
        points = sampled(path.start, path.pieces)
        assert boxes_entered(points, frames) == []
        assert points.min() >= 0
        assert (points.max(axis=0) <= (scene.width, scene.height)).all()
    for text in texts:
        left, right = span(text)
        assert 0 <= left <= right <= scene.width
        assert text.y + text.size / 2 <= scene.height
    for ribbon in ribbons:
        for x, y in (ribbon.start, ribbon.pieces[0][-1]):
            assert any(
                min(abs(x - box.x), abs(x - box.x - box.width)) < 1e-6
                and box.y - MIN_RIBBON <= y
                and y + height(ribbon) <= box.y + box.height + MIN_RIBBON
                for box in boxes
            )


def test_widths_are_proportional_to_mass():
    _, ribbons, stubs, _ = parts(matching_scene(by_hand()))
    heights = sorted(height(ribbon) for ribbon in ribbons)
    per_mass = heights[-1] / 50
    assert heights == pytest.approx([10 * per_mass] * 3 + [25 * per_mass, 50 * per_mass])
    assert sorted(stub.height for stub in stubs) == pytest.approx([5 * per_mass, 25 * per_mass])


def test_the_mass_of_a_layer_covers_its_side_without_gaps():
    scene = matching_scene(by_hand())
    boxes, ribbons, stubs, _ = parts(scene)
    box = max(boxes, key=lambda box: box.height)  # layer 1 of the first network, mass 100
    inner = box.x + box.width
    tops = [(ribbon.start, height(ribbon)) for ribbon in ribbons] + [((stub.x, stub.y), stub.height) for stub in stubs]
    own = sorted((y, tall) for (x, y), tall in tops if x == inner and box.y <= y < box.y + box.height)
    assert len(own) == 3
    assert own[0][0] - box.y == pytest.approx(box.y + box.height - sum(own[-1]))
    for (top, tall), (next_top, _) in pairwise(own):
        assert next_top == pytest.approx(top + tall)


def test_colours_tell_label_mismatch():
    _, ribbons, _, texts = parts(matching_scene(by_hand()))
    assert sorted(ribbon.fill for ribbon in ribbons) == sorted([mismatch_colour(0)] * 4 + [mismatch_colour(0.25)])
    contents = [text.content for text in texts]
    assert {"same label", "label mismatch 0.25", "unassigned"} <= set(contents)
    assert len({mismatch_colour(p) for p in (0, 0.1, 0.25, 0.5)}) == 4
    assert mismatch_colour(0.5) == mismatch_colour(7.0)


def test_the_three_penalties_stand_below():
    matching = by_hand()
    texts = [text.content for text in parts(matching_scene(matching))[3]]
    assert "label mismatch 6.25  +  unassigned mass 30  +  structure 21  =  distance 57.2" in texts
    assert f"structural weight 0.4, normalised {matching.normalised_distance:.4f}" in texts


def test_boxes_say_the_masses_of_the_matching_and_names_are_headings():
    texts = [text.content for text in parts(matching_scene(by_hand(), names=("left <one>", "right")))[3]]
    assert {"left <one>", "right", "(100)", "relu 8", "tanh 8"} <= set(texts)


@pytest.mark.parametrize("preset", ["paper", "release", "figure", "log-mass"])
@pytest.mark.parametrize(
    ("kind", "sizes"), [("mlp-reg", (8, 24)), ("mlp-class", (42, 33)), ("cnn", (60, 51)), ("cnn", (8, 60))]
)
def test_random_pairs_have_clean_pictures(kind, sizes, preset):
    a, b = (network(kind, n, seed=3) for n in sizes)
    matching = nasbot.explain(a, b, structural_weight=0.2, preset=preset)
    check(matching_scene(matching, names=("first", "second")), matching)


def test_a_network_matched_with_itself_has_level_ribbons_and_nothing_unassigned():
    arch = network("cnn", 24)
    matching = nasbot.explain(arch, arch)
    _, ribbons, stubs, texts = parts(matching_scene(matching))
    assert stubs == []
    assert all(ribbon.start[1] == pytest.approx(ribbon.pieces[0][-1][1]) for ribbon in ribbons)
    assert "label mismatch 0  +  unassigned mass 0  +  structure 0  =  distance 0" in [text.content for text in texts]


def test_networks_without_mass_and_hostile_names_are_drawn(tmp_path):
    for name in HOSTILE_LABELS:
        arch = network_with_label(name)
        path = nasbot.explain(arch, arch).draw(tmp_path / "a.svg", names=(name * 10, name))
        assert name in [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    nothing = by_hand()
    empty = Matching(
        nothing.first,
        nothing.second,
        0.4,
        np.zeros(4),
        np.zeros(5),
        nothing.label_cost,
        nothing.structural_cost,
        np.zeros((4, 5)),
        np.zeros(4),
        np.zeros(5),
    )
    check(matching_scene(empty), empty)


def test_files_and_mistakes(tmp_path):
    a, b = network("mlp-reg", 8), network("mlp-reg", 15)
    assert nasbot.explain(a, b, structural_weight=0.1).draw(tmp_path / "a.png") == tmp_path / "a.png"
    matching = nasbot.explain(a, b)
    assert draw_plan(matching, tmp_path / "b.svg").read_text() == matching.draw(tmp_path / "c.svg").read_text()
    with pytest.raises(OptionError, match=re.escape(".svg or .png")):
        nasbot.explain(a, b).draw(tmp_path / "a.jpg")
    with pytest.raises(VocabularyError):
        nasbot.explain(a, network("cnn", 8))


def test_the_papers_first_figure(shared_dir):
    networks = json.loads((shared_dir / "reference" / "fig1.json").read_text())["networks"]
    b, c = (Architecture.from_dict(networks[name]) for name in "bc")
    matching = nasbot.explain(b, c, structural_weight=0.5, preset="figure")
    check(matching_scene(matching), matching)
