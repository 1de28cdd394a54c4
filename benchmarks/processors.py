"""Does a search decide alike on other processors? Recorded histories, decided again with other kernels of the BLAS.

    python -m benchmarks.processors [--every 1] [--plain]

The histories of ``benchmarks.same_mind`` are decided in a process for each of several settings of OPENBLAS_CORETYPE and
NPY_DISABLE_CPU_FEATURES; those that this processor cannot run are left out, and named. The table says how many
proposals are those of the first one, and how far beliefs are apart. ``--plain`` does without rounding.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import same_mind
from nasbot.acquisition import maximise
from nasbot.architecture import Architecture
from nasbot.gp import fit

AS_MANY_AS_THERE_ARE = 53
AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
ENVIRONMENTS = {
    "as it is": {},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": AVX512},
    "Prescott, numpy without AVX2": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": f"{AVX512} AVX2 FMA3",
    },
}


def decisions(every: int, *, plain: bool) -> Iterator[dict[str, Any]]:
    """Proposals and beliefs of every so many of the recorded histories, with the recorded kernel and the default."""
    if plain:
        maximise.UTILITY_BITS = fit.DENSITY_BITS = fit.PLACE_BITS = AS_MANY_AS_THERE_ARE
    networks, number = [], 0
    with gzip.open(same_mind.RECORDED, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "networks" in line:
                known = same_mind.vocabulary(line["problem"])
                networks = [Architecture.from_dict(record, vocabulary=known) for record in line["networks"]]
                continue
            if number % every == 0:
                for terms in ("both", "d_bar+features") if not line["options"] else (None,):
                    options = {} if terms is None else {"kernel_terms": terms}
                    arch, beliefs = same_mind.decided({**line, "options": {**line["options"], **options}}, networks)
                    yield {"terms": terms or "recorded options", "proposal": arch.fingerprint, "beliefs": beliefs}
            number += 1


def decided_in(name: str, every: int, *, plain: bool) -> list[dict[str, Any]] | str:
    """The decisions of a process with these settings, or why there are none."""
    command = [sys.executable, "-m", "benchmarks.processors", "--every", str(every), "--inside"]
    done = subprocess.run(
        [*command, *(["--plain"] if plain else [])],
        env=os.environ | ENVIRONMENTS[name],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def compared(first: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> str:
    """How many proposals are equal, in all and by the terms of the kernel, and how many beliefs within 1e-6."""
    equal = [a["proposal"] == b["proposal"] for a, b in zip(first, other, strict=True)]
    apart = [np.abs(np.array(a["beliefs"]) - np.array(b["beliefs"])) for a, b in zip(first, other, strict=True)]
    near = sum(float(each.max(initial=0.0)) < 1e-6 for each in apart)
    kinds = {a["terms"] for a in first}
    by_kind = {kind: [same for a, same in zip(first, equal, strict=True) if a["terms"] == kind] for kind in kinds}
    shown = ", ".join(f"{kind} {sum(found)} of {len(found)}" for kind, found in sorted(by_kind.items()))
    return f"{sum(equal)} of {len(equal)} proposals equal ({shown}); beliefs within 1e-6 {near} of {len(equal)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th history only")
    parser.add_argument("--plain", action="store_true", help="without rounding")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        for line in decisions(given.every, plain=given.plain):
            print(json.dumps(line), flush=True)
        return 0
    first: list[dict[str, Any]] = []
    for name in ENVIRONMENTS:
        found = decided_in(name, given.every, plain=given.plain)
        if isinstance(found, str):
            print(f"{name}: did not run ({found})", flush=True)
        elif not first:
            first = found
            print(f"{name}: {len(first)} proposals", flush=True)
        else:
            print(f"{name}: {compared(first, found)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
