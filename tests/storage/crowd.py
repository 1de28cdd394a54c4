"""Processes that all want to drive one study, each for a few writes at a time, and some that look on."""

import json
import os
import subprocess
import sys
from pathlib import Path

from nasbot.storage import SqliteStorage
from nasbot.testing.storage_conformance import SETTINGS

WRITER = """
import json, random, sys, time
from nasbot.errors import StudyError
from nasbot.storage import SqliteStorage
from nasbot.testing.storage_conformance import sample_trial
path, me, n_writes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
written, refused, rng = [], 0, random.Random(me)
while len(written) < n_writes:
    try:
        storage = SqliteStorage(path)
    except StudyError:
        refused += 1
        time.sleep(rng.random() * 0.05)
        continue
    for _ in range(min(rng.randint(1, 10), n_writes - len(written))):
        number = len(storage.history())
        storage.save(sample_trial(number))
        written.append(number)
    storage.close()
    time.sleep(rng.random() * 0.01)
print(json.dumps({"written": written, "refused": refused}))
"""

READER = """
import sys, time
from nasbot.storage import SqliteStorage
path, n = sys.argv[1], int(sys.argv[2])
reader, seen = SqliteStorage(path, read_only=True), 0
while seen < n:
    history = reader.history()
    assert len(history) >= seen, "it shrank"
    seen = len(history)
    time.sleep(0.01)
reader.close()
"""


def crowd(path: Path, *, n_processes: int, n_writes: int, n_readers: int = 2) -> tuple[int, int, int]:
    """(trials present, trials acknowledged, how often a second driver was refused)."""
    storage = SqliteStorage(path)
    storage.create(SETTINGS)
    storage.close()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(program, *arguments):
        command = [sys.executable, "-c", program, str(path), *map(str, arguments)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    readers = [start(READER, n_processes * n_writes) for _ in range(n_readers)]
    writers = [start(WRITER, i, n_writes) for i in range(n_processes)]
    said = [json.loads(writer.communicate(timeout=1200)[0]) for writer in writers]
    for reader in readers:
        reader.communicate(timeout=1200)
        assert reader.returncode == 0
    acknowledged = sorted(number for one in said for number in one["written"])
    assert acknowledged == list(range(n_processes * n_writes))  # nobody's trial became another's
    storage = SqliteStorage(path, read_only=True)
    present = len(storage.history())
    storage.close()
    return present, len(acknowledged), sum(one["refused"] for one in said)
