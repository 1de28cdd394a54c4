"""What a new user does first, in an environment that holds the wheel and nothing else: ``make wheel-test`` runs this.

    python -I smoke.py README.md        in an empty folder, with the interpreter of that environment

It needs the standard library, nasbot and what nasbot installs; the first thing that is not as it should be ends it.
"""

import csv
import importlib.util
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

EXTRAS = (
    "openpyxl",
    "starlette",
    "onnx",
    "onnxruntime",
    "ray",
    "tensorboard",
    "mlflow",
    "optuna",
    "hypothesis",
    "pyarrow",
)
ROWS = 200


def main(readme: Path) -> None:
    """Every step in turn, each named before it is made."""
    steps = [the_environment_is_bare, partial(the_first_lines, readme), a_distance, the_shell, loading, refusals]
    for step in steps:
        print("   " + getattr(step, "func", step).__name__.replace("_", " "), flush=True)
        step()


def the_environment_is_bare() -> None:
    import nasbot

    assert "site-packages" in str(nasbot.__file__), f"not the wheel's: {nasbot.__file__}"
    there = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not there, f"installed without being asked for: {there}"
    assert (Path(nasbot.__file__).parent / "py.typed").exists()


def the_first_lines(readme: Path) -> None:
    """The first block of Python in it, as it stands."""
    block = re.search(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block, "no Python in README"
    Path("first.py").write_text(block[1], encoding="utf-8")
    said = ran(sys.executable, "-I", "first.py")
    assert "ensemble" in said, said
    assert Path("wine.safetensors").exists()


def a_distance() -> None:
    import nasbot

    a, b = nasbot.initial_pool("mlp-reg")[:2]
    one = nasbot.distance(a, b)
    assert (one.d > 0).all(), one.d
    assert (one.d_bar <= 1).all(), one.d_bar
    assert (nasbot.distance(a, a).d == 0).all()


def the_shell() -> None:
    """``nasbot run`` on a table with numbers and a word in each row, then what people do with the result."""
    with Path("houses.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["rooms", "area", "town", "price"])
        for i in range(ROWS):
            rooms, area, town = 1 + i % 6, 40 + 7 * (i * i % 23), ("Ghent", "Leith", "Porto")[i * 5 % 3]
            table.writerow([rooms, area, town, 1000 * (3 * area + 20 * rooms + 90 * (town == "Leith"))])
    said = nasbot(
        "run", "houses.csv", "--target", "price", "--budget", "6 trials", "--workers", "2", "--name", "houses"
    )
    assert "best" in said, said
    assert "houses" in nasbot("list")
    assert "trial" in nasbot("show", "houses")
    nasbot("predict", "houses", "houses.csv", "--out", "predicted.csv")
    with Path("predicted.csv").open(newline="") as file:
        predicted = [float(row["prediction"]) for row in csv.DictReader(file)]
    assert len(predicted) == ROWS, len(predicted)
    assert min(predicted) < 300_000 < max(predicted), predicted[:5]
    nasbot("export", "houses", "--to", "safetensors", "--out", "houses.safetensors")
    nasbot("export", "houses", "--to", "code", "--out", "houses_model.py")
    assert Path("houses_model.py").exists()
    nasbot("report", "houses", "--out", "houses.html")
    assert "one step on one batch" in nasbot("doctor")


def loading() -> None:
    import nasbot as package

    for name in ("wine.safetensors", "houses.safetensors"):
        assert package.load_model(name) is not None
    first = nasbot("predict", "houses.safetensors", "houses.csv").splitlines()
    assert first == Path("predicted.csv").read_text().splitlines(), first[:3]


def refusals() -> None:
    """What an extra would do says so in one line, with the extra's name."""
    Path("table.parquet").write_bytes(b"PAR1")
    for command, extra in {
        ("export", "houses", "--to", "onnx"): "nasbot[onnx]",
        ("serve", "houses"): "nasbot[web]",
        ("inspect", "table.parquet", "--target", "y"): "nasbot[parquet]",
    }.items():
        found = subprocess.run([beside("nasbot"), *command], capture_output=True, text=True, timeout=120)
        assert found.returncode not in (0, 1), (command, found.returncode)
        assert extra in found.stderr, (command, found.stderr)
        assert found.stderr.count("\n") == 1, (command, found.stderr)


def nasbot(*arguments: str) -> str:
    return ran(beside("nasbot"), *arguments)


def beside(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def ran(*command: str) -> str:
    """What a command that must succeed says on standard output."""
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, f"{' '.join(command)} ended with {found.returncode}:\n{found.stderr}"
    return found.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
