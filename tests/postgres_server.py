"""A PostgreSQL server of the tests' own: in a folder of its own, on a socket in it, gone with it.

The server refuses to run as root, so for root it runs as nobody.
"""

import os
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

PLACES = Path("/usr/lib/postgresql")  # Debian's
SETTINGS = "-c listen_addresses= -c fsync=off -c max_connections=200 -c shared_buffers=16MB"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest of several; None where there is none."""
    if named := os.environ.get("NASBOT_POSTGRES"):
        return Path(named) if (Path(named) / "initdb").exists() else None
    found = sorted(PLACES.glob("*/bin/initdb"), key=lambda program: float(program.parent.parent.name))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Server:
    """Started when made; ``stop`` and ``start`` as often as one likes, ``remove`` at the end."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="nasbot-pg-", dir="/tmp"))  # a socket's name is short
        self._as = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.folder, *self._as.values())
        self._numbers = count()
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        options = f"{SETTINGS} -k {self.folder}"
        self._run("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"nasbot{next(self._numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def address(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def remove(self) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT, **self._as,
        )  # fmt: skip
        assert done.returncode == 0, f"{program} failed: {(done.stdout or b'').decode()[-2000:]}"
