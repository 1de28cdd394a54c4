"""How much a study may spend in all: trials, seconds, or whichever ends first."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from nasbot.errors import OptionError

_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day"}
_TRIALS = ("trial", "trials")
UNITS: dict[str, float] = {
    **_SECONDS,
    **{f"{unit}s": seconds for unit, seconds in _SECONDS.items()},
    **{short: _SECONDS[unit] for short, unit in _SHORT.items()},
    "secs": 1.0,
    "mins": 60.0,
    "hrs": 3600.0,
}
_TERM = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>[a-z]*)")
WHOLE_FROM = 10.0  # seconds that are shown without a fraction
_EXAMPLES = 'expected for example "10m", "2h", "1h30m", "90 seconds" or "50 trials"'


@dataclass(frozen=True)
class Budget:
    """The whole of what a study may spend, over all its runs: trials begun, seconds of driving, or both."""

    trials: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.trials is None and self.seconds is None:
            raise OptionError(f"budget: nothing is said; {_EXAMPLES}")
        if self.trials is not None and (type(self.trials) is not int or self.trials < 1):
            raise OptionError(f"budget: expected at least 1 trial, as a whole number, got {self.trials!r}")
        if self.seconds is not None and (isinstance(self.seconds, bool) or not 0 < self.seconds < math.inf):
            raise OptionError(f"budget: expected a time longer than 0 seconds, got {self.seconds!r}")

    @classmethod
    def of(cls, given: Budget | int | str) -> Budget:
        """A budget as it is, a whole number of trials, or words: "50 trials", "10m", "1h30m"."""
        if isinstance(given, Budget):
            return given
        if isinstance(given, int) and not isinstance(given, bool):
            return cls(trials=given)
        if isinstance(given, str):
            return _parsed(given)
        raise OptionError(f"budget: {_EXAMPLES}, got {given!r}")

    def is_spent(self, *, trials: int, seconds: float) -> bool:
        """Whether nothing may be begun any more after this many trials and seconds."""
        return (self.trials is not None and trials >= self.trials) or (
            self.seconds is not None and seconds >= self.seconds
        )

    def doubled(self) -> str:
        """Twice as much, as people type it: "20m", "100 trials"; of a budget of both, the time."""
        if self.seconds is None:
            return f"{2 * (self.trials or 1)} trials"
        rest, parts = max(1, round(2 * self.seconds)), ""
        for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
            parts += f"{rest // size}{unit}" * (rest >= size)
            rest %= size
        return parts

    def __str__(self) -> str:
        trials = "" if self.trials is None else f"{self.trials} trial{'s' * (self.trials != 1)}"
        seconds = "" if self.seconds is None else _in_words(self.seconds)
        return " or ".join(part for part in (trials, seconds) if part)


def parse_seconds(text: str) -> float:
    """A duration in words ("90s", "1h30m") as seconds."""
    budget = _parsed(text)
    if budget.seconds is None:
        raise OptionError(f'duration: expected for example "90s", "10m" or "1h30m", got {_shown(text)}')
    return budget.seconds


def _parsed(text: str) -> Budget:
    words = text.strip().lower()
    terms = list(_TERM.finditer(words))
    if not terms or _TERM.sub("", words).strip():
        raise OptionError(f"budget: {_EXAMPLES}, got {_shown(text)}")
    units = [term["unit"] for term in terms]
    for unit in units:
        _check_unit(unit, text)
    if any(unit in _TRIALS for unit in units):
        if len(terms) > 1 or not terms[0]["number"].isdigit():
            raise OptionError(f"budget: expected a whole number of trials and nothing else, got {_shown(text)}")
        return Budget(trials=int(terms[0]["number"]))
    return Budget(seconds=sum(float(term["number"]) * UNITS[term["unit"]] for term in terms))


def _check_unit(unit: str, text: str) -> None:
    if not unit:
        raise OptionError(f"budget: {_shown(text)} has a number without a unit; {_EXAMPLES}")
    if unit not in UNITS and unit not in _TRIALS:
        near = difflib.get_close_matches(unit, (*UNITS, *_TRIALS), n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"budget: unknown unit {_shown(unit)} in {_shown(text)}{hint or '; ' + _EXAMPLES}")


def _in_words(seconds: float) -> str:
    for unit in ("day", "hour", "minute"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            n = int(seconds // _SECONDS[unit])
            return f"{n} {unit}{'s' * (n != 1)}"
    shown = round(seconds) if seconds >= WHOLE_FROM else float(f"{seconds:.2g}")
    return f"{shown:g} second{'s' * (shown != 1)}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
