"""The page beside a search: a server of its own process that lives as long as its driver, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nasbot.architecture.own_vocabulary import paths_in_use, use_vocabulary
from nasbot.errors import FileError
from nasbot.page.server import Address, serve

END_SECONDS = 10.0


@contextmanager
def served_beside(path: Path) -> Iterator[str]:
    """Serve the study that will be in this file; gives the page's address.

    The server's input is a pipe from here: at its end, whatever ends this process, the server ends too. Ctrl-C is for
    the search alone, so the server has a session of its own.
    """
    server = subprocess.Popen(
        [sys.executable, "-m", "nasbot.page.sidecar", str(path.absolute()), *paths_in_use()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        address = server.stdout.readline().strip()
        if not address:
            reason = (server.stderr.read().strip().splitlines() or ["it ended at once"])[-1]
            raise FileError(f"--serve: the page's server did not begin: {reason[:300]}")
        yield address
    finally:
        server.stdin.close()
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
        server.stderr.close()


def main(path: str, *vocabularies: str) -> None:
    """The server's process: say where, and serve until the input ends."""
    for where in vocabularies:
        use_vocabulary(where)

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    def ready(address: Address) -> None:
        print(address.url, flush=True)
        threading.Thread(target=watch, daemon=True).start()

    serve(path, ready=ready)


if __name__ == "__main__":
    main(*sys.argv[1:])
