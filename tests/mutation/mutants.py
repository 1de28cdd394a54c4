"""Do the tests notice? A seeded sample of mutants of the core, each against the tests that reach its line.

    make mutants                                   # 30 minutes on two cores
    python -m tests.mutation.mutants --seed 1 --minutes 5 --packages gp,data

Every mutant is tried in a copy of the tree, never in the tree itself. First all tests run once, which says what each
reaches (``reaching.py``; kept in ``build/`` until the code changes, and of tests until their file does). A mutant is
killed where one of the tests that reach it fails, which does not without it, or takes several times as long as it
should, in seconds of its own (``own_time.py``): a busy machine kills nothing. Survivors are listed, and so are those
killed by time; those in ``equivalent.json`` are known to change nothing, with the reason, and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from queue import Queue
from typing import Any, TypedDict, TypeGuard

from tests.mutation.hand_made import FAULTS, HandMade
from tests.mutation.mutating import Mutant, mutants
from tests.mutation.own_time import Stopwatch
from tests.mutation.reaching import Reached, Watcher, blocks_of, marked, read_results

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("otmann", "gp", "evolution", "acquisition", "searchers", "study", "storage", "execution", "data")
ALSO = {"otmann": ("tests/properties",)}  # beside tests/PACKAGE
HEAVY = (
    "numpy",
    "scipy.stats",
    "scipy.optimize",
    "pandas",
    "pyarrow.parquet",
    "PIL.Image",
    "numba",
    "torch",
    "sklearn",
    "pytest",
)
# Kernels are tried as plain Python, since compiling takes longer than any test; but for those that are about compiling.
KERNELS, PLAIN = "_kernels", {"NASBOT_PLAIN_SOLVER": "1"}
COMPILED = {"lane_code": "tests/otmann/test_lanes.py", "compiled": "tests/otmann/test_solver.py"}
FAILED, UNKNOWN, BROKEN = 1, 4, 99  # exit codes: pytest's for failures and for a test that is not there, and ours
TIME = "time"  # begins the reason of those that took too long
EQUIVALENT = Path(__file__).with_name("equivalent.json")
MAP = ROOT / "build/mutants-map.json"
LONGEST = 300  # seconds for one test while it is seen what it reaches; others are left out
START, FACTOR = 30.0, 5.0  # seconds a test may take with a mutant, and so many times what it takes without it


@dataclass
class Result:
    """What became of one mutant."""

    mutant: Mutant | HandMade
    package: str
    killed: bool
    by: str
    seconds: float


@dataclass
class Copy:
    """A tree of its own to try mutants in."""

    root: Path

    @property
    def culprit(self) -> Path:
        """Where the last run of pytest wrote which test was running."""
        return self.root / "culprit.txt"

    @property
    def said(self) -> str:
        """The end of what the last run of pytest said."""
        return (self.root / "output.txt").read_text(errors="replace")[-2000:]


@dataclass(frozen=True)
class Chosen:
    """The tests for one mutant."""

    tests: tuple[str, ...]
    longest: float  # seconds that one of them takes without it


def chosen_for(
    mutant: Mutant | HandMade, package: str, reached: Sequence[Reached], seconds: float, root: Path = ROOT
) -> Chosen:
    """The tests that reach its line, for so many seconds: those that name it first, then near and quick ones."""
    if isinstance(mutant, HandMade):
        return Chosen(mutant.tests, 60.0)
    if _is_kernel(mutant) and (test := COMPILED.get(mutant.path.stem)):
        return Chosen((test,), 60.0)
    file = mutant.path.as_posix()
    block = _blocks(root, mutant.path).get(mutant.line, file)
    own = f"tests/{package}/test_{mutant.path.stem.lstrip('_')}"

    names = _names(mutant)

    def distance(row: Reached) -> float:
        near = 0.3 if row.test.startswith(own) else 1.0 if row.test.startswith(f"tests/{package}/") else 3.0
        near *= 0.1 if names & _words(root, row.test) else 1.0  # it is about this function or constant
        return (row.seconds + 0.05) * near

    def reaches(row: Reached) -> bool:
        if block != file:
            return block in row.blocks
        # What stands outside functions is run by whatever imports the module: those that use it or name it are asked.
        is_about = row.test.startswith(f"tests/{package}/") and bool(names & _words(root, row.test))
        return is_about or any(b.startswith(f"{file}:") for b in row.blocks)

    is_there = [row for row in reached if reaches(row)]
    # Cases of one test are much alike: each further one of the same stands as far back as if it took that much longer.
    ranks: dict[str, int] = {}
    rows = []
    for row in sorted(is_there, key=distance):
        rank = ranks[row.test.partition("[")[0]] = ranks.get(row.test.partition("[")[0], 0) + 1
        rows.append((rank * distance(row), row))
    chosen, total = [], 0.0
    for _, row in sorted(rows, key=itemgetter(0)):
        if total + row.seconds <= seconds or not chosen:
            chosen.append(row)
            total += row.seconds
    return Chosen(tuple(row.test for row in chosen), max((row.seconds for row in chosen), default=0.0))


def _names(mutant: Mutant) -> set[str]:
    """What a test that is about this line may call it: its function or class, or the constants that it sets."""
    if mutant.function != "module":
        return {mutant.function.removesuffix(".__init__").split(".")[-1]}
    with suppress(SyntaxError):
        return {node.id for node in ast.walk(ast.parse(mutant.before)) if _is_set(node)}
    return set()


def _is_set(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _words(root: Path, test: str) -> frozenset[str]:
    """All words of a test and of the tables that it names; none where it is inherited from another file."""
    file, _, name = test.partition("[")[0].partition("::")
    return _words_of(root / file).get(name.rpartition("::")[2], frozenset())


@cache
def _words_of(file: Path) -> dict[str, frozenset[str]]:
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()

    def words(node: ast.stmt, first: int) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", "\n".join(lines[first - 1 : node.end_lineno])))

    tables = {
        target.id: words(node, node.lineno)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    own = {test.name: words(test, min([test.lineno, *(mark.lineno for mark in test.decorator_list)])) for test in tests}
    return {name: said.union(*(tables[word] for word in said & tables.keys())) for name, said in own.items()}


def _is_kernel(mutant: Mutant | HandMade) -> bool:
    return KERNELS in mutant.path.parts


@cache
def _blocks(root: Path, path: Path) -> dict[int, str]:
    return blocks_of((root / path).read_text(encoding="utf-8"), path.as_posix())


def tried(mutant: Mutant | HandMade, package: str, place: Copy, chosen: Chosen) -> Result:
    """Run its tests in this copy."""
    if not chosen.tests:
        return Result(mutant, package, False, "no test reaches it", 0.0)
    begun = time.monotonic()
    target = place.root / mutant.path
    original, stamp = target.read_text(encoding="utf-8"), target.stat()
    compiles = mutant.path.stem in COMPILED and _is_kernel(mutant)
    names = PLAIN if _is_kernel(mutant) and not compiles else {}

    def run(*options: str, tests: Sequence[str] = chosen.tests) -> int | None:
        action = lambda: _pytest(  # noqa: E731
            place, ["--timeout=0", *options, *tests], fresh=compiles, watcher=Culprit(place.culprit)
        )
        return _run(place, action, START + FACTOR * chosen.longest, names)

    try:
        target.write_text(mutant.source(place.root), encoding="utf-8")
        code = run("-x")
    finally:
        target.write_text(original, encoding="utf-8")
        os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what was compiled of it is still good
    if code == BROKEN or (code == UNKNOWN and run("--collect-only") != 0):
        raise RuntimeError(f"{mutant.name}: exit code {code}: {place.said}")
    culprit = place.culprit.read_text(encoding="utf-8")
    by = "" if code == 0 else culprit or "the collection"
    if code in (None, FAILED) and culprit and run(tests=(culprit,)) != 0:
        return Result(mutant, package, False, f"{by} fails without it, too", time.monotonic() - begun)
    return Result(mutant, package, code != 0, f"{TIME} in {by}" if code is None else by, time.monotonic() - begun)


@dataclass(frozen=True)
class Culprit:
    """A plugin of pytest that writes down which test runs: at the end, under ``-x``, the one that failed."""

    file: Path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Called before each test."""
        self.file.write_text(nodeid, encoding="utf-8")


def _run(place: Copy, action: Callable[[], int], seconds: float, names: Mapping[str, str]) -> int | None:
    """What the action returns in a process of its own, with these variables set.

    None where it had to be ended: it, or one test that it runs, took more than so many seconds of its own.
    """
    place.culprit.write_text("")
    child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            _move_to(place)
            os.environ |= names
            code = action()
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
        finally:
            os._exit(code)
    watch, running = Stopwatch(child), ""
    while watch.read() < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _end(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
        if (now := place.culprit.read_text(encoding="utf-8", errors="replace")) != running:
            running = now
            watch.start()
    _end(child)
    os.waitpid(child, 0)
    return None


def _end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # its group is its own, see below


def _move_to(place: Copy) -> None:
    os.setsid()
    with (place.root / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(place.root)
    sys.path[:] = [
        str(place.root / "src"),
        str(place.root),
        *(p for p in sys.path if p not in ("", str(ROOT), str(ROOT / "src"))),
    ]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "nasbot", "benchmarks")]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": f"{place.root / 'src'}:{place.root}", "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ.setdefault("NASBOT_SHARED", str(ROOT.parent / "shared"))


def _pytest(
    place: Copy, arguments: Sequence[str], *, fresh: bool = False, watcher: Watcher | Culprit | None = None
) -> int:
    import pytest

    if fresh:  # numba keeps what it compiled by the file that it is in, and a kernel is made of several
        import numba

        shutil.rmtree(place.root / "numba", ignore_errors=True)
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(place.root / "numba")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    return int(pytest.main([*options, *arguments], plugins=[watcher] if watcher else []))


def _compile() -> int:
    from nasbot.otmann.solver import compile_solver

    return 0 if compile_solver() else BROKEN


def reached_by(tests: Sequence[str], place: Copy, *, kernels: bool = False) -> list[Reached]:
    """What each of these tests reaches in the core; of kernels, what it reaches in them as plain Python."""
    files = [file for name in PACKAGES for file in (place.root / "src/nasbot" / name).rglob("*.py")]
    originals = {
        file: (file.read_text(encoding="utf-8"), file.stat()) for file in files if (KERNELS in file.parts) is kernels
    }
    results = place.root / "reached.jsonl"
    results.write_text("")
    watcher = Watcher(place.root, results)

    def action() -> int:
        watcher.begin()
        return _pytest(place, [f"--timeout={LONGEST}", "--timeout-method=signal", *tests], watcher=watcher)

    try:
        for file, (text, _) in originals.items():
            file.write_text(marked(text, file.relative_to(place.root).as_posix()), encoding="utf-8")
        code = _run(place, action, 7200.0, PLAIN if kernels else {})
    finally:
        for file, (text, stamp) in originals.items():
            file.write_text(text, encoding="utf-8")
            os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    found = read_results(place.root, results)
    of = f"{len(tests)} files of {Path(tests[0]).parent}{' (kernels)' if kernels else ''}"
    print(f"{of}: {len(found)} tests pass (exit code {code})", flush=True)
    return found


def files_of(package: str, root: Path) -> dict[str, str]:
    """The files of a package's tests, and what changes with any line of each."""
    folders = (f"tests/{package}", *ALSO.get(package, ()))
    files = sorted(file for folder in folders for file in (root / folder).rglob("test_*.py"))
    return {file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def state_of_the_code(root: Path) -> str:
    """Changes with any line of the code, and of what several tests share."""
    files = sorted(file for folder in ("src", "tests") for file in (root / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files if not f.name.startswith("test_"))).hexdigest()


def sampled(packages: Sequence[str], seed: int) -> list[tuple[str, Mutant]]:
    """All mutants in the order in which they are tried: one of each package in turn, at random inside a package."""
    rows = []
    for package in packages:
        files = sorted((ROOT / "src/nasbot" / package).rglob("*.py"))
        found = [mutant for file in files for mutant in mutants(file.relative_to(ROOT), ROOT)]
        random.Random(f"{seed}-{package}").shuffle(found)
        rows.append([(package, mutant) for mutant in found])
    return [row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row)]


def copied(folder: Path, n: int, of: Path = ROOT) -> Copy:
    """The tree as it is now, or another copy, with what was compiled of it."""
    place = Copy(folder / f"copy-{n}")
    place.root.mkdir()
    for name in ("src", "tests", "benchmarks", "experiments", "docs"):
        shutil.copytree(of / name, place.root / name, symlinks=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt"):
        shutil.copy2(of / name, place.root / name)
    return place


def report(results: Sequence[Result], packages: Sequence[str], known: dict[str, str]) -> str:
    """The share killed of each package and of all, and the survivors."""
    lines = []
    for package in (*packages, "all"):
        mine = [r for r in results if package in ("all", r.package)]
        counted = [r for r in mine if r.killed or r.mutant.name not in known]
        killed = sum(r.killed for r in counted)
        share = f"{killed / len(counted):.0%}" if counted else "–"
        lines.append(
            f"{package:<12} {killed:>4} of {len(counted):>4} killed  {share:>5}   {len(mine) - len(counted)} equivalent"
            f"{f', {n} by time' if (n := sum(r.by.startswith(TIME) for r in counted)) else ''}"
        )
    lines += [f"killed by {r.by}: {r.mutant.name}" for r in results if r.killed and r.by.startswith(TIME)]
    for result in results:
        if not result.killed:
            why = known.get(result.mutant.name)
            lines.append(
                f"{'equivalent' if why else 'SURVIVED'}: {result.mutant.name} (line {result.mutant.line})"
                + (f" [{why}]" if why else "")
            )
    return "\n".join(lines)


class Seen(TypedDict):
    """What the tests of one file reach, and of which state of file and code that was seen."""

    file: str
    state: str
    tests: list[Any]  # of each its name, its seconds and its blocks


def everything_reached(packages: Sequence[str], free: Queue[Copy], n_jobs: int, *, trust: bool) -> list[Reached]:
    """What the tests of these packages reach: as last time where neither code nor test has changed, else seen now."""
    state = state_of_the_code(ROOT)
    known: dict[str, dict[str, Seen]] = json.loads(MAP.read_text(encoding="utf-8")) if MAP.exists() else {}
    wanted = [(package, False) for package in packages] + [("otmann", True)] * ("otmann" in packages)

    def see(row: tuple[str, bool]) -> None:
        package, kernels = row
        name, files = f"{package}-kernels" if kernels else package, files_of(package, ROOT)
        rows = {
            file: seen
            for file, seen in known.get(name, {}).items()
            if seen["file"] == files.get(file) and (trust or seen["state"] == state)
        }
        if changed := [file for file in files if file not in rows]:
            place = free.get()
            try:
                found = reached_by(changed, place, kernels=kernels)
            finally:
                free.put(place)
            for file in changed:
                mine = [r for r in found if r.test.partition("::")[0] == file]
                tests = [[r.test, round(r.seconds, 2), sorted(r.blocks)] for r in mine]
                rows[file] = {"file": files[file], "state": state, "tests": tests}
        if not any(seen["tests"] for seen in rows.values()):
            raise RuntimeError(f"no test of {name} passes without any mutant")
        known[name] = rows
        MAP.parent.mkdir(exist_ok=True)
        MAP.write_text(json.dumps(known), encoding="utf-8")

    with ThreadPoolExecutor(n_jobs) as pool:
        for _ in pool.map(see, wanted):
            pass
    # The kernels' tests take their own time as plain Python, so they are rows of their own.
    names = [f"{package}-kernels" if kernels else package for package, kernels in wanted]
    everything = [row for name in names for seen in known[name].values() for row in seen["tests"]]
    return [Reached(test, seconds, frozenset(blocks)) for test, seconds, blocks in everything]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample; exit code 1 where less than ``--least`` of it is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="no mutant begins after this")
    parser.add_argument("--most", type=int, default=10**6, help="mutants to try at most")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many at the beginning of the sample")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for one mutant, the nearest first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--trust", action="store_true", help="tests reach what they did, though the code has changed")
    parser.add_argument("--hand-made", action="store_true", help="the faults of hand_made.py, instead of a sample")
    parser.add_argument("--only", default="", help="mutants whose name has this in it")
    parser.add_argument("--tests", default="", help="these, instead of those that reach a mutant; with commas")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be killed")
    given = parser.parse_args(arguments)
    packages = given.packages.split(",")
    rows = [(fault.package, fault) for fault in FAULTS] if given.hand_made else sampled(packages, given.seed)
    rows = [row for row in rows if given.only in row[1].name][given.skip :][: given.most]
    print(
        f"seed {given.seed}: {len(rows):,} mutants to choose from, {given.minutes:g} minutes, {given.jobs} at a time",
        flush=True,
    )
    for name in HEAVY:  # once, for all the processes that are forked from this one
        importlib.import_module(name)
    known = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    until = time.monotonic() + 60 * given.minutes
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="nasbot-mutants-") as folder:
        free: Queue[Copy] = Queue()
        first = copied(Path(folder), 0)
        if (code := _run(first, _compile, 600.0, {})) != 0:
            print(f"the distance does not compile: exit code {code}: {first.said}")
            return 2
        for place in (first, *(copied(Path(folder), n, first.root) for n in range(1, given.jobs))):
            free.put(place)
        tests = tuple(given.tests.split(",")) if given.tests else ()
        needs_none = tests or given.hand_made
        reached = [] if needs_none else everything_reached(packages, free, given.jobs, trust=given.trust)

        def attempt(row: tuple[str, Mutant | HandMade]) -> None:
            if time.monotonic() > until:
                return
            package, mutant = row
            place = free.get()
            try:
                near = chosen_for(mutant, package, reached, given.seconds, place.root)  # whatever happens to the tree
                chosen = Chosen(tests, 60.0) if tests else near
                result = tried(mutant, package, place, chosen)
            finally:
                free.put(place)
            results.append(result)
            word = (
                f"killed by {result.by}" if result.killed else f"SURVIVED {result.by or f'{len(chosen.tests)} tests'}"
            )
            print(f"{len(results):>4} {result.seconds:5.0f} s  {word}: {mutant.name}", flush=True)

        with ThreadPoolExecutor(given.jobs) as pool:
            for _ in pool.map(attempt, rows):
                pass
    print(report(results, packages, known))
    counted = [r for r in results if r.killed or r.mutant.name not in known]
    return 0 if counted and sum(r.killed for r in counted) >= given.least * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
