"""Plain and compiled kernels give the same numbers, and who computes is chosen without a word unless there is one."""

import json
import logging
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from threading import Event

import numpy as np
import pytest

import nasbot
from nasbot.otmann import solver
from nasbot.otmann._kernels import bitset_simplex, compiled, network_simplex, pairs, path_pass
from nasbot.otmann._kernels._marking import KERNELS
from nasbot.testing.networks import random_architecture

ROOT = Path(__file__).resolve().parents[2]


def networks(kind: str, n: int, n_layers: int) -> list[nasbot.Architecture]:
    return [random_architecture(kind, rng=np.random.default_rng(seed), n_layers=n_layers) for seed in range(n)]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> solver._Choice:
    """As in a process that has computed nothing yet."""
    monkeypatch.setattr(solver, "_choice", solver._Choice())
    monkeypatch.delenv(solver.SWITCH, raising=False)
    return solver._choice


@pytest.mark.parametrize("preset", ["paper", "release", "log-mass"])
@pytest.mark.parametrize(("kind", "n_layers"), [("cnn", 12), ("mlp-reg", 40), ("mlp-class", 90), ("cnn", 130)])
def test_plain_and_compiled_kernels_agree_to_the_last_bit(
    kind: str, n_layers: int, preset: str, fresh: solver._Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 63 layers of one class another solver takes over: both."""
    archs = networks(kind, 5, n_layers)
    tables = {}
    for switch in ("1", "0"):
        monkeypatch.setenv(solver.SWITCH, switch)
        assert solver.compile_solver() is (switch == "0")
        otmann = nasbot.Otmann(preset=preset)
        tables[switch] = otmann.pairwise(archs), otmann.cross(archs[:2], archs)
        assert solver.solver_for(0).is_compiled is (switch == "0")
    for plain, fast in zip(tables["1"], tables["0"], strict=True):
        assert plain.d.max() > 0
        np.testing.assert_array_equal(plain.d, fast.d)
        np.testing.assert_array_equal(plain.d_bar, fast.d_bar)


def test_a_process_begins_in_python_and_compiles_when_there_is_enough_to_do(fresh: solver._Choice) -> None:
    assert not solver.solver_for(solver.PLAIN_WORK / 2).is_compiled
    assert not solver.solver_for(solver.PLAIN_WORK / 2).is_compiled
    assert not fresh.is_settled
    assert solver.solver_for(1.0).is_compiled
    assert fresh.is_settled


def test_nobody_waits_while_another_thread_compiles(fresh: solver._Choice) -> None:
    with fresh.lock:
        assert not solver.solver_for(100 * solver.PLAIN_WORK).is_compiled
    solver.compile_in_background().join()
    assert solver.solver_for(0).is_compiled


def test_a_pivot_cap_raises(fresh: solver._Choice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(solver.SWITCH, "1")
    for module, n_layers in ((bitset_simplex, 12), (network_simplex, 130)):
        with monkeypatch.context() as patch:
            patch.setattr(module, "PIVOTS_PER_NODE", 0)
            with pytest.raises(nasbot.SolverError, match="did not converge"):
                nasbot.pairwise(networks("mlp-reg", 4, n_layers))


def test_each_kernel_is_compiled_once_for_all_its_calls() -> None:
    solver.compile_solver()
    archs = networks("cnn", 6, 10)
    otmann = nasbot.Otmann(preset="release")
    packed = otmann.pack(archs)
    otmann.cross(packed.taken(np.array([3, 1])), archs)
    nasbot.pairwise(archs, structural_weights=[1], preset="figure")
    for function in (pairs.add_distances, path_pass.pack_networks):
        assert len(compiled.TWINS[function].signatures) == 1, function.__name__  # type: ignore[attr-defined]


def test_all_kernels_vanish_in_their_callers_but_these() -> None:
    """Those with callers outside, and two that are called rarely; without that tables take longer, and are the same."""
    called = {function.__name__ for function, is_inlined in KERNELS.items() if not is_inlined}
    from_outside = {"mean_bounds", "optimise", "add_distances", "pack_networks"}
    assert called == from_outside | {"_solve_large", "network_masses", "network_path_lengths"}


def test_a_long_compilation_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    said = Event()

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.set()

    monkeypatch.setattr(solver, "SECONDS_UNTIL_SAID", 0.0)
    handler = Telling()
    solver.LOG.addHandler(handler)
    try:
        with solver._said_if_long():
            assert said.wait(60)
    finally:
        solver.LOG.removeHandler(handler)
    assert [record.getMessage().partition(",")[0] for record in caplog.records][:1] == ["compiling the distance solver"]
    assert len(caplog.records) == 2
    caplog.clear()
    monkeypatch.setattr(solver, "SECONDS_UNTIL_SAID", 600.0)
    with solver._said_if_long():
        pass
    assert not caplog.records


def test_waiting_for_the_processor_is_no_compilation(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.setattr(solver, "SECONDS_UNTIL_SAID", 0.2)
    with solver._said_if_long():
        time.sleep(0.8)
    assert not caplog.records


def test_the_bounds_are_those_of_the_project_file() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for name, (least, below) in compiled.BOUNDS.items():
        assert f"{name}>={least[0]}.{least[1]},<{below[0]}.{below[1]}" in required


# -- processes of their own --------------------------------------------------------------------------------------------

SCRIPT = """
import json, sys
{before}
import numpy as np, nasbot
from nasbot.testing.networks import random_architecture
archs = [random_architecture("cnn", rng=np.random.default_rng(seed), n_layers=12) for seed in range({n})]
table = nasbot.pairwise(archs)
nasbot.pairwise(archs)
nasbot.explain(archs[0], archs[1])
print(json.dumps({{"d": table.d.tolist(), "compiled": "nasbot.otmann._kernels.lane_code" in sys.modules}}))
"""
MANY = 70  # networks whose table is worth compiling


def in_a_process(before: str, n: int, **environment: str) -> tuple[np.ndarray, bool, str]:
    script = SCRIPT.format(before=before, n=n)
    variables = {key: value for key, value in os.environ.items() if key != solver.SWITCH} | environment
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return np.array(answer["d"]), answer["compiled"], done.stderr


def test_a_few_distances_load_no_compiler() -> None:
    d, is_compiled, said = in_a_process("", 5)
    assert (is_compiled, said) == (False, "")
    np.testing.assert_array_equal(d, nasbot.pairwise(networks("cnn", 5, 12)).d)


@pytest.mark.parametrize(
    ("before", "environment", "line"),
    [
        ("", {"NASBOT_PLAIN_SOLVER": "1"}, ""),
        ("import numba; numba.__version__ = '0.99.1'", {}, r"numba 0\.99\.1 is installed, expected >=0\.\d+,<0\.\d+"),
        ("import numba.extending; del numba.extending.lower_builtin", {}, "cannot import name 'lower_builtin'"),
        ("sys.modules['numba'] = None", {}, "import of numba halted"),
    ],
    ids=["switch", "version", "private name", "missing"],
)
def test_without_the_compiler_distances_are_the_same_and_one_line_says_why(
    before: str, environment: dict[str, str], line: str
) -> None:
    d, is_compiled, said = in_a_process(before, MANY, **environment)
    assert not is_compiled
    assert len(said.splitlines()) == (1 if line else 0), said
    assert re.search(line, said)
    np.testing.assert_array_equal(d, nasbot.pairwise(networks("cnn", MANY, 12)).d)
