"""The recommended model of a study as a file to download: ``nasbot export`` in a process of its own.

The server itself knows no PyTorch, and a search that it shows goes first.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from nasbot.errors import FileError
from nasbot.page.worker import ONE_THREAD

SECONDS = 120.0
NAME = "model.safetensors"


class ModelFiles:
    """Models, one at a time, each written anew: a study that goes on may recommend another."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def content(self, path: Path) -> bytes:
        """The file of the study's model; FileError where there is none, with what ``nasbot export`` said."""
        async with self._one_at_a_time:
            with tempfile.TemporaryDirectory(prefix="nasbot-page-") as folder:
                file = Path(folder) / NAME
                said = await _exported(path, file)
                if not file.is_file():
                    raise FileError(f"there is no model to download: {said or 'nasbot export wrote none'}")
                return file.read_bytes()


async def _exported(path: Path, file: Path) -> str:
    """What the process complained about."""
    command = (
        sys.executable,
        "-m",
        "nasbot",
        "export",
        str(path.absolute()),
        "--to",
        "safetensors",
        "--out",
        str(file),
    )
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=nothing, stdout=nothing, stderr=pipe, env=os.environ | ONE_THREAD
    )
    try:
        _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        return f"it took longer than {SECONDS:g} seconds"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(errors="replace").strip()[-300:]
