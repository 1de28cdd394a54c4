"""The same study, whatever happened in between: other runs, other processes, a killed driver, a replay."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nasbot.architecture import Label, LabelPenalties, Role, Vocabulary
from nasbot.architecture.space import SearchSpace
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.execution import SimulatedExecutor
from nasbot.storage import SqliteStorage
from nasbot.study import Study, StudyView, study_path
from nasbot.study.settings import SHOWN_DIFFERENCES, check_same, space_settings
from tests.study.objectives import KilledOnce, score, simulated
from tests.study.searchers import Sensitive


def networks(study) -> list[str]:
    return [trial.arch.fingerprint for trial in study.history]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


OPENING = """
from nasbot.study import Study
from tests.study.searchers import Sensitive
print(Study.open({path!r}, Sensitive(), seed=4).ask().arch.fingerprint)
"""


def run_python(program: str, **options) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", program], text=True, env=environment, capture_output=True, **options)


# -- resuming ----------------------------------------------------------------------------------------------------------


def test_in_pieces_as_in_one_go(path):
    whole = Study.in_memory(Sensitive(), seed=9).optimise(score, 12)
    for budget in (2, 5, 6, 12):
        with Study.open(path, Sensitive(), seed=9) as study:
            study.optimise(score, budget)
            assert len(study.history.finished) == budget
    with StudyView.read(path) as view:
        assert networks(view) == networks(whole)
        assert view.best.arch == whole.best.arch


def test_in_pieces_as_in_one_go_on_several_workers(path):
    """On a virtual clock, so that both runs have the same completion order."""
    whole = Study.in_memory(Sensitive(), seed=9).optimise(simulated, 15, executor=SimulatedExecutor(1))
    for budget in (4, 9, 15):
        with Study.open(path, Sensitive(), seed=9) as study:
            study.optimise(simulated, budget, executor=SimulatedExecutor(1))
    with StudyView.read(path) as view:
        assert networks(view) == networks(whole)


def test_running_trials_wait_after_a_resume_and_run_once_more(path):
    with Study.open(path, Sensitive(), seed=1) as study:
        study.tell(study.ask(), 1.0)
        study.ask()
        study.ask()
    with Study.open(path, Sensitive(), seed=1) as study:
        assert [t.state for t in study.history] == ["completed", "waiting", "waiting"]
        assert [t.interruptions for t in study.history] == [0, 1, 1]
        assert [study.ask().number for _ in range(2)] == [1, 2]
        assert [t.attempts for t in study.history] == [1, 2, 2]


def test_time_goes_on_from_the_last_record(path):
    for _ in range(3):
        with Study.open(path, Sensitive()) as study:
            study.optimise(
                score, len(study.history.finished) + 1, executor=SimulatedExecutor(duration=lambda arch: 5.0)
            )
    with StudyView.read(path) as view:
        assert [(t.started, t.finished) for t in view.history] == [(0.0, 5.0), (5.0, 10.0), (10.0, 15.0)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": 2}, r"seed: stored 1, given 2"),
        ({"searcher": Sensitive(n_layers=9)}, r"searcher.n_layers: stored 8, given 9"),
        ({"searcher": Sensitive(name="other")}, r"searcher.name: stored sensitive, given other"),
        ({"searcher": Sensitive(SearchSpace("mlp-reg", max_layers=50))}, r"space.max_layers: stored 60, given 50"),
        ({"searcher": Sensitive(n_pool=2)}, r"pool: stored"),
        ({"direction": "minimise"}, r"direction: stored maximise, given minimise"),
        ({"context": {"data": "other.csv"}}, r"context.data: stored mine.csv, given other.csv"),
        ({"context": {}}, r"context.data: stored mine.csv, given nothing"),
    ],
)
def test_other_settings_are_shown_and_refused(path, settings, words):
    mine = {"searcher": Sensitive(), "seed": 1, "context": {"data": "mine.csv"}}
    Study.open(path, **mine).close()
    with pytest.raises(StudyError, match=words):
        Study.open(path, **{**mine, **settings})
    Study.open(path, **mine).close()  # a refusal lets go of the file and changes nothing


def test_many_differences_are_counted():
    stored = {f"option-{i}": 0 for i in range(SHOWN_DIFFERENCES + 1)}
    with pytest.raises(StudyError, match=r"stored 0, given 1\n  and 1 more\n"):
        check_same(stored, dict.fromkeys(stored, 1))
    del stored["option-0"]
    with pytest.raises(StudyError, match=r"given 1\nresume it"):
        check_same(stored, dict.fromkeys(stored, 1))


def test_a_vocabulary_that_changed_under_its_name_is_noticed():
    def toy(mass):
        dense = Label(name="dense", fixed_mass=mass)
        labels = (Label(name="in", role=Role.INPUT), dense, Label(name="out", role=Role.OUTPUT))
        return SearchSpace(Vocabulary("toy", labels, LabelPenalties.from_pairs(("in", "dense", "out"), {})))

    assert space_settings(toy(1.0)) == space_settings(toy(1.0))
    assert space_settings(toy(1.0))["kind"] != space_settings(toy(2.0))["kind"]


def test_a_second_driver_is_refused_while_readers_read(path):
    with Study.open(path, Sensitive()) as study:
        study.optimise(score, 4)
        with StudyView.read(path) as view:
            assert networks(view) == networks(study)
        with pytest.raises(StudyError, match=f"driven by process {os.getpid()}"):
            Study.open(path, Sensitive())
        result = run_python(OPENING.format(path=str(path)))
        assert f"driven by process {os.getpid()}" in result.stderr


# -- the same next proposal --------------------------------------------------------------------------------------------


def test_the_next_proposal_is_the_same_in_another_process(path):
    with Study.open(path, Sensitive(), seed=4) as study:
        study.optimise(score, 5)
    result = run_python(OPENING.format(path=str(path)), check=True)
    here = Study.in_memory(Sensitive(), seed=4).optimise(score, 5).ask()
    assert result.stdout.strip() == here.arch.fingerprint


OWN_MODIFIER = """
from functools import partial
from nasbot import RandomSearch, SearchSpace
from nasbot.evolution.modifiers import MODIFIERS
from nasbot.evolution.modifier import Modifier
from nasbot.study import Study

def draft(times, arch, site):
    return base.draft(arch, site)

class Sites:
    def __init__(self, of): self.of = of
    def __call__(self, arch): return self.of(arch)
    def __repr__(self): return f"Sites({{self.of!r}})"

base = MODIFIERS["skip"]
own = Modifier("own", Sites(base.sites), lambda arch, rng: base.draw(arch, rng), partial(draft, 2))
ahead = [object() for _ in range({ahead})]  # so that nothing is where it was in the other process
study = Study.open({path!r}, RandomSearch(space=SearchSpace("mlp-reg"), modifiers=("inc_single", own)), seed=4)
print(len(study.optimise(lambda arch: len(arch.layers), {n}).history))
"""


def test_a_study_with_a_modifier_of_ones_own_goes_on_in_another_process(path):
    """Its functions are told by where they are written: a function, an object and a partial have other addresses."""
    for n, ahead in ((11, 0), (12, 100_000)):
        ended = run_python(OWN_MODIFIER.format(path=str(path), n=n, ahead=ahead))
        assert ended.stdout.strip() == str(n), ended.stderr


@pytest.mark.parametrize("workers", [1, 2, 4, 7])
def test_a_parallel_run_can_be_replayed(path, workers):
    with Study.open(path, Sensitive(), seed=workers) as study:
        study.optimise(simulated, 25, executor=SimulatedExecutor(workers))
    with Study.open(path, Sensitive(), seed=workers) as study:
        pairs = list(study.replay())
        assert len(pairs) == 22
        for trial, proposal in pairs:
            assert proposal.arch == trial.arch
        if workers > 1:
            assert [t.number for t in study.history.finished] != list(range(25))


def test_a_parallel_run_in_processes_can_be_replayed(path):
    with Study.open(path, Sensitive(), seed=3) as study:
        study.optimise(score, 8, workers=2)
        assert len(study.history.completed) == 8
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())


# -- a killed driver ---------------------------------------------------------------------------------------------------

DRIVER = """
import sys
from nasbot.study import Study
from tests.study.searchers import Sensitive
from tests.study.objectives import Watched
if __name__ == "__main__":
    path, folder, budget, workers = sys.argv[1:]
    study = Study.open(path, Sensitive(), seed=6)
    study.optimise(Watched(folder), int(budget), int(workers), timeout_per_trial=300)
"""


def test_a_killed_driver_loses_nothing_and_leaves_nobody(path, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(path), str(marks)]
    acknowledged = []
    for n_marks in (2, 5):  # killed in the middle of the pool, and of the proposals
        driver = subprocess.Popen([*command, "100", "1"], env=environment)
        deadline = time.monotonic() + 120
        while len(list(marks.iterdir())) < n_marks:
            assert time.monotonic() < deadline
            assert driver.poll() is None
            time.sleep(0.01)
        with StudyView.read(path) as view:
            acknowledged = [(t.number, t.value) for t in view.history.finished]
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        with StudyView.read(path) as view:
            recorded = [(t.number, t.value) for t in view.history.finished]
            assert recorded[: len(acknowledged)] == acknowledged
    subprocess.run([*command, "9", "1"], env=environment, check=True, timeout=300)
    uninterrupted = Study.in_memory(Sensitive(), seed=6).optimise(score, 9)
    with StudyView.read(path) as view:
        assert networks(view)[:9] == networks(uninterrupted)
        assert [t.value for t in view.history[:9]] == [t.value for t in uninterrupted.history]
        assert not [t for t in view.history if t.state == "running"]
        assert sum(t.interruptions for t in view.history) <= 2
    deadline = time.monotonic() + 60
    pids = {mark.name.split("-")[1] for mark in marks.iterdir()}
    while any(_is_evaluating(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_evaluating(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(("times", "state", "attempts"), [(1, "completed", 2), (5, "failed", 2)])
def test_a_killed_worker_is_tried_once_more(tmp_path, times, state, attempts):
    study = Study.in_memory(Sensitive(), seed=8).optimise(KilledOnce(str(tmp_path), times), 4, timeout_per_trial=300)
    assert (study.history[1].state, study.history[1].attempts) == (state, attempts)
    assert len(study.history.finished) == 4


# -- where studies live ------------------------------------------------------------------------------------------------


def test_a_name_is_a_file_in_the_studies_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)
    Study.open("protein", Sensitive()).close()
    assert (tmp_path / "studies" / "protein.sqlite").exists()
    monkeypatch.setenv("NASBOT_STUDIES", str(tmp_path / "elsewhere"))
    assert study_path("protein") == tmp_path / "elsewhere" / "protein.sqlite"
    assert study_path("./protein.db") == Path("protein.db")
    assert study_path("my.sqlite") == Path("my.sqlite")


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a b", "a\nb", "a\0b", "ü", "a" * 101, "-rf", "~", "*", "con:", "a\\b", "%2e%2e"]
)
def test_names_cannot_lead_astray(name):
    with pytest.raises(OptionError, match="study"):
        study_path(name)


def test_reading_what_has_not_begun(path):
    SqliteStorage(path).close()
    with pytest.raises(StudyError, match="no study yet"):
        StudyView.read(path)


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        StudyView.read(tmp_path / "absent.sqlite")
