"""A sample of the recorded histories: NASBOT proposes and believes what it did (all of them: benchmarks.same_mind)."""

import numpy as np
import pytest

from benchmarks import same_mind


def test_proposals_and_beliefs_are_the_recorded_ones():
    found = list(same_mind.differences(every=7, most_trials=40))
    assert len(found) >= 10
    assert [entry.name for entry in found if not entry.same_proposal] == []
    assert max(entry.beliefs for entry in found) <= same_mind.LARGEST_DIFFERENCE


@pytest.mark.parametrize("change", ["proposal", "beliefs"])
def test_a_difference_is_noticed(change):
    networks = [candidate.arch for candidate in same_mind.searcher("f3", "{}").initial_pool()]
    line = {"problem": "f3", "options": {}, "seed": 1, "trials": [(i, float(i)) for i in range(4)]}
    arch, beliefs = same_mind.decided(line, networks)
    recorded = {**line, "proposal": arch.to_dict(), "beliefs": beliefs}
    assert same_mind.difference(recorded, networks).is_none
    other = networks[0].to_dict() if change == "proposal" else (np.array(beliefs) + 1e-9).tolist()
    assert not same_mind.difference({**recorded, change: other}, networks).is_none
