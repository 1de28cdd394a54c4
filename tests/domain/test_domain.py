"""Params beside the network: what is refused, draws and changes of them, differences, and the way through JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot import Candidate, Choice, Domain, Float, Integer, Layer, OptionError, SearchSpace
from nasbot.architecture import chain
from nasbot.domain import params_from_dict, params_to_dict
from nasbot.errors import CodecError

MLP = SearchSpace("mlp-reg")
NETWORK = chain("mlp-reg", [Layer("relu", 16)])
DOMAIN = Domain(
    MLP,
    {
        "rate": Float(1e-4, 1e-1, log=True, default=3e-3),
        "decay": Float(0.0, 0.5),
        "batch": Choice(8, 16, 32, 64, ordered=True, default=32),
        "schedule": Choice("cosine", "step", "constant"),
        "drops": Integer(1, 5, when=("schedule", "step")),
        "warm_up": Integer(1, 1000, log=True),
    },
)
draws = st.integers(0, 2**32 - 1).map(lambda seed: DOMAIN.drawn(np.random.default_rng(seed)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Float(1.0, 1.0), "expected"),
        (lambda: Float(2.0, 1.0), "expected"),
        (lambda: Float(0.0, 1.0, log=True), "log"),
        (lambda: Integer(-1, 5, log=True), "log"),
        (lambda: Integer(1, 2.5), "whole number"),
        (lambda: Float(0.0, 1.0, default=2.0), "from 0 to 1, got '2.0'"),
        (lambda: Integer(0, 4, default=9), "from 0 to 4, got '9'"),
        (lambda: Choice("a", "b", default="c"), "expected one of a, b, got 'c'"),
        (lambda: Choice("a"), "at least two different values"),
        (lambda: Choice("a", "a"), "at least two different values"),
        (lambda: Choice(True, False), "numbers or texts"),
        (lambda: Domain(MLP, {"trial": Float(0, 1)}), "reserved word"),
        (lambda: Domain(MLP, {"learning rate": Float(0, 1)}), "a name that Python could have"),
        (lambda: Domain(MLP, {"a": Float(0, 1, when=("b", 1))}), "there is no param b"),
        (lambda: Domain(MLP, {"a": Choice(1, 2), "b": Float(0, 1, when=("a", 3))}), "expected one of 1, 2"),
        (
            lambda: Domain(MLP, {"a": Choice(1, 2, when=("b", 1)), "b": Choice(1, 2, when=("a", 1))}),
            "leads back to itself",
        ),
    ],
)
def test_what_is_refused(wrong, said):
    with pytest.raises(OptionError, match=said):
        wrong()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": 3}, "param 'size': unknown here; the params of this search are: batch, decay"),
        ({"rate": 1.0}, "param rate: expected a number from 0.0001 to 0.1, got '1.0'"),
        ({"rate": "fast"}, "param rate: expected a number from 0.0001 to 0.1, got 'fast'"),
        ({"rate": True}, "param rate: expected a number from 0.0001 to 0.1, got 'True'"),
        ({"warm_up": 2.5}, "param warm_up: expected a whole number from 1 to 1000, got '2.5'"),
        ({"schedule": 3}, "param schedule: expected one of cosine, step, constant, got '3'"),
        ({"batch": 12}, "param batch: expected one of 8, 16, 32, 64, got '12'"),
        ({"drops": 2}, "param drops: it has a value, but is active only when schedule = step"),
        ({"schedule": "step"}, "param drops: expected a value, got none"),
    ],
)
def test_candidates_outside_are_refused(change, said):
    DOMAIN.check(DOMAIN.candidate(NETWORK))
    with pytest.raises(OptionError, match=said):
        DOMAIN.check(Candidate(NETWORK, {**DOMAIN.default(), **change}))


@given(draws, st.integers(0, 2**32 - 1))
def test_draws_and_changes_lie_inside_and_differ(params, seed):
    changed = DOMAIN.changed(params, np.random.default_rng(seed))
    neighbours = [other for _, other in DOMAIN.neighbours(params)]
    for one in (params, changed, *neighbours):
        DOMAIN.check(Candidate(NETWORK, one))
    assert params not in (changed, *neighbours)


@given(draws)
def test_numbers_lie_on_a_grid(params):
    """Of 3 % of the unit scale, or at the default: two draws that differ differ visibly."""
    for name in ("rate", "decay"):
        unit = DOMAIN.params[name].unit(params[name])
        off = abs(unit / 0.03 - round(unit / 0.03))
        assert off < 0.02 or params[name] == DOMAIN.params[name].default or unit == 1.0


@given(st.lists(draws, min_size=2, max_size=4))
def test_differences_are_symmetric_within_one_and_zero_on_equals(several):
    rows = DOMAIN.differences(several, several)
    assert rows.shape == (6, len(several), len(several))
    assert (rows >= 0).all()
    assert (rows <= 1).all()
    assert np.array_equal(rows, rows.transpose(0, 2, 1))
    for i, one in enumerate(several):
        for j, other in enumerate(several):
            assert (rows[:, i, j] == 0).all() == (one == other)


def test_differences_of_choices_and_of_inactive_params():
    cosine, step = DOMAIN.default(), DOMAIN.completed({"schedule": "step"})
    rows = dict(zip(DOMAIN.params, DOMAIN.differences([cosine], [cosine, step, {**cosine, "batch": 8}]), strict=True))
    assert rows["schedule"].tolist() == [[0, 1, 0]]
    assert rows["drops"].tolist() == [[0, 0.5, 0]]
    assert rows["batch"][0] == pytest.approx([0, 0, 2 / 3])


def test_the_way_through_json_is_exact_and_strict():
    record = json.loads(json.dumps(params_to_dict(DOMAIN.params)))
    assert params_from_dict(record) == DOMAIN.params
    for name, entry in (
        ("rate", {"low": "1"}),
        ("rate", {"low": 1.0}),
        ("batch", {"values": [8]}),
        ("decay", {"x": 1}),
    ):
        with pytest.raises(CodecError, match=f"param {name}"):
            params_from_dict({**record, name: {**record[name], **entry}})


def test_the_prior_is_highest_at_its_centre_and_leaves_out_what_it_does_not_name():
    centre = {"rate": 1e-2, "batch": 8}
    at = {**DOMAIN.default(), **centre}
    assert DOMAIN.log_prior(at, centre) == 0
    assert DOMAIN.log_prior({**at, "decay": 0.5, "schedule": "constant"}, centre) == 0
    assert DOMAIN.log_prior({**at, "rate": 1e-4}, centre) < DOMAIN.log_prior({**at, "rate": 3e-3}, centre) < 0
    assert DOMAIN.log_prior({**at, "batch": 16}, centre) == pytest.approx(-0.5)  # a step of a coarse grid is near
    for wrong, said in (({"size": 1}, "unknown here"), ({"rate": 5.0}, "param rate: expected"), ("high", "by name")):
        with pytest.raises(OptionError, match=said):
            DOMAIN.checked_centre(wrong)


def test_numbers_of_numpy_are_numbers():
    mine = Candidate(NETWORK, {"rate": np.float32(0.25), "drops": np.int64(3), "schedule": np.str_("step")})
    plain = Candidate(NETWORK, {"rate": 0.25, "drops": 3, "schedule": "step"})
    assert mine.fingerprint == plain.fingerprint
    assert json.loads(json.dumps(mine.params)) == plain.params
