"""Parquet and Feather. What they would take in memory is known before it is taken.

Parquet repeats a value in a few bytes, so that its own sizes say little: rows and columns are counted, and texts are
read as a list of different ones and where each stands, whose lengths add up to what they take when written out. Feather
says of each packed buffer how large it is unpacked, in its first eight bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbot.data.bounds import ALWAYS, BYTES_PER_CELL, check_bytes, our_errors
from nasbot.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
FEATHER = ".feather"
MAX_BATCHES = 100_000


def arrow_for(path: Path) -> Any:
    """The package pyarrow, with what reads this file; DataError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.feather
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f"{path}: Parquet and Feather files need pyarrow: install nasbot with its extra, nasbot[parquet], or save "
            "the table as CSV"
        ) from None
    return pyarrow


def read_arrow(path: Path, *, most_columns: int) -> pd.DataFrame:
    """The table in a Parquet or Feather file. Raises FileError or DataError."""
    import pandas as pd

    pyarrow = arrow_for(path)
    if path.name.lower().endswith(FEATHER):
        with our_errors(path, "a Feather file", pyarrow.ArrowException):
            _check_feather(path)
            return pd.DataFrame(pyarrow.feather.read_feather(path))
    with our_errors(path, "a Parquet file", pyarrow.ArrowException):
        texts = _check_parquet(path, most_columns)
        if texts:
            with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
                _check_texts(path, file.read(columns=texts), texts)
        return pd.read_parquet(path)


def parquet_chunks(path: Path, rows: int, *, most_columns: int) -> Iterator[pd.DataFrame]:
    """The rows of a Parquet file, so many at a time."""
    pyarrow = arrow_for(path)
    with our_errors(path, "a Parquet file", pyarrow.ArrowException):
        texts = _check_parquet(path, most_columns, whole=False)
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            width = max(1, file.metadata.num_columns)
            for batch in file.iter_batches(batch_size=max(1, min(rows, ALWAYS // 2 // (BYTES_PER_CELL * width)))):
                table = pyarrow.Table.from_batches([batch])
                _check_texts(path, table, texts)
                yield _written_out(table, texts).to_pandas()


def _check_parquet(path: Path, most_columns: int, *, whole: bool = True) -> list[str]:
    """The names of columns of texts; DataError where the table is too large for its file."""
    pyarrow = arrow_for(path)
    with pyarrow.parquet.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    if len(schema.names) > most_columns or metadata.num_columns > most_columns:
        n = max(len(schema.names), metadata.num_columns)
        raise DataError(f"{path}: {n:,} columns; expected at most {most_columns:,}")
    cells = packed = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            width = max(BYTES_PER_CELL, metadata.schema.column(j).length)
            cells += max(group.num_rows, column.num_values) * width
            packed += column.total_uncompressed_size
    if whole:
        check_bytes(path, max(cells, packed), f"{metadata.num_rows:,} rows of {metadata.num_columns:,} columns")
    kinds = (pyarrow.types.is_string, pyarrow.types.is_binary)  # of which a dictionary can be read
    return [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]


def _check_texts(path: Path, table: Any, texts: Sequence[str]) -> None:
    """DataError where texts are too long when they are written out in each row."""
    import pyarrow.compute as pc
    import pyarrow.types

    needed = table.nbytes
    for name in texts:
        for part in table.column(name).chunks:
            if pyarrow.types.is_dictionary(part.type):
                lengths = pc.binary_length(part.dictionary).cast("int64")
                needed += pc.sum(pc.take(lengths, part.indices)).as_py() or 0
    check_bytes(path, needed, f"{len(table):,} rows")


def _written_out(table: Any, texts: Sequence[str]) -> Any:
    import pyarrow.types

    for name in texts:
        place = table.schema.get_field_index(name)
        field, column = table.schema.field(place), table.column(place)
        if pyarrow.types.is_dictionary(field.type):
            kind = field.type.value_type
            table = table.set_column(place, field.with_type(kind), column.cast(kind))
    return table


# -- Feather: the headers of its batches, as the Arrow format lays them out --------------------------------------------


def _check_feather(path: Path) -> None:
    """DataError where the buffers of a Feather file unpack to more than its size allows."""
    pyarrow = arrow_for(path)
    with pyarrow.memory_map(str(path)) as source:
        magic = source.read(6)
        if magic.startswith(b"FEA1"):  # the first version, never packed
            return
        if magic != b"ARROW1":
            raise DataError(f"{path}: not a Feather file")
        source.seek(8)  # after the magic number and its padding come the messages of a stream
        needed = 0
        for _ in range(MAX_BATCHES):
            try:
                message = pyarrow.ipc.read_message(source)
            except EOFError:
                break
            if message.type in ("record batch", "dictionary"):
                needed += _unpacked_bytes(message.metadata.to_pybytes(), message.body)
                check_bytes(path, needed, "its columns")
        else:
            raise DataError(f"{path}: more than {MAX_BATCHES:,} parts; save it again")


RECORD_BATCH, DICTIONARY_BATCH = 3, 2  # kinds of a message's header
PACKED = struct.Struct("<q")


def _unpacked_bytes(metadata: bytes, body: Any) -> int:
    """The sizes of a batch's buffers when unpacked; of its rows, where they are more."""
    message = _Record(metadata, struct.unpack_from("<I", metadata)[0])
    batch = message.record(2)
    if message.number(1, "<B") == DICTIONARY_BATCH:
        batch = batch.record(1)
    needed = batch.number(0, "<q")  # rows
    compressed = batch.place(3) is not None
    for offset, length in batch.structs(2, "<qq"):
        if compressed and length >= PACKED.size:
            unpacked = PACKED.unpack(body.slice(offset, PACKED.size).to_pybytes())[0]
            length = max(length, unpacked)  # -1: not packed after all
        needed += length
    return int(needed)


class _Record:
    """A table of a flatbuffer: fields by number, each at a place that the record's own table of offsets gives."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data, self.start = data, start
        self.offsets = start - self._at("<i", start)

    def _at(self, form: str, where: int) -> int:
        return int(struct.unpack_from(form, self.data, where)[0])

    def place(self, field: int) -> int | None:
        if 4 + 2 * field >= self._at("<H", self.offsets):
            return None
        offset = self._at("<H", self.offsets + 4 + 2 * field)
        return self.start + offset if offset else None

    def number(self, field: int, form: str) -> int:
        where = self.place(field)
        return 0 if where is None else self._at(form, where)

    def record(self, field: int) -> _Record:
        where = self.place(field)
        if where is None:
            raise DataError("not a Feather file: a part without its description")
        return _Record(self.data, where + self._at("<I", where))

    def structs(self, field: int, form: str) -> list[tuple[Any, ...]]:
        where = self.place(field)
        if where is None:
            return []
        first = where + self._at("<I", where)
        count, size = self._at("<I", first), struct.calcsize(form)
        return [struct.unpack_from(form, self.data, first + 4 + size * i) for i in range(count)]
