"""Every mistake: one line on standard error, nothing on standard output, the documented exit code, no traceback."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nasbot import errors
from nasbot.cli import _app, _outcome, main
from tests.fuzz.bombs import BOMBS, chain, layer

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
USAGE, FILE, CODEC, INVALID, VOCABULARY = 2, 3, 4, 5, 6


def assert_one_line(err: str) -> None:
    assert err.startswith("nasbot: ")
    assert err.endswith("\n")
    assert err[:-1].isprintable()


@pytest.fixture
def broken(nets: Path) -> Path:
    """Files that hold no network, beside those that do."""
    contents: dict[str, str | bytes] = {
        "empty.json": "",
        "text.json": "a network",
        "latin.json": b"\xe9",
        "kind.json": json.dumps(chain(kind="rnn")),
        "label.json": json.dumps(chain(layers=[layer("ip"), layer("gelu", 8), layer("op")])),
        "escape.json": json.dumps(chain(kind="\x1b[2J\r\n\u2028\u202e")),
        "cycle.json": json.dumps(chain() | {"edges": [[0, 1], [1, 2], [2, 1], [2, 3], [3, 4]]}),
        "huge.json": b" " * 2_000_000,
        "file": "",
    }
    for name, content in contents.items():
        (nets / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (nets / "folder").mkdir()
    return nets


MISTAKES = [
    # no such command line
    (("distnace", "mlp.json", "wide.json"), USAGE, "distnace"),
    (("--bogus",), USAGE, "--bogus"),
    (("distance",), USAGE, "A.json"),
    (("distance", "mlp.json"), USAGE, "B.json"),
    (("distance", "mlp.json", "wide.json", "cnn.json"), USAGE, "cnn.json"),
    (("distance", "mlp.json", "wide.json", "--weights"), USAGE, "--weights"),
    (("check", "mlp.json", "--jso\x1b[31mn"), USAGE, "\\x1b"),
    # options that cannot be meant
    (("distance", "mlp.json", "wide.json", "--weights", "abc"), USAGE, "numbers separated by commas"),
    (("distance", "mlp.json", "wide.json", "--weights", ""), USAGE, "numbers separated by commas"),
    (("distance", "mlp.json", "wide.json", "--weights", "0.1,,0.2"), USAGE, "numbers separated by commas"),
    (("distance", "mlp.json", "wide.json", "--weights", "-0.1"), USAGE, "-0.1"),
    (("distance", "mlp.json", "wide.json", "--weights=0.1,-2"), USAGE, "-2"),
    (("distance", "mlp.json", "wide.json", "--weights", "nan"), USAGE, "nan"),
    (("distance", "mlp.json", "wide.json", "--weights", "inf"), USAGE, "inf"),
    (("distance", "mlp.json", "wide.json", "--weights", "1" * 5000 + "x"), USAGE, "--weights"),
    (("distance", "mlp.json", "wide.json", "--preset", "appendix"), USAGE, "appendix"),
    (("pool", "rnn"), USAGE, "rnn"),
    (("pool", "cnn", "--draw"), USAGE, "--out"),
    (("draw", "mlp.json", "picture.gif"), USAGE, "picture.gif"),
    (("draw", "mlp.json", "picture"), USAGE, ".svg"),
    # files that cannot be read or written
    (("check", "missing.json"), FILE, "missing.json"),
    (("check", ""), FILE, "cannot read"),
    (("check", "folder"), FILE, "folder"),
    (("check", "mlp.json/inside"), FILE, "mlp.json/inside"),
    (("check", "a\0b"), FILE, "a\\x00b"),
    (("check", "two\nlines\x1b[31m.json"), FILE, "two\\nlines\\x1b[31m.json"),
    (("distance", "mlp.json", "missing.json"), FILE, "missing.json"),
    (("draw", "missing.json", "picture.svg"), FILE, "missing.json"),
    (("draw", "mlp.json", "no folder/picture.svg"), FILE, "no folder/picture.svg"),
    (("draw", "mlp.json", "no folder/picture.png"), FILE, "no folder/picture.png"),
    (("draw", "mlp.json", "picture.svg", "--matching", "missing.json"), FILE, "missing.json"),
    (("pool", "cnn", "--out", "file"), FILE, "file"),
    (("pool", "cnn", "--out", "file/inside"), FILE, "file/inside"),
    (("pool", "cnn", "--out", "/proc/nasbot"), FILE, "/proc/nasbot"),
    (("demo", "--out", "file"), FILE, "file"),
    # files that hold no network
    (("check", "empty.json"), CODEC, "empty.json: not JSON"),
    (("check", "text.json"), CODEC, "text.json: not JSON"),
    (("check", "latin.json"), CODEC, "not UTF-8"),
    (("check", "huge.json"), CODEC, "1,000,000 bytes"),
    (("check", "/dev/zero"), CODEC, "1,000,000 bytes"),
    (("check", "/dev/null"), CODEC, "not JSON"),
    (("distance", "text.json", "mlp.json"), CODEC, "text.json"),
    (("check", "label.json"), INVALID, "label.json: layer 1: unknown label 'gelu'"),
    (("check", "cycle.json"), INVALID, "cycle"),
    (("draw", "cycle.json", "picture.svg"), INVALID, "cycle"),
    # kinds
    (("check", "kind.json"), VOCABULARY, "'rnn'"),
    (("check", "escape.json"), VOCABULARY, "\\x1b[2J\\r\\n\\u2028\\u202e"),
    (("distance", "mlp.json", "cnn.json"), VOCABULARY, "mlp-reg"),
    (("distance", "mlp.json", "cnn.json", "--explain"), VOCABULARY, "cnn"),
    (("draw", "mlp.json", "picture.svg", "--matching", "cnn.json"), VOCABULARY, "cnn"),
]


def named(value: object) -> str:
    return ascii(value)[:60]


@pytest.mark.parametrize(("arguments", "code", "said"), MISTAKES, ids=named)
def test_mistake_is_one_line_and_its_code(broken: Path, run: Run, arguments: tuple[str, ...], code: int, said: str):
    result = run(*arguments)
    assert_one_line(result.err)
    assert said in result.err
    assert len(result.err) < 700
    assert (result.code, result.out) == (code, "")
    assert not list(broken.glob("picture*"))


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may read everything, so where the tests are root's they give that up for a while."""
    us = os.geteuid()
    if us == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(us)


def test_unreadable_file(nets: Path, run: Run):
    assert run("check", "mlp.json").code == 0  # and what it imports is imported, while we may still read that
    (nets / "mlp.json").chmod(0)
    with as_somebody_else():
        result = run("check", "mlp.json")
    assert_one_line(result.err)
    assert (result.code, result.out) == (FILE, "")


def test_bombs_are_one_line_from_the_command_line_too(nets: Path, run: Run):
    for bomb in (
        b for b in BOMBS if b.name in {"label with escape codes", "a label of a megabyte", "numbered backwards"}
    ):
        (nets / "bomb.json").write_text(bomb.make())
        result = run("check", "bomb.json")
        assert_one_line(result.err)
        assert result.code == bomb.error.exit_code


# -- what is nobody's mistake, or ours ---------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def load(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("nasbot.architecture.Architecture.load", load)


def test_a_bug_asks_to_be_reported_in_one_line(nets: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NASBOT_DEBUG", raising=False)
    failing(monkeypatch, RuntimeError("two\nlines"))
    result = run("check", "mlp.json")
    assert_one_line(result.err)
    assert "please report it: RuntimeError: two\\nlines" in result.err
    assert "NASBOT_DEBUG=1" in result.err
    assert result.code == 70


def test_a_bug_shows_where_when_asked(nets: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NASBOT_DEBUG", "1")
    failing(monkeypatch, RuntimeError("broken"))
    result = run("check", "mlp.json")
    assert "Traceback" in result.err
    assert result.code == 70


def test_an_interrupt_is_one_line(nets: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    failing(monkeypatch, KeyboardInterrupt())
    result = run("check", "mlp.json")
    assert (result.code, result.err) == (130, "nasbot: interrupted\n")


def test_every_error_class_reaches_its_exit_code(nets: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    for error_class in error_classes():
        failing(monkeypatch, error_class("so\nit is"))
        result = run("check", "mlp.json")
        assert (result.code, result.err) == (error_class.exit_code, "nasbot: error: so\\nit is\n")


def test_output_that_the_terminal_cannot_encode_is_escaped(nets: Path):
    (nets / "mlp.json").rename(nets / "netz-ü.json")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "nasbot", "check", "netz-ü.json"], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"netz-\\xfc.json: a valid network" in done.stdout


# -- documentation --------------------------------------------------------------------------------------------------


def error_classes() -> list[type[errors.NasbotError]]:
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.NasbotError)]


def test_exit_codes_are_documented_as_they_are():
    text = (ROOT / "docs/reference/exit-codes.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", text, flags=re.MULTILINE))
    assert rows == {c.__name__: str(c.exit_code) for c in error_classes()}
    for code in (0, _outcome.USAGE, _outcome.BUG, _outcome.INTERRUPTED, _outcome.BROKEN_PIPE):
        assert re.search(rf"^\| {code} \|", text, flags=re.MULTILINE)


def test_codes_of_errors_do_not_collide_with_the_others():
    ours = {c.exit_code for c in error_classes()}
    assert ours.isdisjoint({0, _outcome.BUG, _outcome.INTERRUPTED, _outcome.BROKEN_PIPE})


def test_every_command_and_option_is_documented(capsys: pytest.CaptureFixture[str]):
    text = (ROOT / "docs/reference/cli.md").read_text()
    for command in _app.app.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")  # type: ignore[union-attr]
        assert f"## `nasbot {name}" in text
        main([name, "--help"])
        section = text.split(f"## `nasbot {name}")[1].split("\n## ")[0]
        for option in re.findall(r"^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, flags=re.MULTILINE):
            assert option == "--help" or option in section


def test_the_command_alone_shows_its_help(run):
    alone, asked = run(), run("--help")
    assert alone == asked
    assert alone.code == 0
    assert "Commands:" in alone.out
