"""Files as people have them: encodings, separators, decimal marks, packed, spreadsheets, JSON, pictures.

Every good table below holds the same rows. ``GOOD``, ``OTHERS`` and ``PICTURES`` work as a person expects, ``REFUSED``
and ``NOT_TAKEN`` say what to do; ``test_how_many_of_them_work`` counts.
"""

import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from nasbot.data.chunks import chunks
from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.data.files import read_table
from nasbot.data.preprocessing import CategoryColumn, DateColumn, NumberColumn
from nasbot.data.text_tables import _decimal
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
    "frame.xlsx": lambda path: FRAME.to_excel(path, index=False),
    "text-numbers.xlsx": lambda path: FRAME.assign(price=[f"${p:,.2f}" for p in PRICE]).to_excel(path, index=False),
    "comments.csv": "# exported 2024-01-01\n# by a program\n" + lines(),
    "for-excel.csv": "sep=;\n" + lines(sep=";", size=comma, price=comma),
    "blank-lines-first.csv": "\n\n" + lines(),
    "blank-lines-between.csv": lines().replace("\n", "\n\n"),
    "old-mac-line-ends.csv": lines(end="\r"),
    "windows-1252.csv": lines().encode("cp1252"),
    "separators-behind-rows.csv": lines().replace("\n", ",\n").replace("kind,", "kind", 1),
    "unicode-signs.csv": lines(size=lambda s: f"\u2009{s}"),
    "one-table.zip": zipped(lines()),
    "lists-by-column.json": json.dumps({name: FRAME[name].tolist() for name in FRAME}),
    "pandas.json": FRAME.to_json(),
    "pandas-split.json": FRAME.to_json(orient="split"),
    "pandas-table.json": FRAME.to_json(orient="table", index=False),
    "answer-of-a-service.json": json.dumps({"count": N, "rows": records()}),
    "pretty.json": json.dumps(records(), indent=2),
    "pretty-object.json": json.dumps({"rows": records()}, indent=2),
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


def rows(first, header="size,price", price="{p}"):
    """A small table of one input, which is written for each row by ``first``, and the price."""
    body = "".join(f"{first(i)},{price.format(p=p)}\n" for i, p in enumerate(PRICE))
    return f"{header}\n{body}"


def column(data, name):
    return next(c for c in data.preprocessing.inputs.columns if c.name == name)


# What the first column is taken for.
OTHERS = {
    "spaces.txt": ("size price\n" + "".join(f"{s} {p}\n" for s, p in zip(SIZE, PRICE, strict=True)), NumberColumn),
    "aligned.txt": (
        "size       price\n" + "".join(f"{s:<8} {p:>10}\n" for s, p in zip(SIZE, PRICE, strict=True)),
        NumberColumn,
    ),
    "words-for-gaps.csv": (rows(lambda i: ("n/a", "?", "-", "NULL")[i % 4] if i % 3 == 0 else i), NumberColumn),
    "postal-codes.csv": (rows(lambda i: f"0{1000 + i % 4}"), CategoryColumn),
    "yes-and-no.csv": (rows(lambda i: ("yes", "no")[i % 2]), CategoryColumn),
    "true-and-false.csv": (rows(lambda i: ("TRUE", "FALSE")[i % 2]), NumberColumn),
    "time-zones.csv": (rows(lambda i: f"2020-01-{i % 28 + 1:02d}T10:00:00+02:00"), DateColumn),
    "american-dates.csv": (rows(lambda i: f"{i % 12 + 1}/{i % 28 + 1}/2020"), DateColumn),
    "german-dates.csv": (rows(lambda i: f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2020"), DateColumn),
    "index-column.csv": (rows(lambda i: f"{i},{i % 7}", header=",size,price"), NumberColumn),
    "quotes-in-quotes.csv": (rows(lambda i: ('"say ""hi"""', '"a\nb"')[i % 2]), CategoryColumn),
    "objects-in-rows.jsonl": (
        "\n".join(json.dumps({"at": {"size": s}, "price": p}) for s, p in zip(SIZE, PRICE, strict=True)),
        NumberColumn,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_its_column_is_taken_for_what_it_is(tmp_path, name):
    content, expected = OTHERS[name]
    data = read_dataset(written(tmp_path, name, content), "price")
    found = column(data, "at.size" if "objects" in name else "size")
    assert isinstance(found, expected)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [18, 6, 6]
    if name == "postal-codes.csv":
        assert found.values == ("01000", "01001", "01002", "01003")
    if name == "words-for-gaps.csv":
        assert found.marks_gaps


def test_codes_that_begin_with_0_are_predicted_from_as_they_are_written(tmp_path):
    path = written(tmp_path, "codes.csv", OTHERS["postal-codes.csv"][0])
    data = read_dataset(path, "price")
    (chunk,) = chunks(path, text=["size"])
    assert np.array_equal(data.preprocessing.X(chunk), data.preprocessing.X(read_table(path)))
    assert data.preprocessing.X(chunk).sum() == N  # each row is of one known code


REFUSED = {
    "title.csv": ("My houses\n" + lines(), "more values than the first line has names; if it is a title remove it"),
    "row-names.csv": (rows(lambda i: f"r{i},{i}"), "name every column"),
    "gzip-by-another-name.csv": (gzip.compress(lines().encode()), "give it a name that ends in .csv.gz"),
    "parquet-by-another-name.csv": (lambda path: FRAME.to_parquet(path), "a name that ends in .parquet"),
    "zip-by-another-name.csv": (zipped(lines()), "a name that ends in .xlsx or .zip"),
    "japanese.csv": ("kind,price\n東京,1\n大阪,2\n".encode("shift-jis"), "neither UTF-8 nor .* save it as UTF-8"),
    "chinese.csv": ("kind,price\n北京,1\n上海,2\n".encode("gbk"), "neither UTF-8 nor .* save it as UTF-8"),
    "russian.csv": ("город,price\nМосква,1\nТверь,2\n".encode("cp1251"), "neither UTF-8 nor .* save it as UTF-8"),
    "rows-as-lists.json": (json.dumps([[s, 1] for s in SIZE]), "expected an object for each row"),
    "bzip2.csv.bz2": (b"BZh9", "unknown kind of file; expected CSV"),
    "array.npy": (b"\x93NUMPY", "unknown kind of file; expected CSV"),
    "binary.csv": (bytes(range(256)) * 20, "not text; save it as CSV in UTF-8"),
    "empty.csv": ("", "empty; expected a line with the names"),
    "no-header.csv": ("1,2\n3,4\n", "first line holds numbers"),
    "no-header-commas.csv": ("1,5;2,5\n3,5;4,5\n", "first line holds numbers"),
    "twice.csv": ("a,a\n1,2\n", "two columns are called 'a'"),
    "two.zip": (zipped("a,b\n1,2\n", more=("other.csv",)), "expected one CSV file in the zip file"),
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


# Tables that are read, and then refused for what is in them.
NOT_TAKEN = {
    "totals.csv": (rows(lambda i: SIZE[i]) + "Total,9\n", "numbers, but 1 of 31 rows hold none, such as 'Total'"),
    "typing-mistake.csv": (rows(lambda i: "12,O5" if i == 3 else SIZE[i]).replace("12,O5", "12.O5"), "such as '12.O5'"),
    "lists-in-rows.jsonl": (
        "\n".join(json.dumps({"tags": ["a"], "price": p}) for p in PRICE),
        "column 'tags' holds list values; .* leave it out",
    ),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_cannot_be_meant_says_where_it_is(tmp_path, name):
    content, said = NOT_TAKEN[name]
    with pytest.raises(DataError, match=said):
        read_dataset(written(tmp_path, name, content), "price")


def pictures(folder, *, size=(8, 8), mode="L", ending="png", parts=("",)):
    for part in parts:
        for kind in ("cats", "dogs"):
            (folder / part / kind).mkdir(parents=True)
            for i in range(12):
                Image.new(mode, size, 10 * i + 5 if mode == "L" else (10 * i, 5, 0)).save(
                    folder / part / kind / f"{i}.{ending}"
                )
    return folder


def mixed_pictures(folder):
    pictures(folder)
    Image.new("L", (9, 12), 3).save(folder / "cats" / "odd.png")
    return folder


PICTURES = {
    "grey": (pictures, {}, (1, 8, 8)),
    "colours": (lambda f: pictures(f, mode="RGB"), {}, (3, 8, 8)),
    "photographs": (lambda f: pictures(f, mode="RGB", ending="jpg"), {}, (3, 8, 8)),
    "transparent": (lambda f: pictures(f, mode="RGBA"), {}, (3, 8, 8)),
    "train and val": (lambda f: pictures(f, parts=("train", "val")), {}, (1, 8, 8)),
    "mixed sizes": (mixed_pictures, {"image_size": 16}, (1, 16, 16)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_folders_of_pictures(tmp_path, name):
    make, options, shape = PICTURES[name]
    data = read_dataset(make(tmp_path / "pictures"), **options)
    assert data.preprocessing.classes == ("cats", "dogs")
    assert data.input_shape == shape


def test_how_many_of_them_work():
    """The bar is 60 files of odd kinds: 52 work as a person expects, the others say what to do, none is misread."""
    works, refused = [*GOOD, *OTHERS, *PICTURES], [*REFUSED, *NOT_TAKEN]
    assert (len(works), len(refused)) == (82, 29)


def test_excel_that_is_none(tmp_path):
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


@pytest.mark.parametrize(
    ("columns", "mark"),
    [
        ({"a": ["1,5", "2,25"]}, ","),
        ({"a": ["1,5", "some"]}, "."),  # no column of numbers
        ({"a": ["1,5", "2,25"], "b": ["1.5", "some"]}, ","),
        ({"a": ["1,5", "2,25"], "b": ["1.5", "2.25"]}, "."),
        ({"a": [None, None]}, "."),
    ],
)
def test_the_decimal_mark_is_told_by_columns_that_are_numbers_throughout(columns, mark):
    assert _decimal(pd.DataFrame(columns), "\t") == mark
