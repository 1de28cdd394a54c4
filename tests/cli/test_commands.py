"""What each command prints and writes when all is well."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Architecture
from nasbot.architecture.pools import initial_pool

from .conftest import Run


def test_version(run: Run):
    result = run("--version")
    assert (result.code, result.out, result.err) == (0, f"nasbot {nasbot.__version__}\n", "")


@pytest.mark.parametrize("command", [(), ("distance",), ("draw",), ("check",), ("pool",), ("demo",), ("run",)])
def test_help_names_every_option_and_exits_with_0(run: Run, command: tuple[str, ...]):
    result = run(*command, "--help")
    assert result.code == 0
    assert result.err == ""
    assert result.out.startswith(f"Usage: {' '.join(('nasbot', *command))} ")
    assert run(*command, "-h").out == result.out


# -- distance --------------------------------------------------------------------------------------------------------


def test_distance_as_json_is_the_api_s_distance(nets: Path, run: Run):
    result = run("distance", "mlp.json", "wide.json", "--json")
    expected = nasbot.distance(Architecture.load("mlp.json"), Architecture.load("wide.json"))
    assert (result.code, result.err) == (0, "")
    assert result.record == {
        "kind": "mlp-reg",
        "preset": "paper",
        "structural_weights": [0.1, 0.2, 0.4, 0.8],
        "d": expected.d.tolist(),
        "d_bar": expected.d_bar.tolist(),
    }
    assert expected.d.min() > 0


def test_distance_takes_weights_and_preset(nets: Path, run: Run):
    record = run("distance", "cnn.json", "cnn.json", "--weights", "0.5, 2", "--preset", "figure", "--json").record
    assert isinstance(record, dict)
    assert (record["structural_weights"], record["preset"], record["d"]) == ([0.5, 2.0], "figure", [0.0, 0.0])


def test_each_preset_brings_its_own_weights(nets: Path, run: Run):
    presets = ("paper", "release", "figure", "log-mass")
    rows = {p: run("distance", "cnn.json", "cnn.json", "--preset", p).out for p in presets}
    assert "0.61" in rows["release"]
    assert "0.5" in rows["figure"]
    assert "0.8" in rows["paper"]
    assert "0.8" in rows["log-mass"]


def test_distance_prints_a_row_for_each_weight(nets: Path, run: Run):
    result = run("distance", "mlp.json", "wide.json", "--weights", "0,0.25")
    expected = nasbot.distance(
        Architecture.load("mlp.json"), Architecture.load("wide.json"), structural_weights=(0, 0.25)
    )
    rows = [line.split() for line in result.out.splitlines() if line[:3].strip().isdigit() or line.startswith(" 0.25")]
    assert rows == [
        ["0", f"{expected.d[0]:,.10g}", f"{expected.d_bar[0]:.6f}"],
        ["0.25", f"{expected.d[1]:,.10g}", f"{expected.d_bar[1]:.6f}"],
    ]


def test_explain_shows_the_matching_and_adds_up(nets: Path, run: Run):
    text = run("distance", "mlp.json", "wide.json", "--explain")
    first, second = Architecture.load("mlp.json"), Architecture.load("wide.json")
    assert str(nasbot.explain(first, second)) in text.out
    record = run("distance", "mlp.json", "wide.json", "--explain", "--weights", "0.1,0.8", "--json").record
    assert isinstance(record, dict)
    for d, matching in zip(record["d"], record["matchings"], strict=True):
        parts = (matching[part] for part in ("label_penalty", "unassigned_mass", "structural_penalty"))
        np.testing.assert_allclose(sum(parts), d, rtol=1e-12)


# -- draw ------------------------------------------------------------------------------------------------------------


def test_draw_writes_a_picture_and_says_where(nets: Path, run: Run):
    result = run("draw", "cnn.json", "picture.svg")
    assert (result.code, result.out, result.err) == (0, "drew picture.svg\n", "")
    assert "conv3 16" in (nets / "picture.svg").read_text()


def test_draw_matching_shows_both_networks(nets: Path, run: Run):
    result = run("draw", "mlp.json", "picture.svg", "--matching", "wide.json")
    assert (result.code, result.err) == (0, "")
    picture = (nets / "picture.svg").read_text()
    assert "relu 16" in picture
    assert "tanh 2048" in picture


# -- check -----------------------------------------------------------------------------------------------------------


def test_check_describes_a_valid_network(nets: Path, run: Run):
    result = run("check", "mlp.json")
    arch = Architecture.load("mlp.json")
    assert (result.code, result.err) == (0, "")
    for text in ("mlp.json: a valid network", "mlp-reg", "5 (2 processing, 1 decision)", arch.fingerprint, "inside"):
        assert text in result.out


def test_check_lists_what_lies_outside_the_search_space_without_failing(nets: Path, run: Run):
    result = run("check", "wide.json")
    assert result.code == 0
    assert "outside the default one, 2 violations" in result.out
    assert "2,048" in result.out
    record = run("check", "wide.json", "--json").record
    assert isinstance(record, dict)
    assert (record["valid"], record["in_search_space"]) == (True, False)
    assert [violation["layer"] for violation in record["violations"]] == [1, 2]


def test_check_as_json_of_an_invalid_network_lists_what_is_wrong(nets: Path, run: Run):
    broken = json.loads((nets / "mlp.json").read_text())
    broken["layers"][1]["label"] = "gelu"
    (nets / "broken.json").write_text(json.dumps(broken))
    result = run("check", "broken.json", "--json")
    assert result.code == 5
    assert isinstance(result.record, dict)
    assert result.record["valid"] is False
    assert result.record["error"] == "InvalidArchitectureError"
    assert [violation["rule"] for violation in result.record["violations"]] == ["label"]
    assert result.err.count("\n") == 1


# -- pool ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "kind"), [("mlp", "mlp-reg"), ("mlp-class", "mlp-class"), ("cnn", "cnn")])
def test_pool_lists_the_initial_pool(run: Run, asked: str, kind: str):
    result = run("pool", asked, "--json")
    assert isinstance(result.record, list)
    assert [Architecture.from_dict(record) for record in result.record] == list(initial_pool(kind))
    table = run("pool", asked).out
    assert all(record["name"] in table and record["fingerprint"][:12] in table for record in result.record)


def test_pool_writes_networks_and_pictures(nets: Path, run: Run):
    assert run("pool", "cnn", "-o", "new/folder", "--draw").code == 0
    written = {path.name for path in (nets / "new/folder").iterdir()}
    assert written == {f"cnn-{i}.{ending}" for i in range(10) for ending in ("json", "svg")}
    assert [Architecture.load(f"new/folder/cnn-{i}.json") for i in range(10)] == list(initial_pool("cnn"))


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_draw_by_the_ending(run, tmp_path, ending):
    net = tmp_path / "net.json"
    nasbot.initial_pool("cnn")[0].save(net)
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    assert run("draw", str(net), str(first)).code == run("draw", str(net), str(second)).code == 0
    assert first.read_bytes().startswith({".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}[ending])
    assert first.read_bytes() == second.read_bytes()


def test_the_shell_completes_commands_and_options():
    """In a process, as a shell asks; typer has its part of it only where it was asked for when the app was made."""

    def said(complete, **more):
        asked = os.environ | {"_NASBOT_COMPLETE": complete} | more
        done = subprocess.run([sys.executable, "-m", "nasbot"], env=asked, capture_output=True, text=True, check=True)
        return done.stdout

    assert said("complete_bash", COMP_WORDS="nasbot st", COMP_CWORD="1").split() == ["status", "stop"]
    assert "--budget" in said("complete_zsh", _TYPER_COMPLETE_ARGS="nasbot run --bu")
    for shell in ("bash", "zsh", "fish"):
        assert f"_NASBOT_COMPLETE=complete_{shell}" in said(f"source_{shell}")
