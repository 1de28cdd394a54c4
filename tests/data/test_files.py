"""Files: CSV in its dialects, Parquet, NPZ, folders of images, and what is wrong with those that cannot be read."""

import gzip

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.errors import DataError, FileError
from tests.data.test_data import table


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.parquet", "semicolons.csv", "bom.csv"])
def test_tables_come_in_alike(tmp_path, name):
    frame, path = table(), tmp_path / name
    if name == "t.parquet":
        frame.to_parquet(path)
    else:
        separator = {"t.tsv": "\t", "semicolons.csv": ";"}.get(name, ",")
        text = frame.to_csv(index=False, sep=separator)
        encoded = text.encode("utf-8-sig" if name == "bom.csv" else "utf-8")
        path.write_bytes(gzip.compress(encoded) if name.endswith(".gz") else encoded)
    data = read_dataset(path, "price")
    assert data.fingerprint == dataset_of(frame, "price").fingerprint
    assert data.name == name.split(".")[0]


def test_missing_values_in_text(tmp_path):
    path = tmp_path / "gaps.csv"
    rows = "\n".join(f"{'?' if i % 4 == 0 else i},{'' if i % 3 == 0 else 'x'},{i * 0.5}" for i in range(40))
    path.write_text(f"a,b,y\n{rows}\n")
    data = read_dataset(path, "y")
    assert data.preprocessing.inputs.columns[0].marks_gaps
    assert data.preprocessing.inputs.columns[1].marks_gaps


def test_npz(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
    np.savez(tmp_path / "d.npz", X=X, y=y, z=y % 2)
    assert read_dataset(tmp_path / "d.npz").kind == "mlp-reg"
    assert read_dataset(tmp_path / "d.npz", "z").kind == "mlp-class"
    with pytest.raises(DataError, match="no array 'w'"):
        read_dataset(tmp_path / "d.npz", "w")
    np.savez(tmp_path / "o.npz", X=np.array([{}, []], dtype=object), y=y)
    with pytest.raises(DataError, match="Python objects"):
        read_dataset(tmp_path / "o.npz")


def pictures(folder, *, size=(6, 5), mode="RGB", n=12):
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for i in range(n):
            shape = (*size, 3) if mode == "RGB" else size
            Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(folder / label / f"{i}.png")
    return folder


class TestImageFolders:
    @pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1)])
    def test_a_folder_for_each_class(self, tmp_path, mode, channels):
        data = read_dataset(pictures(tmp_path / "pets", mode=mode))
        assert (data.kind, data.name, data.input_shape) == ("cnn", "pets", (channels, 6, 5))
        assert data.preprocessing.classes == ("cat", "dog")
        assert (len(data.train), len(data.valid), len(data.test)) == (14, 5, 5)

    def test_of_several_sizes(self, tmp_path):
        folder = pictures(tmp_path)
        Image.new("RGB", (9, 9)).save(folder / "dog" / "big.png")
        with pytest.raises(DataError, match="9 x 9 pixels, others have 6 x 5"):
            read_dataset(folder)

    def test_without_images_or_with_one_class(self, tmp_path):
        with pytest.raises(DataError, match="no images"):
            read_dataset(tmp_path)
        (pictures(tmp_path) / "dog").rename(tmp_path / "cat" / "dog")
        with pytest.raises(DataError, match="the only class is 'cat'"):
            read_dataset(tmp_path)

    def test_what_is_no_image(self, tmp_path):
        (pictures(tmp_path) / "cat" / "0.png").write_text("a cat")
        with pytest.raises(DataError, match="cannot be read as an image"):
            read_dataset(tmp_path)

    def test_no_target_is_named(self, tmp_path):
        with pytest.raises(DataError, match="its folders are the classes"):
            read_dataset(pictures(tmp_path), "dog")


@pytest.mark.parametrize(
    ("name", "content", "target", "message"),
    [
        ("empty.csv", b"", "y", "empty"),
        ("header.csv", b"a,y\n", "y", "no rows"),
        ("unknown.csv", b"a,y\n\x81\xe9,1\n", "y", "UTF-8"),
        ("binary.csv", bytes(range(256)), "y", "UTF-8"),
        ("ragged.csv", b"a,y\n1,2\n1,2,3\n", "y", "not a table|columns"),
        ("twice.csv", b"a,a,y\n1,2,3\n", "y", "two columns are called 'a'"),
        ("numbers.csv", b"1,2,3\n4,5,6\n", "y", "the first line holds numbers"),
        ("one.csv", b"y\n1\n2\n", "y", "only column"),
        ("fine.csv", b"a,y\n1,2\n", None, "which column is to be predicted"),
        ("fine.csv", b"a,why\n1,2\n", "y", "there is no column 'y'"),
        ("wide.csv", ",".join(f"c{i}" for i in range(500_000)).encode() + b"\n", "c1", "500,000 columns"),
        ("bad.parquet", b"PAR1 or not", "y", "not a Parquet file"),
        ("bad.npz", b"PK or not", "y", "not an NPZ file"),
        ("bad.csv.gz", b"not gzip", "y", "cannot be read"),
        ("book.xlsx", b"", "y", "not an Excel file|openpyxl"),
        ("book.xls", b"", "y", "unknown kind of file"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, content, target, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((DataError, FileError), match=message) as caught:
        read_dataset(tmp_path / name, target)
    assert len(str(caught.value)) < 500


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_dataset(tmp_path / "nowhere.csv", "y")


def test_wide_parquet(tmp_path):
    pd.DataFrame(np.zeros((2, 450))).set_axis([f"c{i}" for i in range(450)], axis=1).to_parquet(tmp_path / "w.parquet")
    with pytest.raises(DataError, match="2 rows: too few"):
        read_dataset(tmp_path / "w.parquet", "c1")
