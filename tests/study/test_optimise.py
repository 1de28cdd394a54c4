"""One call for all of it: ``maximise`` and ``minimise``."""

import os
import subprocess
import sys

import pytest

import nasbot
from nasbot.errors import FailingError, OptionError, StudyError, VocabularyError
from nasbot.gp import BeliefOptions
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT, EvolutionSearch
from nasbot.study import Study, StudyView, maximise, minimise
from nasbot.synthetic import f2
from tests.searchers.problems import CELLS, CNN, MLP, made, value_of
from tests.study.objectives import score


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)
    return tmp_path


def quick():
    return made(EvolutionSearch)


def test_the_same_call_goes_on_where_it_was_left(elsewhere):
    calls = []

    def objective(arch):
        calls.append(arch)
        return value_of(arch)

    study = maximise(objective, MLP, name="mine", trials=6, searcher=quick(), seed=3)
    again = maximise(objective, MLP, name="mine", trials=6, searcher=quick(), seed=3)  # while the first is still open
    assert len(calls) == 6
    assert [t.arch for t in again.history] == [t.arch for t in study.history]
    longer = maximise(objective, MLP, name="mine", trials=9, searcher=quick(), seed=3)
    assert len(calls) == len(set(calls)) == 9
    assert longer.best_value == max(map(value_of, calls))
    assert len(study.history) == 9  # a view of the same file
    assert (elsewhere / "studies" / "mine.sqlite").exists()
    whole = Study.in_memory(quick(), seed=3).optimise(value_of, 9)
    assert [t.arch for t in whole.history] == [t.arch for t in longer.history]


def test_minimise_is_maximise_of_the_negative():
    low = minimise(lambda arch: -value_of(arch), MLP, name=None, trials=8, searcher=quick())
    high = maximise(value_of, MLP, name=None, trials=8, searcher=quick())
    assert low.best_value == -high.best_value
    assert [t.arch for t in low.history] == [t.arch for t in high.history]


def test_by_default_nasbot_searches_the_paper_s_space():
    study = maximise(f2, "mlp-reg", name="f2", trials=11)
    assert isinstance(study.searcher, NASBOT)
    assert study.searcher == NASBOT(space=nasbot.SearchSpace("mlp-reg"))
    assert study.history[10].origin.searcher == "NASBOT"
    assert study.explain(10).median == study.history[10].forecast.median
    with StudyView.read("f2") as view:
        assert view.searcher.settings() == study.searcher.settings()
        assert [proposal.arch for _, proposal in view.replay()] == [study.history[10].arch]


def test_a_study_goes_on_with_the_options_it_was_begun_with_whatever_the_defaults_are_by_now():
    space = nasbot.SearchSpace("mlp-reg")
    begun = NASBOT(space=space, distance=Otmann(preset="log-mass"), belief=BeliefOptions(warp="rank"))
    maximise(f2, "mlp-reg", name="old", trials=10, searcher=begun)
    longer = maximise(f2, "mlp-reg", name="old", trials=12)
    assert longer.searcher.distance == begun.distance != NASBOT(space=space).distance
    assert longer.searcher.belief == begun.belief != NASBOT(space=space).belief
    with Study.open("old", begun) as study:
        assert len(study.history.finished) == 12
    evolved = EvolutionSearch(space=nasbot.SearchSpace("mlp-reg"))
    maximise(f2, "mlp-reg", name="evolved", trials=2, searcher=evolved)
    with pytest.raises(StudyError, match=r"searcher.type: stored EvolutionSearch, given NASBOT"):
        maximise(f2, "mlp-reg", name="evolved", trials=3)


def test_a_vocabulary_and_a_searcher_of_ones_own_can_be_explained():
    searcher = made(NASBOT, "cells")
    study = maximise(lambda arch: len(set(arch.layers)), CELLS, name="cells", trials=5, searcher=searcher)
    assert study.what_if()


def test_limits_and_workers_are_handed_on():
    seen = []
    study = maximise(
        score,
        MLP,
        name="parallel",
        trials=4,
        workers=2,
        timeout_per_trial=300,
        memory_per_trial=2**32,
        searcher=quick(),
        on_change=lambda trial: seen.append(trial.number),
    )
    assert len(study.history.completed) == 4
    assert set(seen) == {0, 1, 2, 3}
    with pytest.raises(FailingError, match="2 trials in a row failed"):
        maximise(lambda arch: None, MLP, name=None, trials=9, searcher=quick(), max_consecutive_failures=2)


def test_a_budget_in_seconds():
    study = maximise(score, MLP, name=None, trials=5, seconds=1e6, searcher=quick())
    assert len(study.history.finished) == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, OptionError, "budget: nothing is said"),
        ({"trials": 0}, OptionError, "budget: expected at least 1 trial"),
        ({"trials": 3, "worker": 2}, OptionError, "minimise: unknown option 'worker'; there are .*workers"),
        ({"trials": 3, "searcher": made(EvolutionSearch, space=nasbot.SearchSpace("mlp-reg"))}, OptionError, "space: "),
        ({"trials": 3, "space": "rnn"}, VocabularyError, "rnn"),
        ({"trials": 3, "space": CNN, "searcher": quick()}, OptionError, "space: expected that of the searcher"),
    ],
)
def test_what_cannot_be_meant(options, error, words):
    with pytest.raises(error, match=words):
        minimise(score, **{"space": MLP, "name": None, **options})


def test_a_study_is_named_after_its_objective_unless_told_otherwise(elsewhere):
    maximise(score, MLP, trials=3, searcher=quick())
    assert (elsewhere / "studies" / "score.sqlite").exists()
    with pytest.raises(OptionError, match="a lambda has no name to keep the study under"):
        maximise(lambda arch: 1.0 * len(arch.layers), MLP, trials=3, searcher=quick())


def test_another_direction_is_not_resumed():
    maximise(score, MLP, name="mine", trials=3, searcher=quick())
    with pytest.raises(StudyError, match="direction: stored maximise, given minimise"):
        minimise(score, MLP, name="mine", trials=3, searcher=quick())


# -- the front door ----------------------------------------------------------------------------------------------------


def test_every_name_of_the_front_door_is_there():
    assert len(nasbot.__all__) == len(set(nasbot.__all__))
    for name in nasbot.__all__:
        assert getattr(nasbot, name) is not None
        assert name in dir(nasbot)
    assert nasbot.maximise is maximise
    assert nasbot.NASBOT is NASBOT
    with pytest.raises(AttributeError, match="module 'nasbot' has no attribute 'NASB0T'"):
        nasbot.NASB0T  # noqa: B018


# -- time --------------------------------------------------------------------------------------------------------------


def test_deciding_time_is_summed_over_the_proposals():
    study = Study.in_memory(made(NASBOT)).optimise(value_of, 5)
    time = study.deciding_time()
    seconds = [trial.origin.seconds for trial in study.history[3:]]
    assert time.n_proposals == 2
    assert time.total == pytest.approx(sum(entry["deciding"] for entry in seconds))
    for part in ("distances", "fitting", "maximising"):
        assert getattr(time, part) == pytest.approx(sum(entry[part] for entry in seconds))
    assert time.other >= 0
    assert str(time).startswith("2 proposals in ")


def test_deciding_time_of_searchers_that_do_not_say():
    study = Study.in_memory(quick())
    assert study.deciding_time() == (0, 0, 0, 0, 0)
    assert str(study.deciding_time()).startswith("0 proposals in 0.00 s: ")
    time = study.optimise(value_of, 5).deciding_time()
    assert (time.n_proposals, time.distances) == (2, 0)
    assert time.total == time.other > 0


def test_a_budget_in_words_or_as_a_number(elsewhere):
    study = maximise(value_of, MLP, name="words", budget="3 trials", searcher=quick())
    assert len(study.history) == 3
    study = maximise(value_of, MLP, name="words", budget=4, searcher=quick())
    assert len(study.history) == 4
    with pytest.raises(OptionError, match="not both"):
        maximise(value_of, MLP, name="words", budget=4, trials=5, searcher=quick())
    with pytest.raises(OptionError, match="nothing is said"):
        maximise(value_of, MLP, name="words", searcher=quick())


def test_a_searcher_by_name_is_refused_in_words(elsewhere):
    with pytest.raises(OptionError, match="expected an object such as RandomSearch"):
        maximise(value_of, MLP, trials=3, searcher="random")


def test_a_study_as_a_data_frame(elsewhere):
    def sometimes(arch, trial):
        if trial.number == 1:
            raise ValueError("no luck")
        return nasbot.Scored(float(trial.number), {"epochs": 7, "note": "text"})

    frame = maximise(sometimes, MLP, name=None, trials=3, searcher=quick()).to_frame()
    assert list(frame.index) == [0, 1, 2]
    assert frame.loc[2, "value"] == 2.0
    assert frame.loc[1, "failure"] == "exception"
    assert "no luck" in frame.loc[1, "message"]
    assert frame.loc[0, "details.epochs"] == 7
    assert "details.note" not in frame
    assert (frame["layers"] > 0).all()


def test_a_budget_in_seconds_has_the_distance_solver_compiled_before(monkeypatch):
    happened = []
    monkeypatch.setattr("nasbot.study.optimise.compile_solver", lambda: happened.append("compiled"))

    def score(arch):
        happened.append("scored")
        return 1.0

    space = nasbot.SearchSpace("mlp-reg")
    nasbot.maximise(score, space, name=None, seconds=60.0, trials=1)
    assert happened == ["compiled", "scored"]
    nasbot.maximise(score, space, name=None, trials=1)
    nasbot.maximise(score, space, name=None, seconds=60.0, trials=1, searcher=nasbot.RandomSearch(space=space))
    assert happened == ["compiled", "scored", "scored", "scored"]


def test_repeats_are_looks_with_seeds_of_their_own_whose_mean_is_the_value():
    seen = []

    def noisy(arch, trial):
        seen.append((trial.number, trial.seed))
        trial.report(0, 1.0)
        return value_of(arch) + float(trial.rng.normal())

    study = maximise(noisy, MLP, name=None, trials=4, searcher=quick(), seed=3, repeats=3)
    assert len(seen) == len(set(seen)) == 12
    once = []
    maximise(lambda arch, trial: once.append(trial.seed) or 0.0, MLP, name=None, trials=4, searcher=quick(), seed=3)
    assert [seed for _, seed in seen[::3]] == once  # the first look is what there was without repeats
    for trial in study.history:
        shown = trial.outcome.details["repeats"]
        assert trial.value == pytest.approx(sum(shown["values"]) / 3)
        assert shown["sd"] > 0
        assert shown["se_after_one_more"] == pytest.approx(shown["sd"] / 2)
        assert len(trial.curve) == 1  # of the first look


def test_a_look_that_fails_fails_the_trial():
    looks = []

    def failing(arch):
        looks.append(arch)
        return float("nan") if len(looks) == 2 else 1.0

    study = maximise(failing, MLP, name=None, trials=2, searcher=quick(), repeats=2, max_consecutive_failures=None)
    assert [trial.value for trial in study.history][:2] == [None, 1.0]


def test_a_study_goes_on_with_as_many_repeats(elsewhere):
    maximise(score, MLP, name="mine", trials=3, searcher=quick(), repeats=2)
    with pytest.raises(StudyError, match=r"context.repeats"):
        maximise(score, MLP, name="mine", trials=4, searcher=quick())


def test_a_study_goes_on_in_the_context_it_was_begun_in(elsewhere):
    maximise(score, MLP, name="mine", trials=3, searcher=quick(), context={"data": "a"})
    assert len(maximise(score, MLP, name="mine", trials=4, searcher=quick(), context={"data": "a"}).history) == 4
    with pytest.raises(StudyError, match=r"context.data"):
        maximise(score, MLP, name="mine", trials=5, searcher=quick(), context={"data": "b"})


@pytest.mark.parametrize("repeats", [0, 2.0, "3"])
def test_repeats_are_a_whole_number(repeats):
    with pytest.raises(OptionError, match="repeats: expected a whole number >= 1, got"):
        maximise(score, MLP, name=None, trials=1, searcher=quick(), repeats=repeats)


UNGUARDED = """
import nasbot

FACTOR = 2.0


def score(arch):
    return FACTOR * len(arch.layers)


space = nasbot.SearchSpace("mlp-reg")
searcher = nasbot.RandomSearch(space=space)
try:
    study = nasbot.maximise(score, space, searcher=searcher, name={name!r}, trials=3, {where})
except Exception:
    raise SystemExit(9)
print([trial.value == 2 * len(trial.arch.layers) for trial in study.history.finished])
"""


@pytest.mark.parametrize("name", ["mine", None])
@pytest.mark.parametrize("where", ["workers=2", "executor=nasbot.SpawnExecutor(2)"])
def test_a_script_needs_no_guard(elsewhere, where, name):
    """Worker processes import the script as far as its study, where the objective is defined."""
    script = elsewhere / "script.py"
    script.write_text(UNGUARDED.format(where=where, name=name))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == "[True, True, True]\n", done


def test_an_objective_that_a_script_defines_after_a_study_says_so(elsewhere):
    script = elsewhere / "script.py"
    late = "def late(arch):\n    return 1.0\n"
    again = "nasbot.maximise(late, space, searcher=searcher, name=None, trials=3, workers=2)\n"
    script.write_text(UNGUARDED.format(where="workers=2", name=None) + late + again)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert 'the script starts a study first: put that under if __name__ == "__main__"' in done.stderr


def test_a_study_is_shown_in_a_line(elsewhere):
    study = maximise(score, MLP, name="mine", trials=3, searcher=quick())
    assert f" 3 completed, best {study.best_value:.6g} (trial {study.best.number}); EA, " in repr(study)
    study.close()
    assert repr(study) == "<StudyView: EA, maximise, seed 0>"


class Taking:
    def __call__(self, arch, epochs):
        return 1.0


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        (lambda: 1.0, r"got <lambda>\(\): too many positional arguments"),
        (lambda net, t: 1.0, r"got <lambda>\(net, t\): missing a required argument: 't'"),
        (lambda trial, arch: 1.0, r"got <lambda>\(trial, arch\): multiple values for argument 'trial'"),
        (Taking(), r"got Taking\(arch, epochs\): missing a required argument: 'epochs'"),
        ("score", r"got 'score' \(str\)"),
    ],
)
def test_what_no_network_can_be_given_to_is_refused_before_anything_is_kept(elsewhere, objective, said):
    for call in (
        lambda: maximise(objective, MLP, name="mine", trials=4, searcher=quick()),
        lambda: Study.in_memory(quick()).optimise(objective, 4),
    ):
        with pytest.raises(OptionError, match=rf"objective: expected a function of a network, .*{said}"):
            call()
    assert not (elsewhere / "studies").exists()


def test_an_objective_may_change_the_params_it_is_given():
    def taking(arch, params, trial):
        rate = params.pop("rate")
        assert trial.params.pop("rate") == trial.params["rate"] == rate
        params["epochs"] = 3
        return -abs(rate - 0.3)

    for repeats in (1, 2):
        study = maximise(taking, MLP, params={"rate": nasbot.Float(0, 1)}, name=None, trials=12, repeats=repeats)
        for trial in study.history.completed:
            assert set(trial.candidate.params) == {"rate"}
            assert trial.value == -abs(trial.candidate.params["rate"] - 0.3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"searcher": NASBOT}, r"searcher: expected an object such as .*, got the class NASBOT"),
        ({"params": [nasbot.Float(0, 1)]}, r"params: expected names and their ranges, .*, got list"),
    ],
)
def test_a_class_and_a_list_where_an_object_and_names_are_asked_for(options, said):
    with pytest.raises(OptionError, match=said):
        maximise(score, MLP, name=None, trials=3, **options)
