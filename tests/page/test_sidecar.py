"""The page beside a search: there while it runs, gone with it, however it ends."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from nasbot.errors import FileError
from nasbot.page.sidecar import served_beside
from tests.page.conftest import PATIENCE, ROOT, write_study
from tests.plots.studies import grown


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def test_it_serves_a_study_that_is_not_there_yet_and_ends_with_the_block(tmp_path):
    path = tmp_path / "new.sqlite"
    with served_beside(path) as address:
        assert b"unreadable" in urllib.request.urlopen(address + "s/new/api/tick", timeout=120).read()
        write_study(path, grown(3))
        assert answers(address + "s/new/")
    assert not answers(address + "s/new/")


def test_it_ends_with_its_driver_even_where_that_is_killed(tmp_path):
    code = f"""
import time
from pathlib import Path
from nasbot.page.sidecar import served_beside
with served_beside(Path({str(tmp_path / "s.sqlite")!r})) as address:
    print(address, flush=True)
    time.sleep(600)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        address = driver.stdout.readline().strip()
        assert answers(address + "s/s/")
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    deadline = time.monotonic() + PATIENCE / 1000
    while answers(address + "s/s/"):
        assert time.monotonic() < deadline, "the server outlives its driver"
        time.sleep(0.1)


def test_a_server_that_cannot_begin_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(FileError, match="did not begin"), served_beside(tmp_path / "s.sqlite"):
        pytest.fail("it cannot have begun")


def test_nasbot_run_serves_its_search(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = ["run", "wine", "--serve", "--budget", "1 trials", "--workers", "1", "--seconds-per-trial", "1", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "nasbot", *command], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    address = re.search(r"^page: (http://127\.0\.0\.1:\d+/)$", done.stderr, re.MULTILINE)[1]
    assert not answers(address)
