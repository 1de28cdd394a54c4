"""What notebooks show."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from nasbot.architecture import initial_pool
from nasbot.otmann import PairwiseDistances, distance, explain, pairwise
from nasbot.plots.notebook import study_html, trial_html
from nasbot.searchers import RandomSearch
from nasbot.study import Study
from nasbot.trial import Failed, FailureCause, History, Provenance
from tests.searchers.problems import made, value_of

from .studies import EXTREMES, as_minimised, by_hand, completed, failed

HOSTILE = "<script>alert('1')</script><img src=x onerror=alert(1)> & \" '"


def parsed(html):
    """Well-formed, and nothing in it that runs or is fetched."""
    root = ET.fromstring(html)
    tags = {element.tag.split("}")[-1].lower() for element in root.iter()}
    assert not tags & {"script", "img", "iframe", "link", "object", "style"}
    assert not [name for element in root.iter() for name in element.attrib if name.lower().startswith("on")]
    return " ".join(" ".join(element.itertext()) for element in [root])


@pytest.mark.parametrize("name", EXTREMES)
def test_any_history(name):
    parsed(study_html(EXTREMES[name]))
    assert parsed(EXTREMES[name]._repr_html_())


def test_a_study_in_its_own_sense():
    words = parsed(study_html(as_minimised()))
    assert "−5 (trial 4)" in words
    assert "to be minimised" in words
    assert "1 nan" in words
    assert "skip, swap_label" in words


def test_a_study_that_is_driven_and_one_that_is_closed():
    study = Study.in_memory(made(RandomSearch), seed=3)
    study.optimise(value_of, 3)
    assert "3 completed" in parsed(study._repr_html_())
    best = study.best
    shown = f"3 completed, best {best.value:.6g} (trial {best.number})"
    assert repr(study) == f"<Study: {shown}; RAND, maximise, seed 3>"
    study.close()
    assert repr(study) == "<Study: RAND, maximise, seed 3>"


def test_trials():
    words = parsed(by_hand()[4]._repr_html_())
    assert "from trial 1 by skip: 1 to 3; swap_label: 2 to elu" in words
    assert "4, 90 % between 2 and 4.5" in words
    assert "value 5 " in words
    assert "it broke" in parsed(trial_html(by_hand()[2]))
    assert "learning curve" in parsed(trial_html(by_hand()[0]))
    assert "cancelled" in parsed(trial_html(by_hand()[7]))
    assert "parameters" in parsed(trial_html(completed(0, 1.0, rank=0, details={"parameters": 7, "nested": {"a": 1}})))


def test_free_text_is_shown_and_never_run():
    origin = Provenance(searcher=HOSTILE, changes=(HOSTILE,), modifiers=(HOSTILE,), parents=(0,))
    second = completed(1, 2.0, rank=1, origin=origin, details={HOSTILE: HOSTILE}, params={HOSTILE: HOSTILE})
    third = replace(failed(2, "oom", rank=2), outcome=Failed(FailureCause.OOM, HOSTILE))
    history = History((completed(0, 1.0, rank=0), second, third))
    for html in (study_html(history), trial_html(second), trial_html(third)):
        assert "alert" in parsed(html)


def test_distances():
    pool = initial_pool("cnn")
    table = pairwise(pool[:3])
    words = parsed(table._repr_html_())
    assert "3 × 3 networks at structural weight 0.4" in words
    assert f"{table.d_bar[2, 0, 1]:.2f}" in words
    assert parsed(PairwiseDistances.of(pool[:3])._repr_html_()) == words
    one = distance(pool[0], pool[1])
    assert f"{one.d_bar[0]:.4f}" in parsed(one._repr_html_())
    many = pairwise([pool[i % 10] for i in range(30)])
    assert "the first 24 × 24 are shown" in parsed(many._repr_html_())
    assert parsed(pairwise([])._repr_html_())


def test_a_matching_is_a_picture():
    pool = initial_pool("mlp-reg")
    assert ET.fromstring(explain(pool[0], pool[1])._repr_svg_()).tag.endswith("svg")
