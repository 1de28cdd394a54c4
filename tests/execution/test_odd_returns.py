"""Forty returns that nobody should make, in this process; tests/faults has them in processes of their own."""

import numpy as np
import pytest

from nasbot.execution import outcome_of
from nasbot.study import Study
from nasbot.trial import Failed, Scored
from tests.faults.objectives import odd, odd_returns
from tests.study.searchers import Sensitive


@pytest.mark.parametrize("number", range(len(odd_returns())))
def test_each_is_a_clean_outcome(number):
    returned, cause = odd_returns()[number]
    outcome = outcome_of(returned)
    if cause is None:
        assert isinstance(outcome, Scored)
        assert np.isfinite(outcome.value)
    else:
        assert isinstance(outcome, Failed)
        assert outcome.cause is cause
        assert outcome.message


def test_no_surrogate_ever_sees_a_number_that_is_not_finite():
    study = Study.in_memory(Sensitive(), seed=1)
    study.optimise(odd, len(odd_returns()), max_consecutive_failures=None)
    assert len(study.history.finished) == 40
    assert np.isfinite(study.history.evaluated.values).all()
