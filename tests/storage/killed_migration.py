"""A process that opens a study for writing, and so migrates it, and kills itself at a step of SQLite's machine.

python -m tests.storage.killed_migration FILE STEP     prints how many steps the migration took, if it lives
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from nasbot.storage import SqliteStorage, _schema
from tests.storage.make_golden import FOLDER

NEVER = 1 << 60
OLD = ("version-1", "version-2", "version-2-cnn")


def main(path: str, step: int) -> None:
    taken = 0
    migrate = _schema._migrate

    def killing(db, found):
        def count():
            nonlocal taken
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        db.set_progress_handler(count, 1)
        migrate(db, found)
        db.set_progress_handler(None, 0)

    _schema._migrate = killing
    SqliteStorage(path).close()
    print(taken)


def migrating(path: Path, step: int = NEVER) -> subprocess.Popen[str]:
    """The process, begun."""
    command = [sys.executable, "-m", "tests.storage.killed_migration", str(path), str(step)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def n_steps(name: str, folder: Path) -> int:
    """The steps of a whole migration of the golden file of this name."""
    with migrating(shutil.copy(FOLDER / f"{name}.sqlite", folder / "whole.sqlite")) as process:
        return int(process.communicate()[0])


def check_after(path: Path, name: str) -> int:
    """The file is of its old version or of the new one, says the same in both, and goes on; returns the version."""
    said = json.loads((FOLDER / f"{name}.json").read_text())
    reader = SqliteStorage(path, read_only=True)
    version, history = reader._version, reader.history()
    reader.close()
    assert version in (int(name.split("-")[1]), _schema.VERSION), version
    assert [str(trial.state) for trial in history] == [record["state"] for record in said["trials"]]
    whole = SqliteStorage(path)
    assert whole.history().trials == history.trials
    assert whole.settings() == said["settings"]
    whole.close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'trials_3'").fetchall()
    db.close()
    return version


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
