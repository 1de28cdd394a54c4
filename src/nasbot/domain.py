"""The paper's X times what else is searched: networks, hyper-parameters of their training, and the fidelity of it.

    Domain(SearchSpace("mlp-reg"), {"learning_rate": Float(3e-3, 6e-2, log=True, default=2e-2)}, Fidelity())

A param has a unit scale, on which the kernel compares and evolution steps: 0 at the low end, 1 at the high one. Values
are drawn on a grid of it, so that two settings that nobody could tell apart are one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from keyword import iskeyword
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nasbot import _json
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.architecture.space import SearchSpace
from nasbot.candidate import Candidate, Params
from nasbot.errors import CodecError, NasbotError, OptionError

GRID = 0.03  # of the unit scale: settings nearer than that are the same
PRIOR_SPREAD = 0.3  # of good values around the default, on the unit scale
STEP = 0.2  # of the unit scale: the spread of one change of a number
When: TypeAlias = tuple[str, float | int | str]  # active only where the param of this name has this value
SHORTENED = ("steps", "rows")  # what a fidelity may be a share of
PROMOTION, BOCA = RULES = ("promotion", "boca")  # how the share of a candidate is chosen
RESERVED = frozenset({"arch", "trial", "params", "fidelity", "seed", "steps"})


@dataclass(frozen=True)
class Float:
    """A number between ``low`` and ``high``, on a logarithmic scale where ``log``."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    default: float | None = field(default=None, kw_only=True)  # the middle of the scale
    when: When | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, log=self.log)
        if self.default is None:
            object.__setattr__(self, "default", self.at(0.5))
        _check_default(self)

    def check(self, value: object) -> None:
        """OptionError unless the value is one of this param."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise OptionError(f"expected a number from {self.low:g} to {self.high:g}, got {str(value)[:40]!r}")

    def unit(self, value: float | int | str) -> float:
        """Where the value lies on the unit scale."""
        return _unit(float(value), self.low, self.high, log=self.log)

    def at(self, unit: float) -> float:
        """The value at this place of the unit scale, to four digits."""
        value = _between(unit, self.low, self.high, log=self.log)
        return min(max(float(f"{value:.4g}"), self.low), self.high)

    def drawn(self, rng: np.random.Generator) -> float:
        """Uniform on the scale."""
        return self._on_grid(rng.random())

    def changed(self, value: float | int | str, rng: np.random.Generator) -> float:
        """Another value, near this one."""
        for _ in range(20):
            other = self._on_grid(_reflected(self.unit(value) + STEP * rng.standard_normal()))
            if other != value:
                return other
        return self.drawn(rng)

    def neighbours(self, value: float | int | str) -> tuple[float, ...]:
        """Steps up and down from this value, for climbing."""
        at = self.unit(value)
        units = (at - 0.25, at - 0.1, at + 0.1, at + 0.25)
        return tuple(dict.fromkeys(other for u in units if 0 <= u <= 1 and (other := self._on_grid(u)) != value))

    def _on_grid(self, unit: float) -> float:
        assert self.default is not None
        if abs(unit - self.unit(self.default)) <= GRID / 2:
            return self.default
        return self.at(min(1.0, GRID * round(unit / GRID)))


@dataclass(frozen=True)
class Integer:
    """A whole number between ``low`` and ``high``, on a logarithmic scale where ``log``."""

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    default: int | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), int):
                raise OptionError(f"{name}: expected a whole number, got {getattr(self, name)!r}")
        _check_range(self.low, self.high, log=self.log)
        if self.default is None:
            object.__setattr__(self, "default", self.at(0.5))
        _check_default(self)

    def check(self, value: object) -> None:
        """OptionError unless the value is one of this param."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise OptionError(f"expected a whole number from {self.low} to {self.high}, got {str(value)[:40]!r}")

    def unit(self, value: float | int | str) -> float:
        """Where the value lies on the unit scale."""
        return _unit(float(value), self.low, self.high, log=self.log)

    def at(self, unit: float) -> int:
        """The value nearest to this place of the unit scale."""
        return round(_between(unit, self.low, self.high, log=self.log))

    def drawn(self, rng: np.random.Generator) -> int:
        """Uniform on the scale."""
        return self.at(rng.random())

    def changed(self, value: float | int | str, rng: np.random.Generator) -> int:
        """Another value, near this one."""
        for _ in range(20):
            if (other := self.at(_reflected(self.unit(value) + STEP * rng.standard_normal()))) != value:
                return other
        return self.low if value == self.high else self.high

    def neighbours(self, value: float | int | str) -> tuple[int, ...]:
        """Steps up and down from this value, for climbing."""
        near = [int(value) - 1, int(value) + 1, *(self.at(self.unit(value) + step) for step in (-0.25, 0.25))]
        return tuple(dict.fromkeys(other for other in near if self.low <= other <= self.high and other != value))


@dataclass(frozen=True, init=False)
class Choice:
    """One of several values; ``ordered`` where neighbours in the list are alike."""

    values: tuple[float | int | str, ...]
    ordered: bool
    default: float | int | str
    when: When | None

    def __init__(
        self,
        *values: float | int | str,
        ordered: bool = False,
        default: float | int | str | None = None,
        when: When | None = None,
    ) -> None:
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise OptionError(f"choice: expected numbers or texts, got {type(value).__name__}")
        if len(values) < 2 or len(set(values)) != len(values):
            raise OptionError(f"choice: expected at least two different values, got {str(values)[:60]}")
        for name, given in (("values", values), ("ordered", ordered), ("when", when)):
            object.__setattr__(self, name, given)
        object.__setattr__(self, "default", values[0] if default is None else default)
        _check_default(self)

    def check(self, value: object) -> None:
        """OptionError unless the value is one of this param."""
        if value not in self.values:
            raise OptionError(f"expected one of {', '.join(map(str, self.values))}, got {str(value)[:40]!r}")

    def unit(self, value: float | int | str) -> float:
        """The place in the list, from 0 to 1."""
        return self.values.index(value) / (len(self.values) - 1)

    def drawn(self, rng: np.random.Generator) -> float | int | str:
        """Any of the values."""
        return self.values[int(rng.integers(len(self.values)))]

    def changed(self, value: float | int | str, rng: np.random.Generator) -> float | int | str:
        """Another of the values."""
        others = self.neighbours(value)
        return others[int(rng.integers(len(others)))]

    def neighbours(self, value: float | int | str) -> tuple[float | int | str, ...]:
        """All others; the two beside it where the list is ordered."""
        if not self.ordered:
            return tuple(other for other in self.values if other != value)
        at = self.values.index(value)
        return self.values[max(0, at - 1) : at] + self.values[at + 1 : at + 2]


Param: TypeAlias = Float | Integer | Choice


@dataclass(frozen=True)
class Fidelity:
    """Trainings of a share of the full length: rungs ``least``, ``least * factor``, … up to 1.

    ``of`` says what is shortened: the "steps" of a training, or the "rows" that it learns from, for as many epochs.
    ``rule`` says who is trained for how long: "promotion" from rung to rung, or the two steps of "boca", which may ask
    for any share from ``least`` to 1.
    """

    least: float = 1 / 9
    factor: float = 3.0
    of: str = field(default="steps", kw_only=True)
    rule: str = field(default=PROMOTION, kw_only=True)

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise OptionError(f"fidelity: expected rule='promotion' or 'boca', got {self.rule!r}")
        for name, given in (("the least share of a training", self.least), ("a factor between rungs", self.factor)):
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise OptionError(f"fidelity: expected {name} as a number, got {str(given)[:40]!r}")
        if not 0 < self.least < 1:
            raise OptionError(f"fidelity: expected the least share of a training between 0 and 1, got {self.least}")
        if not 1 < self.factor < math.inf:
            raise OptionError(f"fidelity: expected a finite factor above 1 between rungs, got {self.factor}")
        if self.of not in SHORTENED:
            raise OptionError(f"fidelity: expected of='steps' or 'rows', got {self.of!r}")

    @cached_property
    def rungs(self) -> tuple[float, ...]:
        """Shares of a full training, ascending; the last is 1, none but ``least`` nearer to it than half a rung."""
        n = max(1, round(math.log(1 / self.least) / math.log(self.factor)))
        return (*(self.least * self.factor**i for i in range(n)), 1.0)


def share_in_words(fidelity: float) -> str:
    """``1/9 of a training``, ``a full training``, ``3 full trainings``."""
    if fidelity >= 1:
        return "a full training" if fidelity == 1 else f"{fidelity:.3g} full trainings"
    near = Fraction(fidelity).limit_denominator(100)
    is_plain = near.numerator == 1 and math.isclose(near, fidelity, rel_tol=1e-6)
    return f"{near} of a training" if is_plain else f"{fidelity:.0%} of a training"


def fidelity_of(given: Fidelity | str | None) -> Fidelity | None:
    """The fidelity itself, or the one that the text is short for: "steps", "rows", "boca"; None for "none"."""
    if given is None or isinstance(given, Fidelity):
        return given
    if given == "none":
        return None
    if given not in (*SHORTENED, BOCA):
        names = ", ".join(("none", *SHORTENED, BOCA))
        raise OptionError(f"fidelity: expected {names}, or Fidelity(...), got {str(given)[:40]!r}")
    return Fidelity(rule=BOCA) if given == BOCA else Fidelity(of=given)


@dataclass(frozen=True)
class Domain:
    """What is searched: networks, params by name, and the fidelities at which candidates may be evaluated."""

    networks: SearchSpace
    params: Mapping[str, Param] = field(default_factory=dict)
    fidelity: Fidelity | None = None  # or a word for one, as of ``fidelity_of``

    def __post_init__(self) -> None:
        for part, value, kind in (("networks", self.networks, SearchSpace), ("params", self.params, Mapping)):
            if not isinstance(value, kind):
                raise OptionError(f"{part} of a domain: expected a {kind.__name__}, got {type(value).__name__}")
        object.__setattr__(self, "fidelity", fidelity_of(self.fidelity))
        object.__setattr__(self, "params", dict(self.params))
        given: Mapping[object, object] = self.params  # type: ignore[assignment]
        for name, param in given.items():
            if not isinstance(name, str) or not name.isidentifier() or iskeyword(name) or name in RESERVED:
                shown = repr(name[:40] if isinstance(name, str) else name)
                raise OptionError(f"param {shown}: expected a name that Python could have, not a reserved word")
            if not isinstance(param, Float | Integer | Choice):
                raise OptionError(f"param {name}: expected Float, Integer or Choice, got {type(param).__name__}")
        # By name, as candidates have them and studies store them: a searcher made again from its study draws alike.
        object.__setattr__(self, "params", dict(sorted(self.params.items())))
        for name, param in self.params.items():
            if param.when is not None:
                self._check_condition(name, param.when)

    def _check_condition(self, name: str, when: When) -> None:
        """That the condition names another param and one of its values, and leads to no cycle."""
        at, seen = name, {name}
        condition: When | None = when
        while condition is not None:
            pair: object = condition
            if not isinstance(pair, tuple) or len(pair) != 2:
                expected = "expected a name and a value, ('optimiser', 'sgd')"
                raise OptionError(f"param {at}: when: {expected}; got {str(condition)[:40]!r}")
            other, value = condition
            if other not in self.params:
                raise OptionError(f"param {at}: active when {other} = {value}, but there is no param {other}")
            if other in seen:
                raise OptionError(f"param {name}: its condition leads back to itself")
            try:
                self._checked(other, value)
            except OptionError as error:
                raise OptionError(f"param {at}: when: {error}") from None
            seen.add(other)
            at, condition = other, self.params[other].when

    # -- candidates ----------------------------------------------------------------------------------------------------

    def check(self, candidate: Candidate) -> None:
        """Raise unless the network lies in the space and the params are just those that are active, within range."""
        self.networks.check(candidate.arch)
        self._check_known(candidate.params)
        for name, value in candidate.params.items():
            self._checked(name, value)
        active = self.active(candidate.params)
        if missing := [name for name in active if name not in candidate.params]:
            raise OptionError(f"param {missing[0]}: expected a value, got none")
        if idle := [name for name in candidate.params if name not in active]:
            other, value = self.params[idle[0]].when or ("", "")
            raise OptionError(f"param {idle[0]}: it has a value, but is active only when {other} = {value}")

    def __contains__(self, candidate: Candidate) -> bool:
        try:
            self.check(candidate)
        except NasbotError:
            return False
        return True

    def candidate(self, given: Candidate | Architecture) -> Candidate:
        """The candidate itself, or the network with every param at its default."""
        return given if isinstance(given, Candidate) else Candidate(given, self.default())

    def active(self, params: Params) -> tuple[str, ...]:
        """The names of the params that have a say, given the values of those they depend on."""
        return tuple(name for name in self.params if self._is_active(name, params))

    def default(self) -> dict[str, float | int | str]:
        """Every active param at its default."""
        every = {name: param.default for name, param in self.params.items() if param.default is not None}
        return self.only_active(every)

    def drawn(self, rng: np.random.Generator) -> dict[str, float | int | str]:
        """Uniform on every scale."""
        return self.only_active({name: param.drawn(rng) for name, param in self.params.items()})

    def changed(self, params: Params, rng: np.random.Generator) -> dict[str, float | int | str]:
        """One or two of the params, each changed by a step."""
        names = sorted(params)
        if not names:
            return {}
        n = min(len(names), 1 + int(rng.random() < 0.3))
        chosen = [names[i] for i in rng.choice(len(names), size=n, replace=False)]
        return self.completed({**params, **{name: self.params[name].changed(params[name], rng) for name in chosen}})

    def neighbours(self, params: Params) -> list[tuple[str, dict[str, float | int | str]]]:
        """Every change of one param by a step, with the name of the param."""
        return [
            (name, self.completed({**params, name: value}))
            for name in sorted(params)
            for value in self.params[name].neighbours(params[name])
        ]

    def completed(self, params: Params) -> dict[str, float | int | str]:
        """The active ones of these, with defaults for those that a change has made active."""
        every = {name: param.default for name, param in self.params.items() if param.default is not None}
        return self.only_active({**every, **params})

    def only_active(self, params: Params) -> dict[str, float | int | str]:
        """These without the inactive ones."""
        return {name: params[name] for name in self.active(params) if name in params}

    def log_prior(self, params: Params, centre: Params) -> float:
        """How plausible these params are where good ones are expected around ``centre``, 0 at it.

        A normal density on each unit scale, of at least one step of an ordered choice; unordered choices are all alike,
        and so is what the centre does not name.
        """
        total = 0.0
        for name, param in self.params.items():
            if name in params and name in centre and not (isinstance(param, Choice) and not param.ordered):
                spread = max(PRIOR_SPREAD, 1 / (len(param.values) - 1)) if isinstance(param, Choice) else PRIOR_SPREAD
                total -= 0.5 * ((param.unit(params[name]) - param.unit(centre[name])) / spread) ** 2
        return total

    def checked_centre(self, centre: Params) -> dict[str, float | int | str]:
        """Where good params are expected, as far as it is said; raises unless they are params of this domain."""
        if not isinstance(centre, Mapping):
            raise OptionError(f"prior: expected values of params by name, or None; got {type(centre).__name__}")
        for name, value in centre.items():
            if name not in self.params:
                known = ", ".join(self.params) or "none"
                raise OptionError(f"prior: param {name[:40]!r} is unknown here; the params of this search are: {known}")
            self._checked(name, value)
        return dict(sorted(centre.items()))

    # -- what the kernel sees ------------------------------------------------------------------------------------------

    def unit(self, params: Params) -> NDArray[np.float64]:
        """The params (k,) on their unit scales, NaN where inactive; OptionError for those of another domain."""
        self._check_known(params)
        return np.array(
            [param.unit(params[name]) if name in params else math.nan for name, param in self.params.items()]
        )

    def units(self, every: Sequence[Params]) -> NDArray[np.float64]:
        """``unit`` of each, (n, k)."""
        return np.array([self.unit(params) for params in every]).reshape(len(every), len(self.params))

    def differences(self, left: Sequence[Params] | NDArray[np.float64], right: Sequence[Params]) -> NDArray[np.float64]:
        """Rows (k, n, m) for the kernel: |difference| on the unit scale, 0 or 1 for an unordered choice.

        0 where a param is inactive in both, 1/2 where in one of them. ``left`` may be the ``units`` of params.
        """
        a, b = left if isinstance(left, np.ndarray) else self.units(left), self.units(right)
        rows = np.abs(a.T[:, :, None] - b.T[:, None, :])
        for row, param in zip(rows, self.params.values(), strict=True):
            if isinstance(param, Choice) and not param.ordered:
                np.copyto(row, row > 0, where=~np.isnan(row))
        inactive = np.isnan(a).T[:, :, None].astype(int) + np.isnan(b).T[:, None, :]
        return np.where(inactive == 0, rows, np.where(inactive == 1, 0.5, 0.0))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _check_known(self, params: Params) -> None:
        if unknown := [name for name in params if name not in self.params]:
            known = ", ".join(self.params) or "none"
            raise OptionError(f"param {unknown[0][:40]!r}: unknown here; the params of this search are: {known}")

    def _is_active(self, name: str, params: Params) -> bool:
        when = self.params[name].when
        return when is None or (params.get(when[0]) == when[1] and self._is_active(when[0], params))

    def _checked(self, name: str, value: object) -> None:
        try:
            self.params[name].check(value)
        except OptionError as error:
            raise OptionError(f"param {name}: {error}") from None


def check_pool(pool: Sequence[Candidate], domain: Domain) -> None:
    """Raise, naming the place, unless all of these candidates lie in the domain and none is there twice."""
    first: dict[str, int] = {}
    for i, candidate in enumerate(pool):
        if not isinstance(candidate.arch, Architecture):
            raise OptionError(f"pool network {i}: expected an Architecture, got {type(candidate.arch).__name__}")
        try:
            domain.check(candidate)
        except NasbotError as error:
            error.args = (f"pool network {i}: {error}",)
            raise
        if candidate.fingerprint in first:
            raise OptionError(f"pool networks {first[candidate.fingerprint]} and {i} are the same up to numbering")
        first[candidate.fingerprint] = i


# -- as plain data -----------------------------------------------------------------------------------------------------


def params_to_dict(params: Mapping[str, Param]) -> dict[str, Json]:
    """The params of a domain as plain data; ``params_from_dict`` gives equal ones."""
    return {name: {"form": type(param).__name__.lower(), **_json.record_of(param)} for name, param in params.items()}


def params_from_dict(record: object) -> dict[str, Param]:
    """What ``params_to_dict`` wrote; CodecError for anything else."""
    return {name: _param(value, f"param {name[:40]}") for name, value in _json.mapping(record, "params").items()}


def _param(record: object, where: str) -> Param:
    found = _json.form(record, where, ("float", "integer", "choice"))
    try:
        if found == "choice":
            entry = _json.fields(record, where, ("form", "values", "ordered", "default", "when"))
            values = tuple(_scalar(value, where) for value in _json.items(entry["values"], where))
            ordered, default = _json.truth(entry["ordered"], where), _scalar(entry["default"], where)
            return Choice(*values, ordered=ordered, default=default, when=_when(entry["when"], where))
        if found == "float":
            return _json.read_as(Float, record, where, beside=("form",), when=_when)
        any_sign = partial(_json.whole, at_least=-(2**53))
        return _json.read_as(
            Integer, record, where, beside=("form",), when=_when, low=any_sign, high=any_sign, default=any_sign
        )
    except OptionError as error:
        raise CodecError(f"{where}: {error}") from None


def _when(value: object, where: str) -> When | None:
    if value is None:
        return None
    pair = _json.items(value, where)
    if len(pair) != 2:
        raise CodecError(f"{where}: expected when = [name, value], got {str(value)[:60]}")
    return _json.text(pair[0], where), _scalar(pair[1], where)


def _scalar(value: object, where: str) -> float | int | str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return _json.number(value, where)


# -- scales ------------------------------------------------------------------------------------------------------------


def _check_default(param: Param) -> None:
    try:
        param.check(param.default)
    except OptionError as error:
        raise OptionError(f"default: {error}") from None


def _check_range(low: float, high: float, *, log: bool) -> None:
    for end in (low, high):
        given: object = end
        if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
            raise OptionError(f"range: expected finite numbers, got {str(end)[:40]!r}")
    if not low < high:
        raise OptionError(f"range: expected low < high, got {low} and {high}")
    if log and low <= 0:
        raise OptionError(f"range: a logarithmic scale needs low > 0, got {low}")


def _unit(value: float, low: float, high: float, *, log: bool) -> float:
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)


def _between(unit: float, low: float, high: float, *, log: bool) -> float:
    unit = min(max(unit, 0.0), 1.0)
    return float(low * (high / low) ** unit if log else low + unit * (high - low))


def _reflected(unit: float) -> float:
    """Back into [0, 1], as a ball from a wall."""
    unit = abs(unit) % 2.0
    return 2.0 - unit if unit > 1.0 else unit
