"""How large is the package, room by room, before it was rebuilt around candidates and now?

    python -m benchmarks.lines [--before REV] [--after REV]

Lines are those of ``wc -l`` over the Python files of ``src/nasbot``. Modules that are there only for what a later issue
asked for are counted apart (``LATER``). What later issues put into other modules (an option handed on, a column of a
table, a rule of the plan) is not: it stays in the last column, which is therefore an upper bound of what the rebuilt
house takes.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "src/nasbot"
BEFORE = "0c05284"  # the last commit before the rooms moved

# Rooms of now, and those of before that became them.
ROOMS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("acquisition",): ("acquisition",),
    ("architecture",): ("architecture",),
    ("automl",): ("searching",),
    ("callbacks", "drawing", "page", "plots"): ("report", "web"),
    ("cli",): ("cli",),
    ("data", "exporting", "tracing", "training"): ("training",),
    ("estimators",): ("estimators",),
    ("evolution",): ("evolution",),
    ("execution",): ("execution",),
    ("gp",): ("gp",),
    ("integrations",): (),
    ("otmann",): ("otmann",),
    ("searchers",): ("searchers",),
    ("storage",): ("storage",),
    ("study",): ("study",),
    ("testing",): ("testing",),
    ("",): ("",),  # modules directly below nasbot
}

# What each later issue asked for, and the modules that would not be there without it.
LATER: Mapping[str, Sequence[str]] = {
    "17, metrics, splits, weights": ("data/metrics.py", "data/weighting.py", "automl/judging.py"),
    "17, everyday files and columns": (
        "cli/inspect.py",
        "data/comparing.py",
        "data/dates.py",
        "data/inspecting.py",
        "data/text_tables.py",
    ),
    "17, predicting, intervals, raw rows": (
        "cli/predict.py",
        "data/chunks.py",
        "data/intervals.py",
        "exporting/code_tables.py",
        "exporting/predicting.py",
        "exporting/raw_numbers.py",
    ),
    "17, devices, limits, deleting, understanding": (
        "_own_code.py",
        "automl/devices.py",
        "automl/limits.py",
        "automl/removing.py",
        "automl/understanding.py",
        "cli/delete.py",
        "training/latency.py",
    ),
    "18, features and a learned distance": (
        "architecture/features.py",
        "gp/evidence.py",
        "otmann/learned.py",
        "searchers/choosing.py",
    ),
    "18, repeats and noise": ("execution/repeating.py", "searchers/again.py"),
    "18, a hundred thousand networks": (
        "_growing.py",
        "otmann/_kernels/bounds.py",
        "otmann/neighbours.py",
        "page/excerpt.py",
        "storage/tally.py",
    ),
    "19, hostile files": ("data/arrow_files.py", "data/bounds.py"),
    "19, PostgreSQL, several drivers": (
        "storage/addresses.py",
        "storage/catching_up.py",
        "storage/postgres/__init__.py",
        "storage/postgres/connecting.py",
        "storage/postgres/heartbeat.py",
        "storage/postgres/storage.py",
        "storage/postgres/tables.py",
        "testing/shared_storage_conformance.py",
    ),
    "20, other systems": (
        "_system.py",
        "execution/_exits.py",
        "execution/_sending.py",
        "execution/_spawned_process.py",
        "execution/processes.py",
        "execution/spawned.py",
        "storage/_exclusive.py",
    ),
    "20, Optuna, BoTorch, cards, own vocabularies": (
        "architecture/own_vocabulary.py",
        "automl/card.py",
        "integrations/__init__.py",
        "integrations/botorch.py",
        "integrations/optuna.py",
    ),
    "20, page and progress": (
        "data/frames.py",
        "page/model_file.py",
        "plots/meaning.py",
        "plots/traits.py",
        "study/progress.py",
    ),
    "21, params and attributes of layers": (
        "architecture/attributes.py",
        "automl/tuning.py",
        "evolution/attributes.py",
        "plots/params.py",
        "searchers/param_effects.py",
        "training/augmentation.py",
        "training/params.py",
    ),
    "22, fidelity, pacing, plan, finals": (
        "automl/calibration.py",
        "automl/finals.py",
        "gp/fidelity.py",
        "pacing.py",
        "plots/rungs.py",
        "searchers/boca.py",
        "searchers/promotion.py",
        "study/settled.py",
        "testing/pacer_conformance.py",
    ),
    "23, baselines, preparations, folds": (
        "automl/baselines.py",
        "automl/yardstick.py",
        "data/preparations.py",
        "training/folds.py",
        "training/scaling.py",
    ),
    "23, ensembles, refits, distillation": (
        "automl/ensemble.py",
        "automl/members.py",
        "automl/refits.py",
        "exporting/averaging.py",
        "training/distilling.py",
        "training/ensemble.py",
        "training/products.py",
        "training/refitting.py",
    ),
}


def lines_at(revision: str | None) -> dict[str, int]:
    """Lines of each module of the package, by its path in it, at a commit; None: in the working tree."""
    if revision is None:
        root = REPOSITORY / PACKAGE
        return {str(path.relative_to(root)): path.read_bytes().count(b"\n") for path in root.rglob("*.py")}
    archive = subprocess.run(
        ["git", "archive", revision, PACKAGE], cwd=REPOSITORY, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        contents = {name: files.extractfile(name) for name in files.getnames() if name.endswith(".py")}
        return {name.removeprefix(f"{PACKAGE}/"): f.read().count(b"\n") for name, f in contents.items() if f}


def by_room(modules: Mapping[str, int]) -> Counter[str]:
    """Lines of each room; those of modules directly below nasbot under the empty name."""
    found: Counter[str] = Counter()
    for path, n in modules.items():
        found[path.partition("/")[0] if "/" in path else ""] += n
    return found


def tables(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Both tables as lines of Markdown. Raises KeyError for a module of ``LATER`` that is not there."""
    only_later = {path: after[path] for paths in LATER.values() for path in paths}
    then, now, later = by_room(before), by_room(after), by_room(only_later)
    lines = ["| rooms | before | now | of it only for later issues | the rest |", "|---|---|---|---|---|"]
    rows = [(names, sum(then[old] for old in olds), names) for names, olds in ROOMS.items()]
    for names, n_before, rooms in [*rows, (("**all**",), sum(then.values()), tuple(now))]:
        n_now, n_later = sum(now[room] for room in rooms), sum(later[room] for room in rooms)
        shown = ", ".join(names) or "directly below nasbot"
        lines.append(f"| {shown} | {n_before:,} | {n_now:,} | {n_later:,} | {n_now - n_later:,} |")
    lines += ["", "| issue, what it asked for | modules | lines |", "|---|---|---|"]
    lines += [f"| {what} | {len(paths)} | {sum(after[p] for p in paths):,} |" for what, paths in LATER.items()]
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", default=BEFORE, metavar="REV", help=f"commit to compare with (default {BEFORE})")
    parser.add_argument("--after", metavar="REV", help="commit that is compared (default: the working tree)")
    given = parser.parse_args(arguments)
    print(*tables(lines_at(given.before), lines_at(given.after)), sep="\n")


if __name__ == "__main__":
    main()
