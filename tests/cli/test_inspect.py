"""``nasbot inspect``: a line for each column."""

import numpy as np
import pandas as pd
from PIL import Image

from .conftest import Run


def test_a_line_for_each_column(tmp_path, run: Run):
    path = tmp_path / "houses.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": range(60), "size": rng.normal(size=60), "sold": "03.04.2021", "city": ["Ulm", "Kiel"] * 30}
    )
    frame.loc[::2, "sold"] = "24.12.2022"
    frame.to_csv(path, index=False)
    result = run("inspect", str(path), "--target", "city", "--drop", "size")
    assert result.code == 0, result.err
    for name, said in (("id", "identifier"), ("size", "left out"), ("sold", "day, month, year"), ("city", "2 classes")):
        assert any(line.split()[:1] == [name] and said in line for line in result.out.splitlines()), result.out
    record = run("inspect", str(path), "--json").record
    assert [column["taken_for"] for column in record["columns"]] == ["identifier", "number", "date", "category"]
    missing = run("inspect", str(path), "--target", "town")
    assert (missing.code, missing.out) == (11, "")
    assert "there is no column" in missing.err


def test_a_folder_of_images_shows_its_classes(tmp_path, run: Run):
    rng = np.random.default_rng(0)
    for label, n in (("cats", 10), ("dogs", 20)):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 255, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / label / f"{i}.png")
    folder = str(tmp_path / "pets")
    result = run("inspect", folder)
    assert result.code == 0, result.err
    assert "30 images of 8 x 8, 1 channel" in " ".join(result.out.split())
    assert ["dogs", "12", "4", "4"] in [line.split() for line in result.out.splitlines()]
    record = run("inspect", folder, "--image-size", "16", "--json").record
    assert record["shape"] == [1, 16, 16]
    assert record["classes"]["cats"] == {"training": 6, "validation": 2, "test": 2}
    assert "expected with a table, got a folder" in run("inspect", folder, "--target", "cats").err
