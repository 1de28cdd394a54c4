"""Objectives that misbehave for real; functions of a module, so that a process of their own can import them."""

import ctypes
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from nasbot.trial import Scored


def scored(arch):
    return 1.0


def slow(arch):
    time.sleep(600)


def spinning(arch):
    while True:
        pass


def sleeping_a_little(arch):
    time.sleep(0.2)
    return 1.0


def hungry(arch):
    held = []
    while True:
        held.append(bytearray(16 << 20))


def hungry_for_numpy(arch):
    import numpy as np

    return float(np.ones((1 << 16, 1 << 16)).sum())


def killed(arch):
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(arch):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def segfaulting(arch):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("the last words", flush=True)
    ctypes.string_at(0)


def aborting(arch):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()


def leaving(arch):
    os._exit(3)


def leaving_politely(arch):
    os._exit(0)


def recursing(arch):
    return recursing(arch)


def closing_everything(arch):
    os.closerange(3, 256)
    return 1.0


def writing_to_every_descriptor(arch):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x00" * 8 + b"garbage" * 1000)
        except OSError:
            continue
    return 1.0


def enormous(arch):
    from nasbot.trial import Scored

    return Scored(1.0, {"text": "x" * 20_000_000})


def shouting(arch):
    sys.stderr.buffer.write(b"\xff\xfe bad bytes \xff\n" * 100_000)
    sys.stderr.flush()
    raise ValueError("after much noise")


def raising_on_deletion(arch):
    class Trap:
        def __del__(self):
            raise RuntimeError("from __del__")

    Trap()
    return 1.0


def never_leaving(arch):
    threading.Thread(target=time.sleep, args=(600,)).start()  # not a daemon: the interpreter waits for it
    return 1.0


def reporting_for_ever(arch, trial):
    def report():
        while True:
            trial.report(1, 1.0)

    threading.Thread(target=report, daemon=True).start()
    time.sleep(0.05)
    return 1.0


def starting_children(arch):
    for _ in range(20):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(4)


def hungry_together(arch):
    """Each process holds less than the limit, all of them more."""
    for _ in range(4):
        subprocess.Popen(
            [sys.executable, "-c", "import time; held = bytearray(b'x') * (60 << 20); time.sleep(600)"],
            start_new_session=True,
        )
    time.sleep(600)


def mapping_much(arch):
    """Maps far more than the limit, read-only, as workers map a data set."""
    import mmap

    with Path("/dev/zero").open("rb") as zeros:
        mapping = mmap.mmap(zeros.fileno(), 1 << 30, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    return float(mapping[0]) + 1.0


def exiting_with_a_handler(arch, trial):
    import atexit

    atexit.register(print, "said at exit", flush=True)
    raise ValueError("look at the output")


class NotLoadable:
    """Can be sent, and not be received."""

    def __reduce__(self):
        return (_raise_on_loading, ())

    def __call__(self, arch):
        return 1.0


def _raise_on_loading():
    raise ValueError("cannot be made again")


class Preloading:
    preload = ("colorsys",)

    def __call__(self, arch):
        return float("colorsys" in sys.modules)


def telling_where(arch):
    return Scored(1.0, {"folder": str(Path.cwd())})


def counting_threads(arch):
    return float(os.environ["OMP_NUM_THREADS"])


@dataclass(frozen=True)
class Travelling:
    """Reads a folder, writes to another."""

    carries: ClassVar = ("data",)
    leaves: ClassVar = ("results",)

    data: str
    results: str | None

    def __call__(self, arch, trial):
        total = float(Path(self.data, "x.txt").read_text()) + float(Path(self.data, "more", "y.txt").read_text())
        Path(self.results, f"trial-{trial.number}.txt").write_text(str(total))
        return Scored(total, {"where": self.data})


class Unimportable:
    def __reduce__(self):
        raise TypeError("stays at home")

    def __call__(self, arch):
        return 1.0


class Marked:
    """Leaves the number of its process where the test can find it, then takes its time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, arch, trial):
        target = Path(self.folder, f"{trial.number}.pid")
        unfinished = target.with_suffix(".tmp")
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(target)
        time.sleep(600)


class WithChild(Marked):
    """And has a child of its own, which has left its group and session."""

    def __call__(self, arch, trial):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        Path(self.folder, "child.tmp2").write_text(str(child.pid))
        Path(self.folder, "child.tmp2").rename(Path(self.folder, "child.pid"))
        super().__call__(arch, trial)


def is_alive(pid: int) -> bool:
    """Whether this process runs; one that is dead and not collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def data_limit(arch):
    """The memory that the kernel lets this process have."""
    return float(resource.getrlimit(resource.RLIMIT_DATA)[0])


class SharingMemory:
    """Maps a new file of shared memory and an old one, and hangs."""

    def __init__(self, new, old):
        self.new, self.old = new, old

    def __call__(self, arch):
        maps = []
        for name in (self.new, self.old):
            with open(name, "a+b") as file:  # noqa: PTH123
                file.truncate(4096)
                maps.append(mmap.mmap(file.fileno(), 4096))
        time.sleep(600)


def hiding_memory(arch):
    """Writes much to a file in memory, and maps nothing of it."""
    file = os.memfd_create("hidden")
    for _ in range(400):
        os.write(file, bytes(10**6))
    time.sleep(600)
    return 1.0


def a_second(arch):
    """Takes longer than an executor waits for one to begin, in a test that says so."""
    time.sleep(1.0)
    return 1.0


def _hang():
    time.sleep(600)


class Hanging:
    """An objective whose loading in another process does not end."""

    def __call__(self, arch):
        return 1.0

    def __reduce__(self):
        return (_hang, ())


def catching_interrupt(arch):
    """As an objective that cleans up after Ctrl-C."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
    except KeyboardInterrupt:
        return 1.0


def visible_card(arch):
    return float(os.environ["CUDA_VISIBLE_DEVICES"])


def closing_streams(arch):
    sys.stdout.close()
    sys.stderr.close()
    return 1.0


@dataclass(frozen=True)
class Carrying:
    """Reads one folder and writes to another."""

    source: str | None
    target: str | None
    carries: ClassVar[tuple[str, ...]] = ("source",)
    leaves: ClassVar[tuple[str, ...]] = ("target",)

    def __call__(self, arch):
        return 1.0


def killing_its_group(arch):
    os.killpg(0, signal.SIGKILL)
