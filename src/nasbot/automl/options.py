"""What callers of a search give, as objects or by name: made into objects, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbot._typing import Json
from nasbot.architecture import Architecture, SearchSpace, Vocabulary
from nasbot.automl.baselines import check_fits, own_pool, paper_pool, plain_pool, with_plain_first
from nasbot.automl.executors import parsed_bytes
from nasbot.automl.limits import ModelLimits, measured, parsed_latency, shallow
from nasbot.automl.plan import fitting_baseline, space_for
from nasbot.automl.tuning import ATTRIBUTES, params_of
from nasbot.candidate import Candidate
from nasbot.domain import Domain
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.searchers.base import Searcher
    from nasbot.training.recipes import Recipe

SEARCHERS = ("nasbot", "random", "evolution", "treebo")
POOLS = ("default", "paper")
COST_WEIGHT = 0.2  # of the logarithm of a network's FLOPs against log expected improvement


def dataset_asked(X: Any, y: Any, options: dict[str, Any], *, beside: Iterable[str] = ()) -> Dataset:
    """The data of a search, or what it is made from; ``beside`` are the search's own options, for hints."""
    from nasbot.data.dataset import Dataset, dataset_of, read_dataset

    if isinstance(X, Dataset):
        if y is not None or set(options) > {"seed"}:
            raise OptionError("a Dataset is prepared already; expected no target and no options for data beside it")
        return X
    if isinstance(X, str | Path):
        known = {*signature(read_dataset).parameters, *signature(dataset_of).parameters}
    else:
        known = {*signature(dataset_of).parameters}
    if unknown := [name for name in options if name not in known]:
        near = get_close_matches(unknown[0], sorted({*beside, *known}), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise OptionError(f"search: unknown option {unknown[0]!r}{hint}")
    return read_dataset(X, y, **options) if isinstance(X, str | Path) else dataset_of(X, y, **options)


def space_asked(given: SearchSpace | Vocabulary | None, data: Dataset, recipe: Recipe) -> SearchSpace:
    """The space itself, or networks that are worth training on these data; of a vocabulary where one is given."""
    space = given
    if not isinstance(space, SearchSpace):
        batch = recipe.settings(data.input_shape).batch_size_for(len(data.train))
        sizes = {"n_rows": len(data.train), "batch_size": batch}
        space = space_for(data.kind, data.input_shape, data.n_outputs, vocabulary=space, **sizes)
    check_fits(space.vocabulary, data)
    return space


def check_searcher(given: Searcher | str, space: object, tune: object, data: Dataset, recipe: Recipe) -> None:
    """Raise where an object that is given is no searcher, or searches what these data or the recipe cannot take."""
    if isinstance(given, str):
        return
    if not (hasattr(given, "domain") and hasattr(given, "propose")):
        names = ", ".join(SEARCHERS)
        raise OptionError(
            f"searcher: expected an object such as NASBOT(space=...), or one of {names}, got {given!r:.60}"
        )
    networks, params = given.domain.networks, given.domain.params
    check_fits(networks.vocabulary, data)
    if isinstance(space, SearchSpace) and space != networks:
        raise OptionError("space: the searcher that is given has its own, and this is another; leave one out")
    if tune not in (None, "none", "auto") and not (isinstance(tune, Mapping) and dict(tune) == dict(params)):
        raise OptionError("tune: the searcher that is given has its own params; say there what is searched")
    if params:
        params_of(params, data, recipe, 0.0)


def limits_asked(
    max_parameters: int | None,
    max_layers: int | None,
    max_size: int | str | None,
    max_latency: float | str | None,
    begun_with: Mapping[str, Json] | None,
    data: Dataset,
) -> ModelLimits:
    """What is asked for with what was measured for it: of a study that goes on, when it began."""
    asked = ModelLimits(
        max_parameters,
        max_layers,
        parsed_bytes(max_size, "max_size") if isinstance(max_size, str) else max_size,
        None if max_latency is None else parsed_latency(max_latency),
    )
    if not asked:
        return asked
    stored = ModelLimits.of((begun_with or {}).get("limits"))
    return stored if stored.asked() == asked else measured(asked, data, fitting_baseline(data.kind, len(data.train)))


def check_numbers(seconds: float | None, max_failures: int | None) -> None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise OptionError(f"seconds_per_trial: expected a number above 0, got {seconds}")
    if max_failures is not None and max_failures < 1:
        raise OptionError(f"max_failures: expected at least 1, or None (0 on the command line), got {max_failures}")


def searcher_asked(
    given: Searcher | str,
    domain: Domain,
    pool: str | Sequence[Candidate | Architecture],
    first: Sequence[Architecture],
    n_rows: int,
    stored: Mapping[str, Json] | None,
    attributes: Sequence[str] = (),
) -> Searcher:
    """The searcher itself, or that of this name; of a study that goes on, with the options that it was begun with."""
    from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
    from nasbot.study.rebuilding import as_begun

    if not isinstance(given, str):
        own = (("attributes", attributes), ("pool", pool if pool != "default" else ()), ("start_from", first))
        if both := [name for name, value in own if len(value)]:
            raise OptionError(f"{both[0]}: a searcher that is given has its own; expected one or the other")
        if domain.fidelity not in (None, given.domain.fidelity):
            raise OptionError(
                "fidelity: the searcher that is given has its own, and this is another; expected one or the other"
            )
        return given
    made: Mapping[str, Any] = dict(zip(SEARCHERS, (NASBOT, RandomSearch, EvolutionSearch, TreeBO), strict=True))
    if given not in made:
        raise OptionError(f"searcher: expected one of {', '.join(SEARCHERS)}, got {str(given)[:40]!r}")
    begin = _pool(pool, domain, first, n_rows)
    begin = with_plain_first(begin) if isinstance(pool, str) else begin
    if given == "treebo":
        if attributes:
            raise OptionError("attributes: treebo does not change options of layers; expected nasbot or another")
        from nasbot.searchers.tree_kernel import is_chain

        begin = tuple(candidate for candidate in begin if is_chain(candidate.arch))
    options: dict[str, Any] = {"cost_weight": COST_WEIGHT} if given == "nasbot" else {}
    found: Searcher = made[given](
        space=domain.networks, params=domain.params, fidelity=domain.fidelity, pool=begin, **options
    )
    if attributes:
        changed = (ATTRIBUTES[name] for name in attributes)
        found = replace(found, modifiers=(*found.modifiers, *changed))  # type: ignore[type-var, attr-defined]
    return found if stored is None else as_begun(found, stored)


def _pool(
    given: str | Sequence[Candidate | Architecture], domain: Domain, first: Sequence[Architecture], n_rows: int
) -> tuple[Candidate, ...]:
    if not isinstance(given, str):
        return tuple(map(domain.candidate, (*first, *given)))
    if ":" in given:
        return own_pool(given, domain, first=first)
    if given not in POOLS:
        raise OptionError(f"pool: expected {' or '.join(POOLS)}, or a list of networks, got {given[:40]!r}")
    if isinstance(domain.networks.kind, Vocabulary):
        raise OptionError(
            f"pool: there are no {given} networks of the vocabulary {domain.networks.vocabulary.name!r}; "
            "expected a list of some, pool=[...], or where it is: --pool MODULE:NAME"
        )
    if given == "paper":
        return paper_pool(domain, first=first)
    try:
        return plain_pool(domain, n_rows=n_rows, first=first)
    except OptionError:  # limits that leave room for little
        found = tuple(map(domain.candidate, (*first, *shallow(domain.networks))))
        if not found:
            raise
        return found
