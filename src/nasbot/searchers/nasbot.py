"""NASBOT, Section 4 of the paper: a belief on OTMANN distances, an acquisition, and evolution to maximise it.

This is where distances, belief and evolution meet; it reads like the section:

    distances between all networks known            otmann
    posterior over hyper-parameters, and values     gp
    pending networks are hallucinated               gp
    acquisition over networks made by evolution     acquisition, evolution
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition import (
    Acquisition,
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
    improving_choices,
    uniform,
)
from nasbot.architecture import Architecture, Vocabulary
from nasbot.architecture.resources import resources
from nasbot.candidate import Candidate, Params
from nasbot.domain import PROMOTION
from nasbot.errors import OptionError
from nasbot.evolution import CNN_MODIFIERS, MLP_MODIFIERS, evaluation_schedule, one_step_edits
from nasbot.evolution.modifiers import AnyModifier
from nasbot.gp import BeliefOptions, Rows
from nasbot.gp.mixture import mixture_moments
from nasbot.otmann import NetworkDistance, Otmann
from nasbot.otmann.learned import LearnedDistance
from nasbot.otmann.presets import search_rules
from nasbot.searchers.base import Proposal
from nasbot.searchers.boca import informative_share, shares_of, unfinished
from nasbot.searchers.choosing import Choice, chosen, due
from nasbot.searchers.effect import Effect, Effects, ParamEffect
from nasbot.searchers.knowledge import N_FINALISTS, KernelTerms, Knowledge, Stopwatch, View
from nasbot.searchers.memory import (
    Blocks,
    CrossMemory,
    feature_differences,
)
from nasbot.searchers.param_effects import changes_of, param_effects_of, slices
from nasbot.searchers.pool import RETUNE, PoolSearcher, best_networks, member
from nasbot.searchers.promotion import promotable, remaining_cost
from nasbot.searchers.threads import on_one_blas_thread
from nasbot.trial import Forecast, History, Trial

Floats = NDArray[np.float64]
LogCosts = Callable[[Sequence[Architecture]], Floats]

LEARNED = "learned"  # short for the tables of ``LearnedDistance.of``
N_INCUMBENTS = 10  # best evaluated networks from which the default maximiser also starts
N_PROMOTABLE = 20  # candidates of lower rungs that are compared with the best new one
# For many workers at once:
N_PER_ROUND = 25  # of the networks wanted, for which the acquisition is maximised once under a Thompson draw
N_COMPARED = 4  # times as many as wanted are compared in the end


class Maximiser(StrEnum):
    """How the acquisition is maximised."""

    CLIMBING = "climbing"  # evolution from pool and incumbents, then hill climbing
    PAPER = "paper"  # evolution from the pool, n_EA ~ sqrt(t) evaluations


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
        cost_horizon: full trainings of the pool's mean network, counted in FLOPs, over which ``cost_weight`` falls to
            0; None: it stays.
        prior: values of params around which good ones are expected, their defaults if not given; None: anywhere.
        repeats_best: evaluate one of the best two again, with another seed, where they differ by less than the noise.
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
    # Early on many cheap networks say most, in the end only the best counts (Lee et al. 2020, cost-cooling).
    cost_horizon: float | None = None
    name: str = "NASBOT"
    has_belief: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_space()
        if not isinstance(self.belief, BeliefOptions):
            raise OptionError(f"belief: expected BeliefOptions(...), got {str(self.belief)[:40]!r}")
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
        horizon = self.cost_horizon
        if horizon is not None and not 0 < horizon < math.inf:
            raise OptionError(f"cost_horizon: expected full trainings as a number > 0, or None, got {horizon!r}")
        if self.prior is not None:
            object.__setattr__(self, "prior", self.domain.checked_centre(self.prior))

    @cached_property
    def _knowledge(self) -> Knowledge:
        return Knowledge(self.domain, self.distance, self.kernel_terms, self.belief)

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
        return replace(self, distance=table)._knowledge.rows_among(candidates)

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
        clock = Stopwatch()
        view = self._knowledge.view(history, for_belief, clock)
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
        """Networks for n workers at once, of a common list: one by one that which adds most to their expected gain.

        The list is what evolution and climbing find under a few Thompson draws. None where nothing is believed yet,
        and with fidelities, where whom to promote depends on each network asked for before.
        """
        for_belief, for_draws, *rounds = rng.spawn(2 + math.ceil(n / N_PER_ROUND))
        clock = Stopwatch()
        view = None if self.fidelity is not None else self._knowledge.view(history, for_belief, clock)
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
            view = self._knowledge.closer(view, history, [found.arch for found in best])
        rows, among = self._knowledge.rows_to(view, asked)
        mean, variance, _ = view.predict(rows)
        added = view.log_feasible(rows) - self._log_costs(history)([each.arch for each in asked])
        covariance = view.belief.covariance(rows[: view.n_known, :], among)
        chosen = improving_choices(mean, covariance, added, view.incumbent, n, rng=for_draws)
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

    def _share_and_promotion(
        self, history: History, view: View | None, found: Found | None
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
        effects = self._knowledge.effects(view, history, [(each, "") for each in compared])
        promise = [effect.log_ei for effect in effects]
        best = int(np.argmax(promise))  # of equals the new one
        trial = None if best < len(new) else known[best - len(new)]
        share = self._informative_share(view, history, compared[best], None if trial is None else trial.fidelity)
        return None if trial is None else self.promotion(trial, share), share

    def _informative_share(self, view: View, history: History, candidate: Candidate, above: float | None) -> float:
        """At which share BOCA evaluates this candidate: higher than where it has been evaluated before."""
        assert self.fidelity is not None
        shares = shares_of(self.fidelity)
        if above is not None:
            shares = shares[shares > above * (1 + 1e-9)]
        belief = view.belief
        if belief.posterior.fidelities is None:  # nothing was seen below 1: the least share says most for its cost
            return float(shares[0])
        rows, _ = self._knowledge.rows_to(view, [candidate])
        variance = belief.predict(rows[: view.n_known, np.zeros(len(shares), dtype=np.intp)], shares).variance
        return informative_share(
            shares,
            np.sqrt(variance),
            belief.information_gap(shares),
            np.sqrt(belief.posterior.prior_variance),
            n_evaluated=len(history.completed),
            n_params=len(self.params),
        )

    def _promoted_by_value(self, history: History, view: View | None, found: Found | None) -> Proposal | None:
        """The candidate to train longer, if one promises more for what is left to pay than the best new one does.

        That is expected improvement at full fidelity per cost.
        """
        if self.fidelity is None or view is None or found is None:
            return None
        if not (waiting := promotable(history, self.fidelity)[:N_PROMOTABLE]):
            return None
        compared = [Candidate(found.arch, found.params), *(trial.candidate for trial in waiting)]
        costs = [remaining_cost(self.fidelity, at) for at in (None, *(trial.fidelity for trial in waiting))]
        effects = self._knowledge.effects(view, history, [(candidate, "") for candidate in compared])
        worth = [effect.log_ei - math.log(cost) for effect, cost in zip(effects, costs, strict=True)]
        best = int(np.argmax(worth))  # of equals the new one
        return self.promotion(waiting[best - 1]) if best else None

    # -- choice ------------------------------------------------------------------------------------------------------

    def _maximise(
        self,
        history: History,
        view: View | None,
        for_utility: np.random.Generator,
        for_evolution: np.random.Generator,
        clock: Stopwatch,
        n_first: int = 0,
    ) -> Maximum:
        for_chance, for_settings = for_utility.spawn(2)
        chance = for_chance.random()
        centre = None if self.prior is None else self.domain.completed(self.prior)
        settings = Settings.of(self.domain, history, self.initial_pool(), for_settings, prior=centre)
        log_costs = self._log_costs(history)
        utility = self._utility_under(view, chance, for_utility, clock, log_costs)
        if view and view.is_local and not n_first:
            utility = self._closer_utility(utility, view, history, chance, for_utility, clock, log_costs)
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
        rough = self._utility_under(view.rough, chance, for_utility, clock, log_costs) if view and view.rough else None
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

    def _utility_under(
        self, view: View | None, chance: float, rng: np.random.Generator, clock: Stopwatch, log_costs: LogCosts
    ) -> Utility:
        """Acquisition values; uniform random before the first observation."""
        memory = None if view is None else CrossMemory(self.distance, view.packed)
        known = None if view is None else self.domain.units(view.params)

        def utility(archs: Sequence[Architecture], settings: Sequence[Params]) -> Floats:
            if view is None or memory is None or known is None:
                return uniform(np.zeros(len(settings) * len(archs)), rng=rng).reshape(len(settings), len(archs))
            with clock("distances"):  # paid once for a network, however many settings it is looked at with
                asked = self._knowledge.features_of(archs)
                rows = self._knowledge.rows(*memory.to(archs), feature_differences(view.features, asked), np.empty(0))
                if self.params:
                    rows = rows.with_settings(self.domain.differences(known, settings))
            values = self.acquisition(self._outlook(view, rows, archs, asked, settings, chance), rng=rng)
            if np.shape(values) != (expected := (len(settings) * len(archs),)):
                raise OptionError(
                    f"acquisition: expected of {type(self.acquisition).__name__} a utility for each candidate, shape "
                    f"{expected}, got {np.shape(values)}; averages over samples go over the first axis"
                )
            if view.feasibility is not None:
                values = self.acquisition.weighed(values, view.log_feasible(rows))
            return values.reshape(len(settings), len(archs)) - log_costs(archs)

        return utility

    def _log_costs(self, history: History) -> LogCosts:
        """What is taken off log utilities after this history: log FLOPs by their weight."""
        weight = self.cost_weight_after(history)

        def log_costs(archs: Sequence[Architecture]) -> Floats:
            return weight * np.log([self._flops(arch) for arch in archs]) if weight else np.zeros(len(archs))

        return log_costs

    def cost_weight_after(self, history: History) -> float:
        """``cost_weight``, or what is left of it: it falls with the FLOPs of all that was proposed after the pool."""
        if not self.cost_weight or self.cost_horizon is None:
            return self.cost_weight
        horizon = left = self.cost_horizon * float(np.mean([self._flops(arch) for arch in self.pool_networks]))
        for trial in history[len(self.initial_pool()) :]:
            left -= trial.fidelity * self._flops(trial.arch)
            if left <= 0:
                return 0.0
        return self.cost_weight * left / horizon

    def _flops(self, arch: Architecture) -> float:
        """Of one sample, at least 1."""
        assert self.space.input_shape is not None
        return max(1.0, resources(arch, self.space.input_shape, self.space.n_outputs).flops)

    def _closer_utility(
        self,
        utility: Utility,
        view: View,
        history: History,
        chance: float,
        rng: np.random.Generator,
        clock: Stopwatch,
        log_costs: LogCosts,
    ) -> Utility:
        """The utility of the best few under ``utility``, knowing the networks near them; of the others -inf."""

        def closer_utility(archs: Sequence[Architecture], settings: Sequence[Params]) -> Floats:
            first = utility(archs, settings)
            best = np.argsort(-first.max(axis=0), kind="stable")[:N_FINALISTS]
            finalists = [archs[i] for i in best]
            with clock("distances"):
                closer = self._knowledge.closer(view, history, finalists)
            values = np.full_like(first, -np.inf)
            values[:, best] = self._utility_under(closer, chance, rng, clock, log_costs)(finalists, settings)
            return values

        return closer_utility

    def _outlook(
        self,
        view: View,
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
            return view.belief.covariance(rows[: view.n_known, :], self._knowledge.rows(d, d_bar, differences, params))

        mean, variance, _ = view.predict(rows)
        sample = int(chance * len(mean))
        return Outlook(mean, np.sqrt(variance), view.incumbent, view.n_evaluated, sample, covariance)

    # -- what is believed --------------------------------------------------------------------------------------------

    def explain(self, history: History, trial: Trial, *, rng: np.random.Generator) -> Effect:
        """What is believed of the trial's network, given the history it was proposed from."""
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
        for words, changed in changes_of(self.domain, params):
            changes.append((Candidate(best.arch, changed), f"{RETUNE}: {words}"))
        effects = self.believed(history, changes, rng=rng)
        return Effects(sorted(effects, key=lambda effect: -history.direction.turned(effect.median)))

    @on_one_blas_thread
    def param_effects(self, history: History, *, rng: np.random.Generator) -> tuple[ParamEffect, ...]:
        """How much each param matters, and what its values would give the best candidate; most important first."""
        settled, choice = self._under_chosen(history)
        if choice is not None:
            return settled.param_effects(history, rng=rng)
        best = history.best
        if not self.params:
            raise OptionError("param_effects: this search has no params; it searches networks alone")
        if best is None:
            raise OptionError("param_effects: expected at least one evaluated network to start from, got none yet")
        for_belief, _, _ = rng.spawn(3)
        view = self._knowledge.view(history, for_belief, Stopwatch())
        assert view is not None  # something is evaluated
        asked = slices(self.domain, best.candidate.params)
        candidates = [(Candidate(best.arch, params), "") for _, _, params in asked]
        effects = list(self._knowledge.effects(view, history, candidates))
        decays = np.array([theta.param_decay for theta in view.belief.hyperparameters])
        return param_effects_of(self.domain, best.candidate.params, decays, asked, effects)

    @on_one_blas_thread
    def recommend(self, history: History, *, rng: np.random.Generator) -> Trial | None:
        """The completed trial whose network has the highest mean, averaged over hyper-parameters."""
        settled, choice = self._under_chosen(history)
        if choice is not None:
            return settled.recommend(history, rng=rng)
        for_belief, _, _ = rng.spawn(3)
        view = self._knowledge.view(history, for_belief, Stopwatch())
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
        view = self._knowledge.view(history, for_belief, Stopwatch())
        if view is None:
            raise OptionError("believed: expected a history with at least one evaluated network, got none")
        return Effects(self._knowledge.effects(view, history, candidates)) if candidates else Effects()

    def _predicted(self, view: View | None, history: History, candidate: Candidate) -> dict[str, Any]:
        """For the forecast: what ``explain`` will say of this candidate."""
        if view is None:
            return {}
        effect = next(self._knowledge.effects(view, history, [(candidate, "")]))
        said = ("median", "lower", "upper", "mean", "sd", "observed_sd", "feasible")
        known = {name: getattr(effect, name) for name in said}
        return {**known, "improvement": math.exp(effect.log_ei), "repairs": str(view.belief.repairs)}


def _first_trials(history: History, networks: Sequence[Architecture]) -> list[Trial]:
    """The trials of any of these networks, in their order: all that ``lineage`` has to look at."""
    wanted = list(dict.fromkeys(networks))
    return [trial for trial in history if trial.arch in wanted]  # a list: hashing costs more than comparing with few
