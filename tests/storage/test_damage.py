"""Torn, truncated and corrupted files, full disks and many processes: short forms of tests/faults/test_store.py."""

import numpy as np
import pytest

from tests.storage.crowd import crowd
from tests.storage.damage import (
    Damaged,
    check_repair,
    cuts_of_the_end,
    fill_the_disk,
    states_of_a_study,
    verdict,
    with_noise,
)

SEED = 20


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    file, log, states = states_of_a_study(tmp_path_factory.mktemp("study"))
    return file.read_bytes(), log.read_bytes(), states


def test_a_cut_log_opens_with_what_came_before(study, tmp_path):
    content, log, states = study
    place = Damaged(tmp_path)
    for at in (*cuts_of_the_end(log)[::64], 0, 1, 31, 32, 33, *range(0, len(log), len(log) // 20)):
        assert verdict(place.put(content, log[:at]), states) == "opened", at


def test_a_cut_file_opens_or_is_refused(study, tmp_path):
    content, log, states = study
    place = Damaged(tmp_path)
    for at in (*cuts_of_the_end(content)[::64], *range(0, len(content), len(content) // 20)):
        verdict(place.put(content[:at], log), states)
        verdict(place.put(content[:at], b""), states)


def test_corruptions_are_refused_or_harmless(study, tmp_path):
    content, log, states = study
    place, rng = Damaged(tmp_path), np.random.default_rng(SEED)
    verdicts = []
    for i in range(100):
        broken = (with_noise(content, rng), log) if i % 2 else (content, with_noise(log, rng))
        verdicts.append(verdict(place.put(*broken), states))
    assert {"opened", "refused"} == set(verdicts)


def test_repair_after_corruption_invents_nothing(study, tmp_path):
    content, log, states = study
    place, rng = Damaged(tmp_path), np.random.default_rng(SEED)
    kept = []
    for i in range(20):
        broken = (with_noise(content, rng), log) if i % 2 else (content[: int(rng.integers(len(content)))], log)
        kept.append(check_repair(place.put(*broken), states, tmp_path / "copy.sqlite"))
    assert max(kept) == len(states[-1].finished)


def test_a_full_disk_loses_nothing(tmp_path):
    rng = np.random.default_rng(SEED)
    results = [fill_the_disk(tmp_path / f"{i}.sqlite", int(rng.integers(0, 60_000))) for i in range(10)]
    assert sum(failed for _, failed in results) > 5


def test_a_crowd_of_writers_and_readers(tmp_path):
    n_present, n_expected, _ = crowd(tmp_path / "study.sqlite", n_processes=3, n_writes=8)
    assert n_present == n_expected == 24
