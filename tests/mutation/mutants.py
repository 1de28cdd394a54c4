"""Do the tests notice? A seeded sample of mutants of the core, each against the tests beside it.

    make mutants                                   # 30 minutes on two cores
    python -m tests.mutation.mutants --seed 1 --minutes 5 --packages gp,data

Every mutant is tried in a copy of the tree, never in the tree itself. It is killed where a test fails or takes several
times as long as it should. Survivors are listed; those in ``equivalent.json`` are known to change nothing, with the
reason, and are not counted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

from tests.mutation.hand_made import FAULTS, HandMade
from tests.mutation.mutating import Mutant, mutants

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
KERNELS, AS_PYTHON = "_kernels", "kernels_as_python"
NO_TESTS = (4, 5, 99)  # exit codes of pytest, and of ours, that say nothing about a mutant
WARMING = ("tests/otmann/test_distances.py", "tests/otmann/test_transport.py")
LIMIT, KERNEL_LIMIT = 600.0, 1200.0  # seconds for the tests of a mutant; twice that where compiled code is made anew
EQUIVALENT = Path(__file__).with_name("equivalent.json")


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
    cache: Path = field(init=False)

    def __post_init__(self) -> None:
        self.cache = self.root / "numba"


def stages_of(mutant: Mutant | HandMade, package: str) -> list[list[str]]:
    """What to run, the nearest first; each stage is run where the one before has noticed nothing."""
    if isinstance(mutant, HandMade):
        return [list(mutant.tests)]
    folder, stem = Path("tests") / package, mutant.path.stem.lstrip("_")
    if KERNELS in mutant.path.parts:
        stem = AS_PYTHON  # the quickest
    own = [str(path.relative_to(ROOT)) for path in (ROOT / folder).glob(f"test_{stem}*.py")]
    rest = [str(folder), *ALSO.get(package, ())]
    return ([own] if own else []) + [rest]


def tried(mutant: Mutant | HandMade, package: str, place: Copy) -> Result:
    """Run the tests beside a mutant in this copy."""
    begun = time.monotonic()
    target = place.root / mutant.path
    original, stamp = target.read_text(encoding="utf-8"), target.stat()
    is_kernel = KERNELS in mutant.path.parts
    limit = KERNEL_LIMIT if is_kernel else LIMIT
    try:
        target.write_text(mutant.source(place.root), encoding="utf-8")
        for stage in stages_of(mutant, package):
            code = _run(place, stage, begun + limit - time.monotonic(), fresh=is_kernel)
            if code in NO_TESTS:
                raise RuntimeError(f"{stage}: exit code {code}: {(place.root / 'output.txt').read_text()[-1000:]}")
            if code != 0:
                return Result(mutant, package, True, "time" if code is None else stage[0], time.monotonic() - begun)
        return Result(mutant, package, False, "", time.monotonic() - begun)
    finally:
        target.write_text(original, encoding="utf-8")
        os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what was compiled of it is still good


def _run(place: Copy, tests: Sequence[str], seconds: float, *, fresh: bool) -> int | None:
    """The exit code of pytest in a process of its own; None where it had to be ended."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = _in_child(place, tests, fresh=fresh)
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _end(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    _end(child)
    os.waitpid(child, 0)
    return None


def _end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # its group is its own, see below


def _in_child(place: Copy, tests: Sequence[str], *, fresh: bool) -> int:
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
    import pytest

    if fresh:  # numba keeps what it compiled by the file that it is in, and a kernel is made of several
        import numba

        shutil.rmtree(place.cache, ignore_errors=True)
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(place.cache)
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", *tests]))


def _trouble(place: Copy, packages: Sequence[str]) -> str:
    """What fails without any mutant, so that nothing could be learned from failures."""
    for package in packages:
        tests = [f"tests/{package}", *ALSO.get(package, ())]
        if (code := _run(place, tests, 3600.0, fresh=False)) != 0:
            return f"the tests of {package} end with {code}:\n" + (place.root / "output.txt").read_text()[-2000:]
    return ""


def sampled(packages: Sequence[str], seed: int) -> list[tuple[str, Mutant]]:
    """All mutants in the order in which they are tried: one of each package in turn, at random inside a package."""
    rows = []
    for package in packages:
        files = sorted((ROOT / "src/nasbot" / package).rglob("*.py"))
        found = [mutant for file in files for mutant in mutants(file.relative_to(ROOT), ROOT)]
        random.Random(f"{seed}-{package}").shuffle(found)
        rows.append([(package, mutant) for mutant in found])
    return [row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row)]


def copied(folder: Path, n: int) -> Copy:
    """The tree as it is now, with what was compiled of it."""
    place = Copy(folder / f"copy-{n}")
    place.root.mkdir()
    for name in ("src", "tests", "benchmarks", "experiments", "docs"):
        shutil.copytree(ROOT / name, place.root / name, symlinks=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt"):
        shutil.copy2(ROOT / name, place.root / name)
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
        )
    for result in results:
        if not result.killed:
            why = known.get(result.mutant.name)
            lines.append(
                f"{'equivalent' if why else 'SURVIVED'}: {result.mutant.name} (line {result.mutant.line})"
                + (f" [{why}]" if why else "")
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample; exit code 1 where less than ``--least`` of it is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="no mutant begins after this")
    parser.add_argument("--most", type=int, default=10**6, help="mutants to try at most")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many at the beginning of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--trust", action="store_true", help="do not run the tests without mutants first")
    parser.add_argument("--hand-made", action="store_true", help="the faults of hand_made.py, instead of a sample")
    parser.add_argument("--only", default="", help="mutants whose name has this in it")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be killed")
    given = parser.parse_args(arguments)
    packages = given.packages.split(",")
    rows = [(fault.package, fault) for fault in FAULTS] if given.hand_made else sampled(packages, given.seed)
    chosen = [row for row in rows if given.only in row[1].name]
    chosen = chosen[given.skip : given.skip + given.most]
    print(
        f"seed {given.seed}: {len(chosen):,} mutants to choose from, {given.minutes:g} minutes, {given.jobs} at a time",
        flush=True,
    )
    for name in HEAVY:  # once, for all the processes that are forked from this one
        importlib.import_module(name)
    known = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    until = time.monotonic() + 60 * given.minutes
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="nasbot-mutants-") as folder:
        free: Queue[Copy] = Queue()
        places = [copied(Path(folder), n) for n in range(given.jobs)]
        if not given.trust:
            problem = _trouble(places[0], packages)
            if problem:
                print(f"without any mutant: {problem}")
                return 2
        for place in places if {"otmann", "searchers", "gp"} & {package for package, _ in chosen} else ():
            code = _run(place, WARMING, LIMIT, fresh=False)  # compiles what is to be compiled
            if code != 0:
                print(f"{WARMING} end with {code}: {(place.root / 'output.txt').read_text()[-1000:]}")
                return 2
        for place in places:
            free.put(place)

        def attempt(row: tuple[str, Mutant | HandMade]) -> None:
            if time.monotonic() > until:
                return
            place = free.get()
            try:
                result = tried(row[1], row[0], place)
            finally:
                free.put(place)
            results.append(result)
            word = f"killed by {result.by}" if result.killed else "SURVIVED"
            print(f"{len(results):>4} {result.seconds:5.0f} s  {word}: {result.mutant.name}", flush=True)

        with ThreadPoolExecutor(given.jobs) as pool:
            for _ in pool.map(attempt, chosen):
                pass
    text = report(results, packages, known)
    print(text)
    counted = [r for r in results if r.killed or r.mutant.name not in known]
    return 0 if counted and sum(r.killed for r in counted) >= given.least * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
