"""progress=: a line for each trial that ends, where somebody watches or asks."""

import io
import signal
import subprocess
import sys

import pytest

import nasbot
from nasbot.candidate import Candidate
from nasbot.study import Budget
from nasbot.study.progress import with_progress
from nasbot.trial import Direction, Failed, FailureCause, Trial


def score(arch):
    if len(arch.layers) == 9:
        raise ValueError("nine")
    return float(len(arch.layers))


def lines(capsys, **options):
    pool = [nasbot.initial_pool("mlp-reg")[i] for i in (0, 1, 2)]
    space = nasbot.SearchSpace("mlp-reg")
    searcher = nasbot.RandomSearch(space=space, pool=pool)
    nasbot.maximise(score, space, searcher=searcher, name=None, trials=3, max_consecutive_failures=None, **options)
    return capsys.readouterr().err.splitlines()


def test_a_line_for_each_trial_that_ends(capsys):
    said = lines(capsys, progress=True)
    assert len(said) == 3
    assert all(line.startswith(f"trial {n}: ") and line.endswith("[budget 3 trials]") for n, line in enumerate(said))
    assert any("the best so far: " in line and "hidden layers" in line for line in said)


def test_nothing_where_nobody_watches_and_nobody_asks(capsys):
    assert lines(capsys) == lines(capsys, progress=False) == []


def test_a_terminal_is_watched(monkeypatch, capsys):
    from nasbot.study.progress import is_watched

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert is_watched()


def test_trials_print_in_one_short_line():
    study = nasbot.maximise(lambda arch: 1.0, "mlp-reg", name=None, trials=1)
    assert repr(study.best) == "<Trial 0: completed, 1, mlp-reg, 6 hidden layers>"


def test_a_failure_of_which_nothing_was_said(capsys):
    ended = Trial(number=0, candidate=Candidate(nasbot.initial_pool("mlp-reg")[0])).begun(0.0)
    tell = with_progress(True, None, Budget(trials=1), Direction.MAXIMISE)
    tell(ended.ended(Failed(FailureCause.NAN), at=1.0, rank=0))
    assert capsys.readouterr().err == "trial 0: failed in 1.0 s (nan) [budget 1 trial]\n"


SCRIPT = """
import nasbot
def score(arch):
    print("evaluating", flush=True)
    while len(done) == 1:
        pass
    done.append(1)
    return 1.0
done = []
nasbot.maximise(score, "mlp-reg", name=None, trials=50)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_script_in_three_lines_without_a_traceback():
    """A real process and a real SIGINT, in the middle of the second evaluation."""
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # jobs in the background do not
    command = [sys.executable, "-c", heeded + SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        try:
            assert [script.stdout.readline() for _ in range(2)] == ["evaluating\n"] * 2
            script.send_signal(signal.SIGINT)
            _, said = script.communicate(timeout=60)
        finally:
            script.kill()
    assert "Traceback" not in said
    assert said.splitlines()[0].startswith("stopped by Ctrl-C, everything is recorded: 1 trials completed")
    assert len(said.splitlines()) == 3
    assert script.returncode == 130


def test_notebooks_show_the_message_alone():
    stop = nasbot.Interrupted("stopped by Ctrl-C")
    assert stop._render_traceback_() == ["stopped by Ctrl-C"]
