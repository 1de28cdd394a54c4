"""Small files that would take gigabytes are refused by their headers: nothing of that size is ever made."""

import csv
import gzip
import io
import os
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager, nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from PIL import Image

from nasbot.cli import main
from nasbot.data import arrow_files, bounds, files, text_tables
from nasbot.data.arrow_files import _unpacked_bytes
from nasbot.data.chunks import chunks
from nasbot.data.files import read, read_table
from nasbot.errors import DataError, FileError

SMALL = 3_000_000  # bytes of each file below
HELD = 300_000_000  # bytes that reading one may take, of which ALWAYS is half


def packed_lines(path, line, n):
    with gzip.open(path, "wb") as file:
        file.write(b"a,b,y\n")
        for _ in range(n // 10_000):
            file.write(line * 10_000)


def csv_gz(path):
    packed_lines(path, b"1,1,1\n" * 10, 3_000_000)  # 180 MB


def csv_zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t.csv", "w", force_zip64=True) as f:
        f.write(b"a,b,y\n")
        for _ in range(200):
            f.write(b"1,1,1\n" * 200_000)


def one_line_gz(path):
    with gzip.open(path, "wb") as file:
        for _ in range(300):
            file.write(b"a" * 2**20)


def header_of_commas(path):
    path.write_bytes(b"," * 300_000 + b"y\n" + b"1\n" * 500_000)  # 150 billion cells


def jsonl_gz(path):
    with gzip.open(path, "wb") as file:
        for _ in range(300):
            file.write(b'{"a": 1, "y": 2}\n' * 60_000)


def json_of_other_names(path):
    path.write_text("\n".join(f'{{"c{i}": 1}}' for i in range(100_000)))  # 10 billion cells


def npy_header(shape, descr="<f8"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zeros(archive, name, shape):
    with archive.open(name, "w", force_zip64=True) as file:
        file.write(npy_header(shape))
        for _ in range(int(np.prod(shape)) * 8 // 2**20):
            file.write(bytes(2**20))


def npz(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        zeros(archive, "X.npy", (2**18, 200))  # 400 MB
        archive.writestr("y.npy", npy_header((2**18,)) + bytes(2**21))


def npz_that_announces(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy_header((10**10, 10)) + bytes(80))
        archive.writestr("y.npy", npy_header((10**10,)) + bytes(80))


def npz_of_a_long_header(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**29))
            for _ in range(2**9):
                file.write(b" " * 2**20)
        archive.writestr("y.npy", npy_header((4,)) + bytes(32))


def npz_that_counts_below_zero(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("X.npy", "y.npy"):
            archive.writestr(name, npy_header((-4, -4)) + bytes(128))


def parquet_of_one_value(path):
    column = pa.array(np.zeros(10**7))
    pyarrow.parquet.write_table(pa.table({"x": column, "y": column}), path, row_group_size=10**6)


def parquet_of_long_texts(path):
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, dtype=np.int32)), pa.array(["a" * 500_000]))
    table = pa.table({"x": texts, "y": np.arange(3000.0)})
    pyarrow.parquet.write_table(table, path, compression="gzip", store_schema=False)  # 1.5 GB when written out


def feather(path):
    pyarrow.feather.write_feather(
        pa.table({"x": np.zeros(4 * 10**7), "y": np.zeros(4 * 10**7)}), path, compression="zstd"
    )


def feather_of_categories(path):
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.array(["a" * 2**29, "b"], pa.large_string())
    )
    pyarrow.feather.write_feather(pa.table({"x": texts, "y": [1.0, 2.0]}), path, compression="zstd")


def sheet(path, rows):
    """An Excel file of a sheet of this XML."""
    buffer = io.BytesIO()
    pd.DataFrame({"x": [1.0], "y": [2.0]}).to_excel(buffer, index=False)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = content.split(b"<sheetData>")[0] + b"<sheetData>" + rows + b"</sheetData></worksheet>"
            new.writestr(name, content)


def excel_of_much_text(path):
    sheet(path, b'<row r="1"><c r="A1" t="inlineStr"><is><t>' + b"a" * 2 * 10**8 + b"</t></is></c></row>")


def excel_of_far_cells(path):
    sheet(path, b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(1, 20_001)))


def excel_of_a_far_row(path):
    sheet(path, b'<row r="1"><c r="A1"><v>1</v></c></row><row r="99999999999"><c r="A99999999999"><v>1</v></c></row>')


def excel_of_two_corners(path):
    sheet(path, b'<row r="1"><c r="XFD1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>1</v></c></row>')


BOMBS = {
    "lines.csv.gz": csv_gz,
    "lines.zip.csv.zip": csv_zip,
    "line.csv.gz": one_line_gz,
    "commas.csv": header_of_commas,
    "lines.jsonl.gz": jsonl_gz,
    "names.jsonl": json_of_other_names,
    "zeros.npz": npz,
    "announced.npz": npz_that_announces,
    "header.npz": npz_of_a_long_header,
    "negative.npz": npz_that_counts_below_zero,
    "value.parquet": parquet_of_one_value,
    "texts.parquet": parquet_of_long_texts,
    "zeros.feather": feather,
    "categories.feather": feather_of_categories,
    "text.xlsx": excel_of_much_text,
    "cells.xlsx": excel_of_far_cells,
    "row.xlsx": excel_of_a_far_row,
    "corners.xlsx": excel_of_two_corners,
}


@contextmanager
def held_memory():
    """Fails where what is done inside takes much memory: of Python and numpy, or of Arrow."""
    arrow = pa.default_memory_pool()
    before = arrow.max_memory()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()
    assert arrow.max_memory() - before < HELD


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_that_would_take_gigabytes(tmp_path, name):
    path = tmp_path / name
    BOMBS[name](path)
    assert path.stat().st_size < SMALL
    with held_memory(), pytest.raises(DataError) as caught:
        read(path, "y")
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value).splitlines()) == 1


def test_one_size_below_zero_is_one_too_many(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((4, -4)) + bytes(128))
        archive.writestr("y.npy", npy_header((4,)) + bytes(32))
    with pytest.raises(DataError, match=r"not an NPZ file: an array of shape \(4, -4\)"):
        read(tmp_path / "t.npz", "y")


@pytest.mark.parametrize("name", ["line.csv.gz", "texts.parquet", "zeros.npz", "zeros.feather", "names.jsonl"])
def test_they_are_refused_for_predictions_too(tmp_path, name):
    path = tmp_path / name
    BOMBS[name](path)
    with held_memory(), pytest.raises(DataError, match=r"MB|GB|bytes"):
        list(chunks(path))


@pytest.mark.parametrize("name", ["wide.csv", "wide.parquet"])
def test_chunks_of_wide_tables_have_fewer_rows(tmp_path, name, monkeypatch):
    for place in (bounds, arrow_files):
        monkeypatch.setattr(place, "ALWAYS", 2**21)
    monkeypatch.setattr(bounds, "RATIO", 0)
    frame = pd.DataFrame(np.ones((100, 5000))).set_axis([f"c{i}" for i in range(5000)], axis=1)
    frame.to_csv(tmp_path / name, index=False) if name == "wide.csv" else frame.to_parquet(tmp_path / name)
    assert [len(chunk) for chunk in chunks(tmp_path / name)] == [26, 26, 26, 22]


def test_long_packed_files_are_predicted_a_chunk_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "ALWAYS", 2**20)
    path = tmp_path / "long.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 600_000)
    with pytest.raises(DataError, match=r"expected at most 1\.05 MB"):
        read_table(path)
    assert sum(len(chunk) for chunk in chunks(path, rows=50_000)) == 600_000


def test_what_a_file_of_its_size_may_hold_is_read(tmp_path):
    frame = pd.DataFrame({"a": np.repeat("a text that repeats", 2000), "b": np.zeros(2000), "y": np.arange(2000.0)})
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather", compression="zstd")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_json(tmp_path / "t.jsonl.gz", orient="records", lines=True)
    frame.assign(a=frame["a"].astype("category")).to_parquet(tmp_path / "categories.parquet")
    for name in ("t.csv.gz", "t.parquet", "t.feather", "t.xlsx", "t.jsonl.gz"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name), frame, check_dtype=name != "t.xlsx", obj=name)
        pd.testing.assert_frame_equal(pd.concat(chunks(tmp_path / name)), frame, check_dtype=False, obj=name)
    assert isinstance(read_table(tmp_path / "categories.parquet")["a"].dtype, pd.CategoricalDtype)


def test_a_stray_cell_far_to_the_right_is_read(tmp_path):
    sheet(
        tmp_path / "t.xlsx",
        b'<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>'
        + b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (i, i) for i in range(2, 100)),
    )
    assert read_table(tmp_path / "t.xlsx").shape[0] == 98


def png_header(path, width, height):
    """A picture of this size by its header, of a few bytes."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


class TestPictures:
    def folder(self, tmp_path):
        for label in ("cat", "dog"):
            (tmp_path / label).mkdir()
            for i in range(3):
                Image.new("L", (8, 8), i).save(tmp_path / label / f"{i}.png")
        return tmp_path

    @pytest.mark.parametrize("pixels", [5_000, 10_000, 30_000])
    def test_a_bomb_that_is_not_the_first(self, tmp_path, pixels, monkeypatch):
        folder = self.folder(tmp_path)
        png_header(folder / "dog" / "1.png", pixels, pixels)
        monkeypatch.setattr(files, "_picture", lambda *_, **__: pytest.fail("a picture was unpacked"))
        with pytest.raises(DataError, match=r"1\.png: (\d+ x \d+ pixels, others have 8 x 8|too many pixels)"):
            read(folder, None)

    def test_many_that_unpack_to_more_than_their_size_allows(self, tmp_path):
        for label in ("cat", "dog"):
            (tmp_path / label).mkdir()
            for i in range(8):
                png_header(tmp_path / label / f"{i}.png", 4000, 4000)
        with pytest.raises(DataError, match="16 images of 4000 x 4000 pixels are too many for memory"):
            read(tmp_path, None)

    def test_there_is_a_limit_of_pixels_for_large_files_too(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "MAX_PIXELS", 383)
        with pytest.raises(DataError, match="6 images of 8 x 8 pixels are too many"):
            read(self.folder(tmp_path), None)
        monkeypatch.setattr(files, "MAX_PIXELS", 384)
        assert read(tmp_path, None)[0].shape == (6, 8, 8)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.xlsx", "t.jsonl", "t.npz"])
def test_memory_that_runs_out_is_said_in_one_line(tmp_path, name, monkeypatch, capsys):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    path = tmp_path / name
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "feather": frame.to_feather, "xlsx": frame.to_excel}
    if name == "t.jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif name == "t.npz":
        np.savez(path, X=frame[["a"]].to_numpy(), y=frame["y"].to_numpy())
    else:
        write[name[2:]](path)

    def no_memory(*_, **__):
        raise MemoryError("Unable to allocate 4.7 GiB")

    for place in ("read_csv", "read_parquet", "read_excel", "DataFrame"):
        monkeypatch.setattr(pd, place, no_memory)
    monkeypatch.setattr(np.lib.format, "read_array", no_memory)
    assert main(["run", str(path), "--target", "y", "--budget", "1 trial"]) == DataError.exit_code
    said = capsys.readouterr().err
    assert "not enough memory to read it" in said
    assert said.count("\n") == 1


def test_memory_that_runs_out_elsewhere_is_no_bug(monkeypatch, capsys):
    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr("nasbot.data.files.read_table", no_memory)
    assert main(["inspect", __file__]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_json_that_is_nested_too_deeply(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        read_table(tmp_path / "deep.json")


def test_names_of_columns_are_compared_in_linear_time(tmp_path):
    names = [f"c{i}" for i in range(300_000)]
    buffer = io.StringIO()
    csv.writer(buffer).writerow([*names, names[-1]])
    (tmp_path / "t.csv").write_text(buffer.getvalue())
    with pytest.raises(DataError, match="two columns are called 'c299999'"):
        read_table(tmp_path / "t.csv")


def test_forged_parts_of_a_feather_file_are_our_errors(tmp_path):
    path = tmp_path / "t.feather"
    feather_of = pa.table({"x": np.arange(50.0), "s": ["a"] * 50})
    pyarrow.feather.write_feather(feather_of, path, compression="lz4")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        bad = bytearray(content)
        for place in rng.integers(8, len(bad), 4):
            bad[place] = rng.integers(0, 256)
        path.write_bytes(bad)
        try:
            read_table(path)
        except (DataError, OSError) as error:
            assert len(str(error)) < 400  # noqa: PT017  # most of them are read, and rightly so


def test_tags_that_two_blocks_share_are_found(tmp_path):
    """A sheet is looked through a megabyte at a time."""
    row = b'<row r="1" spans="1:3" customFormat="1" ht="15.75" note="' + b"x" * 300 + b'"><c r="C1"/></row>'
    sheet(tmp_path / "t.xlsx", row * 3500)
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        files._check_sheets(tmp_path / "t.xlsx", archive)
        sheet(tmp_path / "long.xlsx", b"<row " + b"x" * 3 * 2**20)
    with zipfile.ZipFile(tmp_path / "long.xlsx") as archive, pytest.raises(DataError, match="a tag of more than"):
        files._check_sheets(tmp_path / "long.xlsx", archive)


@pytest.mark.parametrize(("last", "is_one_too_many"), [(files.MAX_SHEET_ROWS, False), (files.MAX_SHEET_ROWS + 1, True)])
def test_the_last_row_of_a_sheet(tmp_path, last, is_one_too_many):
    sheet(tmp_path / "t.xlsx", b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (last, last))
    expected = pytest.raises(DataError, match="a row beyond") if is_one_too_many else nullcontext()
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive, expected:
        files._check_sheets(tmp_path / "t.xlsx", archive)


def test_a_tag_counts_though_nothing_but_blanks_follow_it_for_blocks(tmp_path):
    sheet(tmp_path / "t.xlsx", b'<row r="99999999">' + b" " * 3 * 2**20 + b"</row>")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive, pytest.raises(DataError, match="a row beyond"):
        files._check_sheets(tmp_path / "t.xlsx", archive)


@pytest.mark.parametrize("entity", ['SYSTEM "file:///etc/passwd"', f'"{"&b;" * 100}"'], ids=["a file", "much text"])
def test_entities_in_an_excel_file_are_refused(tmp_path, entity):
    sheet(tmp_path / "plain.xlsx", b'<row r="1"><c r="A1" t="inlineStr"><is><t>&a;</t></is></c></row>')
    names = f'<!DOCTYPE x [<!ENTITY b "{"b" * 10**5}"><!ENTITY a {entity}>]>'.encode()
    with (
        zipfile.ZipFile(tmp_path / "plain.xlsx") as old,
        zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, names + content if name == "xl/worksheets/sheet1.xml" else content)
    with pytest.raises(DataError, match="not an Excel file"):
        read_table(tmp_path / "t.xlsx")


def test_damaged_parquet_is_told_in_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": range(50), "y": range(50)}).to_parquet(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    length = int.from_bytes(content[-8:-4], "little")
    for _ in range(100):
        bad = bytearray(content)
        for place in rng.integers(len(bad) - 8 - length, len(bad) - 8, 4):
            bad[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        try:
            read_table(path)
        except (DataError, FileError) as error:
            assert str(error).splitlines() == [str(error)]  # noqa: PT017  # some are read


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.xlsx", "t.parquet", "t.jsonl", "t.npz"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match="a pipe or a device"):
        read(tmp_path / name, "y")
    with pytest.raises(FileError, match="a pipe or a device"):
        next(iter(chunks(tmp_path / name)))


def test_a_sample_of_a_wide_table_takes_no_more_than_half_of_what_is_allowed(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n")
    assert text_tables._rows_that_fit(tmp_path / "t.csv", 1000) == bounds.ALWAYS // 2 // 8000
    assert text_tables._rows_that_fit(tmp_path / "t.csv", 10**9) == 1


def batch(values, compression):
    """The only batch of a table of one column: its header and its buffers."""
    record = pa.record_batch({"x": values})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write(record)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()  # the schema
    message = reader.read_next_message()
    return message.metadata.to_pybytes(), message.body


def test_what_a_batch_unpacks_to():
    assert _unpacked_bytes(*batch(np.zeros(1000), "zstd")) == 1000 + 8000  # rows, and the bytes of their numbers
    assert _unpacked_bytes(*batch(np.full(1000, np.pi), None)) == 1000 + 8000  # whose bits are no size


@pytest.mark.parametrize(
    ("length", "said", "needed"), [(7, 2**40, 7), (8, 2**40, 2**40), (9, 2**40, 2**40), (9, -1, 9)]
)
def test_what_a_forged_buffer_says_is_counted(length, said, needed):
    """Eight bytes are enough to say how much there is, fewer are not; -1 says that it is as it is."""
    header, body = batch(np.zeros(1000), "zstd")
    start, packed = 0, len(body.to_pybytes().rstrip(b"\0"))
    (packed,) = (n for n in range(packed, packed + 8) if struct.pack("<qq", start, n) in header)
    forged = header.replace(struct.pack("<qq", start, packed), struct.pack("<qq", start, length))
    assert _unpacked_bytes(forged, pa.py_buffer(struct.pack("<q", said) + body.to_pybytes()[8:])) == 1000 + needed
