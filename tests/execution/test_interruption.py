"""Signals that ask to leave: raised where that is allowed, remembered elsewhere, obeyed at once the second time."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nasbot.execution.interruption import LEAVING, Interrupted, allowed, leaving_on_signals, shielded
from nasbot.study import Study, StudyView
from nasbot.trial import TrialState
from tests.study.searchers import Sensitive


def send(number=signal.SIGINT):
    """To this process; its Python handler has run when this returns."""
    signal.raise_signal(number)


@pytest.fixture(autouse=True)
def python_s_own_handlers():
    """Whatever pytest or the shell has set, these tests begin with what a script has."""
    before = {number: signal.getsignal(number) for number in LEAVING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in LEAVING[1:]:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupted_by(action, **options):
    """The Interrupted (or KeyboardInterrupt) that comes out of ``action`` under our handlers."""
    with pytest.raises(KeyboardInterrupt) as caught, leaving_on_signals(**options):
        action()
    return caught.value


@pytest.mark.parametrize("number", LEAVING)
def test_raised_at_once_outside_a_shield(number):
    def action():
        send(number)
        raise AssertionError("not reached")

    stop = interrupted_by(action)
    assert isinstance(stop, Interrupted)
    assert stop.signal == number
    assert signal.Signals(number).name in str(stop)


def test_remembered_inside_a_shield_until_it_is_allowed():
    seen = []

    def action():
        with shielded():
            send()
            seen.append("whole")
            with allowed():
                seen.append("never")

    assert isinstance(interrupted_by(action), Interrupted)
    assert seen == ["whole"]


def test_raised_within_what_is_allowed():
    seen = []

    def action():
        with shielded():
            try:
                with allowed():
                    send()
                    seen.append("never")
            finally:
                seen.append("cleaned")

    assert isinstance(interrupted_by(action), Interrupted)
    assert seen == ["cleaned"]


def test_the_end_of_what_is_allowed_shields_again():
    seen = []

    def action():
        with shielded():
            with allowed():
                pass
            send()
            seen.append("whole")

    assert isinstance(interrupted_by(action), Interrupted)
    assert seen == ["whole"]


def test_one_that_comes_too_late_to_end_anything_still_counts():
    def action():
        with shielded():
            send(signal.SIGTERM)

    assert interrupted_by(action).signal == signal.SIGTERM


def test_a_second_one_is_an_interrupt_wherever_it_comes():
    def action():
        with shielded():
            send()
            send()

    assert not isinstance(interrupted_by(action), Interrupted)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in LEAVING]
    with leaving_on_signals():
        with leaving_on_signals(second_kills=True):  # inside another it does nothing
            pass
        assert [signal.getsignal(number) for number in LEAVING] != before
    assert [signal.getsignal(number) for number in LEAVING] == before


def test_what_somebody_else_has_taken_is_left_alone():
    seen = []
    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    with leaving_on_signals():
        send(signal.SIGTERM)
    assert seen == [signal.SIGTERM]


def test_a_terminal_that_goes_away_is_nothing_under_nohup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with leaving_on_signals():
        send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_other_threads_are_not_concerned():
    done = []

    def work():
        with leaving_on_signals(), shielded(), allowed():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_swallowed_by_a_destructor_it_is_silent_and_raised_again(capfd):
    class Trap:
        def __del__(self):
            send()

    def action():
        with shielded():
            with allowed():
                trap = Trap()
                del trap
            with allowed():
                raise AssertionError("not reached")

    assert isinstance(interrupted_by(action), Interrupted)
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_that_c_code_makes_of_it_is_still_the_signal():
    def action():
        with shielded(), allowed():
            try:
                send()
            except KeyboardInterrupt:
                raise ImportError("interrupted half-way") from None

    assert isinstance(interrupted_by(action), Interrupted)


def test_other_errors_stay_what_they_are():
    with pytest.raises(ZeroDivisionError), leaving_on_signals(), shielded(), allowed():
        _ = 1 / 0


# -- in a study --------------------------------------------------------------------------------------------------------


def test_a_study_that_is_asked_to_leave_has_recorded_everything():
    def objective(arch, trial):
        if trial.number == 4:
            send(signal.SIGUSR1)
        return float(trial.number)

    study = Study.in_memory(Sensitive(), seed=1)
    with pytest.raises(Interrupted) as caught:
        study.optimise(objective, 9)
    assert caught.value.signal == signal.SIGUSR1
    assert "4 trials completed, 0 failed, 1 waiting" in str(caught.value)
    assert "best so far: trial 3 with 3" in str(caught.value)
    assert [trial.state for trial in study.history] == [TrialState.COMPLETED] * 4 + [TrialState.WAITING]
    study.optimise(lambda arch: 1.0, 9)
    assert len(study.history.completed) == 9


def test_while_it_records_a_study_is_not_disturbed():
    study = Study.in_memory(Sensitive(), seed=1)

    def changed(trial):
        if trial.state is TrialState.COMPLETED:
            send()

    with pytest.raises(Interrupted):
        study.optimise(lambda arch: 1.0, 9, on_change=changed)
    assert study.history[0].state is TrialState.COMPLETED
    assert not [trial for trial in study.history[1:] if trial.state is not TrialState.WAITING]


def test_an_interrupted_proposal_is_forgotten():
    class Slow(Sensitive):
        def propose(self, history, *, rng):
            send()
            raise AssertionError("not reached")

    study = Study.in_memory(Slow(), seed=1)
    with pytest.raises(Interrupted):
        study.optimise(lambda arch: 1.0, 9)
    assert len(study.history) == len(study.history.completed) == study.n_pool


DRIVER = """
import signal, sys
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from nasbot.execution.interruption import Interrupted, leaving_on_signals
from nasbot.study import Study
from nasbot.study.interrupted_message import interrupted_message
from tests.study.searchers import Sensitive
from tests.execution.objectives import Marked
if __name__ == "__main__":
    path, folder, workers = sys.argv[1:]
    try:
        with leaving_on_signals(second_kills=True), Study.open(path, Sensitive()) as study:
            try:
                study.optimise(Marked(folder), 100, int(workers), timeout_per_trial=600)
            except Interrupted as stop:
                print(interrupted_message(study, stop, resume="again"), file=sys.stderr)
                raise
    except Interrupted:
        sys.exit(130)
"""


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGUSR1, 2), (signal.SIGHUP, 1)]
)
def test_a_process_that_is_asked_to_leave_does(tmp_path, number, workers):
    script, path, marks = tmp_path / "driver.py", tmp_path / "study.sqlite", tmp_path / "marks"
    script.write_text(DRIVER)
    marks.mkdir()
    driver = subprocess.Popen(
        [sys.executable, str(script), str(path), str(marks), str(workers)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while len(list(marks.glob("*.pid"))) < workers:
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.02)
    driver.send_signal(number)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 130
    assert "Traceback" not in said
    assert "3 waiting" in said  # the pool
    assert "resume: again" in said
    with StudyView.read(path) as view:
        assert {trial.state for trial in view.history} == {TrialState.WAITING}


STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from nasbot.execution.interruption import leaving_on_signals, shielded
with leaving_on_signals(second_kills=True), shielded():
    print("ready", flush=True)
    until = time.monotonic() + 600
    heard = False
    while time.monotonic() < until:
        time.sleep(0.01)
        if not heard and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            heard = True
            print("heard", flush=True)
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_command_at_once_whatever_it_does(second):
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "heard\n"
        process.send_signal(second)
        assert process.wait(timeout=120) == -second
