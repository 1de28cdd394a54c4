"""What a search leaves beside its study: shown where it is whole, and nothing of it believed where it is not."""

import json

import numpy as np
import pytest

from nasbot.data.dataset import dataset_of
from nasbot.page.beside import Beside, data_card, members
from nasbot.page.watching import WatchedStudy
from tests.page.conftest import write_study
from tests.plots.studies import grown


@pytest.fixture
def study(tmp_path):
    path = write_study(tmp_path / "toy.sqlite", grown(6))
    rng = np.random.default_rng(0)
    data = dataset_of(rng.normal(size=(50, 3)), rng.integers(0, 2, 50), task="classification", name="toy")
    data.save(tmp_path / "toy.files" / "data")
    return path


def test_the_data_card_says_rows_columns_target_and_split(study):
    card = data_card(study)
    assert card["rows"] == {"training": 30, "validation": 10, "test": 10}
    assert (card["n_columns"], card["task"], card["n_classes"]) == (3, "classification", 2)
    assert card["forms"] == {"number": 3}


def test_damaged_and_linked_files_are_no_card(study, tmp_path):
    folder = tmp_path / "toy.files" / "data"
    (folder / "train_X.npy").write_bytes(b"nonsense")
    assert data_card(study)["rows"] == {"validation": 10, "test": 10}
    text = (folder / "dataset.json").read_text()
    (folder / "dataset.json").write_text("[]")
    assert data_card(study) is None
    (folder / "dataset.json").unlink()
    (tmp_path / "elsewhere.json").write_text(text)
    (folder / "dataset.json").symlink_to(tmp_path / "elsewhere.json")
    assert data_card(study) is None


def test_members_are_pairs_of_a_trial_and_its_weight(study, tmp_path):
    file = tmp_path / "toy.files" / "model.json"
    assert members(study) == []
    for wrong in ({"trials": [1]}, {"trials": [1, 2], "weights": [1]}, {"trials": ["<b>"], "weights": [1]}):
        file.write_text(json.dumps(wrong))
        assert members(study) == []
    file.write_text(json.dumps({"trials": [3, 1], "weights": [0.75, 0.25]}))
    assert members(study) == [[3, 0.75], [1, 0.25]]


def test_a_model_that_comes_after_the_last_trial_is_seen(study, tmp_path, monkeypatch):
    monkeypatch.setattr("nasbot.page.watching.MIN_PACE", 0.0)
    watched = WatchedStudy(study, "toy")
    before = watched.look()
    assert json.loads(before.about)["members"] == []
    (tmp_path / "toy.files" / "model.json").write_text(json.dumps({"trials": [3], "weights": [1.0]}))
    after = watched.look()
    assert json.loads(after.about)["members"] == [[3, 1.0]]
    assert after.revision > before.revision
    watched.close()


def test_of_an_address_there_is_nothing_beside():
    from nasbot.storage.addresses import place_of

    assert Beside.of(place_of("postgresql://nobody@nowhere/x#y")) == Beside()
