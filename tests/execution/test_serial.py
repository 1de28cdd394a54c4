import pytest

from nasbot.errors import OptionError
from nasbot.execution import Finished, Limits, SerialExecutor
from nasbot.testing.executor_conformance import ExecutorConformance, sample_job


class TestSerialExecutor(ExecutorConformance):
    def make_executor(self, slots: int = 1) -> SerialExecutor:
        return SerialExecutor()

    def test_ctrl_c_passes_through_and_the_executor_goes_on(self):
        executor = SerialExecutor()
        executor.start(interrupted_once())
        executor.submit(sample_job(0))
        with pytest.raises(KeyboardInterrupt):
            executor.wait()
        executor.submit(sample_job(0))
        (event,) = executor.wait()
        assert isinstance(event, Finished)


def interrupted_once():
    calls = []

    def objective(arch):
        calls.append(arch)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return 1.0

    return objective


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": -1.0}, {"memory": 0}, {"seconds": float("nan")}])
def test_limits_are_positive(limits):
    with pytest.raises(OptionError, match="expected a number > 0"):
        Limits(**limits)
