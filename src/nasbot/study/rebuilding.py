"""A searcher made again from the settings that a study stores: plain data in, strictly checked, and no code run.

Whatever is read is built by the ordinary constructors, and must then describe itself as it was described: so an entry
that is missing, of another type, unknown or out of range is noticed, whichever it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from nasbot import _json
from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.architecture import Vocabulary, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.architecture.vocabularies import BUILT_IN, OWN
from nasbot.candidate import Candidate
from nasbot.domain import Domain, Fidelity, params_from_dict
from nasbot.errors import NasbotError, StudyError
from nasbot.gp import BeliefOptions, Prior
from nasbot.otmann import Otmann
from nasbot.otmann.learned import LearnedDistance
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, Searcher, TreeBO
from nasbot.study.settings import domain_settings, how_to_name, space_settings
from nasbot.trial import History

SEARCHERS = {kind.__name__: kind for kind in (NASBOT, RandomSearch, EvolutionSearch, TreeBO)}


def searcher_of_study(settings: Mapping[str, Json], history: History) -> Searcher:
    """The searcher of the study with these settings; its pool is looked up among the candidates of the study."""
    domain = domain_from_settings(settings)
    pools = initial_pool(domain.networks.kind) if domain.networks.kind in BUILT_IN else ()
    known = (*map(domain.candidate, pools), *(trial.candidate for trial in history))
    return searcher_from_settings(_mapping(settings, "searcher"), domain, known)


def as_begun(searcher: Searcher, stored: Mapping[str, Json]) -> Searcher:
    """The searcher that a study with these settings was begun with, where it differs in options but not in kind.

    For whoever asked for a searcher by its kind alone: the defaults may be others by now. Where there is more to it
    (other pool, other space) it is ``searcher`` itself, and the study says what differs.
    """
    described = stored.get("searcher")
    if not isinstance(described, Mapping) or described.get("type") != type(searcher).__name__:
        return searcher
    try:
        return searcher_from_settings(described, searcher.domain, searcher.initial_pool())
    except StudyError:
        return searcher


def searcher_from_settings(settings: Mapping[str, Json], domain: Domain, candidates: Sequence[Candidate]) -> Searcher:
    """The built-in searcher that describes itself so; ``candidates`` are those in which its pool is found."""
    options: dict[str, Any] = dict(settings)
    kind = SEARCHERS.get(str(options.pop("type", None)))
    if kind is None:
        raise _refusal(f"it is not one of {', '.join(SEARCHERS)}; open the study in Python, with its searcher")
    known = {candidate.fingerprint: candidate for candidate in candidates}
    try:
        options["pool"] = tuple(known[str(entry)] for entry in _json.items(options.get("pool"), "pool"))
        if "modifiers" in options:
            options["modifiers"] = tuple(str(name) for name in _json.items(options["modifiers"], "modifiers"))
        if "belief" in options:
            options["belief"] = _belief(_json.mapping(options["belief"], "belief"))
        if "distance" in options:
            options["distance"] = _distance(_json.mapping(options["distance"], "distance"), domain)
        rebuilt = kind(space=domain.networks, params=domain.params, fidelity=domain.fidelity, **_typed(kind, options))
    except KeyError as missing:
        raise _refusal(f"pool network {str(missing)[:20]} is not in the study") from None
    except (NasbotError, TypeError) as error:
        raise _refusal(str(error)[:300]) from None
    _check_same(rebuilt.settings(), settings, "searcher")
    return rebuilt


def domain_from_settings(settings: Mapping[str, Json]) -> Domain:
    """What is searched under these settings of a study."""
    described = _mapping(settings, "space")
    if isinstance(described.get("kind"), Mapping) and _own_kind(described) is None:
        raise _refusal(how_to_name(settings))
    space = space_from_settings(described)
    try:
        params = params_from_dict(settings.get("params", {}))
        given = settings.get("fidelity")
        fidelity = None if given is None else Fidelity(**_typed(Fidelity, _json.mapping(given, "fidelity")))
        domain = Domain(space, params, fidelity)
    except (NasbotError, TypeError) as error:
        raise _refusal(str(error)[:300]) from None
    rebuilt = domain_settings(domain)
    _check_same(rebuilt, {name: settings.get(name) for name in rebuilt}, "domain")
    return domain


def space_from_settings(settings: Mapping[str, Json]) -> SearchSpace:
    """The space with these limits."""
    limits: dict[str, Any] = dict(settings)
    if not isinstance(settings.get("kind"), str):
        limits["kind"] = _own_kind(settings)
        if limits["kind"] is None:
            raise _refusal("its vocabulary is neither built in nor in use (nasbot.use_vocabulary)")
    for entry in dataclasses.fields(SearchSpace):
        # An infinite limit is stored as null, and so is one that is not there.
        if entry.name in limits and limits[entry.name] is None and entry.default is not None:
            limits[entry.name] = math.inf
    if isinstance(limits.get("input_shape"), list):
        limits["input_shape"] = tuple(limits["input_shape"])
    try:
        space = SearchSpace(**_typed(SearchSpace, limits))
    except (NasbotError, TypeError, ValueError) as error:
        raise _refusal(f"space: {str(error)[:300]}") from None
    _check_same(space_settings(space), settings, "space")
    return space


def _own_kind(settings: Mapping[str, Json]) -> Vocabulary | None:
    """The vocabulary in use that has the name stored; whether it is the same one, its digest says."""
    kind = settings.get("kind")
    return OWN.get(str(kind.get("name"))) if isinstance(kind, Mapping) else None


def _belief(settings: Mapping[str, object]) -> BeliefOptions:
    options = dict(settings)
    prior = Prior(**_typed(Prior, _json.mapping(options.pop("prior", None), "belief.prior")))
    return BeliefOptions(prior=prior, **_typed(BeliefOptions, options))


def _distance(settings: Mapping[str, object], domain: Domain) -> Otmann | LearnedDistance:
    if settings.get("type") == "LearnedDistance":
        expected, *_ = [*_json.items(settings.get("tables"), "tables"), ""]
        return LearnedDistance.of(domain.networks.vocabulary, str(expected))
    if settings.get("type") != "Otmann" or "preset" not in settings:
        raise _refusal("its distance is not a preset of OTMANN; open the study in Python, with its searcher")
    weights = _json.numbers(settings.get("structural_weights"), "structural_weights")
    return Otmann(preset=str(settings["preset"]), structural_weights=weights)


def _check_same(rebuilt: Mapping[str, Json], stored: Mapping[str, Json], what: str) -> None:
    if plain_json(rebuilt) != plain_json(stored):
        raise _refusal(f"{what}: what is stored does not describe one")


def _typed(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for the constructor of a dataclass: names that it has, and values of the types of its defaults."""
    defaults = {entry.name: entry.default for entry in dataclasses.fields(kind)}
    for name, value in options.items():
        if name not in defaults:
            raise _refusal(f"{name[:40]}: {kind.__name__} has no such option")
        default = defaults[name]
        if isinstance(default, str | int | float) and not _has_type_of(default, value):
            raise _refusal(f"{name}: expected a {_base(default).__name__}, got {str(value)[:40]!r}")
    return dict(options)


def _has_type_of(default: str | float, value: object) -> bool:
    """Whether the value may stand in for the default; whole numbers are numbers, true and false are not."""
    base = _base(default)
    return type(value) is base or (base is float and type(value) is int)


def _base(default: str | float) -> type:
    return next(base for base in (str, bool, int, float) if isinstance(default, base))


def _mapping(settings: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = settings.get(name)
    if not isinstance(found, Mapping):
        raise _refusal(f"{name}: expected an object, got {type(found).__name__}")
    return found


def _refusal(reason: str) -> StudyError:
    return StudyError(f"the searcher of this study cannot be made again from its settings: {reason}")
