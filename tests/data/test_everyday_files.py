"""Files as people have them: encodings, separators, decimal marks, packed, spreadsheets, JSON.

Every good file below holds the same rows.
"""

import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from nasbot.data.chunks import chunks
from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.data.files import read_table
from nasbot.errors import DataError, NasbotError

N = 30
SIZE = [round(10.25 + 1.5 * i, 2) for i in range(N)]
PRICE = [1234.5 + 1000 * i for i in range(N)]
KIND = ["Haus" if i % 2 else "Wohnung für zwei" for i in range(N)]


def lines(*, sep=",", size=str, price=str, end="\n", quote="", header=("size", "price", "kind")):
    rows = [header, *((size(s), price(p), k) for s, p, k in zip(SIZE, PRICE, KIND, strict=True))]
    return end.join(sep.join(f"{quote}{cell}{quote}" for cell in row) for row in rows) + end


def comma(value):
    return f"{value:.2f}".replace(".", ",")


def thousands(value, mark=",", point="."):
    return f"{value:,.2f}".replace(".", "P").replace(",", mark).replace("P", point)


def zipped(text, name="houses.csv", more=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for inside in (name, *more):
            archive.writestr(inside, text)
    return file.getvalue()


def records():
    return [{"size": s, "price": p, "kind": k} for s, p, k in zip(SIZE, PRICE, KIND, strict=True)]


FRAME = pd.DataFrame(records())
GOOD = {
    "plain.csv": lines(),
    "windows-line-ends.csv": lines(end="\r\n"),
    "quoted.csv": lines(quote='"'),
    "semicolons.csv": lines(sep=";"),
    "tabs.tsv": lines(sep="\t"),
    "tabs.txt": lines(sep="\t"),
    "pipes.psv": lines(sep="|"),
    "pipes.csv": lines(sep="|"),
    "utf-8-mark.csv": lines().encode("utf-8-sig"),
    "utf-16.csv": lines().encode("utf-16"),
    "utf-16-le.csv": lines().encode("utf-16-le"),
    "utf-16-tabs.txt": lines(sep="\t").encode("utf-16"),
    "latin-1.csv": lines().encode("latin-1"),
    "latin-1-semicolons.csv": lines(sep=";", size=comma, price=comma).encode("latin-1"),
    "gzip.csv.gz": gzip.compress(lines().encode()),
    "gzip-tabs.tsv.gz": gzip.compress(lines(sep="\t").encode()),
    "zip.csv.zip": zipped(lines()),
    "zip-mac.csv.zip": zipped(lines(), more=("__MACOSX/._houses.csv",)),
    "zip-latin-1.csv.zip": zipped(lines(sep=";", size=comma, price=comma).encode("latin-1")),
    "decimal-commas.csv": lines(sep=";", size=comma, price=comma),
    "decimal-commas-tabs.tsv": lines(sep="\t", size=comma, price=comma),
    "decimal-commas-quoted.csv": lines(size=comma, price=comma, quote='"'),
    "german.csv": lines(sep=";", size=comma, price=lambda p: thousands(p, ".", ",")),
    "german-euros.csv": lines(sep=";", size=comma, price=lambda p: thousands(p, ".", ",") + " €"),
    "french.csv": lines(sep=";", size=comma, price=lambda p: thousands(p, "\u202f", ",") + " €"),
    "french-nbsp.csv": lines(sep=";", size=comma, price=lambda p: thousands(p, "\u00a0", ",")),
    "swiss.csv": lines(sep=";", price=lambda p: "CHF " + thousands(p, "'", ".")),
    "thousands.csv": lines(quote='"', price=thousands),
    "dollars.csv": lines(quote='"', price=lambda p: "$" + thousands(p)),
    "dollars-tabs.tsv": lines(sep="\t", price=lambda p: "$" + thousands(p)),
    "pounds-pipes.psv": lines(sep="|", price=lambda p: "£" + thousands(p)),
    "code-behind.csv": lines(price=lambda p: f"{p} USD"),
    "per-cent.csv": lines(size=lambda s: f"{s}%"),
    "plus-signs.csv": lines(price=lambda p: f"+{p}"),
    "exponents.csv": lines(price=lambda p: f"{p:.6e}"),
    "spaces-around.csv": lines(header=(" size", " price ", "kind ")),
    "trailing-separator.csv": lines().replace("\n", ",\n"),
    "upper.CSV": lines(),
    "lines.jsonl": "\n".join(json.dumps(r) for r in records()),
    "lines.ndjson": "\n".join(json.dumps(r) for r in records()) + "\n",
    "list.json": json.dumps(records()),
    "packed.jsonl.gz": gzip.compress("\n".join(json.dumps(r) for r in records()).encode()),
    "text-numbers.jsonl": "\n".join(json.dumps({**r, "price": f"${r['price']:,.2f}"}) for r in records()),
    "frame.parquet": lambda path: FRAME.to_parquet(path),
    "frame.pq": lambda path: FRAME.to_parquet(path),
    "frame.feather": lambda path: FRAME.to_feather(path),
}


def written(folder, name, content):
    path = folder / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_it_is_read_as_a_person_expects(tmp_path, name):
    frame = read_table(written(tmp_path, name, GOOD[name]))
    assert list(frame.columns) == ["size", "price", "kind"]
    assert frame["size"].tolist() == pytest.approx(SIZE)
    assert frame["price"].tolist() == pytest.approx(PRICE)
    assert frame["kind"].tolist() == KIND


REFUSED = {
    "binary.csv": (bytes(range(256)) * 20, "not text; save it as CSV in UTF-8"),
    "empty.csv": ("", "empty; expected a line with the names"),
    "no-header.csv": ("1,2\n3,4\n", "first line holds numbers"),
    "no-header-commas.csv": ("1,5;2,5\n3,5;4,5\n", "first line holds numbers"),
    "twice.csv": ("a,a\n1,2\n", "two columns are called 'a'"),
    "two.zip": (zipped("a,b\n1,2\n", more=("other.csv",)), "unknown kind of file"),
    "two.csv.zip": (zipped("a,b\n1,2\n", more=("other.csv",)), "expected one CSV file in the zip file"),
    "no-zip.csv.zip": ("a,b\n1,2\n", "not a zip file"),
    "no-gzip.csv.gz": ("a,b\n1,2\n", "cannot be read"),
    "old.xls": (b"\xd0\xcf\x11\xe0", "unknown kind of file; expected CSV"),
    "numbers.ods": (b"PK", "other spreadsheets can be saved as CSV"),
    "broken.jsonl": ('{"a": 1}\n{"a": \n', "not JSON lines"),
    "scalar.json": ("3", "expected an object"),
    "no.feather": (b"abc", "not a Feather file"),
    "no.parquet": (b"abc", "not a Parquet file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_says_what_to_do(tmp_path, name):
    content, said = REFUSED[name]
    with pytest.raises(NasbotError, match=said):
        read_table(written(tmp_path, name, content))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1,234;x\n2,345;y\n", [1.234, 2.345]),  # between semicolons a comma is decimal
        ('a,b\n"1,234",x\n"2,345",y\n', [1234, 2345]),
        ("a\tb\n1,234\tx\n2,345\ty\n", [1234, 2345]),
        ("a\tb\n0,234\tx\n2,345\ty\n", [0.234, 2.345]),
        ("a;b\n1.234;2,5\n2.345;3,5\n", [1234, 2345]),  # the other column tells
        ("a;b\n1.234;2.5\n2.345;3.5\n", [1.234, 2.345]),
        ("a,b\n(300),x\n12,y\n", [-300, 12]),
        ("a,b\n-,x\n12,y\n", [np.nan, 12]),
    ],
)
def test_marks_mean_what_the_file_says(tmp_path, text, expected):
    frame = read_table(written(tmp_path, "t.csv", text))
    assert frame["a"].tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "values", [["01.02.2020", "15.11.2021"], ["10.0.0.1", "10.0.0.2"], ["1-2", "3-4"], ["030 123", "040 567"]]
)
def test_what_only_looks_like_numbers_stays_text(tmp_path, values):
    frame = read_table(written(tmp_path, "t.csv", "a;b\n" + "".join(f"{v};1,5\n" for v in values)))
    assert frame["a"].tolist() == values
    assert frame["b"].tolist() == [1.5, 1.5]


def test_excel_with_openpyxl(tmp_path):
    pytest.importorskip("openpyxl")
    FRAME.to_excel(tmp_path / "houses.xlsx", index=False)
    frame = read_table(tmp_path / "houses.xlsx")
    assert frame["price"].tolist() == pytest.approx(PRICE)
    (tmp_path / "no.xlsx").write_bytes(b"abc")
    with pytest.raises(DataError, match="not an Excel file"):
        read_table(tmp_path / "no.xlsx")


def test_excel_without_openpyxl_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "houses.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"nasbot\[excel\], or save the sheet as CSV"):
        read_table(tmp_path / "houses.xlsx")


@pytest.mark.parametrize("read", [read_table, lambda path: list(chunks(path))], ids=["whole", "in chunks"])
def test_parquet_without_pyarrow_says_what_to_install(read, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "houses.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"nasbot\[parquet\], or save the table as CSV"):
        read(tmp_path / "houses.parquet")


def test_polars_frames_are_taken_as_those_of_pandas():
    polars = pytest.importorskip("polars")
    ours, theirs = (dataset_of(frame, "price") for frame in (FRAME, polars.from_pandas(FRAME)))
    assert ours.fingerprint == theirs.fingerprint
    assert np.array_equal(
        theirs.preprocessing.X(polars.from_pandas(FRAME.drop(columns="price"))), ours.preprocessing.X(FRAME)
    )
    with pytest.raises(DataError, match="collect"):
        dataset_of(polars.from_pandas(FRAME).lazy(), "price")


def test_pyarrow_tables_too():
    import pyarrow

    assert dataset_of(pyarrow.Table.from_pandas(FRAME), "price").fingerprint == dataset_of(FRAME, "price").fingerprint


def test_a_search_takes_the_file_itself(tmp_path):
    path = written(tmp_path, "german.csv", GOOD["german.csv"])
    assert read_dataset(path, "price").preprocessing.target.centres[0] > 1000
