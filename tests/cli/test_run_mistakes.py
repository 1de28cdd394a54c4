"""What people get wrong with ``nasbot run``: one line on standard error, the documented exit code, nothing trained."""

import contextlib
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from .conftest import Run

USAGE, FILE, STUDY, STORAGE, DATA, TRACE = 2, 3, 8, 9, 11, 12
N = 60


def write_table(name, **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 10, N), "rooms": rng.integers(1, 6, N), "price": rng.normal(size=N)})
    frame.assign(**columns).to_csv(name, index=False)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A folder full of files with something wrong in them."""
    place = tmp_path_factory.mktemp("mistakes")
    with contextlib.chdir(place):
        fill(place)
    return place


def fill(tmp_path):
    write_table("good.csv")
    write_table("infinite.csv", size=np.inf)
    write_table("gaps.csv", price=[None if i % 5 == 0 else i * 0.5 for i in range(N)])
    write_table("constant.csv", price=3.5)
    write_table("one_class.csv", price="cheap")
    write_table("words.csv", price=["low", "middle", "high"] * 20)
    write_table("names.csv", price=[f"Mr {i}" for i in range(N)])
    write_table("target_dates.csv", price="2024-03-01")
    write_table("target_infinite.csv", price=[np.inf] * N)
    write_table("still.csv", size=1, rooms=2)
    files = {
        "three.csv": "size,price\n1,2.5\n2,3.5\n3,4.5\n",
        "no_rows.csv": "size,price\n",
        "empty.csv": "",
        "alone.csv": "price\n1.5\n2.5\n",
        "twice.csv": "size,size,price\n1,2,3\n",
        "headless.csv": "1,2,3\n4,5,6\n",
        "ragged.csv": "size,price\n1,2\n1,2,3,4\n",
        "wide.csv": ",".join(f"c{i}" for i in range(1_000_000)) + "\n" + ",".join(["1"] * 1000) + "\n",
        "latin.csv": b"gr\x81\xdfe,price\n1,2\n",
        "binary.csv": bytes(range(256)),
        "table.xls": b"PK",
        "bad.parquet": b"PAR1",
        "bad.npz": b"PK",
        "bad.csv.gz": b"not gzip",
        "model.py": "def build():\n    from torch import nn\n    return nn.LSTM(3, 3)\ndef text():\n    return 'x'\n",
        "broken.py": "def build(:\n",
        "raising.py": "def build():\n    raise ValueError('no weights here')\n",
        "other.sqlite": "this is no study",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    np.savez("no_y.npz", X=np.eye(20))
    np.savez("lengths.npz", X=np.eye(20), y=np.arange(19.0))
    np.savez("complex.npz", X=np.eye(20) * 1j, y=np.arange(20.0))
    np.savez("objects.npz", X=np.array([{}, None], dtype=object), y=np.arange(2.0))
    np.savez("broad.npz", X=np.zeros((20, 30_000), dtype=np.float32), y=np.arange(20.0))
    np.savez("pictures.npz", X=np.random.default_rng(0).random((20, 8, 8)), y=np.linspace(0, 1, 20))
    (tmp_path / "no_pictures").mkdir()
    (tmp_path / "one_kind" / "cat").mkdir(parents=True)
    for i in range(12):
        Image.new("L", (8, 8), i).save(tmp_path / "one_kind" / "cat" / f"{i}.png")
    shutil.copytree(tmp_path / "one_kind" / "cat", tmp_path / "sizes" / "cat")
    shutil.copytree(tmp_path / "one_kind" / "cat", tmp_path / "sizes" / "dog")
    Image.new("L", (9, 8)).save(tmp_path / "sizes" / "dog" / "big.png")


GOOD = ("good.csv", "--target", "price")

MISTAKES = [
    # what to read
    ((), USAGE, "DATA"),
    (("missing.csv", "--target", "price"), FILE, "no such file"),
    (("digit",), FILE, "did you mean 'digits'"),
    (("folder/without/data.csv", "--target", "y"), FILE, "no such file"),
    (("protein",), USAGE, "--folder"),
    (("protein", "--folder", "nowhere"), FILE, "nowhere"),
    (("digits", "--target", "pixel_0_0"), USAGE, "has its own"),
    (("table.xls", "--target", "price"), DATA, "saved as CSV"),
    (("empty.csv", "--target", "price"), DATA, "empty"),
    (("no_rows.csv", "--target", "price"), DATA, "no rows"),
    (("latin.csv", "--target", "price"), DATA, "UTF-8"),
    (("binary.csv", "--target", "price"), DATA, "UTF-8"),
    (("headless.csv", "--target", "price"), DATA, "the first line holds numbers"),
    (("twice.csv", "--target", "price"), DATA, "two columns are called 'size'"),
    (("wide.csv", "--target", "c1"), DATA, "1,000,000 columns"),
    (("bad.parquet", "--target", "price"), DATA, "not a Parquet file"),
    (("bad.npz",), DATA, "not an NPZ file"),
    (("bad.csv.gz", "--target", "price"), FILE, "cannot be read"),
    (("no_y.npz",), DATA, "no array 'y'"),
    (("lengths.npz",), DATA, "one value for each of 20 rows, got 19"),
    (("complex.npz",), DATA, "complex"),
    (("objects.npz",), DATA, "Python objects"),
    (("broad.npz",), DATA, "30,000 inputs"),
    (("no_pictures",), DATA, "no images"),
    (("one_kind",), DATA, "the only class is 'cat'"),
    (("sizes",), DATA, "brings all images to one size"),
    # where
    ((*GOOD, "--max-failures", "-1"), USAGE, "max_failures: expected at least 1"),
    ((*GOOD, "--executor", "cloud"), USAGE, "--executor: expected one of auto, here, local, ray, got 'cloud'"),
    ((*GOOD, "--address", "head:1"), USAGE, "--address: only a Ray cluster has it"),
    ((*GOOD, "--gpus-per-trial", "1"), USAGE, "--gpus-per-trial"),
    ((*GOOD, "--tune", "luck"), USAGE, "tune: expected auto, none, or some of"),
    ((*GOOD, "--tune", "label_smoothing"), USAGE, "got 'label_smoothing'"),
    ((*GOOD, "--pool", "large"), USAGE, "pool: expected default or paper"),
    ((*GOOD, "--fork", "new"), STUDY, "to fork"),
    ((*GOOD, "--executor", "ray", "--cpus-per-trial", "-1"), USAGE, "--cpus-per-trial: expected a number >= 0"),
    ((*GOOD, "--executor", "here", "--memory-per-trial", "2G"), USAGE, "--memory-per-trial: networks that are trained"),
    ((*GOOD, "--memory-per-trial", "much"), USAGE, "such as 500M or 2G, got 'much'"),
    # what to predict
    (("good.csv",), DATA, "which column is to be predicted"),
    (("good.csv", "--target", "prize"), DATA, "did you mean 'price'"),
    (("alone.csv", "--target", "price"), DATA, "the only column"),
    (("gaps.csv", "--target", "price"), DATA, "12 of 60 rows have no value"),
    (("constant.csv", "--target", "price"), DATA, "always 3.5"),
    (("one_class.csv", "--target", "price"), DATA, "there is one class"),
    (("words.csv", "--target", "price", "--task", "regression"), DATA, "'low' is not a number"),
    (("good.csv", "--target", "price", "--task", "classification"), DATA, "are no classes"),
    (("names.csv", "--target", "price"), DATA, "is this the right column"),
    (("target_dates.csv", "--target", "price"), DATA, "dates cannot be predicted"),
    (("target_infinite.csv", "--target", "price"), DATA, "infinite"),
    (("pictures.npz",), DATA, "X.reshape(len(X), -1)"),
    (("one_kind", "--target", "cat"), DATA, "its folders are the classes"),
    (("good.csv", "--target", "price", "--metric", "auc"), 2, "metric: auc is for classification"),
    (("good.csv", "--target", "price", "--metric", "rsme"), 2, "did you mean rmse?"),
    (("good.csv", "--target", "price", "--group", "romms"), DATA, "did you mean 'rooms'?"),
    (("good.csv", "--target", "price", "--group", "rooms", "--time", "size"), 2, "at most one of"),
    (("good.csv", "--target", "price", "--valid", "nowhere.csv"), FILE, "no such file"),
    (("wine", "--test", "good.csv"), 2, "expected with a file of data"),
    (("good.csv", "--target", "price", "--target", "size", "--target", "rooms"), DATA, "the only column"),
    # from what
    (("three.csv", "--target", "price"), DATA, "3 rows: too few"),
    (("infinite.csv", "--target", "price"), DATA, "column 'size' has infinite values"),
    (("still.csv", "--target", "price"), DATA, "none of the 2 columns varies"),
    ((*GOOD, "--drop", "garden"), DATA, "drop: there is no column 'garden'"),
    # how
    ((*GOOD, "--budget", "5 minuts"), USAGE, "did you mean 'minutes'"),
    ((*GOOD, "--budget", "10"), USAGE, "without a unit"),
    ((*GOOD, "--budget", "0s"), USAGE, "longer than 0"),
    ((*GOOD, "--budget", ""), USAGE, "budget"),
    ((*GOOD, "--workers", "0"), USAGE, "workers"),
    ((*GOOD, "--workers", "two"), USAGE, "--workers"),
    ((*GOOD, "--workers", "100000"), USAGE, "workers"),
    ((*GOOD, "--seed", "-1"), USAGE, "seed"),
    ((*GOOD, "--seed", "one"), USAGE, "--seed"),
    ((*GOOD, "--task", "guessing"), USAGE, "regression or classification"),
    ((*GOOD, "--split", "half"), USAGE, "--split"),
    ((*GOOD, "--split", "0.5,0.6,0.2"), USAGE, "add up to 1"),
    ((*GOOD, "--recipe", "slow"), USAGE, "recipe"),
    ((*GOOD, "--searcher", "luck"), USAGE, "searcher"),
    ((*GOOD, "--seconds-per-trial", "-5"), USAGE, "seconds_per_trial"),
    ((*GOOD, "--name", "a name with spaces"), USAGE, "a name has"),
    ((*GOOD, "--name", "other.sqlite"), STORAGE, "other.sqlite"),
    ((*GOOD, "--bugdet", "10m"), USAGE, "--bugdet"),
    # one's own model
    ((*GOOD, "--start-from", "model.py"), USAGE, "FILE.py:FUNCTION"),
    ((*GOOD, "--start-from", "nowhere.py:build"), FILE, "nowhere.py"),
    ((*GOOD, "--start-from", "model.py:make"), USAGE, "no function 'make'"),
    ((*GOOD, "--start-from", "model.py:text"), USAGE, "returned str"),
    ((*GOOD, "--start-from", "broken.py:build"), USAGE, "SyntaxError"),
    ((*GOOD, "--start-from", "raising.py:build"), USAGE, "no weights here"),
]


def test_there_are_enough_of_them():
    assert len(MISTAKES) >= 40


@pytest.mark.parametrize(
    ("arguments", "code", "said"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else None
)
def test_one_line_and_its_code(folder, tmp_path, run: Run, arguments, code, said):
    brief = () if "--budget" in arguments or not arguments else ("--budget", "1 trials")  # should it not be noticed
    result = run("run", *arguments, *brief)
    result.check_refused(code, said)
    assert not list(tmp_path.rglob("*.files")), "nothing was begun"
