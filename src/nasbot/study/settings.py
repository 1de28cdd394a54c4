"""What a study's proposals depend on, as plain data: stored when it begins, compared when it is resumed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.architecture.own_vocabulary import import_path_of
from nasbot.architecture.space import SearchSpace
from nasbot.candidate import Candidate
from nasbot.domain import PROMOTION, Domain, Fidelity, params_to_dict
from nasbot.errors import OptionError, StudyError, VocabularyError
from nasbot.pacing import NoPacer, Pacer
from nasbot.storage import Storage
from nasbot.trial import Direction

if TYPE_CHECKING:  # at run time it would bring all searchers, and scipy, to whoever asks for a direction
    from nasbot.searchers.base import Searcher

VOCABULARY = "vocabulary"  # the import path of one's own, to be told to people: never imported because it stands here
SHOWN_DIFFERENCES = 10
DIGEST_CHARACTERS = 16  # of pool networks and vocabularies: 64 bits tell a handful apart


def study_settings(
    searcher: Searcher,
    *,
    seed: int,
    direction: Direction,
    pool: Sequence[Candidate],
    context: Mapping[str, Json],
    pacer: Pacer | None = None,
) -> dict[str, Json]:
    """Everything that decides what a study proposes; ``context`` is whatever else must not change (data, recipe).

    The pacer only where it stops anything, so that studies without one stay as they are.
    """
    paced = {} if pacer is None or pacer.name == NoPacer.name else {"pacer": {"name": pacer.name, **pacer.settings()}}
    networks = searcher.domain.networks
    path = import_path_of(networks.vocabulary) if isinstance(networks.kind, Vocabulary) else None
    return plain_json(
        {
            **({} if path is None else {VOCABULARY: path}),
            "seed": seed,
            "direction": str(direction),
            **domain_settings(searcher.domain),
            "searcher": {"name": searcher.name, **searcher.settings()},
            "pool": [candidate.fingerprint[:DIGEST_CHARACTERS] for candidate in pool],
            "context": dict(context),
            **paced,
        }
    )


def domain_settings(domain: Domain) -> dict[str, Json]:
    """What is searched; params and fidelity only where there are any, so that studies of networks alone stay as is."""
    settings: dict[str, Json] = {"space": space_settings(domain.networks)}
    if domain.params:
        settings["params"] = params_to_dict(domain.params)
    if domain.fidelity is not None:
        described = dataclasses.asdict(domain.fidelity)
        if domain.fidelity.rule == PROMOTION:  # as if there were no such option: studies from before it go on
            del described["rule"]
        settings["fidelity"] = described
    return settings


def fidelity_of_settings(settings: Mapping[str, Json]) -> Fidelity | None:
    """The fidelity of a study with these settings; StudyError where it is not as nasbot writes it."""
    given = settings.get("fidelity")
    if given is None:
        return None
    try:
        return Fidelity(**given)  # type: ignore[arg-type]  # whatever it is, it is told
    except (TypeError, OptionError) as error:
        raise StudyError(f"fidelity of the stored settings: {str(error)[:200]}") from None


def space_settings(space: SearchSpace) -> dict[str, Json]:
    """The limits of a space by their names (infinite ones as null); a vocabulary of one's own by a digest of it."""
    limits = {entry.name: getattr(space, entry.name) for entry in dataclasses.fields(space)}
    if isinstance(space.kind, Vocabulary):
        features = ([_name(feature) for feature in space.kind.features],) if space.kind.features else ()
        rules = [_name(rule) for rule in space.kind.rules]
        content = repr((space.kind.labels, space.kind.penalties.rows, rules, *features))
        digest = hashlib.sha256(content.encode()).hexdigest()[:DIGEST_CHARACTERS]
        limits["kind"] = {"name": space.kind.name, "labels": list(space.kind.by_name), "digest": digest}
    return plain_json(limits)


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", ""))


POOLS = ("pool:", "searcher.pool:")  # as fingerprints


def check_same(stored: Mapping[str, Json], given: Mapping[str, Json]) -> None:
    """StudyError with every difference, if there is one."""
    differences = list(_differences(_without_path(stored), _without_path(given), ""))
    if not differences:
        return
    if any(line.startswith("params") for line in differences):  # the pool has them too, which says nothing to people
        differences = [line for line in differences if not line.startswith(POOLS)]
    shown = "\n".join(f"  {line}" for line in differences[:SHOWN_DIFFERENCES])
    more = len(differences) - SHOWN_DIFFERENCES
    shown += f"\n  and {more} more" if more > 0 else ""
    raise StudyError(
        f"the study was begun with other settings:\n{shown}\nresume it with its own, or fork it: a new study that "
        "begins with its completed trials (fork=NAME, --fork NAME)"
    )


def _without_path(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Where a vocabulary is imported from may change; what it says, by its digest, may not."""
    return {name: value for name, value in settings.items() if name != VOCABULARY}


def how_to_name(settings: Mapping[str, Json]) -> str:
    """What to do about a study whose vocabulary is somebody's own."""
    path = settings.get(VOCABULARY)
    shown = str(path)[:100] if isinstance(path, str) else "MODULE:NAME"
    kept = "" if path is None else " (as it was named when the study began)"
    return (
        f"its networks are of a vocabulary of somebody's own, which is not imported unless you say so: "
        f"--vocabulary {shown}, in Python nasbot.use_vocabulary({shown!r}){kept}"
    )


@contextmanager
def naming_vocabulary(storage: Storage) -> Iterator[None]:
    """Where networks turn out to be of an unknown vocabulary, say how the study's own was named."""
    try:
        yield
    except VocabularyError as error:
        settings = storage.settings() or {}
        space = settings.get("space")
        if not isinstance(space, Mapping) or not isinstance(space.get("kind"), Mapping):
            raise
        raise VocabularyError(f"{str(error).partition(';')[0]}; {how_to_name(settings)}") from None


def _differences(stored: Json, given: Json, name: str) -> Iterator[str]:
    if isinstance(stored, Mapping) and isinstance(given, Mapping):
        for key in sorted({*stored, *given}):
            inner = f"{name}.{key}" if name else key
            if key not in stored or key not in given:
                there, here = ("nothing", given[key]) if key not in stored else (stored[key], "nothing")
                yield f"{inner}: stored {_shown(there)}, given {_shown(here)}"
            else:
                yield from _differences(stored[key], given[key], inner)
    elif stored != given:
        yield f"{name}: stored {_shown(stored)}, given {_shown(given)}"


def _shown(value: Json) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
