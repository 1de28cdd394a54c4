"""Messages from an evaluation's process: length, CRC, then JSON. A torn or foreign write is never believed."""

from __future__ import annotations

import json
import os
import struct
import threading
import zlib
from collections.abc import Mapping
from typing import Any

from nasbot import _json
from nasbot.errors import CodecError
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point, Scored, Stopped

HEADER = struct.Struct(">II")
MAX_FRAME = 16_000_000
CANNOT_SEND = 70  # exit code: the outcome is known but the pipe is gone


class FrameError(ValueError):
    """What came is not a frame, or a damaged one."""


def packed(record: Mapping[str, Any]) -> bytes:
    """One frame. Raises FrameError where the record is larger than a frame may be."""
    body = json.dumps(record, allow_nan=False).encode()
    if len(body) > MAX_FRAME:
        raise FrameError(f"a result of {len(body):,} bytes; at most {MAX_FRAME:,} are taken")
    return HEADER.pack(len(body), zlib.crc32(body)) + body


class FrameSender:
    """Frames into the pipe of results, whole, from any thread; ``common`` entries say which evaluation's."""

    def __init__(self, results: int) -> None:
        self._results = results
        self._lock = threading.Lock()

    def report(self, point: Point, **common: object) -> None:
        """A point of a learning curve."""
        self.send({**common, "step": point.step, "value": point.value})

    def end(self, outcome: Outcome, **common: object) -> None:
        """How the evaluation ended."""
        self.send({**common, "outcome": outcome_record(outcome)})

    def send(self, record: Mapping[str, object]) -> None:
        """Any frame; ends this process where nobody reads any more."""
        rest = memoryview(packed(record))
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._results, rest) :]
            except OSError:
                os._exit(CANNOT_SEND)


class FrameReader:
    """Collects bytes as they come and gives back whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, content: bytes) -> list[dict[str, Any]]:
        """The frames that these bytes complete. Raises FrameError at the first that is not one."""
        self._buffer += content
        frames = []
        while len(self._buffer) >= HEADER.size:
            length, checksum = HEADER.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise FrameError(f"a frame of {length:,} bytes is announced; at most {MAX_FRAME:,} are taken")
            end = HEADER.size + length
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            frames.append(_record(body, checksum))
        return frames


def _record(body: bytes, checksum: int) -> dict[str, Any]:
    if zlib.crc32(body) != checksum:
        raise FrameError("a frame's checksum does not fit its content")
    try:
        return dict(_json.mapping(_json.parsed(body, "a frame"), "a frame"))
    except CodecError as error:
        raise FrameError(str(error)) from None


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data."""
    match outcome:
        case Scored(value, details):
            return {"value": value, "details": details}
        case Stopped() as stopped:
            return {"stopped": stopped.to_dict()}
        case Failed(cause, message, details):
            return {"cause": str(cause), "message": message, "details": details}
        case Cancelled(message):
            return {"message": message}


def outcome_from(record: Mapping[str, Any]) -> Outcome:
    """The outcome that ``outcome_record`` wrote. Raises FrameError for anything else."""
    try:
        if "value" in record:
            return Scored(record["value"], record["details"])
        if "stopped" in record:
            return Stopped.from_dict(record["stopped"])
        if "cause" in record:
            return Failed(FailureCause(record["cause"]), record["message"], record["details"])
        return Cancelled(record["message"])
    except (KeyError, TypeError, ValueError):
        raise FrameError("a frame is not an outcome") from None
