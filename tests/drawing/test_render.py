"""Files: what is written, what is refused, and that text is as wide as was reckoned with."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from nasbot.drawing.draw import draw, network_scene, to_svg
from nasbot.drawing.render import MAX_PIXELS, MAX_PIXELS_A_SIDE, pixels_per_unit, svg
from nasbot.drawing.scene import Path, Rectangle, Scene, Text, text_width
from nasbot.errors import FileError, OptionError
from tests.drawing.geometry import chain, mlp, network, network_with_label, parallel
from tests.drawing.test_draw import HOSTILE_LABELS

SVG = "{http://www.w3.org/2000/svg}"


def png_size(path):
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def test_svg_has_a_box_and_texts_for_every_layer_and_a_line_for_every_edge():
    arch = network("cnn", 24)
    root = ElementTree.fromstring(to_svg(arch))
    assert root.get("viewBox").split()[2:] == [root.get("width"), root.get("height")]
    assert len(root.findall(f".//{SVG}rect")) == 1 + 24
    assert len(root.findall(f".//{SVG}path")) == 2 * len(arch.edges)
    assert len(root.findall(f".//{SVG}text")) == 3 * 24
    assert root.find(f"{SVG}title").text == f"cnn network of 24 layers and {len(arch.edges)} edges"


def test_svg_is_self_contained_and_brings_its_own_background():
    text = to_svg(network("mlp-reg", 15))
    assert "href" not in text
    assert "url(" not in text
    assert "<style" not in text
    assert ElementTree.fromstring(text).find(f"{SVG}rect").get("fill") == "#ffffff"


@pytest.mark.parametrize("name", HOSTILE_LABELS)
def test_svg_keeps_any_label_as_text(name):
    root = ElementTree.fromstring(to_svg(network_with_label(name)))
    assert f"{name} 1000000" in [element.text for element in root.iter(f"{SVG}text")]
    assert {element.tag for element in root.iter()} == {
        SVG + tag for tag in ("svg", "title", "g", "rect", "path", "text")
    }


def test_characters_that_xml_cannot_hold_are_replaced():
    text = to_svg(network("mlp-reg", 8), title="a\x00b\ud800c\x1b")
    assert "a\ufffdb\ufffdc\ufffd" in [element.text for element in ElementTree.fromstring(text).iter(f"{SVG}text")]
    text.encode("utf-8")


def test_paths_are_written_as_they_are():
    line = Path((0, 0), (((0, 0), (10, 0), (10, 0)), ((10, 4), (12.04, 6), (14, -0.01))), stroke="#000000")
    shape = Rectangle(1, 2, 3, 4, "#ff0000")
    text = svg(Scene(20, 10, (line, shape), "a & b"), scale=2)
    assert 'd="M0 0L10 0C10 4 12 6 14 0"' in text
    assert '<rect x="1" y="2" width="3" height="4"/>' in text
    assert 'viewBox="0 0 20 10" width="40" height="20"' in text
    assert "<title>a &amp; b</title>" in text


def test_the_ending_decides_and_the_path_comes_back(tmp_path):
    arch = network("mlp-class", 15)
    assert arch.draw(tmp_path / "net.svg") == tmp_path / "net.svg"
    assert (tmp_path / "net.svg").read_text(encoding="utf-8") == to_svg(arch)
    assert draw(arch, str(tmp_path / "NET.PNG")) == tmp_path / "NET.PNG"
    scene = network_scene(arch)
    width, height = png_size(tmp_path / "NET.PNG")
    assert (width, height) == pytest.approx((2 * scene.width, 2 * scene.height), abs=2)


def test_scale_enlarges(tmp_path):
    arch = network("mlp-class", 8)
    small, large = (png_size(draw(arch, tmp_path / f"{s}.png", scale=s)) for s in (0.5, 1.5))
    assert large[0] == pytest.approx(3 * small[0], abs=4)
    text = draw(arch, tmp_path / "a.svg", scale=3).read_text()
    root = ElementTree.fromstring(text)
    assert float(root.get("width")) == pytest.approx(3 * float(root.get("viewBox").split()[2]), abs=0.3)


def test_drawing_twice_gives_the_same_bytes(tmp_path):
    arch = network("cnn", 33)
    first, second = (draw(arch, tmp_path / f"{i}.png").read_bytes() for i in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["net.gif", "net", "net.svg.gz", ".svg"])
def test_other_endings_are_refused_by_name(tmp_path, name):
    with pytest.raises(OptionError, match=r"\.svg or \.png"):
        draw(network("mlp-reg", 8), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_a_scale_must_be_a_size(tmp_path, scale):
    with pytest.raises(OptionError, match="scale"):
        draw(network("mlp-reg", 8), tmp_path / "a.svg", scale=scale)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_unwritable_paths_are_file_errors(tmp_path, ending):
    missing = tmp_path / "no" / f"net.{ending}"
    with pytest.raises(FileError, match=r"cannot write .*no.net"):
        draw(network("mlp-reg", 8), missing)
    (tmp_path / f"folder.{ending}").mkdir()
    with pytest.raises(FileError, match="cannot write"):
        draw(network("mlp-reg", 8), tmp_path / f"folder.{ending}")


@pytest.mark.parametrize("name", HOSTILE_LABELS)
def test_png_takes_any_label(tmp_path, name):
    draw(network_with_label(name), tmp_path / "a.png")  # pytest turns a warning about missing glyphs into an error


def test_huge_pictures_are_made_smaller():
    for edges in (chain(1000), parallel(998)):
        scene = network_scene(mlp(edges))
        pixels = pixels_per_unit(scene, 1.0)
        assert max(scene.width, scene.height) * pixels <= MAX_PIXELS_A_SIDE + 1
    assert pixels_per_unit(Scene(100, 100, (), ""), 1.0) == 2
    assert pixels_per_unit(Scene(10_000, 10_000, (), ""), 100.0) ** 2 * 1e8 == pytest.approx(MAX_PIXELS)


def test_text_is_never_wider_than_reckoned():
    """Against the font that matplotlib paints in, the widest of the usual ones."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(dpi=1440)  # large, so that rounding to whole pixels does not count
    renderer = FigureCanvasAgg(figure).get_renderer()
    contents = {chr(code) for code in range(32, 127)} | {chr(code) * 12 for code in range(33, 127)}
    contents |= {"leaky-relu 1024", "max-pool /2", "(16,384)", "conv3 512 /2", "äöüßéèñ", "νζδ", "Ω" * 40}
    for content in contents:
        artist = figure.text(0, 0, content, fontsize=11, family="DejaVu Sans", parse_math=False)
        assert artist.get_window_extent(renderer).width / 20 <= text_width(content, 11), content


def test_matplotlib_is_loaded_for_png_alone_and_pyplot_never(tmp_path):
    code = (
        "import sys\n"
        "from nasbot.architecture import Architecture, Layer\n"
        "arch = Architecture('mlp-reg', [Layer('ip'), Layer('linear'), Layer('op')], [(0, 1), (1, 2)])\n"
        "arch.draw(sys.argv[1] + '/a.svg')\n"
        "assert 'matplotlib' not in sys.modules\n"
        "arch.draw(sys.argv[1] + '/a.png')\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_text_shapes_are_centred_on_their_height():
    text = svg(Scene(20, 20, (Text(10, 10, "x", 10, "#000000"),), ""))
    assert '<text x="10" y="13.5">x</text>' in text
