"""Numbers as people write them, in data frames: no file tells the decimal mark there."""

import numpy as np
import pandas as pd
import pytest

from nasbot.data.dataset import dataset_of
from nasbot.data.preprocessing import DroppedColumn, NumberColumn
from nasbot.errors import DataError

MONEY = [f"${1000 + 7 * i:,}.{i % 100:02}" for i in range(60)]


def test_numbers_as_people_write_them_are_numbers_in_data_frames_too():
    frame = pd.DataFrame({"spent": MONEY, "plain": range(60), "code": [f"{i:05}" for i in range(60)]})
    data = dataset_of(frame, np.arange(60) / 7)
    number, _, code = data.preprocessing.inputs.columns
    assert isinstance(number, NumberColumn)
    assert number.centre == pytest.approx(np.mean([1000 + 7 * i + i / 100 for i in range(60)]), rel=0.05)
    assert not isinstance(code, NumberColumn)
    again = data.preprocessing.X(frame.assign(spent=[float(text[1:].replace(",", "")) for text in MONEY]))
    assert np.array_equal(data.preprocessing.X(frame), again)


def test_text_that_may_be_either_number_is_taken_for_none():
    frame = pd.DataFrame({"spent": [f"{1 + i % 9},{100 + i}" for i in range(60)], "plain": range(60)})
    assert isinstance(dataset_of(frame, np.arange(60) / 7).preprocessing.inputs.columns[0], DroppedColumn)
    known = dataset_of(frame.assign(spent=MONEY), np.arange(60) / 7).preprocessing
    with pytest.raises(DataError, match="column 'spent': expected numbers, got '1,100'"):
        known.X(frame)


def test_a_target_as_people_write_numbers_is_a_number():
    frame = pd.DataFrame({"plain": range(60), "price": MONEY})
    data = dataset_of(frame, "price")
    assert not data.is_classification
    digits = frame.assign(price=[str(i % 30) for i in range(60)])
    assert dataset_of(digits, "price").is_classification
