"""What a sweep varies: an axis gives the values of one key (or of several together), one by one or by a number."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log
from typing import Any, Literal, Protocol

from hops.errors import UsageError
from hops.units import shown

SCHEDULE = "pipeline.schedule"
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(\D*?)\s*")


class Varied(Protocol):
    """The values of one or more keys."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The paths that it changes."""
        ...

    def all_values(self) -> "tuple[Mapping[str, Any], ...]":
        """What a grid takes from it: changes of the spec. Raises UsageError if there is no end of them."""
        ...

    def at(self, share: float) -> "Mapping[str, Any]":
        """The changes at a place from 0 to 1 (without 1), for samplers."""
        ...

    def asked(self, trial: Any) -> "Mapping[str, Any]":
        """The changes that an Optuna trial suggests."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Listed values. `changes` has one entry per value, all of the same keys."""

    changes: tuple[Mapping[str, Any], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.changes[0])

    def all_values(self) -> tuple[Mapping[str, Any], ...]:
        return self.changes

    def at(self, share: float) -> Mapping[str, Any]:
        return self.changes[int(share * len(self.changes))]

    def asked(self, trial: Any) -> Mapping[str, Any]:
        number: int = trial.suggest_categorical(" ".join(self.keys), range(len(self.changes)))
        return self.changes[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Numbers from `low` to `high`, both included, with one unit.

    Attributes:
        path: the key.
        unit: written behind the number; empty: a plain number.
        whole: only whole numbers.
        scale: log: equal factors, and not equal differences, are as far apart.
        steps: how many values a grid takes; None: it cannot be part of one.
    """

    path: str
    low: float
    high: float
    unit: str
    whole: bool
    scale: Literal["linear", "log"]
    steps: int | None

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.path,)

    def all_values(self) -> tuple[Mapping[str, Any], ...]:
        if self.steps is None:
            raise UsageError(
                f"axes.{self.path}: got a range without steps, expected steps: COUNT for a grid; add it, or use a "
                "sampler: random, lhs or sobol"
            )
        last = max(1, self.steps - 1)
        values = [self._value(step / last) for step in range(self.steps)]
        return tuple({self.path: value} for value in dict.fromkeys(values))

    def at(self, share: float) -> Mapping[str, Any]:
        if self.whole and self.scale == "linear":  # each number has the same share
            return {self.path: int(self.low + share * (self.high - self.low + 1))}
        return {self.path: self._value(share)}

    def asked(self, trial: Any) -> Mapping[str, Any]:
        log_scale = self.scale == "log"
        if self.whole:
            number = trial.suggest_int(self.path, int(self.low), int(self.high), log=log_scale)
        else:
            number = trial.suggest_float(self.path, self.low, self.high, log=log_scale)
        return {self.path: self._written(number)}

    def _value(self, place: float) -> Any:
        """The value at a place from 0 to 1, with both ends exact."""
        if place in (0, 1):
            number = self.high if place else self.low
        elif self.scale == "log":
            number = exp(log(self.low) + place * (log(self.high) - log(self.low)))
        else:
            number = self.low + place * (self.high - self.low)
        return self._written(number)

    def _written(self, number: float) -> Any:
        if self.whole:
            return round(number)
        if number not in (self.low, self.high):
            number = float(f"{number:.6g}")  # people read it
        return f"{repr(float(number)).removesuffix('.0')} {self.unit}" if self.unit else float(number)


def choices(path: str, values: Sequence[Any]) -> Listed:
    """An axis of the values that a list holds; lists of a schedule's parameters are taken one by one."""
    if not values:
        raise UsageError(f"axes.{path}: got an empty list, expected at least one value")
    spread = [one for value in values for one in (_spread(value) if path == SCHEDULE else [value])]
    return Listed(changes=tuple({path: value} for value in spread))


def together(lists: Mapping[str, Sequence[Any]]) -> Listed:
    """An axis of several keys: the first values of all, then the second, and so on."""
    lengths = {path: len(values) for path, values in lists.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        got = ", ".join(f"{path} {length}" for path, length in lengths.items())
        raise UsageError(f"together: got lists of different lengths ({got}), expected as many values of each key")
    return Listed(changes=tuple(dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)))


def between(
    path: str, low: object, high: object, *, scale: Literal["linear", "log"] = "linear", steps: int | None = None
) -> Between:
    """A range; `low` and `high` are numbers, or quantities of one unit. Raises UsageError if they are not."""
    first, second = _number(path, low), _number(path, high)
    if first[1] != second[1]:
        raise UsageError(f"axes.{path}: got {shown(low)} to {shown(high)}, expected one unit; write both in the same")
    if not first[0] < second[0] or (scale == "log" and first[0] <= 0):
        above = "from above 0 and below to" if scale == "log" else "from below to"
        raise UsageError(f"axes.{path}: got {shown(low)} to {shown(high)}, expected {above}")
    whole = isinstance(low, int) and isinstance(high, int)
    if steps is not None and steps < 2:
        raise UsageError(f"axes.{path}.steps: got {steps}, expected at least 2")
    return Between(path=path, low=first[0], high=second[0], unit=first[1], whole=whole, scale=scale, steps=steps)


def _number(path: str, value: object) -> tuple[float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, ""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UsageError(f"axes.{path}: got {shown(value)}, expected a number or a quantity such as 25 Gbit/s")
    return float(match[1]), match[2]


def _spread(value: Any) -> list[Any]:
    """A schedule whose parameters are lists, once per combination."""
    if not isinstance(value, Mapping):
        return [value]
    lists = {key: each if isinstance(each, list | tuple) else (each,) for key, each in value.items()}
    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
