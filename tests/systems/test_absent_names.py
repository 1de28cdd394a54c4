"""With the names that other systems lack taken away, each alone and all together: what works, and in what words not.

No Mac and no Windows machine was at hand. These tests run Linux's interpreter without what those do not have
(``sitecustomize.py`` here), so what they show is that nothing of ours insists on these names.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ISSUE = [
    *("sched_getaffinity", "fcntl", "resource", "SIGUSR1", "register_at_fork"),
    *("memfd_create", "/proc", "SOCK_SEQPACKET"),
]
# What Windows lacks beside these and some line of ours has used.
WINDOWS = [
    *("SIGHUP", "SIGQUIT", "SIGUSR2", "geteuid", "getuid", "pread", "pwrite", "getloadavg", "nice"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "posix_spawn", "setsid", "memfd_create", "wait4"),
]
MAC = ["sched_getaffinity", "memfd_create", "/proc", "SOCK_SEQPACKET"]
ABSENT = {**{name: [name] for name in ISSUE}, "macOS": MAC, "all": ISSUE, "Windows": [*ISSUE, *WINDOWS]}
TOGETHER = [
    pytest.param(ABSENT["macOS"], id="macOS", marks=pytest.mark.slow),
    pytest.param(ABSENT["all"], id="all", marks=pytest.mark.slow),
    pytest.param(ABSENT["Windows"], id="Windows"),
]


def without(names, folder, *command):
    """A command in its own process, in this folder, on a system without these names."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "src"), str(ROOT)]),
        "NASBOT_TEST_WITHOUT": ",".join(names),
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )


def python(names, folder, script):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    found = without(names, folder, str(path))
    assert found.returncode == 0, found.stderr
    return found.stdout


def nasbot(names, folder, *arguments):
    return without(names, folder, "-m", "nasbot", *arguments)


def test_the_names_are_really_away(tmp_path):
    names = ABSENT["Windows"]
    said = python(
        names,
        tmp_path,
        f"""
        import importlib.util, os, signal, socket, sys
        from pathlib import Path
        modules = [name for name in ("fcntl", "resource") if importlib.util.find_spec(name)]
        there = [name for name in {names!r} for home in (os, signal, socket) if hasattr(home, name)]
        print(modules, there, Path("/proc/self/statm").exists())
        """,
    )
    assert said.split() == ["[]", "[]", "False"]


STUDY = """
    import nasbot
    from nasbot.execution import SpawnExecutor, process_executor
    from nasbot.execution.local import fork_server_lacks
    from tests.study.objectives import score

    if __name__ == "__main__":
        a, b = nasbot.initial_pool("mlp-reg")[:2]
        assert (nasbot.distance(a, b).d > 0).all()
        assert isinstance(process_executor(2), SpawnExecutor) == bool(fork_server_lacks())
        one = nasbot.maximise(score, "mlp-reg", name="one.nasbot", trials=3, seed=0)
        again = nasbot.maximise(score, "mlp-reg", name="one.nasbot", trials=4, seed=0)
        two = nasbot.maximise(score, "mlp-reg", name="two.nasbot", trials=4, seed=0, workers=2)
        for study, n in ((again, 4), (two, 4)):
            assert len(study.history.completed) == n, study.history.failed
        print("fork server lacks", fork_server_lacks())
"""


@pytest.mark.parametrize("names", ABSENT.values(), ids=ABSENT)
def test_distances_studies_on_disk_and_two_workers(names, tmp_path):
    said = python(names, tmp_path, STUDY)
    needed = {"resource", "register_at_fork", "memfd_create", "/proc", "SOCK_SEQPACKET", "posix_spawn"}
    absent = set(names) & needed
    assert all(name in said for name in absent)
    assert ("fork server lacks []" in said) == (not absent)


@pytest.mark.parametrize("names", [["fcntl"], ABSENT["Windows"]], ids=["fcntl", "Windows"])
def test_one_driver_at_a_time(names, tmp_path):
    python(
        names,
        tmp_path,
        """
        import subprocess, sys
        from pathlib import Path
        from nasbot.errors import StudyError
        from nasbot.storage import SqliteStorage
        from nasbot.storage._lock import DriverLock, presence

        study = Path("s.nasbot")
        assert not presence(study).is_held
        lock = DriverLock(study)
        assert presence(study).is_held
        try:
            DriverLock(study)
        except StudyError as error:
            assert "one driver at a time" in str(error), error
            assert f"process {__import__('os').getpid()} " in str(error), error
        else:
            raise AssertionError("two drivers")
        begin = "from nasbot.storage._lock import DriverLock, presence; import pathlib; s = pathlib.Path('s.nasbot'); "
        look = begin + "print(presence(s).is_held)"
        def asked():
            command = [sys.executable, "-c", look]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        assert asked() == "True"
        lock.release()
        assert asked() == "False"
        DriverLock(study).release()
        # a driver that is killed lets go
        hold = begin + "import time; held = DriverLock(s); print('held', flush=True); time.sleep(600)"
        driver = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
        assert driver.stdout.readline() == "held\\n"
        assert presence(study).is_held
        driver.kill(); driver.wait()
        assert not presence(study).is_held
        DriverLock(study).release()
        """,
    )


TABLE = "x,y,town,price\n" + "\n".join(
    f"{i % 7},{i * i % 11},{'AB'[i % 2]},{3 * (i % 7) + i * i % 11}" for i in range(80)
)


@pytest.mark.parametrize("names", TOGETHER)
def test_every_command_works_or_ends_in_one_line(names, tmp_path):
    """The road of a person with a table, then all other commands."""
    (tmp_path / "t.csv").write_text(TABLE + "\n")
    first = nasbot(
        names, tmp_path, "run", "t.csv", "--target", "price", "--budget", "3 trials", "--workers", "2", "--name", "t"
    )
    assert first.returncode == 0, first.stderr
    for command in (
        ("list",),
        ("status", "t"),
        ("show", "t"),
        ("explain", "t"),
        ("predict", "t", "t.csv", "--out", "p.csv"),
        ("export", "t", "--to", "safetensors"),
        ("predict", "t.safetensors", "t.csv"),
        ("report", "t"),
        ("plot", "t", "--out", "plots"),
        ("inspect", "t.csv", "--target", "price"),
        ("pool", "mlp"),
        ("doctor",),
        ("pause", "t"),
        ("repair", "t"),
    ):
        found = nasbot(names, tmp_path, *command)
        assert "bug" not in found.stderr, (command, found.stderr)
        assert "Traceback" not in found.stderr, (command, found.stderr)
        if found.returncode:
            assert found.stderr.count("\n") == 1, (command, found.stderr)
    limited = ("run", "t.csv", "--target", "price", "--memory-per-trial", "1G", "--name", "m", "--budget", "2 trials")
    refused = nasbot(names, tmp_path, *limited)
    assert refused.returncode == 2
    assert "only Linux can limit it" in refused.stderr.splitlines()[-1]
    assert "Traceback" not in refused.stderr


def test_the_fork_servers_executor_says_what_to_take_instead(tmp_path):
    said = python(
        ["memfd_create"],
        tmp_path,
        """
        import nasbot
        try:
            nasbot.LocalExecutor(2)
        except nasbot.OptionError as error:
            print(error)
        """,
    )
    assert said == "LocalExecutor needs Linux, and here is no memfd_create; expected SpawnExecutor instead\n"
