"""``nasbot doctor`` on a machine that is fit, and on one that is not."""

import re
import tomllib
from pathlib import Path

import pytest

from nasbot.cli import doctor as module
from nasbot.errors import FileError


def test_a_machine_that_is_fit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("doctor", "--json")
    assert result.code == 0
    record = result.record
    assert record["ok"] is True
    names = [finding["name"] for finding in record["findings"]]
    assert names == ["versions", "extras", "cores", "memory", "workers", "folder", "disk", "store", "training"]
    assert {finding["level"] for finding in record["findings"]} <= {"ok", "warn"}
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


def test_it_says_what_an_extra_would_add(monkeypatch):
    assert "to be had" not in module._extras().text  # the development environment has all of them
    real = module.version_of
    monkeypatch.setattr(module, "version_of", lambda name: None if name in ("pyarrow", "uvicorn") else real(name))
    text = module._extras().text
    assert text.endswith("; to be had: nasbot[parquet] for Parquet and Feather files, nasbot[web] for the live page")
    assert "starlette" in text


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    for extra, (packages, _) in module.EXTRAS.items():
        assert {re.split(r"[\[>=]", line)[0] for line in declared[extra]} == set(packages)
    for_developers = {"docs", "testing", "experiments", "opponents", "test", "lint", "dev"}
    assert set(declared) - for_developers == set(module.EXTRAS)


def test_for_people(run, tmp_path):
    result = run("doctor", "--folder", str(tmp_path / "not" / "made" / "yet"))
    assert result.code == 0
    assert str(tmp_path) in result.out
    assert "a record is on disk after" in result.out
    assert "one step on one batch" in result.out


def test_an_old_sqlite_is_named_beside_the_store(tmp_path, monkeypatch):
    caution = "; SQLite 3.40.1 is older than the fix of its log in 3.51.3"
    monkeypatch.setattr("nasbot.storage._sqlite_file.sqlite_caution", lambda: caution)
    assert module._store(tmp_path).text.endswith(f" ms{caution}")


def test_what_will_not_work_is_said(run, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise FileError("no locks on this drive")

    monkeypatch.setattr("nasbot.storage.opening.SqliteStorage", broken)
    monkeypatch.setattr(module, "_training", lambda: 1 / 0)
    result = run("doctor", "--folder", str(tmp_path))
    assert result.code == 9
    assert "fail  store     no locks on this drive" in result.out
    assert "fail  training  ZeroDivisionError" in result.out
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("mounts", "folder", "kind"),
    [
        ("/dev/a / ext4 rw 0 0\nserver:/x /home nfs4 rw 0 0\n", "/home/me", "nfs4"),
        ("/dev/a / ext4 rw 0 0\nserver:/x /home nfs4 rw 0 0\n", "/homes", "ext4"),
        ("/dev/a / ext4 rw 0 0\n", "/", "ext4"),
        ("", "/x", "unknown"),
    ],
)
def test_the_file_system_of_a_folder(monkeypatch, tmp_path, mounts, folder, kind):
    (tmp_path / "mounts").write_text(mounts)
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a: real(tmp_path / "mounts" if "mounts" in self.name else self, *a))
    assert module.file_system(Path(folder)) == kind


def test_warnings(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "file_system", lambda folder: "nfs4")
    assert module._folder(tmp_path).level == "warn"
    monkeypatch.setattr(module, "file_system", lambda folder: "tmpfs")
    assert module._folder(tmp_path).level == "warn"
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1e6}))
    assert module._disk(tmp_path).level == "warn"
