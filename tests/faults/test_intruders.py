"""Forged files beside a study, and two drivers of one study: nobody else's file is touched, nothing is overwritten."""

import time

from nasbot.errors import NasbotError
from nasbot.storage import SqliteStorage
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from tests.faults.watching import Times
from tests.security.side_files import KINDS
from tests.security.test_side_files import CONTENT, WAYS
from tests.storage.test_ownership import test_two_drivers_cannot_overwrite_each_other as race


def test_five_hundred_forged_side_files(tmp_path, share, rng):
    times, n_refused, n = Times("opening a study beside a forged file"), 0, share(500)
    for i in range(n):
        study, victim = tmp_path / f"{i}" / "study.sqlite", tmp_path / f"mine-{i}" / "thesis.tex"
        victim.parent.mkdir()
        victim.write_bytes(CONTENT)
        storage = SqliteStorage(study)
        storage.create(SETTINGS, [sample_trial(0)])
        storage.close()
        for suffix in rng.choice(["-journal", "-wal", "-shm", ".lock"], size=rng.integers(1, 3), replace=False):
            place = study.with_name(f"{study.name}{suffix}")
            place.unlink(missing_ok=True)
            KINDS[rng.integers(len(KINDS))](place, victim)
        began = time.monotonic()
        try:
            WAYS[rng.choice(list(WAYS))](study)
        except NasbotError:
            n_refused += 1
        times.add(time.monotonic() - began)
        assert list(victim.parent.iterdir()) == [victim]
        assert victim.read_bytes() == CONTENT
    print(f"{n} forged side files: {n_refused} refused, 0 files outside the study touched")
    times.check(bar=2.0)


def test_a_hundred_races_of_two_drivers(tmp_path, share, rng):
    for i in range(share(100)):
        (tmp_path / f"{i}").mkdir()
        race(tmp_path / f"{i}" / "study.sqlite", int(rng.integers(2**32)))
