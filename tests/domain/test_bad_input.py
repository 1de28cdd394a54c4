"""What bad input gets where params are searched: one clear message each. Every case of the list is here."""

import re

import numpy as np
import pytest

import nasbot
from nasbot import Choice, Float, Integer, OptionError, SearchSpace
from nasbot.cli import main
from nasbot.domain import RESERVED, Domain
from nasbot.errors import StudyError
from nasbot.study import Study

SPACE = SearchSpace("mlp-reg")


def domain(**params):
    return Domain(SPACE, params)


def searched(objective, **options):
    return nasbot.maximise(objective, SPACE, trials=1, name=None, **options)


def alone(arch):
    return 0.0


def with_params(arch, params):
    return 0.0


NETWORK = nasbot.initial_pool("mlp-reg")[0]
RATE = {"rate": Float(1e-4, 1e-1, log=True)}
CASES = {
    "low above high": (lambda: Float(2, 1), "range: expected low < high, got 2 and 1"),
    "low equal to high": (lambda: Float(1, 1), "range: expected low < high, got 1 and 1"),
    "whole numbers, low above high": (lambda: Integer(5, 2), "range: expected low < high, got 5 and 2"),
    "log from zero": (lambda: Float(0, 1, log=True), "range: a logarithmic scale needs low > 0, got 0"),
    "log from below zero": (lambda: Integer(-3, 9, log=True), "range: a logarithmic scale needs low > 0, got -3"),
    "no number": (lambda: Float("a", 1), "range: expected finite numbers, got 'a'"),
    "infinite": (lambda: Float(0, float("inf")), "range: expected finite numbers, got 'inf'"),
    "a broken whole number": (lambda: Integer(1.5, 9), "low: expected a whole number, got 1.5"),
    "default above": (lambda: Float(0, 1, default=2), "default: expected a number from 0 to 1, got '2'"),
    "default below": (lambda: Integer(3, 9, default=1), "default: expected a whole number from 3 to 9, got '1'"),
    "default no choice": (lambda: Choice("a", "b", default="c"), "default: expected one of a, b, got 'c'"),
    "one value": (lambda: Choice("a"), "choice: expected at least two different values, got ('a',)"),
    "no value": (lambda: Choice(), "choice: expected at least two different values, got ()"),
    "the same twice": (lambda: Choice(1, 1), "choice: expected at least two different values, got (1, 1)"),
    "a list of values": (lambda: Choice(["a"], ["b"]), "choice: expected numbers or texts, got list"),
    "a cycle of two": (
        lambda: domain(a=Choice(1, 2, when=("b", 1)), b=Choice(1, 2, when=("a", 1))),
        "param a: its condition leads back to itself",
    ),
    "a cycle of one": (lambda: domain(a=Choice(1, 2, when=("a", 1))), "param a: its condition leads back to itself"),
    "when of nothing": (
        lambda: domain(a=Float(0, 1, when=("b", 1))),
        "param a: active when b = 1, but there is no param b",
    ),
    "when of no value": (
        lambda: domain(a=Float(0, 1, when=("b", 3)), b=Choice(1, 2)),
        "param a: when: param b: expected one of 1, 2, got '3'",
    ),
    "when without a value": (
        lambda: domain(a=Float(0, 1, when="b")),
        "param a: when: expected a name and a value, ('optimiser', 'sgd'); got 'b'",
    ),
    "no param": (lambda: domain(a=0.5), "param a: expected Float, Integer or Choice, got float"),
    "a name with a space": (
        lambda: Domain(SPACE, {"learning rate": Float(0, 1)}),
        "param 'learning rate': expected a name that Python could have, not a reserved word",
    ),
    "a word of Python": (
        lambda: Domain(SPACE, {"lambda": Float(0, 1)}),
        "param 'lambda': expected a name that Python could have, not a reserved word",
    ),
    "no text for a name": (
        lambda: Domain(SPACE, {3: Float(0, 1)}),
        "param 3: expected a name that Python could have, not a reserved word",
    ),
    "an objective without params": (
        lambda: searched(alone, params=RATE),
        "params: rate: searched, but the objective takes neither params nor trial beside the network",
    ),
    "known: no pairs": (
        lambda: searched(with_params, known=[1]),
        "known: entry 0: expected (candidate or network, value), got 1",
    ),
    "known: a text": (
        lambda: searched(with_params, known="x"),
        "known: expected pairs of a candidate and its value, got str",
    ),
    "known: outside": (
        lambda: searched(with_params, params=RATE, known=[(nasbot.Candidate(NETWORK, {"rate": 5}), 1.0)]),
        "known: entry 0: param rate: expected a number from 0.0001 to 0.1, got '5'",
    ),
    "of another domain": (
        lambda: domain(rate=Float(0, 1)).differences([{"rate": 0.5}], [{"width": 3}]),
        "param 'width': unknown here; the params of this search are: rate",
    ),
    **{
        f"reserved: {name}": (
            lambda name=name: Domain(SPACE, {name: Float(0, 1)}),
            f"param {name!r}: expected a name that Python could have, not a reserved word",
        )
        for name in sorted(RESERVED)
    },
}


def test_the_number_of_cases():
    assert len(CASES) == 29 + len(RESERVED) == 35


@pytest.mark.parametrize("case", CASES)
def test_one_clear_message(case):
    call, message = CASES[case]
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        call()


def test_a_column_of_the_data_is_no_param(capsys, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n" + "\n".join(f"{i},{i % 7}" for i in range(60)))
    arguments = ["run", str(tmp_path / "data.csv"), "--target", "b", "--tune", "a", "--name", str(tmp_path / "s.db")]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert re.search(r"tune: expected auto, none, or some of .*; got 'a'", said)


def test_another_domain_of_a_resumed_study(tmp_path):
    where = tmp_path / "study.db"
    Study.open(where, nasbot.NASBOT(space=SPACE, params=RATE)).close()
    for params, shown in (
        ({}, "rate"),
        ({"rate": Float(1e-4, 1.0, log=True)}, "params.rate.high: stored 0.1, given 1.0"),
    ):
        with pytest.raises(StudyError, match=f"(?s){re.escape(shown)}.*--fork"):
            Study.open(where, nasbot.NASBOT(space=SPACE, params=params))


def test_what_was_measured_elsewhere_is_told_once_and_known(tmp_path):
    mine = nasbot.Candidate(NETWORK, {"rate": 2e-3})
    searcher = nasbot.NASBOT(space=SPACE, params=RATE, pool=(NETWORK,))
    options = {
        "searcher": searcher,
        "known": [(mine, 5.0), (nasbot.initial_pool("mlp-reg")[1], 1.0)],
        "name": tmp_path / "s.db",
    }
    for trials in (3, 4):
        with nasbot.maximise(with_params, SPACE, trials=trials, **options) as study:
            assert len(study.history) == trials
            assert [trial.origin.searcher for trial in study.history].count("added") == 2
            assert study.best.candidate == mine
            assert np.isclose(study.best.value, 5.0)
