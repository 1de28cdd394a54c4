"""The short, seeded fuzz run of every test run; ``make fuzz`` is the long one, guided by coverage."""

import random
from collections import Counter

import pytest

from nasbot.architecture import Architecture
from nasbot.errors import CodecError
from tests.fuzz.mutations import Finding, judged, mutated, seeds

N_INPUTS = 2_000


def test_mutated_networks_are_read_exactly_or_refused_properly():
    rng = random.Random(0)
    corpus = seeds()
    outcomes: Counter[str] = Counter()
    for i in range(N_INPUTS):
        data = mutated(rng.choice(corpus), i)
        outcome = judged(data)
        outcomes[outcome] += 1
        if outcome == "accepted":
            corpus.append(data)  # accepted ones are changed further, so that changes pile up
    assert outcomes.total() == N_INPUTS
    # The mutations reach every stage: the parser, the vocabulary, the graph, and through all of them.
    assert min(outcomes[name] for name in ("CodecError", "InvalidArchitectureError", "accepted")) > N_INPUTS // 20
    assert outcomes["VocabularyError"] > 0


def test_mutations_depend_on_the_seed_alone():
    data = seeds()[0]
    assert [mutated(data, i) for i in range(50)] == [mutated(data, i) for i in range(50)]
    assert len({mutated(data, i) for i in range(50)}) > 30


def _raising(error: Exception):
    def read(_: bytes) -> Architecture:
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (KeyError("layers"), "KeyError instead of a NasbotError"),
        (RecursionError(), "RecursionError instead"),
        (CodecError("two\nlines"), "message of 9 characters"),
        (CodecError("x" * 501), "message of 501 characters"),
        (CodecError(""), "message of 0 characters"),
    ],
)
def test_the_judge_finds_what_it_should(error: Exception, complaint: str):
    with pytest.raises(Finding, match=complaint):
        judged(b"", _raising(error))
