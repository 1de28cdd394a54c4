"""HTTP as uvicorn speaks it, with patience that ends: for a request's head to arrive, and for an answer to be taken.

uvicorn itself only limits idle connections between two requests; one that sends a byte now and then, or reads nothing
of what it asked for, would be kept for ever, and enough of them would lock everybody out.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
READING_SECONDS = 30.0  # in which nothing of an answer is taken


class PatientProtocol(H11Protocol):
    """A connection that ends where a request's head takes longer than ``HEAD_SECONDS``, or nobody reads the answer."""

    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn itself has it
        """A client is there; its first request may come."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Part of a request: where its head is not whole yet, the patience that began with it runs on."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def pause_writing(self) -> None:
        """What was sent is not taken; from here on that is waited for, and not for ever."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It is taken after all."""
        self._stop_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_waiting()
        self._stop_reading()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
