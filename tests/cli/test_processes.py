"""What only a process of its own can show: entry points, imports, signals, pipes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numba", "matplotlib", "scipy", "sklearn", "rich", "typer", "ot", "hypothesis")


def python(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, **options
    )


def imported_after(code: str) -> set[str]:
    done = python("-c", f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stderr.split()}


def test_import_nasbot_is_light():
    assert imported_after("import nasbot").isdisjoint(HEAVY)


def test_the_names_of_the_front_door_work_and_bring_their_weight_only_then():
    one = "import nasbot; nasbot.pairwise([nasbot.architecture.initial_pool('cnn')[0]])"
    assert "numba" not in imported_after(one)  # a few distances are computed in Python
    assert "numba" in imported_after(f"{one}; from nasbot.otmann import solver; solver.compile_solver()")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["distance", "--help"], ["check", "missing.json"]])
def test_light_commands_import_nothing_heavy(arguments: list[str]):
    loaded = imported_after(f"from nasbot.cli import main; main({arguments!r})")
    assert loaded.isdisjoint({*HEAVY} - {"typer"})


def test_python_dash_m_is_the_command():
    done = python("-m", "nasbot", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nasbot ")


def test_the_exit_code_reaches_the_shell():
    done = python("-m", "nasbot", "check", "missing.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("pool", "cnn", "--json"), ("pool", "cnn"), ("--help",), ("--version",)])
def test_a_reader_that_goes_away_is_met_with_silence(arguments: tuple[str, ...]):
    reading, writing = os.pipe()
    os.close(reading)  # before anything is written, so that the first flush fails
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nasbot", *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_standard_error_changes_no_code():
    done = python(
        "-c", "import os, sys; os.close(2); from nasbot.cli import main; sys.exit(main(['check', 'no.json']))"
    )
    assert done.returncode == 3


def test_ctrl_c_ends_a_command_with_130(tmp_path: Path):
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "nasbot", "check", str(fifo)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Opening for writing returns once the command has opened for reading: from then on it waits in read().
    with process, fifo.open("wb"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "nasbot: interrupted\n")


@pytest.mark.parametrize(("redirected", "code", "said"), [(">&-", 0, ""), (">/dev/full", 3, "No space left on device")])
def test_output_that_cannot_be_written_is_no_bug(redirected: str, code: int, said: str):
    command = f"{sys.executable} -m nasbot pool mlp-reg {redirected}"
    done = python("-c", f"import subprocess, sys; sys.exit(subprocess.run({command!r}, shell=True).returncode)")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "bug" not in done.stderr
