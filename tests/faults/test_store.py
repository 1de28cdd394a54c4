"""The store under damage by the thousand: what was acknowledged before the damage, or a clear refusal; never a lie."""

import shutil
import time
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from nasbot.storage import _schema
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
from tests.storage.killed_migration import NEVER, OLD, check_after, migrating, n_steps
from tests.storage.make_golden import FOLDER
from tests.storage.test_model import MemoryMachine, SqliteMachine


@pytest.fixture
def study(tmp_path):
    file, log, states = states_of_a_study(tmp_path)
    return file.read_bytes(), log.read_bytes(), states


def test_truncation_at_every_offset_of_the_last_2_kb(study, tmp_path, share):
    content, log, states = study
    place, step = Damaged(tmp_path), 2048 // share(2048)
    for at in cuts_of_the_end(log)[::step]:
        assert verdict(place.put(content, log[:at]), states) == "opened", at
    for at in cuts_of_the_end(content)[::step]:
        verdict(place.put(content[:at], log), states)


def test_truncation_at_1000_random_offsets(study, tmp_path, rng, share):
    content, log, states = study
    place = Damaged(tmp_path)
    for _ in range(share(500)):
        assert verdict(place.put(content, log[: int(rng.integers(len(log)))]), states) == "opened"
        verdict(place.put(content[: int(rng.integers(len(content)))], log if rng.random() < 0.5 else b""), states)


def test_5000_corruptions(study, tmp_path, rng, share):
    content, log, states = study
    place, verdicts = Damaged(tmp_path), []
    for _ in range(share(5000)):
        broken = (with_noise(content, rng), log) if rng.random() < 0.5 else (content, with_noise(log, rng))
        verdicts.append(verdict(place.put(*broken), states))
    print({word: verdicts.count(word) for word in set(verdicts)})


def test_300_repairs(study, tmp_path, rng, share):
    content, log, states = study
    place, kept = Damaged(tmp_path), []
    for _ in range(share(300)):
        cut = int(rng.integers(len(content)))
        broken = content[:cut] if rng.random() < 0.3 else with_noise(with_noise(content, rng), rng)
        kept.append(check_repair(place.put(broken, log), states, tmp_path / "copy.sqlite"))
    print(f"outcomes kept of {len(states[-1].finished)}: mean {sum(max(0, k) for k in kept) / len(kept):.1f}")


def test_200_full_disks(tmp_path, rng, share):
    results = [fill_the_disk(tmp_path / f"{i}.sqlite", int(rng.integers(0, 300_000))) for i in range(share(200))]
    print(f"{sum(failed for _, failed in results)} of {len(results)} met the limit; all recovered")


def test_8_processes_of_250_writes_and_pollers(tmp_path, share):
    n_writes = share(250)
    present, acknowledged, refused = crowd(tmp_path / "study.sqlite", n_processes=8, n_writes=n_writes, n_readers=3)
    print(f"{present} of {acknowledged} present, {refused} refusals of a second driver")
    assert present == acknowledged == 8 * n_writes


@pytest.mark.parametrize("machine", [MemoryMachine, SqliteMachine])
def test_the_model_500_times_50_steps(machine, share):
    chosen = settings(max_examples=share(500), stateful_step_count=50, derandomize=False, print_blob=True)
    run_state_machine_as_test(machine, settings=chosen)


def test_200_kills_during_migration(tmp_path, rng, share):
    """Half at a step of SQLite's machine, half from outside at any moment, so that commits are cut in two as well."""
    seen = Counter()
    steps = {name: n_steps(name, tmp_path) for name in OLD}
    path = tmp_path / "study.sqlite"
    for k in range(share(200)):
        name = OLD[k % len(OLD)]
        for left in tmp_path.glob("study.sqlite*"):
            left.unlink()
        shutil.copy(FOLDER / f"{name}.sqlite", path)
        by_step = rng.random() < 0.5
        with migrating(path, int(rng.integers(1, steps[name] + 1)) if by_step else NEVER) as process:
            if not by_step:
                while process.poll() is None and not (tmp_path / "study.sqlite-wal").exists():
                    time.sleep(0.0005)
                time.sleep(10 ** rng.uniform(-4, -0.5))
                process.kill()
        seen["old" if check_after(path, name) < _schema.VERSION else "new"] += 1
    print(dict(seen))
    assert seen["old"] > 0
