"""Refits: the model's networks on all rows, for as long as their trials were; cut short, resumed, never in the way."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import nasbot
from nasbot import Layer
from nasbot.architecture import chain
from nasbot.automl import refits
from nasbot.automl.card import model_card
from nasbot.automl.files import DATA, WEIGHTS
from nasbot.automl.members import RECORD, members_of
from nasbot.automl.model import member_of, model_of, refitted_trials
from nasbot.automl.refits import expected_seconds, refit_model
from nasbot.automl.summary import record_of
from nasbot.candidate import Candidate
from nasbot.execution import Interrupted, Job, SerialExecutor
from nasbot.study import Study
from nasbot.training import distilling
from nasbot.training.distilling import share_of
from nasbot.training.loop import train
from nasbot.training.objective import TrainingObjective, trained_as
from nasbot.training.recipes import FAST
from nasbot.training.refitting import Length, RefitObjective, length_of, rows_ratio, with_all_rows

RNG = np.random.default_rng(0)
X = RNG.normal(10, 3, (240, 4))
Y = X[:, 0] * 2 + X[:, 1] * X[:, 2] / 5
KINDS = [chain("mlp-reg", [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
POOL = [
    Candidate(arch, {"preparation": how}) for arch, how in zip(KINDS, ("standard", "robust", "quantile"), strict=True)
]
SHORT = FAST.changed(n_steps=40)
OPTIONS = {
    "budget": 3,
    "workers": 1,
    "recipe": SHORT,
    "pool": POOL,
    "tune": "preparation",
    "task": "regression",
    "folds": 1,
}


@pytest.fixture(scope="module")
def refitted():
    with nasbot.search(X, Y, name=None, **OPTIONS) as study:
        yield study


def weights_of(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_refit_is_the_trial_once_more_on_all_rows(refitted):
    """By an independent road: train by hand, with the trial's seed, as long as it was."""
    number = members_of(refitted).trials[0]
    trial, data = refitted.history[number], refitted.dataset
    details = trial.outcome.details
    n_steps = round(40 * 0.8 / 0.6)
    recipe, prepared = trained_as(refitted.recipe.changed(n_steps=n_steps), data, trial.candidate.params)
    both = replace(
        prepared,
        train=nasbot.data.dataset.Part(
            np.concatenate([prepared.train.X, prepared.valid.X]), np.concatenate([prepared.train.y, prepared.valid.y])
        ),
    )
    seed = nasbot._rng.derived_seed(0, number, nasbot._rng.Role.OBJECTIVE)
    by_hand = train(trial.arch, both, recipe, seed=seed, stop_after=details["best_step"] / 40)
    assert same(weights_of(by_hand.network), weights_of(member_of(refitted, trial).network))
    assert not same(weights_of(by_hand.network), weights_of(refitted.found(trial).model()))  # the search's own


# -- learning from the ensemble ----------------------------------------------------------------------------------------


@pytest.fixture
def noisy(tmp_path):
    """Half of the target is noise, which networks agree that they cannot tell."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(3000, 4))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] + rng.normal(size=3000)
    alike = chain("mlp-reg", [Layer("relu", 24), Layer("relu", 24)])
    pool = [Candidate(alike, {"preparation": how}) for how in ("standard", "robust", "quantile")]
    options = OPTIONS | {"pool": pool, "recipe": FAST.changed(n_steps=100)}
    with nasbot.search(rows, y, name=tmp_path / "noisy.sqlite", refit=False, **options) as study:
        yield study


def taught(study, monkeypatch):
    """What the refits of a study would learn: their objective and jobs."""
    made: list = []
    monkeypatch.setattr(
        refits, "_train", lambda jobs, objective, executor, seconds: made.extend([objective, list(jobs)])
    )
    refit(study.files, study)
    return made


def share_by_hand(study):
    """By the weights that were kept, not the predictions."""
    members, data = members_of(study), study.dataset
    errors, mean = [], 0.0
    for number, weight in zip(members.trials, members.weights, strict=True):
        trial = study.history[number]
        valid = trained_as(study.recipe, data, trial.candidate.params)[1].valid
        with torch.inference_mode():
            said = member_of(study, trial, refit=False).network(torch.from_numpy(np.array(valid.X))).numpy()
        errors.append(weight * np.square(said - valid.y).mean())
        mean = mean + weight * said
    return share_of(float(np.square(mean - data.valid.y).mean()), float(sum(errors)))


def test_noisy_rows_are_learned_from_the_ensemble_too(noisy, monkeypatch):
    """By an independent road: the mean that the model without refits gives, in the units that networks learn."""
    objective, _ = taught(noisy, monkeypatch)
    rows, share = with_all_rows(noisy.dataset).train, members_of(noisy).taught
    assert 0.2 < share <= 0.5
    assert share == pytest.approx(share_by_hand(noisy), rel=1e-3)
    with torch.inference_mode():
        said = model_of(noisy, refit=False).network(torch.from_numpy(np.array(rows.X))).numpy()
    learned = objective.targets_of(noisy.dataset, {})
    np.testing.assert_allclose(learned, (1 - share) * rows.y + share * said, rtol=1e-4, atol=1e-5)


def test_a_taught_refit_is_the_trial_on_all_rows_with_these_targets(noisy, monkeypatch):
    with monkeypatch.context() as patched:
        objective, jobs = taught(noisy, patched)
    refit(noisy.files, noisy)
    trial = noisy.history[jobs[0].number]
    length = objective.lengths[trial.number]
    steps = round(length.steps * 0.8 / 0.6)
    recipe, prepared = trained_as(noisy.recipe.changed(n_steps=steps), noisy.dataset, trial.candidate.params)
    by_hand = train(
        trial.arch,
        with_all_rows(prepared),
        recipe,
        seed=nasbot._rng.derived_seed(0, trial.number, nasbot._rng.Role.OBJECTIVE),
        stop_after=length.stop_after,
        targets=objective.targets_of(noisy.dataset, {}),
    )
    assert same(weights_of(by_hand.network), weights_of(member_of(noisy, trial).network))


def test_what_is_learned_is_said(noisy):
    refit(noisy.files, noisy)
    share = members_of(noisy).taught
    assert f"on training and validation rows, {share:.0%} of it the ensemble's word: trials" in noisy.summary()
    assert record_of(noisy)["taught"] == share
    assert f"by {share:.0%}, what an ensemble of them said" in model_card(noisy, name="m", form="code")


def as_its_trial(study, base):
    return lambda number: refits._as_its_trial(study.history[number], study.dataset, base)


def test_how_long_each_trial_was_is_asked_once(noisy, monkeypatch):
    """However many ensembles and lengths are tried: where inputs are many, asking takes a while."""
    asked, original = [], refits._as_its_trial

    def counted(trial, *others):
        asked.append(trial.number)
        return original(trial, *others)

    monkeypatch.setattr(refits, "_as_its_trial", counted)
    monkeypatch.setattr(refits, "_train", lambda *given: None)
    monkeypatch.setattr(refits, "_lesson", lambda *given: (np.zeros(1), 0.5))
    refit(noisy.files, noisy, seconds=1e-3)  # no length fits, and all are tried
    assert len(asked) == len(set(asked)) > 1


def test_the_steps_of_a_recipe_are_known_without_preparing_the_data(noisy, monkeypatch):
    trial, base = noisy.history[0], TrainingObjective("nowhere", noisy.recipe)
    length = length_of(trial, noisy.dataset, base)
    monkeypatch.setattr("nasbot.training.refitting.trained_as", None)
    assert length_of(trial, noisy.dataset, base) == length
    assert length.steps == 100


def test_those_that_were_getting_better_learn_twice_as_long(noisy, monkeypatch):
    objective, jobs = taught(noisy, monkeypatch)
    base = TrainingObjective("nowhere", noisy.recipe)
    lengths = {job.number: length_of(noisy.history[job.number], noisy.dataset, base) for job in jobs}
    assert any(length.is_short for length in lengths.values())
    for number, length in lengths.items():
        assert objective.lengths[number].steps == length.steps * (2 if length.is_short else 1)
        assert objective.lengths[number].stop_after == length.stop_after
    alone, together = (refits._refits([job.number for job in jobs], as_its_trial(noisy, base), n, 0.5) for n in (1, 2))
    for one, two in zip(alone, together, strict=True):
        assert two.seconds == pytest.approx(one.seconds * (2 if lengths[one.trial.number].is_short else 1))


def test_rather_all_for_as_long_as_their_trials_than_some_for_longer(noisy, monkeypatch):
    made: list = []
    monkeypatch.setattr(refits, "_train", lambda jobs, objective, executor, seconds: made.append((objective, jobs)))
    monkeypatch.setattr(refits.time, "monotonic", lambda: 0.0)  # what the lesson takes
    base = TrainingObjective("nowhere", noisy.recipe)
    wanted = {*members_of(noisy).trials, noisy.history.best.number}
    for longer in (1.0, 1.5, 2.0):
        each = refits._refits(list(wanted), as_its_trial(noisy, base), longer, 0.5)
        refit(noisy.files, noisy, seconds=refits.SAFETY * 1.001 * sum(refit.seconds for refit in each))
        objective, jobs = made.pop()
        assert {job.number for job in jobs} == wanted
        for number, length in objective.lengths.items():
            own = length_of(noisy.history[number], noisy.dataset, base)
            assert length.steps == own.steps * (longer if own.is_short else 1)


def test_nothing_is_learned_from_an_ensemble_that_errs_by_itself(unrefitted, monkeypatch):
    objective, _ = taught(unrefitted, monkeypatch)
    assert objective.lesson is None
    assert members_of(unrefitted).taught == 0.0


def test_nor_where_weights_of_it_are_gone(noisy, monkeypatch):
    (noisy.files / WEIGHTS / f"trial-{members_of(noisy).trials[0]}.safetensors").unlink()
    objective, _ = taught(noisy, monkeypatch)
    assert objective.lesson is None


def test_how_long_refits_take_is_known_before_the_search_ends(noisy):
    base = TrainingObjective(noisy.files / DATA, noisy.recipe)
    needed = [refits.seconds_for_refits(noisy.history, noisy.files, base, None, workers) for workers in (1, 8)]
    longest = max(trial.seconds for trial in noisy.history)
    assert 0 < needed[1] < needed[0] < refits.SAFETY * 2 * rows_ratio(noisy.dataset) * 4 * longest + longest


# -- what one gets -----------------------------------------------------------------------------------------------------


def test_validation_is_what_chose_and_test_is_what_one_gets(refitted):
    results = refitted.results()
    plain = nasbot.search(X, Y, name=None, refit=False, **OPTIONS)
    with plain:
        before = plain.results()
        assert results.single.validation == before.single.validation
        assert results.ensemble.validation == before.ensemble.validation
        assert results.baseline == before.baseline  # what one has without a search
        assert results.single.test != before.single.test
        assert results.ensemble.test != before.ensemble.test
        assert refitted_trials(plain) == ()
    truth = np.asarray(refitted.dataset.preprocessing.restored(refitted.dataset.test.y)).ravel()
    rows = _rows_of(refitted.dataset, "test")
    for result, model in ((results.ensemble, refitted.model()), (results.single, refitted.model(single=True))):
        assert result.test == pytest.approx(np.square(model.predict(rows).ravel() - truth).mean(), rel=1e-4)


def _rows_of(data, part):
    prepared = data.preprocessing.X(X)
    return X[[int(np.flatnonzero((prepared == row).all(axis=1))[0]) for row in np.asarray(getattr(data, part).X)]]


def test_the_summary_and_the_record_say_so(refitted):
    numbers = refitted_trials(refitted)
    assert set(numbers) == {*members_of(refitted).trials, refitted.history.best.number}
    assert "trained once more, on training and validation rows: trials " in refitted.summary()
    assert record_of(refitted)["refitted"] == list(numbers)


def test_the_test_rows_are_never_learned_from(refitted):
    data = refitted.dataset
    both = with_all_rows(data)
    assert len(both.train) == len(data.train) + len(data.valid)
    learned = {row.tobytes() for row in np.asarray(both.train.X)}
    assert not learned & {row.tobytes() for row in np.asarray(data.test.X)}
    assert both.valid is data.valid
    assert both.test is data.test
    weighted = replace(
        data,
        **{
            name: replace(part, weights=np.full(len(part), w))
            for name, part, w in (("train", data.train, 1.0), ("valid", data.valid, 2.0))
        },
    )
    assert with_all_rows(weighted).train.weights.tolist() == [1.0] * len(data.train) + [2.0] * len(data.valid)


# -- how long ----------------------------------------------------------------------------------------------------------


def test_the_length_is_the_schedule_and_where_its_best_validation_was(refitted):
    data, base = refitted.dataset, TrainingObjective("nowhere", refitted.recipe)
    trial = refitted.history[0]

    def with_details(**details):
        known = {**trial.outcome.details, **details}
        return replace(trial, outcome=replace(trial.outcome, details=known))

    assert length_of(with_details(steps=40, best_step=30, stopped="steps"), data, base) == Length(40, 0.75)
    # Patience ended it early: the schedule was that of a whole training.
    assert length_of(with_details(steps=20, best_step=10, stopped="patience"), data, base) == Length(40, 0.25)
    # The clock ended it: the schedule was as long as the time.
    assert length_of(with_details(steps=20, best_step=10, stopped="time"), data, base) == Length(20, 0.5)
    assert length_of(with_details(steps=None), data, base) is None
    assert length_of(with_details(steps=20, best_step=30), data, base) is None
    assert rows_ratio(data) == pytest.approx(0.8 / 0.6)


def test_what_is_kept_of_a_budget_for_them():
    assert expected_seconds(3.0, 4 / 3, 2) == pytest.approx(refits.SAFETY * 16 + 3)
    assert expected_seconds(3.0, 4 / 3, 8) == pytest.approx(refits.SAFETY * 4 + 3)


# -- time and interruptions --------------------------------------------------------------------------------------------


def refit(files, study, **options):
    base = TrainingObjective(files / DATA, study.recipe)
    executor = options.pop("executor", None) or SerialExecutor()
    refit_model(study.history, files, base, None, executor, seed=0, **{"seconds": None} | options)


class Clocked(SerialExecutor):
    """Its clock stands still, but for what each evaluation is said to take."""

    def __init__(self, *takes):
        super().__init__()
        self.takes, self.time = list(takes), 0.0

    def now(self):
        return self.time

    def wait(self, timeout=None):
        is_busy = self._job is not None
        events = super().wait(timeout)
        if is_busy:
            self.time += self.takes.pop(0)
        return events


def refits_in(files):
    return sorted(path.name for path in (files / WEIGHTS).glob("refit-*.safetensors"))


@pytest.fixture
def unrefitted(tmp_path):
    with nasbot.search(X, Y, name=tmp_path / "s.sqlite", refit=False, **OPTIONS) as study:
        yield study


def test_only_what_fits_into_the_time_is_chosen(unrefitted, monkeypatch):
    files = unrefitted.files
    refit(files, unrefitted, seconds=1e-6)
    assert refits_in(files) == []  # no time: the weights of the search it is
    assert len(members_of(unrefitted).trials) > 1
    monkeypatch.setattr(refits, "_train", lambda jobs, objective, executor, seconds: made.extend(jobs))
    made: list = []
    first = unrefitted.history[members_of(unrefitted).trials[0]]
    in_time = refits.SAFETY * 1.001 * first.seconds * rows_ratio(unrefitted.dataset)
    refit(files, unrefitted, seconds=in_time, executor=Clocked())
    assert [job.number for job in made] == [first.number]  # the others keep the weights of the search
    assert len(members_of(unrefitted).trials) > 1  # averaging gains more than refits do


def test_each_refit_in_this_process_has_what_the_ones_before_it_left(unrefitted, monkeypatch):
    """And not all of the time that there was for them together, one after the other."""
    given = []
    monkeypatch.setattr(RefitObjective, "__call__", lambda self, arch, params, trial: given.append(self.base.seconds))
    n = len({*members_of(unrefitted).trials, unrefitted.history.best.number})
    assert n == 3
    refit(unrefitted.files, unrefitted, seconds=20.0, executor=Clocked(12.0, 8.0, 1.0))
    assert given == pytest.approx([20.0 / refits.SAFETY, 8.0 / refits.SAFETY])  # and for the third nothing is left


def test_a_refit_that_would_be_cut_short_is_not_begun_any_more(unrefitted):
    given = []
    jobs = [Job(trial.number, trial.candidate, 0, 1.0) for trial in unrefitted.history]
    objective = RefitObjective(TrainingObjective(unrefitted.files / DATA), unrefitted.files / DATA, "", {})
    clock = Clocked(6.0, 1.0)
    clock.submit = lambda job: (given.append(job.number), SerialExecutor.submit(clock, job))
    refits._train(dict(zip(jobs, (5.0, 6.0, 4.0), strict=True)), objective, clock, 10.0)
    assert given == [0, 2]  # the second has 4 seconds left and needs 6; the third needs no more than there are


def test_an_ensemble_is_not_asked_for_longer_than_there_is_time(noisy, monkeypatch):
    base = TrainingObjective(noisy.files / DATA, noisy.recipe)
    teachers = refits._teachers(noisy.history, noisy.files, noisy.dataset, base, None)
    assert refits._lesson(teachers, noisy.history, noisy.files, noisy.dataset, "cpu", seconds=0.0) is None
    threads = []
    monkeypatch.setattr(distilling, "said_together", lambda *args, **options: threads.append(torch.get_num_threads()))
    refits._lesson(teachers, noisy.history, noisy.files, noisy.dataset, "cpu")
    assert threads == [1]  # that wait for nobody


def test_refits_are_laid_out_on_the_workers(refitted):
    trial = refitted.history[0]

    def kept(seconds, workers, *each):
        given = [refits.Refit(trial, Length(1, 1.0), cost) for cost in each]
        return [given.index(refit) for refit in refits._in_time(given, workers, seconds)[0]]

    assert kept(10.0, 2, 6.0, 5.0, 4.5, 4.0) == [0, 1, 2, 3]
    assert kept(10.0, 2, 16.0, 6.0, 5.0) == [1, 2]  # one that no worker can end in time makes room for others
    assert kept(10.0, 1, 6.0, 5.0, 4.0) == [0, 2]
    each = [refits.Refit(trial, Length(1, 1.0), cost) for cost in (6.0, 5.0, 4.5)]
    assert refits._in_time(each, 2, math.inf)[1] == [6.0, 9.5]


def test_fewer_members_where_all_of_them_can_then_be_refitted(unrefitted, monkeypatch):
    monkeypatch.setattr(refits, "ENOUGH_MEMBERS", 1)
    monkeypatch.setattr(refits, "_train", lambda jobs, objective, executor, seconds: made.extend(jobs))
    made: list = []
    dearest = max(trial.seconds for trial in unrefitted.history) * rows_ratio(unrefitted.dataset)
    refit(unrefitted.files, unrefitted, seconds=refits.SAFETY * 1.001 * dearest, executor=Clocked())
    assert members_of(unrefitted).trials == (made[0].number,)


def test_what_was_made_is_not_made_again_and_what_is_no_longer_wanted_goes(unrefitted):
    files = unrefitted.files
    refit(files, unrefitted)
    names = refits_in(files)
    before = {name: (files / WEIGHTS / name).stat().st_mtime_ns for name in names}
    (files / WEIGHTS / "refit-99.safetensors").write_bytes(b"of a model that is another now")
    (files / WEIGHTS / names[0]).unlink()
    refit(files, unrefitted)
    assert refits_in(files) == names
    after = {name: (files / WEIGHTS / name).stat().st_mtime_ns for name in names}
    assert [name for name in names if after[name] != before[name]] == names[:1]


class Interrupting(SerialExecutor):
    """Interrupted when the second job is waited for."""

    waits = 0

    def wait(self, timeout=None):
        self.waits += 1
        if self.waits == 2:
            raise Interrupted
        return super().wait(timeout)


def test_an_interrupted_one_leaves_what_is_whole_and_the_next_run_goes_on(unrefitted):
    files = unrefitted.files
    with pytest.raises(Interrupted):
        refit(files, unrefitted, executor=Interrupting())
    done = refits_in(files)
    wanted = {*members_of(unrefitted).trials, unrefitted.history.best.number}
    assert 1 <= len(done) < len(wanted)
    assert unrefitted.model().predict(X[:3]).shape == (3,)  # the others answer with the weights of the search
    refit(files, unrefitted)
    assert len(refits_in(files)) == len(wanted)


def test_the_same_call_again_changes_nothing_and_a_larger_budget_chooses_again(tmp_path):
    def searched(**options):
        return nasbot.search(X, Y, name=tmp_path / "s.sqlite", **OPTIONS | options)

    with searched() as first:
        model, record = weights_of(first.model().network), (first.files / RECORD).read_text()
    with searched() as again:
        assert same(model, weights_of(again.model().network))
        assert (again.files / RECORD).read_text() == record
    with searched(budget=5) as longer:
        settled = json.loads((longer.files / RECORD).read_text())
        assert settled["completed"] == 5
        assert {*refitted_trials(longer)} >= {*members_of(longer).trials}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"trials": [0]}',
        '{"trials": [0], "weights": [1.0], "loss": 1, "completed": 2}',  # the search has gone on since
        '{"trials": [7], "weights": [1.0], "loss": 1, "completed": 3}',
        '{"trials": [0, 1], "weights": [1.0], "loss": 1, "completed": 3}',
        '{"trials": [0, 1], "weights": [0.9, 0.9], "loss": 1, "completed": 3}',
        '{"trials": [0, 1], "weights": [2.0, -1.0], "loss": 1, "completed": 3}',
        '{"trials": ["../x"], "weights": [1.0], "loss": 1, "completed": 3}',
    ],
)
def test_a_record_that_cannot_be_meant_is_not_believed(unrefitted, text):
    expected = members_of(unrefitted)
    (unrefitted.files / RECORD).write_text(text)
    assert members_of(unrefitted) == expected


def test_a_study_that_was_asked_to_stop_is_not_refitted(tmp_path, monkeypatch):
    monkeypatch.setattr(Study, "was_stopped", property(lambda self: True))
    with nasbot.search(X, Y, name=tmp_path / "s.sqlite", **OPTIONS) as study:
        assert refitted_trials(study) == ()
