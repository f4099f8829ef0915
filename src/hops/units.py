"""Quantities with units: read exactly from text such as `80 GiB`, written the way people like to read them.

Inside the program every quantity is in SI units: bytes (int), bytes/s, seconds, FLOP/s. Only text has prefixes.
Bits and bytes are never confused (`Gbit/s`, `GB/s`; `Gb/s` is refused), nor are 1000 and 1024 (`GB`, `GiB`).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from hops.errors import UnitError

NS_PER_S: Final = 1_000_000_000
_MOST_SECONDS = 9.2e9  # in nanoseconds this still fits 64 bits
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?)\s*(.*?)\s*", re.DOTALL | re.ASCII)
_LONGEST = 80  # characters of text that is still read as a quantity
_SHORT = 12  # characters of a written quantity that need no shorter form
_DECIMAL = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One kind of quantity.

    Attributes:
        name: what it is called in messages, such as `a bandwidth`.
        example: its right form, shown in messages.
        scales: SI value of every unit that is read.
        shown: the units used for writing, small to large, among them the SI unit itself.
        also: more units for writing, for values that are rounder in them.
        hints: what to write instead of units that mean several things.
    """

    name: str
    example: str
    scales: Mapping[str, Fraction]
    shown: tuple[str, ...]
    hints: Mapping[str, str]
    also: tuple[str, ...] = ()

    def parse(self, value: object) -> float:
        """The SI value of text such as `1.5 ms`, correctly rounded. Raises UnitError for anything else."""
        return float(self.parse_exactly(value))

    def parse_exactly(self, value: object) -> Fraction:
        """The SI value as a fraction. Raises UnitError as `parse` does."""
        if not isinstance(value, str):
            raise UnitError(f"got {shown(value)}, expected {self.name} with its unit, such as {self.example}")
        match = _QUANTITY.fullmatch(value) if len(value) <= _LONGEST else None
        if match is None:
            raise UnitError(f"got {shown(value)}, expected {self.name}, such as {self.example}")
        number, unit = match.groups()
        if unit not in self.scales:
            raise UnitError(f"got {shown(value)}, expected {self.name}, such as {self.example}{self._fix(unit)}")
        exact = Fraction(number) * self.scales[unit]
        if exact < 0:
            raise UnitError(f"got {shown(value)}, expected {self.name} of at least 0, such as {self.example}")
        if exact > Fraction(10) ** 30:
            raise UnitError(f"got {shown(value)}, expected {self.name} that can be, such as {self.example}")
        return exact

    def _fix(self, unit: str) -> str:
        if not unit:
            return ": the unit is missing"
        if unit in self.hints:
            return f": {self.hints[unit]}"
        return f": unknown unit {shown(unit)}, known are {', '.join(self.shown)}"

    def exact(self, value: float) -> str:
        """The most readable text that reads back as exactly this value (used in files)."""
        candidates = [
            self._in(unit, value) for unit in [*self._by_fit(value, self.shown), *self._by_fit(value, self.also)]
        ]
        exact = [text for text in candidates if type(value)(self.parse_exactly(text)) == value]
        return exact[0] if len(exact[0]) <= _SHORT else min(exact, key=len)

    def pretty(self, value: float, digits: int = 3) -> str:
        """The value rounded to `digits` significant digits (used in messages and tables)."""
        if not math.isfinite(value):
            return str(value)
        unit = self._by_fit(value, self.shown)[0]
        return f"{_rounded(float(Fraction(value) / self.scales[unit]), digits)} {unit}"

    def _by_fit(self, value: float, units: tuple[str, ...]) -> list[str]:
        """Units for writing, best first: the largest in which the value is at least 1; the SI unit is always there."""
        fitting = [unit for unit in reversed(units) if Fraction(value) >= self.scales[unit]]
        si = next(unit for unit in self.shown if self.scales[unit] == 1)
        return [*fitting, *units[:1], si] if value else [si]

    def _in(self, unit: str, value: float) -> str:
        scaled = Fraction(value) / self.scales[unit]
        return f"{scaled.numerator if scaled.denominator == 1 else repr(float(scaled)).removesuffix('.0')} {unit}"


def shown(value: object) -> str:
    """A wrong value for a message: in quotes if it is text, cut when long, YAML's own words for the rest."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def _rounded(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _prefixed(suffix: str, power: int = 1) -> dict[str, Fraction]:
    return {f"{prefix}{suffix}": Fraction(10) ** exponent * power for prefix, exponent in _DECIMAL.items()}


def _binary(suffix: str) -> dict[str, Fraction]:
    return {f"{prefix}{suffix}": Fraction(2) ** exponent for prefix, exponent in _BINARY.items()}


def _hints(text: str, *units: str) -> dict[str, str]:
    return {unit: text.format(prefix=unit[0] if unit[0] in "kKMGT" else "") for unit in units}


BYTES: Final = Dimension(
    name="an amount of memory",
    example="80 GiB",
    scales={**_prefixed("B"), **_binary("B")},
    shown=("B", "KiB", "MiB", "GiB", "TiB", "PiB"),
    also=("kB", "MB", "GB", "TB", "PB"),
    hints=_hints("write {prefix}iB (powers of 1024) or {prefix}B (powers of 1000)", "G", "M", "T", "K", "GIB", "MIB")
    | {"KB": "write KiB (1024) or kB (1000)", "Gb": "b is bits: write GB or GiB", "gb": "write GB or GiB"},
)
BANDWIDTH: Final = Dimension(
    name="a bandwidth",
    example="25 Gbit/s or 3.35 TB/s",
    scales={
        **_prefixed("B/s"),
        **_binary("B/s"),
        **{unit: scale / 8 for unit, scale in _prefixed("bit/s").items()},
    },
    shown=("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"),
    hints=_hints(
        "write {prefix}bit/s (bits) or {prefix}B/s (bytes)",
        *(
            "Gb/s",
            "Mb/s",
            "kb/s",
            "Tb/s",
            "Gbps",
            "GBps",
            "Mbps",
            "MBps",
            "Tbps",
            "TBps",
            "GB",
            "Gbit",
            "Gb",
            "TB",
            "MB",
        ),
    ),
)
TIME: Final = Dimension(
    name="a time",
    example="1.5 ms or 15 us",
    scales={
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "µs": Fraction(1, 10**6),
        "μs": Fraction(1, 10**6),
        "ms": Fraction(1, 10**3),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
        "d": Fraction(86400),
    },
    shown=("ns", "us", "ms", "s", "min", "h", "d"),
    hints={"m": "write ms (milliseconds) or min (minutes)", "sec": "write s"},
)
COMPUTE: Final = Dimension(
    name="a compute rate",
    example="312 TFLOP/s",
    scales=_prefixed("FLOP/s"),
    shown=("FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"),
    hints=_hints(
        "write {prefix}FLOP/s", "TFLOPS", "TFLOPs", "TFlops", "TFLOP", "GFLOPS", "PFLOPS", "TFlop/s", "Tflop/s"
    ),
)


def parse_bytes(value: object) -> int:
    """Bytes of `80 GiB` or `80 GB`, rounded to whole bytes. Raises UnitError."""
    exact = BYTES.parse_exactly(value)
    return round(exact)


def parse_bandwidth(value: object) -> float:
    """Bytes per second of `25 Gbit/s` or `3.35 TB/s`. Raises UnitError."""
    return BANDWIDTH.parse(value)


def parse_time(value: object) -> float:
    """Seconds of `15 us` or `1.5 ms`. Raises UnitError."""
    return TIME.parse(value)


def parse_compute(value: object) -> float:
    """FLOP/s of `312 TFLOP/s`. Raises UnitError."""
    return COMPUTE.parse(value)


def format_bytes(value: float) -> str:
    """`31.2 GiB`, three significant digits."""
    return BYTES.pretty(value)


def format_bandwidth(value: float) -> str:
    """`3.12 GB/s`, three significant digits."""
    return BANDWIDTH.pretty(value)


def format_time(value: float) -> str:
    """`1.5 ms`, three significant digits."""
    return TIME.pretty(value)


def format_compute(value: float) -> str:
    """`312 TFLOP/s`, three significant digits."""
    return COMPUTE.pretty(value)


@overload
def to_ns(seconds: float) -> int: ...
@overload
def to_ns(seconds: NDArray[np.float64]) -> NDArray[np.int64]: ...
def to_ns(seconds: float | NDArray[np.float64]) -> int | NDArray[np.int64]:
    """The nearest whole nanosecond (of two, the even one), as engine and trace count time: of a number, or of each.

    A number beyond 64 bits stays exact, an array (any shape) is as wide as a trace's columns. Divide by NS_PER_S for
    the way back. Raises UnitError for NaN, infinities, negative times, and in an array for more than 292 years.
    """
    if isinstance(seconds, np.ndarray):
        unfit = seconds[~((seconds >= 0) & (seconds < _MOST_SECONDS))]
        if unfit.size:
            raise UnitError(f"got {float(unfit[0])!r} seconds, expected times of at least 0 and below 292 years")
        return np.rint(seconds * NS_PER_S).astype(np.int64)
    if not math.isfinite(seconds) or seconds < 0:
        raise UnitError(f"got {seconds!r} seconds, expected a finite time of at least 0")
    return round(seconds * NS_PER_S)
