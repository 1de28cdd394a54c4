"""What takes a moment is computed aside, in a process of its own that lets the search go first.

It needs numba and scipy, which the server itself is spared, and whatever happens in it the page goes on. One runs at a
time; what it answered is kept, and made again when the study has changed, no more often than a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

SECONDS = 300.0
MAX_BYTES = 64_000_000
KEPT = 200
SHARE = 20
MIN_PAUSE = 5.0
COMPUTING = '{"computing":true}'


@dataclass(frozen=True)
class Answer:
    """What a process said, about which revision, and how long it took."""

    text: str
    revision: int
    at: float
    took: float


class Aside:
    """The processes aside, and what they said."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Semaphore(1)
        self._answers: OrderedDict[tuple[str, ...], Answer] = OrderedDict()
        self._asked: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._process: asyncio.subprocess.Process | None = None

    def answer(self, path: Path, revision: int, *words: str, changes: bool) -> str:
        """What is known, else that it is being computed; ``changes`` says whether it depends on the revision."""
        key = (str(path), *words)
        known = self._answers.get(key)
        if known is not None and (not changes or not self._is_due(known, revision)):
            return known.text
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(key, revision))
        return known.text if known is not None else COMPUTING

    async def close(self) -> None:
        """End what still runs."""
        for task in list(self._asked.values()):
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    def _is_due(self, known: Answer, revision: int) -> bool:
        pause = max(MIN_PAUSE, SHARE * known.took)
        return known.revision != revision and time.monotonic() - known.at >= pause

    async def _ask(self, key: tuple[str, ...], revision: int) -> None:
        try:
            async with self._one_at_a_time:
                begun = time.monotonic()
                text = await _output_of(key)
                now = time.monotonic()
                self._answers[key] = Answer(text, revision, now, now - begun)
                while len(self._answers) > KEPT:
                    self._answers.popitem(last=False)
        finally:
            self._asked.pop(key, None)


async def _output_of(words: tuple[str, ...]) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "nasbot.web._aside",
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        limit=MAX_BYTES,
    )
    try:
        output, complaint = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        return _message(f"it took longer than {SECONDS:g} seconds")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0 or len(output) > MAX_BYTES:
        last = (complaint.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
        return _message(f"it could not be computed: {last[:300]}")
    return output.decode()


def _message(text: str) -> str:
    return json.dumps({"message": text})
