import pytest

from nasbot.errors import OptionError
from nasbot.study.budget import Budget, parse_seconds
from nasbot.study.runs import with_longer_budget


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10m", Budget(seconds=600.0)),
        ("2h", Budget(seconds=7200.0)),
        (" 90 seconds ", Budget(seconds=90.0)),
        ("1h30m", Budget(seconds=5400.0)),
        ("1 hour 30 min", Budget(seconds=5400.0)),
        ("0.5 H", Budget(seconds=1800.0)),
        (".5d", Budget(seconds=43200.0)),
        ("50 trials", Budget(trials=50)),
        ("1 trial", Budget(trials=1)),
        ("50TRIALS", Budget(trials=50)),
        (7, Budget(trials=7)),
        (Budget(trials=3, seconds=1.0), Budget(trials=3, seconds=1.0)),
    ],
)
def test_words_for_budgets(given, expected):
    assert Budget.of(given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("5 minuts", "unknown unit 'minuts' in '5 minuts', did you mean 'minutes'"),
        ("5 trails", "did you mean 'trials'"),
        ("50", "without a unit"),
        ("", "expected for example"),
        ("soon", "expected for example"),
        ("-5m", "expected for example"),
        ("5m!", "expected for example"),
        ("nan s", "expected for example"),
        ("0 trials", "at least 1 trial"),
        ("0m", "longer than 0 seconds"),
        ("1.5 trials", "whole number of trials"),
        ("5 trials 3m", "whole number of trials"),
        (0, "at least 1 trial"),
        (-3, "at least 1 trial"),
        (2.5, "expected for example"),
        (None, "expected for example"),
        (True, "expected for example"),
        ("9" * 400 + "s", "longer than 0 seconds|expected for example"),
    ],
)
def test_mistakes(given, words):
    with pytest.raises(OptionError, match=words) as raised:
        Budget.of(given)
    assert len(str(raised.value)) < 600
    assert "\n" not in str(raised.value)


def test_an_empty_budget():
    with pytest.raises(OptionError, match="nothing is said"):
        Budget()


def test_spent():
    both = Budget(trials=3, seconds=10.0)
    assert not both.is_spent(trials=2, seconds=9.9)
    assert both.is_spent(trials=3, seconds=0.0)
    assert both.is_spent(trials=0, seconds=10.0)


@pytest.mark.parametrize("text", ["10 minutes", "1 hour", "50 trials", "1 trial", "90 seconds", "1 day"])
def test_said_again(text):
    assert str(Budget.of(text)) == text


def test_durations():
    assert parse_seconds("2m") == 120.0
    with pytest.raises(OptionError, match="duration"):
        parse_seconds("2 trials")


@pytest.mark.parametrize(
    ("given", "doubled"),
    [("40s", "1m20s"), ("10m", "20m"), ("45m", "1h30m"), ("12 trials", "24 trials"), ("0.2s", "1s"), ("1d", "48h")],
)
def test_twice_as_much(given, doubled):
    assert Budget.of(given).doubled() == doubled
    assert Budget.of(doubled)


def test_seconds_are_shown_without_a_fraction_where_it_does_not_matter():
    assert str(Budget(seconds=33.8338)) == "34 seconds"
    assert str(Budget(seconds=1.5)) == "1.5 seconds"
    assert str(Budget(seconds=3.92174)) == "3.9 seconds"
    assert str(Budget(seconds=9.96)) == "10 seconds"


@pytest.mark.parametrize(
    ("command", "longer"),
    [
        ("nasbot run a.csv --budget 40s --seed 1", "nasbot run a.csv --budget 1m20s --seed 1"),
        ("nasbot run 'my a.csv' --budget='5 trials'", "nasbot run 'my a.csv' --budget '10 trials'"),
        ("python -m nasbot run a.csv", "python -m nasbot run a.csv --budget 20m"),
        ("nasbot run a.csv --budget", "nasbot run a.csv --budget"),
        ("python train.py --budget 40s", "python train.py --budget 40s"),
    ],
)
def test_a_command_with_twice_the_budget(command, longer):
    assert with_longer_budget(command, Budget.of("10m")) == longer
