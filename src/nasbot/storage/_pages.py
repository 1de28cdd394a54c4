"""Rows out of the raw pages of an SQLite file, for when SQLite itself cannot find its way through them.

Every page that looks like a leaf of a table is read by itself, in the file and in its write-ahead log, wherever it is
and whatever points to it (https://sqlite.org/fileformat2.html, sections 1.6, 2 and 4.1). What comes out is a guess
until its checksum fits: the caller's rows carry one over all their columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, ...]

FILE_HEADER = 100
LOG_HEADER, FRAME_HEADER = 32, 24
LEAF = 0x0D
INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # by serial type
MAX_PAYLOAD = 64_000_000


def rows_in(content: bytes, log: bytes = b"") -> Iterator[Row]:
    """Every row of every table leaf, (rowid, cells); older states of a row may come beside the last one."""
    size = _page_size(content, log)
    pages = {n + 1: content[n * size : (n + 1) * size] for n in range(len(content) // size)}
    logged = list(_frames(log, size))
    latest = {**pages, **dict(logged)}
    for number, page in (*pages.items(), *logged):
        yield from _rows_of(page, FILE_HEADER if number == 1 else 0, latest, size)


def _page_size(content: bytes, log: bytes) -> int:
    said = int.from_bytes(content[16:18], "big") if len(content) >= FILE_HEADER else 0
    said = 65536 if said == 1 else said
    if said < 512 or said & (said - 1):
        said = int.from_bytes(log[8:12], "big") if len(log) >= LOG_HEADER else 0
    return said if 512 <= said <= 65536 and not said & (said - 1) else 4096


def _frames(log: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    for at in range(LOG_HEADER, len(log) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        yield int.from_bytes(log[at : at + 4], "big"), log[at + FRAME_HEADER : at + FRAME_HEADER + size]


def _rows_of(page: bytes, start: int, pages: dict[int, bytes], size: int) -> Iterator[Row]:
    if len(page) != size or page[start] != LEAF:
        return
    n_cells = int.from_bytes(page[start + 3 : start + 5], "big")
    for i in range(min(n_cells, size // 4)):
        at = int.from_bytes(page[start + 8 + 2 * i : start + 10 + 2 * i], "big")
        try:
            yield _row(page, at, pages, size)
        except (IndexError, ValueError, struct.error, UnicodeDecodeError):
            continue  # not a cell, or a damaged one


def _row(page: bytes, at: int, pages: dict[int, bytes], size: int) -> Row:
    length, at = _varint(page, at)
    rowid, at = _varint(page, at)
    if not 0 < length <= min(MAX_PAYLOAD, len(pages) * size):
        raise ValueError("no payload is that long")
    payload = _payload(page, at, length, pages, size)
    header, at = _varint(payload, 0)
    types = []
    while at < header:
        kind, at = _varint(payload, at)
        types.append(kind)
    cells = []
    for kind in types:
        cell, header = _cell(payload, header, kind)
        cells.append(cell)
    return (rowid, *cells)


def _payload(page: bytes, at: int, length: int, pages: dict[int, bytes], size: int) -> bytes:
    """What is in the leaf, and the rest from the chain of overflow pages."""
    largest, smallest = size - 35, (size - 12) * 32 // 255 - 23
    local = length
    if length > largest:
        local = smallest + (length - smallest) % (size - 4)
        local = smallest if local > largest else local
    payload = page[at : at + local]
    number = int.from_bytes(page[at + local : at + local + 4], "big") if local < length else 0
    while len(payload) < length:
        overflow = pages.get(number, b"")
        if len(overflow) != size:
            raise ValueError("a page of its content is missing")
        number = int.from_bytes(overflow[:4], "big")
        payload += overflow[4 : 4 + length - len(payload)]
    return payload


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(8):
        byte = content[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | content[at + 8], at + 9


def _cell(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], at
    if kind == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind in INTEGER_BYTES:
        end = at + INTEGER_BYTES[kind]
        if end > len(payload):
            raise IndexError
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind < 12:
        raise ValueError("no such type")
    end = at + (kind - 12) // 2
    if end > len(payload):
        raise IndexError
    content = payload[at:end]
    return (content if kind % 2 == 0 else content.decode()), end
