"""What values are: the name and unit of the metric, and which studies may share an axis."""

import pytest

from nasbot.data.metrics import METRICS
from nasbot.plots.meaning import UNITS, Meaning, axis_of, data_of, meaning_of

DATA = {"data": "abc", "data_name": "wine"}


def settings(kind="mlp-class", direction="minimise", **context):
    return {"space": {"kind": kind}, "direction": direction, "context": context}


def test_every_metric_has_a_unit():
    assert set(UNITS) == set(METRICS)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (settings(**DATA), "validation log-loss [nats]"),
        (settings("mlp-reg", **DATA), "validation mse [of the standardised target]"),
        (settings(metric="mae", **DATA), "validation mae [unit of the target]"),
        (settings(metric="mine:score", **DATA), "validation mine:score"),
        (settings(recipe={"vectors": {"score": "error"}}, **DATA), "validation error [share of rows]"),
        (settings("own", **DATA), "validation loss"),
        (settings(), "value"),
        ({}, "value"),
    ],
)
def test_values_are_named(given, expected):
    assert str(meaning_of(given)) == expected


def test_data_metrics_and_directions_have_axes_of_their_own():
    one = axis_of(settings(**DATA))
    assert axis_of({**settings(**DATA), "seed": 3, "searcher": {"name": "RAND"}}) == one
    others = [
        settings(**DATA | {"data": "def"}),
        settings(metric="auc", **DATA),
        settings(direction="maximise", **DATA),
        settings(),
        settings(function="f2"),
    ]
    assert len({one, *map(axis_of, others)}) == 1 + len(others)
    assert data_of(settings(**DATA)) == "wine"
    assert data_of(settings()) == ""
    assert str(Meaning("value")) == "value"
