"""Coverage-guided fuzzing of ``Architecture.from_json`` with atheris (libFuzzer).

    python -m tests.fuzz.fuzz_codec --runs 100000 --seed 0

Starts from valid networks. Four changes in five are those of tests/fuzz/mutations.py, half of them made to a valid
network and half to whatever libFuzzer found worth keeping; the others are libFuzzer's own, on bytes.

Fails on anything but a NasbotError, on an accepted network that does not round-trip, on an input that takes a second of
CPU, and on 256 MB more memory than at the start; the input is then left in build/fuzz/finding.json.
tests/fuzz/test_fuzz_codec.py is the short version without atheris.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["nasbot"]):
    from nasbot.architecture import (  # noqa: F401
        Architecture,  # before anybody else does, so that it is instrumented
        codec,
        graph,
        pools,
    )

from tests.fuzz.mutations import MAX_SIZE, Finding, judged, mutated, seeds

MAX_SECONDS = 1.0
MAX_MEGABYTES = 256.0
OWN_SHARE = 0.8
# Changes pile up in libFuzzer's corpus until nearly everything in it fails in the parser; this keeps the rest reached.
FRESH_SHARE = 0.5
SEEDS = seeds()
FINDINGS = Path("build/fuzz")


def peak_megabytes() -> float:
    """The most memory this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Session:
    """Counts and worst cases over all inputs; ends the process after the last, since libFuzzer never returns."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.outcomes: Counter[str] = Counter()
        self.slowest = 0.0
        self.slowest_input = b""
        self.longest = 0
        self.started = time.monotonic()
        self.memory_at_start = peak_megabytes()

    def run(self, data: bytes) -> None:
        """Judge one input."""
        start = time.process_time()
        try:
            self.outcomes[judged(data)] += 1
        except Finding as finding:
            self.end(data, str(finding))
        seconds = time.process_time() - start
        self.longest = max(self.longest, len(data))
        if seconds > self.slowest:
            self.slowest, self.slowest_input = seconds, data
        if seconds > MAX_SECONDS:
            self.end(data, f"took {seconds:.2f} s")
        if peak_megabytes() - self.memory_at_start > MAX_MEGABYTES:
            self.end(data, "too much memory")
        if self.outcomes.total() >= self.runs:
            self.end()

    def end(self, data: bytes | None = None, complaint: str = "") -> None:
        """Print the report and leave: with 1 if there is something to complain of."""
        print(self.report())
        if data is not None:
            FINDINGS.mkdir(parents=True, exist_ok=True)
            (FINDINGS / "finding.json").write_bytes(data)
            print(f"FAIL: {complaint}; input in {FINDINGS / 'finding.json'}: {data[:200]!r}")
        else:
            print("PASS")
        sys.stdout.flush()
        os._exit(0 if data is None else 1)

    def report(self) -> str:
        """What happened, as text."""
        minutes = (time.monotonic() - self.started) / 60
        lines = [f"{self.outcomes.total():,} inputs in {minutes:.1f} minutes, the longest {self.longest:,} bytes"]
        lines += [f"  {name:28} {n:9,}" for name, n in self.outcomes.most_common()]
        lines.append(f"slowest {1e3 * self.slowest:.1f} ms of CPU ({len(self.slowest_input):,} bytes)")
        grown = peak_megabytes() - self.memory_at_start
        lines.append(
            f"peak memory {peak_megabytes():.0f} MB, {grown:.0f} MB above the start (libFuzzer's own included)"
        )
        return "\n".join(lines)


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Ours mostly, libFuzzer's own sometimes."""
    rng = random.Random(~seed)  # not the stream that ``mutated`` draws from
    if rng.random() < OWN_SHARE:
        start = rng.choice(SEEDS) if rng.random() < FRESH_SHARE else data
        return mutated(start, seed)[:max_size]
    changed: bytes = atheris.Mutate(data, max_size)
    return changed


def main() -> None:
    """Parse the command line and fuzz until done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for i, content in enumerate(SEEDS):
            (Path(folder) / f"seed-{i}.json").write_bytes(content)
        session = Session(options.runs)
        flags = ["-runs=-1", f"-max_len={MAX_SIZE}", "-len_control=0", f"-seed={options.seed + 1}", "-rss_limit_mb=0"]
        quiet = ["-print_pcs=0", "-verbosity=0", "-mutate_depth=1", "-timeout=60", "-print_funcs=0"]
        # libFuzzer takes seed 0 for "choose one", hence the + 1.
        atheris.Setup([sys.argv[0], folder, *flags, *quiet], session.run, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
