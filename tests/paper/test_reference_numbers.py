"""Numbers that others computed: the paper's caption, and two independent implementations on 42 networks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Architecture, PathEnd, PathKind, layer_masses
from nasbot.otmann.presets import PRESETS
from nasbot.testing.reference import reference_distance, reference_masses, reference_path_lengths

CONVENTIONS = ("paper", "release")
KINDS = ("mlp-reg", "mlp-class", "cnn")
PATH_KINDS = (
    ("shortest", PathKind.SHORTEST, "sp"),
    ("longest", PathKind.LONGEST, "lp"),
    ("rw", PathKind.RANDOM_WALK, "rw"),
)
PATH_ENDS = (("from_ip", PathEnd.FROM_INPUT, "ip"), ("to_op", PathEnd.TO_OUTPUT, "op"))


@pytest.fixture(scope="module")
def cases(shared_dir: Path) -> dict[str, Any]:
    return json.loads((shared_dir / "reference" / "otmann_cases.json").read_text())


@pytest.fixture(scope="module")
def networks(cases: dict[str, Any]) -> dict[str, Architecture]:
    return {record["id"]: Architecture.from_dict(record) for record in cases["networks"]}


@pytest.fixture(scope="module")
def figure(shared_dir: Path) -> dict[str, Any]:
    return json.loads((shared_dir / "reference" / "fig1.json").read_text())


def test_all_reference_networks_are_read(networks: dict[str, Architecture]) -> None:
    assert len(networks) == 42
    assert {arch.kind for arch in networks.values()} == set(KINDS)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_masses(cases: dict[str, Any], networks: dict[str, Architecture], convention: str) -> None:
    rules = PRESETS[convention].mass_rules
    for record in cases["networks"]:
        arch, expected = networks[record["id"]], record["masses"][convention]
        np.testing.assert_allclose(layer_masses(arch, rules), expected, rtol=1e-12, err_msg=record["id"])
        np.testing.assert_allclose(reference_masses(arch, rules), expected, rtol=1e-12, err_msg=record["id"])


def test_path_lengths(cases: dict[str, Any], networks: dict[str, Architecture]) -> None:
    for record in cases["networks"]:
        arch = networks[record["id"]]
        reference = reference_path_lengths(arch)
        assert set(record["path_lengths"]) == {"all", *arch.vocabulary.groups}
        for group, by_kind in record["path_lengths"].items():
            for name, kind, short in PATH_KINDS:
                for end_name, end, short_end in PATH_ENDS:
                    expected = by_kind[name][end_name]
                    where = f"{record['id']}: {group} {name} {end_name}"
                    ours = arch.path_lengths.of(kind, end, group)
                    np.testing.assert_allclose(ours, expected, rtol=1e-13, atol=1e-13, err_msg=where)
                    plain = reference[group, short, short_end]
                    np.testing.assert_allclose(plain, expected, rtol=1e-13, atol=1e-13, err_msg=where)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_distance(cases: dict[str, Any], networks: dict[str, Architecture], kind: str, convention: str) -> None:
    table = cases["distances"][kind]
    weights = tuple(table[convention]["d"])
    assert weights == ("0.1", "0.2", "0.4", "0.5", "0.8")
    archs = [networks[name] for name in table["ids"]]
    ours = nasbot.pairwise(archs, structural_weights=[float(nu) for nu in weights], preset=convention)
    for k, nu in enumerate(weights):
        d, d_bar = np.array(table[convention]["d"][nu]), np.array(table[convention]["dbar"][nu])
        assert (d > 0).sum() >= len(archs) * (len(archs) - 1) * 0.9, "a table of zeros would prove nothing"
        # Where the files say 0 up to their solver's rounding, ours is exactly 0: 1e-8 of a mass of one.
        np.testing.assert_allclose(ours.d[k], d, rtol=1e-8, atol=1e-8, err_msg=f"nu {nu}")
        np.testing.assert_allclose(ours.d_bar[k], d_bar, rtol=1e-8, atol=1e-12, err_msg=f"nu {nu}")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_linear_program_gives_the_same_distances(
    cases: dict[str, Any], networks: dict[str, Architecture], convention: str
) -> None:
    rules = PRESETS[convention]
    for kind in KINDS:
        table = cases["distances"][kind]
        for i, j in ((0, 1), (2, 9), (10, 12), (12, 3), (5, 11)):
            a, b = networks[table["ids"][i]], networks[table["ids"][j]]
            penalties = rules.penalties_for(a.vocabulary)
            found = reference_distance(a, b, 0.4, penalties=penalties, mass_rules=rules.mass_rules)
            assert found == pytest.approx(table[convention]["d"]["0.4"][i][j], rel=1e-10)


def test_the_release_table_of_penalties(cases: dict[str, Any]) -> None:
    for kind, table in cases["label_penalties_release"].items():
        penalties = PRESETS["release"].penalties_for(nasbot.architecture.BUILT_IN[kind])
        assert set(penalties.labels) == set(table["labels"])
        for x, row in zip(table["labels"], table["matrix"], strict=True):
            for y, expected in zip(table["labels"], row, strict=True):
                expected = float("inf") if expected is None else expected
                assert penalties.penalty(x, y) == pytest.approx(expected, rel=1e-14), (kind, x, y)


# The caption of the first figure prints (a, c) and (b, c) the other way round.
CAPTION = {"ab": "ab", "ac": "bc", "bc": "ac"}


@pytest.mark.parametrize("pair", CAPTION)
def test_the_six_numbers_of_the_first_figure(figure: dict[str, Any], pair: str) -> None:
    a, b = (Architecture.from_dict(figure["networks"][name]) for name in pair)
    ours = nasbot.distance(a, b, structural_weights=(0.5,), preset="figure")
    printed = CAPTION[pair]
    assert round(float(ours.d[0]), 1) == figure["caption"]["d"][printed]
    assert round(float(ours.d_bar[0]), 4) == figure["caption"]["dbar"][printed]
    d, d_bar = figure["distances_nu_0.5"]["figure rules: fc x1, old table (.1/.14/.25), 4 groups"][pair]
    assert ours.d[0] == pytest.approx(d, rel=1e-12)
    assert ours.d_bar[0] == pytest.approx(d_bar, rel=1e-12)


@pytest.mark.parametrize(
    ("preset", "rules"),
    [
        ("paper", "oracle B (appendix): fc x0.1, .2/.3/.25, 4 groups"),
        ("release", "authors code A: fc x0.1, .2/.283/.5, 4 groups"),
    ],
)
def test_the_other_rule_sets_on_the_first_figure(figure: dict[str, Any], preset: str, rules: str) -> None:
    for pair, (d, d_bar) in figure["distances_nu_0.5"][rules].items():
        a, b = (Architecture.from_dict(figure["networks"][name]) for name in pair)
        ours = nasbot.distance(a, b, structural_weights=(0.5,), preset=preset)
        assert ours.d[0] == pytest.approx(d, rel=1e-10)
        assert ours.d_bar[0] == pytest.approx(d_bar, rel=1e-10)


def test_path_lengths_named_in_the_text(figure: dict[str, Any]) -> None:
    """Section 3: in network c, from layer 1 to layer 14, shortest 5, longest 7, random walk 5.67."""
    lengths = Architecture.from_dict(figure["networks"]["c"]).path_lengths
    found = [lengths.of(kind, PathEnd.TO_OUTPUT)[1] for kind in PathKind]
    assert [round(float(x), 2) for x in found] == [5, 7, 5.67]
