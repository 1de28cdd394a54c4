"""NASBOT, Section 4 of the paper: a belief on OTMANN distances, an acquisition, and evolution to maximise it.

This is where distances, belief and evolution meet; it reads like the section:

    distances between all networks known            otmann
    posterior over hyper-parameters, and values     gp
    pending networks are hallucinated               gp
    acquisition over networks made by evolution     acquisition, evolution
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from heapq import nsmallest
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition import (
    Acquisition,
    Feasibility,
    Found,
    LogEI,
    Maximum,
    Outlook,
    Settings,
    Thompson,
    Utility,
    acquisition_of,
    by_evolution,
    by_evolution_and_climbing,
    log_averaged,
    log_expected_improvement,
    thompson_choices,
    uniform,
)
from nasbot.architecture import Architecture, Vocabulary
from nasbot.architecture.features import FeatureMap
from nasbot.architecture.resources import resources
from nasbot.candidate import Candidate, Params
from nasbot.domain import PROMOTION
from nasbot.errors import OptionError
from nasbot.evolution import CNN_MODIFIERS, MLP_MODIFIERS, evaluation_schedule, one_step_edits
from nasbot.evolution.modifiers import AnyModifier
from nasbot.gp import Belief, BeliefOptions, Prediction, Rows, fit_belief
from nasbot.gp.mixture import mixture_moments
from nasbot.otmann import NetworkDistance, Otmann
from nasbot.otmann.learned import LearnedDistance
from nasbot.otmann.presets import search_rules
from nasbot.searchers.base import Proposal
from nasbot.searchers.boca import informative_share, shares_of, unfinished
from nasbot.searchers.choosing import Choice, chosen, due
from nasbot.searchers.effect import Effect, Effects, Near
from nasbot.searchers.memory import (
    Blocks,
    CrossMemory,
    DistanceMemory,
    FeatureMemory,
    NeighbourMemory,
    feature_differences,
)
from nasbot.searchers.pool import RETUNE, PoolSearcher, best_networks, member, shown
from nasbot.searchers.promotion import promotable, remaining_cost
from nasbot.searchers.threads import on_one_blas_thread
from nasbot.trial import EXTERNAL_CAUSES, Failed, Forecast, History, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

Floats = NDArray[np.float64]

LEARNED = "learned"  # short for the tables of ``LearnedDistance.of``
N_INCUMBENTS = 10  # best evaluated networks from which the default maximiser also starts
# With more evaluated networks than this, candidates are compared by a belief that knows so many of them, half the best
# and half a fair sample of the rest, and only the best candidates by the whole belief: distances are most of deciding.
N_LANDMARKS = 32
N_PROMOTABLE = 20  # candidates of lower rungs that are compared with the best new one
N_NEAREST = 5  # evaluated networks shown beside a prediction
# With more evaluated networks than ``BeliefOptions.local_above``:
N_PER_FIT = 64  # evaluations after which hyper-parameters are found again
N_REMEMBERED = 500  # of them are known to the belief,
N_BEST = 64  # these the best, and a fair sample of the others;
N_CLOSER = 32  # nearest ones are known beside these to judge a candidate in the end,
N_FINALISTS = 8  # if it is one of so many.
# For many workers at once:
N_PENDING = 256  # pending networks, the latest, that the belief is told of
N_PER_ROUND = 25  # of the networks wanted, for which the acquisition is maximised once under a Thompson draw
N_COMPARED = 4  # times as many as wanted are compared in the end


class Maximiser(StrEnum):
    """How the acquisition is maximised."""

    CLIMBING = "climbing"  # evolution from pool and incumbents, then hill climbing
    PAPER = "paper"  # evolution from the pool, n_EA ~ sqrt(t) evaluations


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


def default_modifiers(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The paper's nine and doubling and halving of units; for CNNs also with the release's preferences for branches.

    docs/deviations.md has the measurements.
    """
    return CNN_MODIFIERS if vocabulary.shrinks_images else MLP_MODIFIERS


@dataclass(frozen=True, kw_only=True)
class NASBOT(PoolSearcher):
    """Bayesian optimisation over networks. ``propose`` is a pure function of history and generator.

    Args:
        space: which networks are searched, and their limits.
        pool: candidates to begin with; the paper's ten if not given.
        modifiers: names of the changes that evolution makes; those that suit the vocabulary if not given.
        params: searched together with the network: ``{"learning_rate": Float(1e-4, 1e-1, log=True)}``.
        fidelity: shares of a full training that may be asked for: ``Fidelity()``, "steps", "rows" or "boca"; None: full
            trainings only.
        distance: between networks; OTMANN with the rules that suit the vocabulary if not given; ``"learned"``: one of
            several tables of it, chosen by the values seen.
        belief: how the Gaussian process is fitted.
        acquisition: an object such as ``UCB()``, or its name: log-ei, ei, ucb, thompson, uniform.
        maximiser: how the acquisition is maximised: climbing, or paper (evolution alone).
        kernel_terms: terms of the kernel: both, d, d_bar, each of these with ``+features``, or features alone.
        cost_weight: how much log cost counts against log utility; above 0 the space needs its ``input_shape``.
        prior: values of params around which good ones are expected, their defaults if not given; None: anywhere.
        name: shown with its trials.

    Raises:
        OptionError: an option is not one of these.
        OutsideSpaceError, VocabularyError: a network of the pool is not in the space.
    """

    modifiers: tuple[str | AnyModifier, ...] = None  # type: ignore[assignment]  # ``default_modifiers`` unless some are given
    distance: NetworkDistance = None  # type: ignore[assignment]  # OTMANN with ``search_rules`` unless one is given
    belief: BeliefOptions = field(default_factory=BeliefOptions)
    acquisition: Acquisition = field(default_factory=LogEI)  # or its name: "log-ei", "ei", "ucb", "thompson", "uniform"
    maximiser: Maximiser = Maximiser.CLIMBING
    # The best of both, both+features and this on f1, f2 and f3 (seeds 8000 to 8005) and on cells (3000 to 3019). d adds
    # hyper-parameters, and little that features of size do not say: docs/results/surrogates.md.
    kernel_terms: KernelTerms = KernelTerms.NORMALISED_AND_FEATURES
    # Good params are expected around their defaults, or where these values say otherwise; None: anywhere.
    prior: Params | None = field(default_factory=dict)
    # Utility per cost: so many times the logarithm of a network's FLOPs is taken off log utilities. No clock is asked.
    cost_weight: float = 0.0
    name: str = "NASBOT"
    has_belief: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.modifiers is None:
            object.__setattr__(self, "modifiers", default_modifiers(self.space.vocabulary))
        super().__post_init__()
        given: object = self.distance
        if isinstance(given, str):
            if given != LEARNED:
                raise OptionError(f"distance: expected an object such as Otmann(), or {LEARNED!r}, got {given!r}")
            object.__setattr__(self, "distance", LearnedDistance.of(self.space.vocabulary))
        if self.distance is None:
            object.__setattr__(self, "distance", Otmann(preset=search_rules(self.space.vocabulary)))
        object.__setattr__(self, "acquisition", acquisition_of(self.acquisition))
        for option, kind in (("maximiser", Maximiser), ("kernel_terms", KernelTerms)):
            object.__setattr__(self, option, member(kind, getattr(self, option), option))
        if self.cost_weight and self.space.input_shape is None:
            raise OptionError("cost_weight: the cost of a network needs the space's input_shape")
        if self.prior is not None:
            object.__setattr__(self, "prior", self.domain.checked_centre(self.prior))

    @cached_property
    def _memory(self) -> DistanceMemory:
        return DistanceMemory(self.distance)

    @cached_property
    def _features(self) -> FeatureMemory:
        space = self.space
        return FeatureMemory(FeatureMap(space.vocabulary, space.input_shape, space.n_outputs))

    @cached_property
    def _last_fit(self) -> dict[tuple[bytes, bytes], Belief]:
        return {}

    @cached_property
    def _neighbours(self) -> NeighbourMemory:
        return NeighbourMemory(self.distance)

    @cached_property
    def _choices(self) -> dict[tuple[bytes, bytes], Choice]:
        return {}

    @cached_property
    def _settled(self) -> dict[int, NASBOT]:
        return {}

    def _under_chosen(self, history: History) -> tuple[NASBOT, Choice | None]:
        """The same searcher by the table that its learned distance comes to after this history."""
        learned = self.distance
        if not isinstance(learned, LearnedDistance):
            return self, None
        known = history.evaluated
        n = due(len(known.candidates))
        some, values = known.candidates[:n], known.values[:n]
        key = (b"".join(bytes.fromhex(candidate.fingerprint) for candidate in some), values.tobytes())
        if n and key not in self._choices:
            fidelities = None if self.fidelity is None else np.minimum(known.fidelities[:n], 1.0)
            self._choices[key] = chosen(
                learned, some, values, self._rows_under, options=self.belief, fidelities=fidelities
            )
        choice = self._choices[key] if n else Choice(0, 0, ())
        if choice.number not in self._settled:
            self._settled[choice.number] = replace(self, distance=learned.tables[choice.number])
        return self._settled[choice.number], choice

    def _rows_under(self, table: Otmann, candidates: Sequence[Candidate]) -> Rows:
        return replace(self, distance=table)._rows_among(candidates)

    @on_one_blas_thread
    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The network of highest utility among those evolution and climbing find."""
        settled, choice = self._under_chosen(history)
        if choice is not None and isinstance(self.distance, LearnedDistance):
            proposal = settled.propose(history, rng=rng)
            return replace(proposal, notes={**proposal.notes, "distance": choice.to_dict(self.distance.names)})
        if (promoted := self.promoted(history)) is not None:  # successive halving has the first word
            return promoted
        for_belief, for_utility, for_evolution = rng.spawn(3)
        clock = _Stopwatch()
        view = self._view(history, for_belief, clock)
        with clock("maximising"):
            maximum = self._maximise(history, view, for_utility, for_evolution, clock)
        found = maximum.best
        promoted, share = self._share_and_promotion(history, view, found)
        if promoted is not None:
            return promoted
        candidate = self.any_new(history, rng=for_evolution) if found is None else Candidate(found.arch, found.params)
        forecast = Forecast(
            utility=None if found is None else found.utility,
            n_utilities=maximum.n_evaluations,
            utility_by_phase=dict(maximum.by_phase),
            **self._predicted(view, history, candidate),
        )
        origin = self.lineage(history, candidate, found, clock.seconds)
        return Proposal(candidate, share, origin=origin, forecast=forecast)

    @on_one_blas_thread
    def propose_many(self, history: History, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        """Networks for n workers at once: each the best of a common list under a Thompson draw of its own.

        The list is what evolution and climbing find under other Thompson draws. None where nothing is believed yet,
        and with fidelities, where whom to promote depends on each network asked for before.
        """
        for_belief, for_draws, *rounds = rng.spawn(2 + math.ceil(n / N_PER_ROUND))
        clock = _Stopwatch()
        view = None if self.fidelity is not None else self._view(history, for_belief, clock)
        if view is None or self.maximiser is Maximiser.PAPER:
            return []
        drawing = replace(self, acquisition=Thompson())
        listed: dict[str, Found] = {}
        n_looked_at, n_first = 0, math.ceil(N_COMPARED * n / len(rounds))
        with clock("maximising"):
            for one in rounds:
                for_utility, for_evolution = one.spawn(2)
                maximum = drawing._maximise(history, view, for_utility, for_evolution, clock, n_first)
                n_looked_at += maximum.n_evaluations
                for found in maximum.first:
                    listed.setdefault(Candidate(found.arch, found.params).fingerprint, found)
        if not listed:
            return []
        every = list(listed.values())
        asked = [Candidate(found.arch, found.params) for found in every]
        if view.is_local:
            best = sorted(every, key=lambda found: -found.utility)[:N_PER_ROUND]
            view = self._closer(view, history, [found.arch for found in best])
        rows, among = self._rows_to(view, asked)
        mean, variance, _ = view.predict(rows)
        added = view.log_feasible(rows) - self.cost_weight * self._log_costs([each.arch for each in asked])
        covariance = view.belief.covariance(rows[: view.n_known, :], among)
        chosen = thompson_choices(mean, covariance, added, n, rng=for_draws)
        averages = mixture_moments(mean, variance)
        seconds = {purpose: taken / len(chosen) for purpose, taken in clock.seconds.items()}
        batch = {"batch": {"first": len(history), "size": n}}
        parents = _first_trials(history, [every[i].origin for i in chosen])
        return [
            Proposal(
                asked[i],
                origin=self.lineage(parents, asked[i], every[i], seconds),
                forecast=Forecast(
                    mean=float(averages[0][i]), sd=math.sqrt(averages[1][i]), n_utilities=n_looked_at,
                    feasible=float(np.exp(view.log_feasible(rows[:, np.array([i])])[0])),
                    repairs=str(view.belief.repairs),
                ),
                notes=batch,
            )
            for i in chosen
        ]  # fmt: skip

    def _rows_to(self, view: _View, asked: Sequence[Candidate]) -> tuple[Rows, Rows]:
        """Rows from what is known to candidates, and those among the candidates."""
        archs, params = [candidate.arch for candidate in asked], [candidate.params for candidate in asked]
        packed, features = self.distance.pack(archs), self._features_of(archs)
        between, among = self.distance.cross(view.packed, packed), self.distance.pairwise(packed)
        to_known = feature_differences(view.features, features)
        return (
            self._rows(between.d, between.d_bar, to_known, self.domain.differences(view.params, params)),
            self._rows(
                among.d,
                among.d_bar,
                feature_differences(features, features),
                self.domain.differences(params, params),
            ),
        )

    def _share_and_promotion(
        self, history: History, view: _View | None, found: Found | None
    ) -> tuple[Proposal | None, float]:
        """The known candidate to train longer, None where a new one is due; and the share at which that is."""
        if self.fidelity is None or self.fidelity.rule == PROMOTION or view is None:
            return self._promoted_by_value(history, view, found), self.first_rung
        known = unfinished(history)
        if known:
            places = {history.evaluated.trials[i].number: place for place, i in enumerate(view.numbers)}
            means = view.belief.denoised.mean(axis=0)
            known = [trial for trial in known if trial.number in places]
            known = sorted(known, key=lambda trial: -means[places[trial.number]])[:N_PROMOTABLE]
        new = [] if found is None else [Candidate(found.arch, found.params)]
        compared = [*new, *(trial.candidate for trial in known)]
        if not compared:
            return None, self.first_rung
        promise = [effect.log_ei for effect in self._effects(view, history, [(each, "") for each in compared])]
        best = int(np.argmax(promise))  # of equals the new one
        trial = None if best < len(new) else known[best - len(new)]
        share = self._informative_share(view, history, compared[best], None if trial is None else trial.fidelity)
        return None if trial is None else self.promotion(trial, share), share

    def _informative_share(self, view: _View, history: History, candidate: Candidate, above: float | None) -> float:
        """At which share BOCA evaluates this candidate: higher than where it has been evaluated before."""
        assert self.fidelity is not None
        shares = shares_of(self.fidelity)
        if above is not None:
            shares = shares[shares > above * (1 + 1e-9)]
        belief = view.belief
        if belief.posterior.fidelities is None:  # nothing was seen below 1: the least share says most for its cost
            return float(shares[0])
        rows, _ = self._rows_to(view, [candidate])
        variance = belief.predict(rows[: view.n_known, np.zeros(len(shares), dtype=np.intp)], shares).variance
        return informative_share(
            shares,
            np.sqrt(variance),
            belief.information_gap(shares),
            np.sqrt(belief.posterior.prior_variance),
            n_evaluated=len(history.completed),
            n_params=len(self.params),
        )

    def _promoted_by_value(self, history: History, view: _View | None, found: Found | None) -> Proposal | None:
        """The candidate to train longer, if one promises more for what is left to pay than the best new one does.

        That is expected improvement at full fidelity per cost.
        """
        if self.fidelity is None or view is None or found is None:
            return None
        if not (waiting := promotable(history, self.fidelity)[:N_PROMOTABLE]):
            return None
        compared = [Candidate(found.arch, found.params), *(trial.candidate for trial in waiting)]
        costs = [remaining_cost(self.fidelity, at) for at in (None, *(trial.fidelity for trial in waiting))]
        effects = self._effects(view, history, [(candidate, "") for candidate in compared])
        worth = [effect.log_ei - math.log(cost) for effect, cost in zip(effects, costs, strict=True)]
        best = int(np.argmax(worth))  # of equals the new one
        return self.promotion(waiting[best - 1]) if best else None

    # -- belief ------------------------------------------------------------------------------------------------------

    def _view(self, history: History, rng: np.random.Generator, clock: _Stopwatch) -> _View | None:
        """What is believed after this history; None while nothing has a value."""
        evaluated, values = history.evaluated.candidates, history.evaluated.values
        if not evaluated:
            return None
        pending = tuple(trial.candidate for trial in history.pending[-N_PENDING:])
        faulty = tuple(trial.candidate for trial in history.failed if _is_its_own_fault(trial))
        numbers = np.arange(len(evaluated))
        if is_local := len(evaluated) > self.belief.local_above:
            last_fit = (len(evaluated) - len(evaluated) % N_PER_FIT) or len(evaluated)
            remembered = _remembered(evaluated[:last_fit], values[:last_fit])
            numbers = np.r_[remembered, last_fit : len(evaluated)]
            faulty = tuple(_sample(faulty, math.ceil(len(faulty) * len(numbers) / len(evaluated))))
        known = (*(evaluated[int(i)] for i in numbers), *pending, *faulty)
        n, m = len(numbers), len(numbers) + len(pending)
        with clock("distances"):
            rows = self._rows_among(known)
        with clock("fitting"):
            if is_local:
                belief = self._fitted(rows.among(np.arange(len(remembered))), values[:last_fit], remembered)
                belief = belief.told(values).knowing_only(numbers, rows[:n, :n])
            else:
                fidelities = None if self.fidelity is None else np.minimum(history.evaluated.fidelities, 1.0)
                belief = fit_belief(rows[:n, :n], values, options=self.belief, fidelities=fidelities, rng=rng)
            view = replace(self._asked(belief, np.arange(n), known, n, m, rows), numbers=numbers, is_local=is_local)
            if n > N_LANDMARKS:
                chosen = _landmarks(values[numbers])
                rough = belief.knowing_only(numbers[chosen], rows.among(chosen))
                view = replace(view, rough=self._asked(rough, chosen, known, n, m, rows))
        return view

    def _fitted(self, rows: Rows, values: Floats, chosen: NDArray[np.intp]) -> Belief:
        """The belief of the last time that hyper-parameters were due, remembered: many proposals share it."""
        key = (rows.array.tobytes(), values.tobytes())
        if key not in self._last_fit:
            # A stream of its own: which proposal asks first must make no difference.
            rng = np.random.default_rng(len(values))
            belief = fit_belief(rows, values, options=self.belief, chosen=chosen, rng=rng)
            self._last_fit.clear()
            self._last_fit[key] = belief
        return self._last_fit[key]

    def _closer(self, view: _View, history: History, archs: Sequence[Architecture]) -> _View:
        """The view that also knows the evaluated networks nearest to each of these."""
        evaluated = history.evaluated.candidates
        nearest = self._neighbours.nearest([candidate.arch for candidate in evaluated], archs, N_CLOSER)
        numbers = np.r_[view.numbers, np.setdiff1d(nearest, view.numbers)]
        n, m = len(numbers), len(numbers) + view.n_known - view.n_evaluated
        known = (*(evaluated[int(i)] for i in numbers), *view.known[view.n_evaluated :])
        rows = self._rows_among(known)
        belief = view.belief.knowing_only(numbers, rows[:n, :n])
        return replace(self._asked(belief, np.arange(n), known, n, m, rows), numbers=numbers)

    def _asked(
        self, belief: Belief, chosen: NDArray[np.intp], known: Sequence[Candidate], n: int, m: int, rows: Rows
    ) -> _View:
        """The belief, conditioned on the ``chosen`` of the n evaluated networks, with pending and failed ones told."""
        kept = np.r_[chosen, n : len(known)]
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
        return _View(candidates, n, m, self.distance.pack(archs), self._features_of(archs), belief, feasibility, chosen)

    def _features_of(self, archs: Sequence[Architecture]) -> Blocks:
        """Features of networks, block by block; no blocks where the kernel does not look at them."""
        return self._features.of(archs) if self.kernel_terms.has_features else ()

    def _rows_among(self, known: Sequence[Candidate]) -> Rows:
        params, archs = [candidate.params for candidate in known], [candidate.arch for candidate in known]
        features = self._features_of(archs)
        differences = feature_differences(features, features)
        return self._rows(*self._memory.between(archs), differences, self.domain.differences(params, params))

    def _rows(self, d: Floats, d_bar: Floats, features: Floats, params: Floats) -> Rows:
        """What the kernel sees: what its terms are about, and differences of params where there are any."""
        return Rows.of(
            d if self.kernel_terms.has_distance else None,
            d_bar if self.kernel_terms.has_normalised else None,
            features=features if len(features) else None,
            params=params if len(params) else None,
        )

    # -- choice ------------------------------------------------------------------------------------------------------

    def _maximise(
        self,
        history: History,
        view: _View | None,
        for_utility: np.random.Generator,
        for_evolution: np.random.Generator,
        clock: _Stopwatch,
        n_first: int = 0,
    ) -> Maximum:
        for_chance, for_settings = for_utility.spawn(2)
        chance = for_chance.random()
        centre = None if self.prior is None else self.domain.completed(self.prior)
        settings = Settings.of(self.domain, history, self.initial_pool(), for_settings, prior=centre)
        utility = self._utility_under(view, chance, for_utility, clock)
        if view and view.is_local and not n_first:
            utility = self._closer_utility(utility, view, history, chance, for_utility, clock)
        operator = self.operator()
        n_evaluations = evaluation_schedule(self.step(history))
        if self.maximiser is Maximiser.PAPER:
            return by_evolution(
                utility,
                operator,
                self.pool_networks,
                settings=settings,
                n_evaluations=n_evaluations,
                rng=for_evolution,
            )
        rough = self._utility_under(view.rough, chance, for_utility, clock) if view and view.rough else None
        return by_evolution_and_climbing(
            rough or utility,
            operator,
            self.pool_networks,
            incumbents=best_networks(history, N_INCUMBENTS),
            exact_utility=utility,
            is_rough=rough is not None,
            settings=settings,
            n_evaluations=n_evaluations,
            n_first=n_first,
            rng=for_evolution,
        )

    def _utility_under(self, view: _View | None, chance: float, rng: np.random.Generator, clock: _Stopwatch) -> Utility:
        """Acquisition values; uniform random before the first observation."""
        memory = None if view is None else CrossMemory(self.distance, view.packed)

        def utility(archs: Sequence[Architecture], settings: Sequence[Params]) -> Floats:
            if view is None or memory is None:
                return uniform(np.zeros(len(settings) * len(archs)), rng=rng).reshape(len(settings), len(archs))
            with clock("distances"):  # paid once for a network, however many settings it is looked at with
                asked = self._features_of(archs)
                rows = self._rows(*memory.to(archs), feature_differences(view.features, asked), np.empty(0))
                if self.params:
                    rows = rows.with_settings(self.domain.differences(view.params, settings))
            values = self.acquisition(self._outlook(view, rows, archs, asked, settings, chance), rng=rng)
            if view.feasibility is not None:
                values = self.acquisition.weighed(values, view.log_feasible(rows))
            return values.reshape(len(settings), len(archs)) - self.cost_weight * self._log_costs(archs)

        return utility

    def _log_costs(self, archs: Sequence[Architecture]) -> Floats:
        """log FLOPs; zeros where costs do not count."""
        shape = self.space.input_shape
        if not self.cost_weight or shape is None:
            return np.zeros(len(archs))
        return np.log([max(1.0, resources(arch, shape, self.space.n_outputs).flops) for arch in archs])

    def _closer_utility(
        self,
        utility: Utility,
        view: _View,
        history: History,
        chance: float,
        rng: np.random.Generator,
        clock: _Stopwatch,
    ) -> Utility:
        """The utility of the best few under ``utility``, knowing the networks near them; of the others -inf."""

        def closer_utility(archs: Sequence[Architecture], settings: Sequence[Params]) -> Floats:
            first = utility(archs, settings)
            best = np.argsort(-first.max(axis=0), kind="stable")[:N_FINALISTS]
            finalists = [archs[i] for i in best]
            with clock("distances"):
                closer = self._closer(view, history, finalists)
            values = np.full_like(first, -np.inf)
            values[:, best] = self._utility_under(closer, chance, rng, clock)(finalists, settings)
            return values

        return closer_utility

    def _outlook(
        self,
        view: _View,
        rows: Rows,
        archs: Sequence[Architecture],
        features: Blocks,
        settings: Sequence[Params],
        chance: float,
    ) -> Outlook:
        """What is believed of networks with these rows to the known ones; ``chance`` chooses a sample."""

        def covariance() -> Floats:
            among = self.distance.pairwise(self.distance.pack(archs))
            n, times = among.d.shape[1], len(settings)
            params = self.domain.differences(settings, settings).repeat(n, axis=1).repeat(n, axis=2)
            compared = (among.d, among.d_bar, feature_differences(features, features))
            d, d_bar, differences = (np.tile(x, (1, times, times)) if len(x) else x for x in compared)
            return view.belief.covariance(rows[: view.n_known, :], self._rows(d, d_bar, differences, params))

        mean, variance, _ = view.predict(rows)
        sample = int(chance * len(mean))
        return Outlook(mean, np.sqrt(variance), view.belief.best_value, view.n_evaluated, sample, covariance)

    # -- what is believed --------------------------------------------------------------------------------------------

    def explain(self, history: History, trial: Trial, *, rng: np.random.Generator) -> Effect:
        """What is believed of the trial's network, given the history it was proposed from."""
        if not history.completed:
            raise OptionError(
                f"explain: trial {trial.number} was chosen before any network was evaluated, as the pool is; "
                "nothing was believed of it"
            )
        return self.believed(history, [(trial.candidate, "")], rng=rng)[0]

    def what_if(self, history: History, *, rng: np.random.Generator) -> Effects:
        """The predicted effect of every legal one-step edit of the best network so far, the most promising first."""
        settled, choice = self._under_chosen(history)
        if choice is not None:
            return settled.what_if(history, rng=rng)
        best = history.best
        if best is None:
            raise OptionError("what_if: expected at least one evaluated network to start from, got none yet")
        params = best.candidate.params
        edits = one_step_edits(best.arch, self.space, modifiers=self.modifiers)
        changes = [(Candidate(e.arch, params), f"{e.modifier}: {e.description}") for e in edits]
        for name, changed in self.domain.neighbours(params):
            changes.append((Candidate(best.arch, changed), f"{RETUNE}: {name} {shown(changed[name])}"))
        effects = self.believed(history, changes, rng=rng)
        return Effects(sorted(effects, key=lambda effect: -history.direction.turned(effect.median)))

    @on_one_blas_thread
    def recommend(self, history: History, *, rng: np.random.Generator) -> Trial | None:
        """The completed trial whose network has the highest mean, averaged over hyper-parameters."""
        settled, choice = self._under_chosen(history)
        if choice is not None:
            return settled.recommend(history, rng=rng)
        for_belief, _, _ = rng.spawn(3)
        view = self._view(history, for_belief, _Stopwatch())
        if view is None:
            return None
        ordered = view.numbers[np.argsort(-view.belief.denoised.mean(axis=0), kind="stable")]
        trials = (history.evaluated.trials[i] for i in ordered)
        return next((trial for trial in trials if trial.value is not None), None)

    @on_one_blas_thread
    def believed(
        self, history: History, candidates: Sequence[tuple[Candidate, str]], *, rng: np.random.Generator
    ) -> Effects:
        """What is believed of any candidates after this history."""
        settled, choice = self._under_chosen(history)
        if choice is not None:
            return settled.believed(history, candidates, rng=rng)
        for_belief, _, _ = rng.spawn(3)
        view = self._view(history, for_belief, _Stopwatch())
        if view is None:
            raise OptionError("believed: expected a history with at least one evaluated network, got none")
        return Effects(self._effects(view, history, candidates)) if candidates else Effects()

    def _effects(self, view: _View, history: History, asked: Sequence[tuple[Candidate, str]]) -> Iterator[Effect]:
        if view.is_local:
            for first in range(0, len(asked), N_FINALISTS):
                some = asked[first : first + N_FINALISTS]
                yield from self._effects(self._closer(view, history, [c.arch for c, _ in some]), history, some)
            return
        archs = [candidate.arch for candidate, _ in asked]
        between = self.distance.cross(view.packed, self.distance.pack(archs))
        features = feature_differences(view.features, self._features_of(archs))
        params = [candidate.params for candidate, _ in asked]
        rows = self._rows(between.d, between.d_bar, features, self.domain.differences(view.params, params))
        prediction = view.predict(rows)
        # What an evaluation would give has its noise, which the improvement looked for does not have.
        noise = view.belief.posterior.noise_variance[:, None]
        observed = prediction._replace(variance=prediction.variance + noise)
        mean, variance = mixture_moments(prediction.mean, prediction.variance)
        _, observed_variance = mixture_moments(observed.mean, observed.variance)
        log_ei = log_averaged(
            log_expected_improvement(prediction.mean, np.sqrt(prediction.variance), view.belief.best_value)
        )
        feasible = np.exp(view.log_feasible(rows))
        sign = history.direction.turned(1.0)
        lower, median, upper = (sign * end for end in view.belief.interval(observed))
        lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        middle = between.d.shape[0] // 2
        numbers = [history.evaluated.trials[i].number for i in view.numbers]
        for i, (candidate, change) in enumerate(asked):
            order = np.argsort(between.d_bar[middle, : view.n_evaluated, i], kind="stable")[:N_NEAREST]
            nearest = tuple(
                Near(numbers[j], float(between.d[middle, j, i]), float(between.d_bar[middle, j, i])) for j in order
            )
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
                nearest=nearest,
            )

    def _predicted(self, view: _View | None, history: History, candidate: Candidate) -> dict[str, Any]:
        """For the forecast: what ``explain`` will say of this candidate."""
        if view is None:
            return {}
        effect = next(self._effects(view, history, [(candidate, "")]))
        said = ("median", "lower", "upper", "mean", "sd", "observed_sd", "feasible")
        known = {name: getattr(effect, name) for name in said}
        return {**known, "improvement": math.exp(effect.log_ei), "repairs": str(view.belief.repairs)}


@dataclass(frozen=True, eq=False)
class _View:
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
    rough: _View | None = None  # the same on fewer evaluated networks, where there are many: cheaper to ask

    @cached_property
    def params(self) -> list[Params]:
        """Those of the known candidates."""
        return [candidate.params for candidate in self.known]

    def predict(self, rows: Rows) -> Prediction:
        """What is believed of networks with these rows to ``known``."""
        return self.belief.predict(rows[: self.n_known, :])

    def log_feasible(self, rows: Rows) -> Floats:
        """log P(feasible) of networks with these rows to ``known``; 0 as long as none has failed."""
        if self.feasibility is None:
            return np.zeros(rows.m)
        decided = np.r_[0 : self.n_evaluated, self.n_known : len(self.known)]
        return self.feasibility.log_probability(self.belief.correlation(rows[decided, :]))


class _Stopwatch:
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


def _first_trials(history: History, networks: Sequence[Architecture]) -> list[Trial]:
    """The trials of any of these networks, in their order: all that ``lineage`` has to look at."""
    wanted = list(dict.fromkeys(networks))
    return [trial for trial in history if trial.arch in wanted]  # a list: hashing costs more than comparing with few


def _is_its_own_fault(trial: Trial) -> bool:
    return isinstance(trial.outcome, Failed) and trial.outcome.cause not in EXTERNAL_CAUSES


def _remembered(evaluated: Sequence[Candidate], values: Floats) -> NDArray[np.intp]:
    """Numbers of the N_BEST best and of a fair sample of all, N_REMEMBERED together; few change as networks come."""
    best = np.argsort(-values, kind="stable")[:N_BEST]
    rest = np.setdiff1d(np.arange(len(values)), best)
    sample = nsmallest(N_REMEMBERED - N_BEST, rest, key=lambda i: evaluated[i].fingerprint)
    return np.sort(np.array([*best, *sample], dtype=np.intp))


def _sample(candidates: Sequence[Candidate], n: int) -> list[Candidate]:
    """A fair sample: fingerprints are as good as random."""
    return nsmallest(n, candidates, key=lambda candidate: candidate.fingerprint)


def _landmarks(values: Floats) -> NDArray[np.intp]:
    """Half of N_LANDMARKS the best, the other half evenly spread over the ranks of all others."""
    order = np.argsort(-values, kind="stable")
    rest = np.linspace(N_LANDMARKS // 2, len(order) - 1, N_LANDMARKS - N_LANDMARKS // 2).astype(np.intp)
    return np.sort(order[np.r_[0 : N_LANDMARKS // 2, rest]])
