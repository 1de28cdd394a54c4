"""A Ray cluster of our own on this machine: a head and more nodes, each of which can be lost as by a power cut.

Never ``ray stop``, which ends every Ray on the machine: what was started here is ended by its process numbers.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from nasbot.execution._tree import descendants

RAY = str(Path(sys.executable).with_name("ray"))
PATIENCE = 180.0


class Cluster:
    """``with Cluster() as cluster: cluster.add_node(); RayExecutor(cluster.address)``, with a token of its own."""

    def __init__(self, cpus: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nb"))  # short: Ray keeps sockets below, whose names are limited
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # not 15: on a busy machine trials would never begin
            "OMP_NUM_THREADS": "1",
        }
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.nodes: list[subprocess.Popen] = []
        self._cpus = cpus

    def __enter__(self):
        try:
            self._start("--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={self.folder}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def add_node(self) -> int:
        """Another node; its number, the head being 0."""
        self._start(f"--address={self.address}")
        return len(self.nodes) - 1

    def lose(self, number: int) -> None:
        """Every process of this node, at once."""
        node = self.nodes[number]
        for pid in [*descendants(node.pid), node.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()

    def __exit__(self, *_):
        for number in range(len(self.nodes)):
            self.lose(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *arguments: str) -> None:
        command = [RAY, "start", "--block", f"--num-cpus={self._cpus}", "--object-store-memory=80000000", *arguments]
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as output:
            self.nodes.append(
                subprocess.Popen(command, env=self.environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
            )
        deadline = time.monotonic() + PATIENCE
        while "Ray runtime started" not in log.read_text(errors="replace"):
            assert self.nodes[-1].poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.05)


def free_port() -> int:
    """Outside 10002-19999, where Ray's workers listen, and below the kernel's own choices."""
    for port in range(20_000 + os.getpid() % 5000, 32_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")
