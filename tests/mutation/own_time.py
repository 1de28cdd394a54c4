"""How long processes have had on a machine that others use, too: waiting for a core that others have does not count."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def clock() -> float:
    """Seconds, but for those in which this process waited for a core."""
    with suppress(OSError):  # where the system does not say, they count
        return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    return time.monotonic()


class Stopwatch:
    """Seconds in which a process or one that it started was on a core, and those in which all of them slept."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.threads: dict[str, tuple[int, int]] = {}  # nanoseconds on a core, and waiting for one; of the dead, too
        self.start()

    def start(self) -> None:
        """Begin at zero."""
        self.began = time.monotonic()
        self.before = self._sums()

    def read(self) -> float:
        """The seconds since the start."""
        ran, waited = (now - before for now, before in zip(self._sums(), self.before, strict=True))
        return ran + max(0.0, time.monotonic() - self.began - ran - waited)

    def _sums(self) -> tuple[float, float]:
        left = [str(self.process)]
        while left:
            with suppress(OSError):  # it ends while we look
                for task in Path(f"/proc/{left.pop()}/task").iterdir():
                    ran, waited, _ = (task / "schedstat").read_text().split()
                    self.threads[task.name] = int(ran), int(waited)
                    left += (task / "children").read_text().split()
        return sum(ran for ran, _ in self.threads.values()) / 1e9, sum(w for _, w in self.threads.values()) / 1e9
