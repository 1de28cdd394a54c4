"""Nothing that is read is ever run: payloads in studies, networks, data and weights, and a canary that is silent."""

import ast
import json
import os
import pickle
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from nasbot.cli import main
from nasbot.errors import NasbotError, StorageError
from nasbot.storage import SqliteStorage
from nasbot.storage._rows import crc
from nasbot.study import Study, StudyView
from tests.storage.make_golden import FOLDER
from tests.study.objectives import score
from tests.study.searchers import Sensitive

MISTAKES = range(1, 70)  # exit codes of errors of ours; 70 is a bug
ROOT = Path(__file__).resolve().parents[2]


class Exploit:
    """What unpickling this does is touch the canary."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return (os.system, (f"touch {self.canary}",))


def texts(canary):
    """Thirty texts that one reader or another would run."""
    touch = f"touch {canary}"
    python = f"__import__('os').system('{touch}')"
    return [
        python,
        f"exec({python!r})",
        f"eval({python!r})",
        f"lambda: {python}",
        f"{{{{{python}}}}}",
        f"{{% import os %}}{{{{ os.system('{touch}') }}}}",
        f"${{{python}}}",
        f"#{{`{touch}`}}",
        f"$({touch})",
        f"`{touch}`",
        f"; {touch};",
        f"| {touch}",
        f"&& {touch}",
        f"\n{touch}\n",
        f"'; {touch}; '",
        f'"; {touch}; "',
        f"!!python/object/apply:os.system ['{touch}']",
        f"!!python/object/new:os.system [{touch}]",
        f"cos\nsystem\n(S'{touch}'\ntR.",
        pickle.dumps(Exploit(canary), 0).decode("ascii"),
        f"'); ATTACH DATABASE '{canary}' AS x; CREATE TABLE x.y (z); --",
        f"' || writefile('{canary}', 'x') || '",
        f"' UNION SELECT load_extension('{canary}') --",
        f"{{0.__class__.__mro__[1].__subclasses__}} {touch}",
        "%s%s%s%n" + touch,
        f"<script>fetch('file://{canary}')</script>",
        f"file://{canary}",
        f"../../../../../../..{canary}",
        f"\x1b]0;{touch}\x07",
        "\u202e" + touch[::-1],
    ]


def test_there_are_thirty():
    assert len(set(texts(Path("/c")))) == 30


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that must not be there at the end, and that every payload names."""
    nest = tmp_path / "nest"
    nest.mkdir()
    monkeypatch.chdir(nest)
    monkeypatch.setenv("NASBOT_STUDIES", str(nest))
    path = tmp_path / "canary"
    yield path
    assert not path.exists(), "the canary sang"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nest"], "something was written outside"


COMMANDS = (
    ["list"],
    ["status", "evil"],
    ["show", "evil", "--all"],
    ["show", "evil", "0"],
    ["show", "evil", "0", "--json"],
    ["check", "evil"],
    ["repair", "evil", "--out", "copy.sqlite"],
    ["resume", "evil"],
    ["retry", "evil", "2"],
)


QUICK = COMMANDS[2:6]


def run_all(capsys, commands=COMMANDS):
    """Every command that reads a study: one line or a result, whatever is in it."""
    for command in commands:
        code = main(command)
        captured = capsys.readouterr()
        assert code != 70, f"{command}: {captured.err}"
        assert captured.err.count("\n") <= 1
        assert "\x1b" not in captured.out + captured.err
    for beside in ("copy.sqlite", "copy.sqlite.lock"):
        Path(beside).unlink(missing_ok=True)


def rewrite(path, table, key, changes):
    """Change cells of a row and make its checksum right again, as whoever forges a study can."""
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    row = dict(db.execute(f"SELECT * FROM {table} WHERE {key}").fetchone()) | changes
    cells = tuple(value for name, value in row.items() if name != "crc")
    names = ", ".join(f"{name} = ?" for name in row)
    with db:
        db.execute(f"UPDATE {table} SET {names} WHERE {key}", (*cells, crc(cells)))
    db.close()


@pytest.mark.parametrize("number", range(30))
def test_texts_in_a_study(canary, number, capsys):
    text = texts(canary)[number]
    path = Path(shutil.copy(FOLDER / "version-2.sqlite", "evil.sqlite"))
    settings = json.loads(sqlite3.connect(path).execute("SELECT record FROM settings").fetchone()[0])
    settings["searcher"]["type"] = settings["searcher"]["name"] = settings["context"]["data"] = text
    rewrite(path, "settings", "id = 1", {"record": json.dumps(settings)})
    notes = {"searcher": text, "changes": [text], "modifiers": [text], "repairs": text, text: {text: text}}
    rewrite(path, "trials", "number = 0", {"notes": json.dumps(notes), "details": json.dumps({text: 1.0, "a": text})})
    rewrite(path, "trials", "number = 2", {"message": text})
    run = {"command": text, "host": text, "ending": text, "pid": 1}
    rewrite(path, "runs", "number = 0", {"record": json.dumps(run)})
    run_all(capsys, COMMANDS if number % 10 == 0 else QUICK)
    with StudyView.read("evil") as view:
        first = view.history[0]
        assert (first.origin.searcher, first.origin.changes, first.forecast.repairs) == (text, (text,), text)
        assert first.notes == {text: {text: text}}  # data, to the last character
        with pytest.raises(NasbotError, match="cannot be made again"):
            view.what_if()


@pytest.mark.parametrize(
    "cells",
    [
        {"origin": '{"parents": ["0"]}'},
        {"origin": '{"changes": "x"}'},
        {"origin": '{"seconds": {"deciding": 1' + "0" * 400 + "}}"},
        {"origin": '{"evil": 1}'},
        {"forecast": '{"mean": "x"}'},
        {"forecast": '{"median": 1' + "0" * 400 + "}"},
        {"forecast": '{"sd": NaN}'},
        {"params": '{"learning_rate": [1]}'},
    ],
)
def test_an_origin_that_nasbot_did_not_write_is_refused(canary, cells, capsys):
    path = Path(shutil.copy(FOLDER / "version-2.sqlite", "evil.sqlite"))
    SqliteStorage(path).close()  # brings the tables to this version
    rewrite(path, "trials", "number = 0", cells)
    run_all(capsys, QUICK)
    with pytest.raises(NasbotError, match="trial 0"):
        StudyView.read("evil").history  # noqa: B018


FORGED = {
    "times that differ by more than any number": ({"started": -1e308, "finished": 1e308}, "a time in seconds"),
    "promoted from itself": ({"promoted_from": 4}, "promoted from trial 4"),
    "promoted from nowhere": ({"promoted_from": 2**60}, "promoted from trial 1152921504606846976"),
}


@pytest.mark.parametrize("name", FORGED)
def test_numbers_in_a_study_that_nasbot_never_writes(canary, name, capsys):
    """With right checksums: told as damage, by readers of whole trials and of their numbers alone."""
    changes, said = FORGED[name]
    with Study.open("evil", Sensitive()) as study:
        study.optimise(score, 5)
    rewrite("evil.sqlite", "trials", "number = 4", changes)
    run_all(capsys, [*COMMANDS, ["list", "--json"], ["status", "evil", "--json"], ["report", "evil", "-o", "r.html"]])
    with pytest.raises(StorageError, match=said), StudyView.read("evil.sqlite") as view:
        assert view.history


@pytest.mark.parametrize("number", range(30))
def test_texts_in_a_network(canary, number, capsys):
    text = texts(canary)[number]
    record = {"kind": "mlp-reg", "layers": [{"label": "ip"}, {"label": text, "units": 8}], "edges": [[0, 1]]}
    for i, content in enumerate((text, json.dumps(record), json.dumps(record | {"kind": text, text: text}))):
        Path(f"{i}.json").write_text(content)
        for command in (["check", f"{i}.json"], ["draw", f"{i}.json", "out.svg"], ["distance", f"{i}.json", "0.json"]):
            assert main(command) in MISTAKES
            assert capsys.readouterr().err.count("\n") == 1


PICKLES = [0, 2, 5]


@pytest.mark.parametrize("protocol", PICKLES)
def test_pickles_in_every_file(canary, protocol, capsys):
    content = pickle.dumps(Exploit(canary), protocol)
    for name in ("evil.sqlite", "evil.npz", "evil.csv", "evil.parquet"):
        Path(name).write_bytes(content)
        for command in (["check", name], ["status", name], ["run", name, "--target", "y", "--budget", "1 trial"]):
            code = main(command)
            assert code in MISTAKES, (command, capsys.readouterr().err)
    capsys.readouterr()


def test_pickled_arrays(canary, capsys):
    evil = np.array([Exploit(canary)] * 20, dtype=object)
    np.savez("evil.npz", X=evil, y=evil)
    assert main(["run", "evil.npz", "--target", "y", "--budget", "1 trial"]) in MISTAKES
    from nasbot.data.dataset import Dataset, dataset_of

    x = np.arange(60.0).reshape(30, 2)
    dataset_of(x, x[:, 0]).save(Path("data"))
    arrays = sorted(Path("data").rglob("*.npy"))
    assert arrays
    for array in arrays:
        np.save(array, evil, allow_pickle=True)
    with pytest.raises(NasbotError):
        Dataset.load(Path("data"))
    capsys.readouterr()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER evil AFTER UPDATE ON trials BEGIN SELECT writefile('{canary}', 'x'); END",
        "CREATE TRIGGER evil AFTER INSERT ON requests BEGIN DELETE FROM trials; END",
        "CREATE VIEW evil AS SELECT load_extension('{canary}')",
        "CREATE VIEW evil AS SELECT writefile('{canary}', 'x')",
        "CREATE VIRTUAL TABLE evil USING fts5(x)",
        "CREATE INDEX evil ON trials (abs(value))",
        "ALTER TABLE trials ADD COLUMN evil TEXT DEFAULT 'x'",
        "ALTER TABLE trials RENAME TO evil",
    ],
)
def test_statements_in_a_study(canary, statement, capsys):
    path = Path(shutil.copy(FOLDER / "version-2.sqlite", "evil.sqlite"))
    with sqlite3.connect(path) as db:
        db.execute(statement.format(canary=canary))
    db.close()
    run_all(capsys)
    with pytest.raises(NasbotError, match="tables are not those"):
        SqliteStorage(path)


def test_no_code_in_the_package_runs_what_it_reads():
    """Neither by name nor by import; the import rules say the same of pickle's kin."""
    calls = {"eval", "exec", "compile", "__import__"}
    modules = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in calls, where
            if isinstance(node, ast.Import):
                assert not {name.name.split(".")[0] for name in node.names} & modules, where
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in modules, where
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "np.load", "numpy.load"):
                safe = {"weights_only": True, "allow_pickle": False}
                given = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
                assert any(given.get(name) is value for name, value in safe.items()), where
