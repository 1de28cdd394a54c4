"""Tables of label penalties: the paper's values, and every table that is refused."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import BUILT_IN, LabelPenalties
from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.errors import PenaltyError, VocabularyError

INF = math.inf
RECTIFIERS = ("relu", "crelu", "leaky-relu", "softplus", "elu")
SIGMOIDS = ("logistic", "tanh")


def paper_cnn(x: str, y: str) -> float:
    """Table "CNN" of Appendix A.3, typed from the text."""
    conv = {(3, 5): 0.2, (5, 7): 0.2, (3, 7): 0.3}

    def between(i: int, j: int) -> float:
        return 0.0 if i == j else conv[min(i, j), max(i, j)]

    if x == y:
        return 0.0
    if {x, y} == {"max-pool", "avg-pool"}:
        return 0.25
    if x[:-1] in ("conv", "res") and y[:-1] in ("conv", "res"):
        same = x[:-1] == y[:-1]
        kernels = between(int(x[-1]), int(y[-1]))
        return kernels if same else 0.9 * kernels + 0.1
    return INF


def paper_mlp(x: str, y: str) -> float:
    """Table "MLP" of Appendix A.3."""
    if x == y:
        return 0.0
    for family in (RECTIFIERS, SIGMOIDS):
        if x in family and y in family:
            return 0.1
    if {x in RECTIFIERS, y in RECTIFIERS} == {True, False} and {x in SIGMOIDS, y in SIGMOIDS} == {True, False}:
        return 0.25
    return INF


@pytest.mark.parametrize(("kind", "table"), [("cnn", paper_cnn), ("mlp-reg", paper_mlp), ("mlp-class", paper_mlp)])
def test_every_entry_of_the_paper_s_tables(kind: str, table) -> None:
    penalties = BUILT_IN[kind].penalties
    for x, y in product(penalties.labels, repeat=2):
        assert penalties.penalty(x, y) == pytest.approx(table(x, y), rel=1e-15), (x, y)


def test_the_matrix_is_the_table_with_infinities_clipped() -> None:
    table = LabelPenalties.from_pairs(("x", "y", "z"), {("x", "y"): 0.5})
    np.testing.assert_array_equal(table.matrix, [[0, 0.5, 2], [0.5, 0, 2], [2, 2, 0]])
    assert table.penalty("x", "z") == INF
    assert NEVER_MATCH == 2


def test_classes_are_the_labels_that_can_exchange_mass() -> None:
    pairs = {("a", "d"): 1.0, ("d", "e"): 1.9, ("b", "c"): 2.0}
    assert LabelPenalties.from_pairs(("a", "b", "c", "d", "e"), pairs).exchange_classes == (0, 1, 2, 0, 0)
    cnn = BUILT_IN["cnn"].penalties
    classes = dict(zip(cnn.labels, cnn.exchange_classes, strict=True))
    assert classes["conv3"] == classes["res7"] != classes["max-pool"] == classes["avg-pool"]
    assert len(set(classes.values())) == 6  # ip, op, conv and res, pools, fc, softmax


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (((0, 1), (1, 0.5)), r"penalty for \(y, y\) must be 0, got 0.5"),
        (((0, -1), (-1, 0)), r"penalty for \(x, y\) must be a number >= 0 or infinity, got -1"),
        (((0, math.nan), (math.nan, 0)), r"penalty for \(x, y\) must be a number >= 0 or infinity, got nan"),
        (((0, 1), (0.5, 0)), r"penalties must be symmetric: \(x, y\) is 1, \(y, x\) is 0.5"),
        (((0, 1),), r"2 labels needs 2 rows of 2 entries, got 1 rows of lengths \[2\]"),
        (((0, 1), (1, 0, 0)), r"2 labels needs 2 rows of 2 entries, got 2 rows of lengths \[2, 3\]"),
    ],
)
def test_a_table_that_is_no_pseudo_distance_is_refused(rows: tuple, message: str) -> None:
    with pytest.raises(PenaltyError, match=message):
        LabelPenalties(("x", "y"), rows)
    assert issubclass(PenaltyError, VocabularyError)


def test_a_table_that_breaks_the_triangle_inequality_is_refused_with_the_detour() -> None:
    pairs = {("x", "y"): 0.2, ("y", "z"): 0.3, ("x", "z"): 0.6}
    with pytest.raises(PenaltyError, match=r"\(x, z\) costs 0.6, but by way of y only 0.2 \+ 0.3"):
        LabelPenalties.from_pairs(("x", "y", "z"), pairs)
    assert LabelPenalties.from_pairs(("x", "y", "z"), {**pairs, ("x", "z"): 0.5}).penalty("z", "x") == 0.5


def test_the_triangle_inequality_is_asked_of_what_can_be_paid() -> None:
    """Infinity by way of 1 + 1: no unit would ever be matched at either price, so nothing is broken."""
    table = LabelPenalties.from_pairs(("x", "y", "z"), {("x", "y"): 1.0, ("y", "z"): 1.0})
    assert table.penalty("x", "z") == INF
    with pytest.raises(PenaltyError, match=r"\(x, z\) costs 2, but by way of y only 1 \+ 0.9"):
        LabelPenalties.from_pairs(("x", "y", "z"), {("x", "y"): 1.0, ("y", "z"): 0.9})


def test_pairs_name_known_labels_and_do_not_contradict_each_other() -> None:
    with pytest.raises(PenaltyError, match=r"penalty for \(x, w\): unknown label 'w'; known: x, y"):
        LabelPenalties.from_pairs(("x", "y"), {("x", "w"): 1.0})
    with pytest.raises(PenaltyError, match=r"two different values, 0\.5 and 0\.7"):
        LabelPenalties.from_pairs(("x", "y"), {("x", "y"): 0.5, ("y", "x"): 0.7})
    with pytest.raises(PenaltyError, match=r"two different values, 0\.0 and 0\.7"):
        LabelPenalties.from_pairs(("x", "y"), {("x", "x"): 0.7})
    with pytest.raises(PenaltyError, match="labels of a penalty table must differ, got x, x"):
        LabelPenalties.from_pairs(("x", "x"), {})


@given(st.lists(st.lists(st.floats(0, 1.5), min_size=3, max_size=3), min_size=1, max_size=6))
def test_any_metric_makes_a_table(points: list[list[float]]) -> None:
    """Distances between points satisfy the triangle inequality, up to rounding that must not matter."""
    names = [f"l{i}" for i in range(len(points))]
    pairs = {(names[i], names[j]): math.dist(points[i], points[j]) for i in range(len(points)) for j in range(i)}
    table = LabelPenalties.from_pairs(names, pairs)
    assert (table.matrix <= 2).all()
    np.testing.assert_array_equal(table.matrix, table.matrix.T)


def test_a_table_multiplied_still_satisfies_the_triangle_inequality() -> None:
    table = LabelPenalties.from_pairs(("a", "b", "c"), {("a", "b"): 0.4, ("b", "c"): 0.4, ("a", "c"): 0.8})
    factors = np.array([[1.0, 0.5, 2.0], [0.5, 1.0, 1.0], [2.0, 1.0, 1.0]])
    found = table.multiplied(factors)
    assert found.penalty("a", "b") == pytest.approx(0.2)
    assert found.penalty("a", "c") == pytest.approx(0.6)  # by way of b, not 1.6
    assert table.multiplied(np.full((3, 3), 10.0)).penalty("a", "b") == math.inf


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ({"ab": 0.2}, r"expected pairs of labels such as .*, got 'ab'"),
        ({("a", "b", "c"): 0.2}, r"expected pairs of labels such as .*, got \('a', 'b', 'c'\)"),
        ({("a", "b"): float("nan")}, r"penalty for \(a, b\) must be a number >= 0 or infinity, got nan"),
    ],
)
def test_what_is_no_pair_of_labels_or_no_number_is_said(pairs, said):
    with pytest.raises(PenaltyError, match=said):
        LabelPenalties.from_pairs(["a", "b", "c"], pairs)
