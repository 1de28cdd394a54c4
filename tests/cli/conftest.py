"""A folder of small networks, and the command line run inside this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nasbot.architecture import Architecture
from nasbot.cli import main
from tests.fuzz.bombs import chain, layer


@dataclass(frozen=True)
class Result:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> object:
        """Standard output as JSON."""
        return json.loads(self.out)

    def check_refused(self, code: int, said: str) -> None:
        """One line that can be read, with its exit code."""
        assert self.err.startswith("nasbot: error: "), self.err
        assert said in self.err
        assert self.err.count("\n") == 1
        assert self.err[:-1].isprintable()
        assert len(self.err) < 700, "one line that can be read"
        assert (self.code, self.out) == (code, "")


Run = Callable[..., Result]

WIDE = {
    "kind": "mlp-reg",
    "layers": [layer("ip"), layer("tanh", 2048), layer("relu", 4), layer("linear"), layer("op")],
    "edges": [[0, 1], [1, 2], [1, 3], [2, 3], [3, 4]],
}
CNN = {
    "kind": "cnn",
    "layers": [layer("ip"), layer("conv3", 16, 1), layer("max-pool"), layer("softmax"), layer("op")],
    "edges": [[0, 1], [1, 2], [2, 3], [3, 4]],
}


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with mlp.json, wide.json and cnn.json in it."""
    for name, record in {"mlp": chain(), "wide": WIDE, "cnn": CNN}.items():
        Architecture.from_dict(record).save(tmp_path / f"{name}.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is a module's ``originals``, full of mistakes; studies would go elsewhere."""
    monkeypatch.chdir(originals)
    monkeypatch.setenv("NASBOT_STUDIES", str(tmp_path / "studies"))
    monkeypatch.delenv("NASBOT_DATA", raising=False)
    return originals


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("check", "net.json")`` is the command line ``nasbot check net.json``."""

    def run_in_process(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run_in_process
