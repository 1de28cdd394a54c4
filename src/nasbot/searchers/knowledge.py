"""What NASBOT knows of networks: distances and features between them, the belief fitted to their values, and asking it.

A ``View`` is one fitted belief with all that is needed to ask it. Where thousands are evaluated it knows some hundreds
of them, and those near a candidate are told to it when that candidate is judged (``Knowledge.closer``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from heapq import nsmallest
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition import Feasibility, log_averaged, log_expected_improvement
from nasbot.architecture import Architecture
from nasbot.architecture.features import FeatureMap
from nasbot.candidate import Candidate, Params
from nasbot.domain import Domain
from nasbot.gp import Belief, BeliefOptions, Prediction, Rows, fit_belief
from nasbot.gp.calibration import MOST_FORECASTS, widening
from nasbot.gp.fidelity import levelled
from nasbot.gp.mixture import mixture_moments
from nasbot.otmann import NetworkDistance
from nasbot.searchers.effect import Effect, nearest
from nasbot.searchers.memory import Blocks, DistanceMemory, FeatureMemory, NeighbourMemory, feature_differences
from nasbot.trial import EXTERNAL_CAUSES, Failed, History, Trial

Floats = NDArray[np.float64]

# With more evaluated networks than this, candidates are compared by a belief that knows so many of them, half the best
# and half a fair sample of the rest, and only the best candidates by the whole belief: distances are most of deciding.
N_LANDMARKS = 32
# With more evaluated networks than ``BeliefOptions.local_above``:
N_PER_FIT = 64  # evaluations after which hyper-parameters are found again
N_REMEMBERED = 500  # of them are known to the belief,
N_BEST = 64  # these the best, and a fair sample of the others;
N_CLOSER = 32  # nearest ones are known beside these to judge a candidate in the end,
N_FINALISTS = 8  # if it is one of so many.
N_PENDING = 256  # pending networks, the latest, that the belief is told of


class KernelTerms(StrEnum):
    """Which terms the kernel has: those of eq. (7), of which the paper's ablation leaves one out, and of features."""

    BOTH = "both"
    DISTANCE = "d"
    NORMALISED = "d_bar"
    BOTH_AND_FEATURES = "both+features"
    DISTANCE_AND_FEATURES = "d+features"
    NORMALISED_AND_FEATURES = "d_bar+features"
    FEATURES = "features"

    @property
    def has_features(self) -> bool:
        """Whether networks are compared by their features, too."""
        return self.endswith("features")

    @property
    def has_distance(self) -> bool:
        """Whether there is a term of d."""
        return self.removesuffix("+features") in ("both", "d")

    @property
    def has_normalised(self) -> bool:
        """Whether there is a term of d_bar."""
        return self.removesuffix("+features") in ("both", "d_bar")


class Stopwatch:
    """Seconds by purpose, for people to read; time inside an inner purpose counts there and not in the outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {"distances": 0.0, "fitting": 0.0, "maximising": 0.0}
        self._inner = [0.0]

    @contextmanager
    def __call__(self, purpose: str) -> Iterator[None]:
        start = perf_counter()
        self._inner.append(0.0)
        yield
        taken = perf_counter() - start
        self.seconds[purpose] += taken - self._inner.pop()
        self._inner[-1] += taken


@dataclass(frozen=True, eq=False)
class View:
    """One fitted belief and what is needed to ask it: evaluated candidates first, then pending, then faulty ones."""

    known: tuple[Candidate, ...]
    n_evaluated: int
    n_known: int  # evaluated and pending
    packed: object
    features: Blocks
    belief: Belief
    feasibility: Feasibility | None
    numbers: NDArray[np.intp]  # of those evaluated, in the order of their recording
    is_local: bool = False  # whether there are more, of which the nearest to a candidate are to be known, too
    rough: View | None = None  # the same on fewer evaluated networks, where there are many: cheaper to ask

    @cached_property
    def params(self) -> list[Params]:
        """Those of the known candidates."""
        return [candidate.params for candidate in self.known]

    @property
    def incumbent(self) -> float | Floats:
        """What an improvement must exceed; where params are searched with the noise taken out, (samples, 1).

        With params there are many bad values, above which ranks spread the few good ones: the highest of them is luck
        that no candidate near it is believed to repeat, and what is unknown and bad has the higher expected
        improvement. docs/results/fcnet-joint.md has what it is worth.
        """
        return self.belief.best_mean if self.known[0].params else self.belief.best_value

    def predict(self, rows: Rows) -> Prediction:
        """What is believed of networks with these rows to ``known``."""
        return self.belief.predict(rows[: self.n_known, :])

    def log_feasible(self, rows: Rows) -> Floats:
        """log P(feasible) of networks with these rows to ``known``; 0 as long as none has failed."""
        if self.feasibility is None:
            return np.zeros(rows.m)
        decided = np.r_[0 : self.n_evaluated, self.n_known : len(self.known)]
        return self.feasibility.log_probability(self.belief.correlation(rows[decided, :]))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Remembers what depends on networks alone, and fits beliefs; what it answers depends on history and rng."""

    domain: Domain
    distance: NetworkDistance
    terms: KernelTerms
    options: BeliefOptions

    @cached_property
    def _memory(self) -> DistanceMemory:
        terms = self.terms
        return DistanceMemory(self.distance, keeps_d=terms.has_distance, keeps_d_bar=terms.has_normalised)

    @cached_property
    def _features(self) -> FeatureMemory:
        space = self.domain.networks
        return FeatureMemory(FeatureMap(space.vocabulary, space.input_shape, space.n_outputs))

    @cached_property
    def _last_fit(self) -> dict[tuple[bytes, bytes], Belief]:
        return {}

    @cached_property
    def _neighbours(self) -> NeighbourMemory:
        return NeighbourMemory(self.distance)

    def view(self, history: History, rng: np.random.Generator, clock: Stopwatch) -> View | None:
        """What is believed after this history; None while nothing has a value."""
        _, evaluated, values, shares = history.evaluated
        if not evaluated:
            return None
        fidelities = None if self.domain.fidelity is None else np.minimum(shares, 1.0)
        if fidelities is None and shares.max() > 1.0:  # the study went on with more time, and longer trainings
            values = levelled(values, shares, _numbered(evaluated))
        pending = tuple(trial.candidate for trial in history.pending[-N_PENDING:])
        faulty = tuple(trial.candidate for trial in history.failed if _is_its_own_fault(trial))
        numbers = np.arange(len(evaluated))
        if is_local := len(evaluated) > self.options.local_above:
            last_fit = (len(evaluated) - len(evaluated) % N_PER_FIT) or len(evaluated)
            if fidelities is not None:
                values = levelled(values, fidelities, _numbered(evaluated))
            remembered = _remembered(evaluated[:last_fit], values[:last_fit])
            numbers = np.r_[remembered, last_fit : len(evaluated)]
            faulty = tuple(_sample(faulty, math.ceil(len(faulty) * len(numbers) / len(evaluated))))
        known = (*(evaluated[int(i)] for i in numbers), *pending, *faulty)
        n, m = len(numbers), len(numbers) + len(pending)
        with clock("distances"):
            rows = self.rows_among(known)
        with clock("fitting"):
            if is_local:
                first = None if fidelities is None else fidelities[:last_fit]
                belief = self._fitted(rows.among(np.arange(len(remembered))), values[:last_fit], first, remembered)
                belief = belief.told(values, fidelities).knowing_only(numbers, rows[:n, :n])
            else:
                belief = fit_belief(rows[:n, :n], values, options=self.options, fidelities=fidelities, rng=rng)
            view = replace(self.asked(belief, np.arange(n), known, n, m, rows), numbers=numbers, is_local=is_local)
            if n > N_LANDMARKS:
                chosen = _landmarks(values[numbers])
                rough = belief.knowing_only(numbers[chosen], rows.among(chosen))
                view = replace(view, rough=self.asked(rough, chosen, known, n, m, rows))
        return view

    def _fitted(self, rows: Rows, values: Floats, fidelities: Floats | None, chosen: NDArray[np.intp]) -> Belief:
        """The belief of the last time that hyper-parameters were due, remembered: many proposals share it."""
        key = (rows.array.tobytes(), values.tobytes() if fidelities is None else np.r_[values, fidelities].tobytes())
        if key not in self._last_fit:
            # A stream of its own: which proposal asks first must make no difference.
            rng = np.random.default_rng(len(values))
            belief = fit_belief(rows, values, options=self.options, fidelities=fidelities, chosen=chosen, rng=rng)
            self._last_fit.clear()
            self._last_fit[key] = belief
        return self._last_fit[key]

    def closer(self, view: View, history: History, archs: Sequence[Architecture]) -> View:
        """The view that also knows the evaluated networks nearest to each of these."""
        evaluated = history.evaluated.candidates
        nearest = self._neighbours.nearest([candidate.arch for candidate in evaluated], archs, N_CLOSER)
        numbers = np.r_[view.numbers, np.setdiff1d(nearest, view.numbers)]
        n, m = len(numbers), len(numbers) + view.n_known - view.n_evaluated
        known = (*(evaluated[int(i)] for i in numbers), *view.known[view.n_evaluated :])
        rows = self.rows_among(known)
        belief = view.belief.knowing_only(numbers, rows[:n, :n])
        return replace(self.asked(belief, np.arange(n), known, n, m, rows), numbers=numbers)

    def asked(
        self, belief: Belief, chosen: NDArray[np.intp], known: Sequence[Candidate], n: int, m: int, rows: Rows
    ) -> View:
        """The belief, conditioned on the ``chosen`` of the n evaluated networks, with pending and failed ones told."""
        kept = np.r_[chosen, n : len(known)]
        if len(kept) < rows.n:  # else they are all of them, in their order
            rows = rows.among(kept)
        n, m = len(chosen), m - n + len(chosen)
        if m > n:
            belief = belief.hallucinate(rows[:n, n:m], rows[n:m, n:m])
        feasibility = None
        if len(kept) > m:
            decided = np.r_[0:n, m : len(kept)]
            feasibility = Feasibility.of(belief.correlation(rows.among(decided)), decided < n)
        candidates = tuple(known[i] for i in kept)
        archs = [candidate.arch for candidate in candidates]
        return View(candidates, n, m, self.distance.pack(archs), self.features_of(archs), belief, feasibility, chosen)

    def effects(self, view: View, history: History, asked: Sequence[tuple[Candidate, str]]) -> Iterator[Effect]:
        """What is believed of candidates, each with the change that makes it."""
        if view.is_local:
            for first in range(0, len(asked), N_FINALISTS):
                some = asked[first : first + N_FINALISTS]
                yield from self.effects(self.closer(view, history, [c.arch for c, _ in some]), history, some)
            return
        archs = [candidate.arch for candidate, _ in asked]
        between = self.distance.cross(view.packed, self.distance.pack(archs))
        features = feature_differences(view.features, self.features_of(archs))
        params = [candidate.params for candidate, _ in asked]
        rows = self.rows(between.d, between.d_bar, features, self.domain.differences(view.params, params))
        prediction = view.predict(rows)
        # What an evaluation would give has its noise, which the improvement looked for does not have.
        noise = view.belief.posterior.noise_variance[:, None]
        observed = prediction._replace(variance=prediction.variance + noise)
        mean, variance = mixture_moments(prediction.mean, prediction.variance)
        _, observed_variance = mixture_moments(observed.mean, observed.variance)
        log_ei = log_averaged(log_expected_improvement(prediction.mean, np.sqrt(prediction.variance), view.incumbent))
        feasible = np.exp(view.log_feasible(rows))
        sign = history.direction.turned(1.0)
        widened = widening(history.foreseen(most=MOST_FORECASTS))
        lower, median, upper = (sign * end for end in view.belief.interval(observed, widening=widened))
        lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        numbers = [history.evaluated.trials[i].number for i in view.numbers]
        for i, (candidate, change) in enumerate(asked):
            yield Effect(
                candidate,
                change,
                median=float(median[i]),
                lower=float(lower[i]),
                upper=float(upper[i]),
                mean=float(mean[i]),
                sd=math.sqrt(variance[i]),
                observed_sd=math.sqrt(observed_variance[i]),
                log_ei=float(log_ei[i]),
                feasible=float(feasible[i]),
                nearest=nearest(numbers, *(x[:, : view.n_evaluated, i] for x in (between.d, between.d_bar))),
            )

    def features_of(self, archs: Sequence[Architecture]) -> Blocks:
        """Features of networks, block by block; no blocks where the kernel does not look at them."""
        return self._features.of(archs) if self.terms.has_features else ()

    def rows_among(self, known: Sequence[Candidate]) -> Rows:
        params, archs = [candidate.params for candidate in known], [candidate.arch for candidate in known]
        features = self.features_of(archs)
        differences = feature_differences(features, features)
        return self.rows(*self._memory.between(archs), differences, self.domain.differences(params, params))

    def rows(self, d: Floats, d_bar: Floats, features: Floats, params: Floats) -> Rows:
        """What the kernel sees: what its terms are about, and differences of params where there are any."""
        return Rows.of(
            d if self.terms.has_distance else None,
            d_bar if self.terms.has_normalised else None,
            features=features if len(features) else None,
            params=params if len(params) else None,
        )

    def rows_to(self, view: View, asked: Sequence[Candidate]) -> tuple[Rows, Rows]:
        """Rows from what is known to candidates, and those among the candidates."""
        archs, params = [candidate.arch for candidate in asked], [candidate.params for candidate in asked]
        packed, features = self.distance.pack(archs), self.features_of(archs)
        between, among = self.distance.cross(view.packed, packed), self.distance.pairwise(packed)
        to_known = feature_differences(view.features, features)
        return (
            self.rows(between.d, between.d_bar, to_known, self.domain.differences(view.params, params)),
            self.rows(
                among.d,
                among.d_bar,
                feature_differences(features, features),
                self.domain.differences(params, params),
            ),
        )


def _is_its_own_fault(trial: Trial) -> bool:
    return isinstance(trial.outcome, Failed) and trial.outcome.cause not in EXTERNAL_CAUSES


def _remembered(evaluated: Sequence[Candidate], values: Floats) -> NDArray[np.intp]:
    """Numbers of the N_BEST best and of a fair sample of all, N_REMEMBERED together; few change as networks come."""
    best = np.argsort(-values, kind="stable")[:N_BEST]
    rest = np.setdiff1d(np.arange(len(values)), best)
    sample = nsmallest(N_REMEMBERED - N_BEST, rest, key=lambda i: evaluated[i].fingerprint)
    return np.sort(np.array([*best, *sample], dtype=np.intp))


def _numbered(candidates: Sequence[Candidate]) -> NDArray[np.intp]:
    """One number for all trials of a candidate."""
    numbers: dict[Candidate, int] = {}
    return np.array([numbers.setdefault(candidate, len(numbers)) for candidate in candidates], dtype=np.intp)


def _sample(candidates: Sequence[Candidate], n: int) -> list[Candidate]:
    """A fair sample: fingerprints are as good as random."""
    return nsmallest(n, candidates, key=lambda candidate: candidate.fingerprint)


def _landmarks(values: Floats) -> NDArray[np.intp]:
    """Half of N_LANDMARKS the best, the other half evenly spread over the ranks of all others."""
    order = np.argsort(-values, kind="stable")
    rest = np.linspace(N_LANDMARKS // 2, len(order) - 1, N_LANDMARKS - N_LANDMARKS // 2).astype(np.intp)
    return np.sort(order[np.r_[0 : N_LANDMARKS // 2, rest]])
