"""Folders of images: divided ones, mixed sizes, grey and transparent pictures; sequences are refused."""

import numpy as np
import pytest
from PIL import Image

from nasbot.data.dataset import dataset_of, read_dataset
from nasbot.errors import DataError, OptionError


def draw(place, n, *, size=(8, 8), mode="L", first=0, value=None):
    place.mkdir(parents=True, exist_ok=True)
    for i in range(first, first + n):
        colour = (10 * i + 5) % 256 if value is None else value
        Image.new(mode, size, colour).save(place / f"{i}.png")


def divided(folder, parts):
    for part, n in parts.items():
        draw(folder / part / "cats", n, first=1)
        draw(folder / part / "dogs", n, first=100)


def test_parts_are_not_classes(tmp_path):
    divided(tmp_path, {"train": 12, "val": 4, "test": 3})
    data = read_dataset(tmp_path)
    assert data.preprocessing.classes == ("cats", "dogs")
    assert [len(part) for part in (data.train, data.valid, data.test)] == [24, 8, 6]
    centre = np.mean([(10 * i + 5) % 256 for i in (*range(1, 13), *range(100, 112))])
    assert data.preprocessing.inputs.centres == pytest.approx((centre,))  # of the training pictures alone


def test_validation_rows_are_taken_from_the_training_rows_where_there_are_none(tmp_path):
    divided(tmp_path, {"Training": 12, "test": 3})
    data = read_dataset(tmp_path)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [18, 6, 6]


def test_a_class_called_train_is_a_class_beside_others(tmp_path):
    for name in ("bus", "train"):
        draw(tmp_path / name, 10)
    assert read_dataset(tmp_path).preprocessing.classes == ("bus", "train")


def test_a_class_without_training_images_is_refused(tmp_path):
    divided(tmp_path, {"train": 8, "val": 2})
    draw(tmp_path / "val" / "fish", 2)
    with pytest.raises(DataError, match="no training images of the class 'fish'"):
        read_dataset(tmp_path)


def test_mixed_sizes_need_a_size(tmp_path):
    draw(tmp_path / "cats", 8)
    draw(tmp_path / "dogs", 8, size=(9, 12))
    with pytest.raises(DataError, match=r"others have 8 x 8; --image-size 32 .* brings all images to one size"):
        read_dataset(tmp_path)
    assert read_dataset(tmp_path, image_size=16).input_shape == (1, 16, 16)
    for wrong in (2, 5000, "big"):
        with pytest.raises(OptionError, match="image_size: expected a whole number from 4 to 1024"):
            read_dataset(tmp_path, image_size=wrong)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(OptionError, match="is no folder of images"):
        read_dataset(tmp_path / "a.csv", "b", image_size=8)


def test_transparent_is_white_and_grey_among_colours_is_a_colour(tmp_path):
    draw(tmp_path / "cats", 8, mode="RGBA", value=(0, 0, 0, 0))
    draw(tmp_path / "dogs", 8, value=0)
    data = read_dataset(tmp_path)
    assert data.input_shape == (3, 8, 8)
    raw = data.train.X * np.array(data.preprocessing.inputs.scales)[:, None, None]
    raw += np.array(data.preprocessing.inputs.centres)[:, None, None]
    assert raw[data.train.y == 0] == pytest.approx(255, abs=0.01)
    assert raw[data.train.y == 1] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("shape", [(40, 100, 3), (40, 64, 8), (40, 3, 50)])
def test_sequences_are_refused(shape):
    X = np.random.default_rng(0).normal(size=shape)
    with pytest.raises(DataError, match=r"looks like sequences \(n, length, channels\), which nasbot does not learn"):
        dataset_of(X, [0, 1] * 20)
