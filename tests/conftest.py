"""What every test shares: hypothesis profiles, the slow marker, and the reference data beside the clone.

Environment:
    NASBOT_THOROUGH=1         run the slow tests, and draw many more (and fresh) random examples
    NASBOT_SHARED=…           where the reference data are; ../shared from the repository's root otherwise
    NASBOT_SHARED_OPTIONAL=1  in CI, let the tests that need the reference data skip instead of failing
    NASBOT_BROWSER=…          the browser that tests of the page drive; chromium on the path otherwise
    NASBOT_POSTGRES=…         the folder of PostgreSQL's initdb and pg_ctl; Debian's otherwise
"""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nasbot.architecture import own_vocabulary, vocabularies
from tests.postgres_server import Server, programs

ROOT = Path(__file__).resolve().parent.parent
SHARED_MISSING = "shared data not found"
BROWSER_MISSING = "chromium not found"
POSTGRES_MISSING = "PostgreSQL's server not found"


def _switched_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in {"1", "true", "yes", "on"}


THOROUGH = _switched_on("NASBOT_THOROUGH")

# No deadline and no "too slow" check: a test that depends on how busy the machine is fails for no reason. Nothing is
# stored between runs and the default examples are derived from the test itself, so a failure comes back when rerun.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    parent=settings.get_profile("default"),
    derandomize=False,
    max_examples=1000,
    print_blob=True,
)
settings.load_profile("thorough" if THOROUGH else "default")


def shared_location() -> Path:
    """Where the reference data should be, whether or not they are there."""
    return Path(os.environ.get("NASBOT_SHARED") or ROOT.parent / "shared").resolve()


def shared_is_there() -> bool:
    return (shared_location() / "reference").is_dir()


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with `reference/`, `paper/` and `data/`. Without it: a skip, and in CI a failure."""
    if shared_is_there():
        return shared_location()
    reason = f"{SHARED_MISSING} at {shared_location()} (NASBOT_SHARED says where else to look)"
    if _switched_on("CI") and not _switched_on("NASBOT_SHARED_OPTIONAL"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _vocabularies_stay_here(monkeypatch):
    """What a test names with ``use_vocabulary`` is unknown to the next, and to the processes that it starts."""
    monkeypatch.setattr(own_vocabulary, "_PATHS", dict(own_vocabulary._PATHS))
    before = dict(vocabularies.OWN)
    yield
    vocabularies.OWN.clear()
    vocabularies.OWN.update(before)


def browser_location() -> str | None:
    """Where the browser is, None where there is none."""
    return shutil.which(os.environ.get("NASBOT_BROWSER") or "chromium")


def browser_or_skip() -> str:
    """The browser's file. Without one: a skip, and in CI a failure."""
    found = browser_location()
    if found is not None:
        return found
    reason = f"{BROWSER_MISSING} (make browser installs Debian's; NASBOT_BROWSER names another)"
    if _switched_on("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server that the tests started. Without its programs: a skip, and in CI a failure."""
    found = programs()
    if found is None:
        reason = f"{POSTGRES_MISSING} (make postgres installs Debian's; NASBOT_POSTGRES names another's folder)"
        if _switched_on("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    server = Server(found)
    yield server
    server.remove()


@pytest.fixture
def database(postgres) -> str:
    """The address of an empty database."""
    return postgres.new_database()


def pytest_configure(config: pytest.Config) -> None:
    """Forget compiled kernels older than their sources: numba looks at one file only, and they are made of several."""
    if hasattr(config, "workerinput"):
        return
    kernels = ROOT / "src/nasbot/otmann/_kernels"
    newest = max(source.stat().st_mtime for source in kernels.glob("*.py"))
    for index in (kernels / "__pycache__").glob("*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if THOROUGH:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; `make thorough` (NASBOT_THOROUGH=1) runs it"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        _found(terminalreporter, "shared data", shared_location(), shared_is_there(), SHARED_MISSING)
    )
    browser = browser_location()
    terminalreporter.write_line(
        _found(terminalreporter, "browser", browser or "the path", browser is not None, BROWSER_MISSING)
    )
    server = programs()
    terminalreporter.write_line(
        _found(terminalreporter, "PostgreSQL", server or "the path", server is not None, POSTGRES_MISSING)
    )


def _found(reporter: pytest.TerminalReporter, what: str, where: object, is_there: bool, missing: str) -> str:
    if is_there:
        return f"{what}: found at {where}"
    reports = [*reporter.getreports("skipped"), *reporter.getreports("error")]
    n_tests = sum(missing in str(report.longrepr) for report in reports)
    return f"{what}: NOT FOUND at {where}, {n_tests} tests that need it did not run"
