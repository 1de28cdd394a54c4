"""Slow figures are computed by a worker process of low priority, so that the search goes first.

It needs numba and scipy, which the server itself is spared, and whatever happens in it the page goes on. It does one
thing at a time and ends when nobody has asked for a while. Answers are kept, and made again when the study has changed,
so that the process is busy for a twentieth of the time at most.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from nasbot.architecture.own_vocabulary import paths_in_use

SECONDS = 300.0  # for one answer
IDLE_SECONDS = 60.0
MAX_BYTES = 64_000_000
KEPT = 500
SHARE = 20
MIN_PAUSE = 5.0
COMPUTING = '{"computing":true}'
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Answer:
    """What the process said, about which revision, and how long it took."""

    text: str
    revision: int
    at: float
    took: float


class FigureWorker:
    """The worker process, and its answers."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._answers: OrderedDict[tuple[str, ...], Answer] = OrderedDict()
        self._asked: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._end: asyncio.TimerHandle | None = None

    def answer(self, study: str, revision: int, *words: str, changes: bool) -> str:
        """What is known, else that it is being computed; ``changes`` says whether it depends on the revision."""
        key = (study, *words)
        known = self._answers.get(key)
        if known is not None and (not changes or not self._is_due(known, revision)):
            return known.text
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(key, revision))
        return known.text if known is not None else COMPUTING

    async def close(self) -> None:
        """End what still runs."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._end_process()

    def _is_due(self, known: Answer, revision: int) -> bool:
        pause = max(MIN_PAUSE, SHARE * known.took)
        return known.revision != revision and time.monotonic() - known.at >= pause

    async def _ask(self, key: tuple[str, ...], revision: int) -> None:
        try:
            async with self._one_at_a_time:
                begun = time.monotonic()
                text = await self._said(key)
                now = time.monotonic()
                self._answers[key] = Answer(text, revision, now, now - begun)
                while len(self._answers) > KEPT:
                    self._answers.popitem(last=False)
        finally:
            self._asked.pop(key, None)

    # -- the process ---------------------------------------------------------------------------------------------------

    async def _said(self, key: tuple[str, ...]) -> str:
        """One line to it, one line from it; where that fails in any way it is ended, and the next time is another."""
        if self._end is not None:
            self._end.cancel()
        try:
            process = await self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(key).encode() + b"\n")
            await process.stdin.drain()
            line = await asyncio.wait_for(process.stdout.readline(), SECONDS)
        except TimeoutError:
            await self._end_process()
            return _message(f"it took longer than {SECONDS:g} seconds")
        except (OSError, ValueError) as error:  # ValueError: a line longer than MAX_BYTES
            await self._end_process()
            return _message(f"it could not be computed: {error}")
        except asyncio.CancelledError:
            await self._end_process()
            raise
        if not line.endswith(b"\n"):
            await self._end_process()
            return _message("it could not be computed: its process ended")
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(IDLE_SECONDS, self._let_go)
        return line.decode().rstrip("\n")

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "nasbot.page._worker",
                *paths_in_use(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=os.environ | ONE_THREAD,
                limit=MAX_BYTES,
            )
        return self._process

    def _let_go(self) -> None:
        """Nobody has asked for a while: at the end of its input it ends by itself."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    async def _end_process(self) -> None:
        if self._end is not None:
            self._end.cancel()
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _message(text: str) -> str:
    return json.dumps({"message": text})
