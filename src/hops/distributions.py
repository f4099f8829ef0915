"""A draw comes from a distribution fed by a generator that belongs to one purpose.

A generator is made from the run's seed, a purpose and indices (iteration, stage, op ...), so that
switching one part on, or changing the schedule, never moves the draws of another part.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import erf, exp, gamma, isfinite, log, log1p, pi, sqrt
from typing import Any, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hops.errors import UsageError

FloatArray = NDArray[np.float64]
FEW_GENERATORS = 8  # are made as fast one by one


def generator(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """The generator of one purpose, the same in every process and on every platform.

    Args:
        seed: the run's one seed, >= 0.
        purpose: what it is for, such as `compute` or `message`.
        indices: what within the purpose it is for, each >= 0.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose_key(purpose), *indices))
    return np.random.Generator(np.random.PCG64(sequence))


def purpose_key(purpose: str) -> int:
    """The number, below 2^32, that stands for a purpose among the keys of a generator."""
    return crc32(purpose.encode())


def generator_states(seed: int, keys: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """What many generators start from, worked out at once: a hundred times faster than one by one.

    `generator_from(generator_states(seed, keys)[n])` draws what `generator(seed, purpose, index)` draws for keys[n] =
    (purpose_key(purpose), index). This is NumPy's SeedSequence (O'Neill's seed_seq_fe of four words), whose algorithm
    its documentation promises not to change, with a column in place of each of its numbers.

    Args:
        seed: >= 0 and below 2^128.
        keys: shape (n, words).

    Returns:
        Shape (n, 4).
    """
    pool = [np.full(len(keys), (seed >> (32 * word)) & 0xFFFFFFFF, dtype=np.uint32) for word in range(4)]
    hashed = _Hash(0x43B0D7E5, 0x931E8875)
    pool = [hashed.of(word) for word in pool]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = _mixed(pool[target], hashed.of(pool[source]))
    for column in keys.T:
        pool = [_mixed(word, hashed.of(column)) for word in pool]
    hashed = _Hash(0x8B51F9DD, 0x58F38DED)
    words = [hashed.of(pool[number % 4]).astype(np.uint64) for number in range(8)]
    return np.stack([low | high << np.uint64(32) for low, high in zip(words[::2], words[1::2], strict=True)], axis=1)


class _Hash:
    """Multiplies by another constant each time."""

    def __init__(self, constant: int, factor: int) -> None:
        self._constant, self._factor = constant, factor

    def of(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        before, self._constant = self._constant, self._constant * self._factor & 0xFFFFFFFF
        found = (words ^ np.uint32(before)) * np.uint32(self._constant)
        return np.asarray(found ^ found >> np.uint32(16))


def _mixed(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint32]:
    found = np.uint32(0xCA01F9DD) * one - np.uint32(0x4973F715) * other
    return np.asarray(found ^ found >> np.uint32(16))


def generator_from(state: NDArray[np.uint64]) -> np.random.Generator:
    """The generator that starts from one row of `generator_states`."""
    return np.random.Generator(np.random.PCG64(cast("Any", _State(state))))


def generators(seed: int, purpose: str, indices: Sequence[Sequence[int]]) -> list[np.random.Generator]:
    """`generator(seed, purpose, *each)` for each of the indices, all of one length and below 2^32; many at once."""
    if (
        len(indices) < FEW_GENERATORS or seed >> 128 or max(map(max, indices)) >> 32
    ):  # beyond what `generator_states` takes
        return [generator(seed, purpose, *each) for each in indices]
    keys = np.empty((len(indices), 1 + len(indices[0])), dtype=np.uint32)
    keys[:, 0], keys[:, 1:] = purpose_key(purpose), indices
    return [generator_from(state) for state in generator_states(seed, keys)]


class _State(np.random.bit_generator.ISeedSequence):
    """A seed sequence that is worked out already."""

    def __init__(self, state: NDArray[np.uint64]) -> None:
        self._state = state

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[np.uint64]:
        assert n_words == 4 and dtype == np.uint64, "as PCG64 asks for it"  # noqa: PT018 (one question)
        return self._state


class Distribution(ABC):
    """A distribution of non-negative times (seconds) or factors.

    Members are frozen and check their parameters when made (UsageError). From generators in the same state, the first
    n of m > n draws are the n draws, so that a longer iteration does not move the draws of a shorter one.
    """

    @property
    @abstractmethod
    def mean(self) -> float:
        """Expected value of one draw."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw `size` values, shape (size,)."""

    @abstractmethod
    def scaled(self, factor: float) -> "Distribution":
        """The distribution of `factor` (> 0) times a draw; from the same generator it draws `factor` times the same."""


# `mean: float = field()` and not plain `mean: float`: a dataclass would take the property it inherits for a default.


def _check(ok: bool, owner: object, name: str, got: object, *, expected: str, fix: str = "") -> None:
    if not ok:
        tail = f"; {fix}" if fix else ""
        raise UsageError(f"{name} of {type(owner).__name__} must be {expected}, but got {got!r}{tail}")


def _check_positive(owner: object, name: str, value: float) -> None:
    _check(isfinite(value) and value > 0, owner, name, value, expected="a positive number")


def _check_not_negative(owner: object, name: str, value: float) -> None:
    _check(isfinite(value) and value >= 0, owner, name, value, expected="a number of at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Distribution):
    """Always `value`."""

    value: float

    def __post_init__(self) -> None:
        _check_not_negative(self, "value", self.value)

    @property
    def mean(self) -> float:
        return self.value

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.full(size, self.value, dtype=np.float64)

    def scaled(self, factor: float) -> "Constant":
        return replace(self, value=self.value * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(Distribution):
    """Normal, truncated at 0, with the location moved so that the mean after truncation is `mean`.

    With std/mean below 0.3 the truncation cuts less than one draw in a thousand.

    Attributes:
        mean: of the draws.
        std: of the normal before truncation, at most 2 mean.
    """

    mean: float = field()
    std: float

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)
        _check_not_negative(self, "std", self.std)
        expected = f"at most twice the mean ({self.mean!r})"
        fix = "for wider noise use LogNormal or Pareto"
        _check(self.std <= 2 * self.mean, self, "std", self.std, expected=expected, fix=fix)

    @property
    def location(self) -> float:
        """Mean of the normal before truncation."""
        untouched = self.mean >= 40 * self.std  # the share below 0 is less than the smallest float
        return self.mean if untouched else self.std * _untruncated(self.mean / self.std)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """By rejection, in the order of the stream (at least one normal draw in ten is kept)."""
        location = self.location
        kept: list[FloatArray] = []
        missing = size
        while missing > 0:
            candidates = rng.normal(location, self.std, size=missing)
            kept.append(candidates[candidates >= 0])
            missing -= len(kept[-1])
        return np.concatenate(kept) if kept else np.empty(0)

    def scaled(self, factor: float) -> "Normal":
        return replace(self, mean=self.mean * factor, std=self.std * factor)


def _untruncated(target: float) -> float:
    """The x with x + pdf(x)/cdf(x) = target: location over std of a normal truncated at 0, from its mean over std.

    The left side is the mean of N(x, 1) given that it is positive; it increases with x. Bisection to full precision.
    """
    low, high = -2.0, target
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        density = exp(-middle * middle / 2) / sqrt(2 * pi)
        below = (1 + erf(middle / sqrt(2))) / 2
        low, high = (middle, high) if middle + density / below < target else (low, middle)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal(Distribution):
    """Log-normal by mean and standard deviation of the draws themselves (not of their logarithm)."""

    mean: float = field()
    std: float

    @classmethod
    def with_cv(cls, *, mean: float, cv: float) -> "LogNormal":
        """By mean and coefficient of variation, std / mean."""
        return cls(mean=mean, std=mean * cv)

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)
        _check_not_negative(self, "std", self.std)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        variance = log1p((self.std / self.mean) ** 2)
        return rng.lognormal(log(self.mean) - variance / 2, sqrt(variance), size)

    def scaled(self, factor: float) -> "LogNormal":
        return replace(self, mean=self.mean * factor, std=self.std * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto(Distribution):
    """Heavy-tailed: P(X > x) = (minimum / x)^alpha above the minimum. The variance is infinite for alpha <= 2.

    Attributes:
        mean: of the draws.
        alpha: tail index, above 1; the smaller, the heavier the tail.
    """

    mean: float = field()
    alpha: float

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)
        fix = "with a smaller one the mean is infinite"
        _check(isfinite(self.alpha) and self.alpha > 1, self, "alpha", self.alpha, expected="above 1", fix=fix)

    @property
    def minimum(self) -> float:
        """The smallest possible draw."""
        return self.mean * (self.alpha - 1) / self.alpha

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.asarray(self.minimum * (1 + rng.pareto(self.alpha, size)))

    def scaled(self, factor: float) -> "Pareto":
        return replace(self, mean=self.mean * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Distribution):
    """A Poisson count of units: `unit` times a count with expectation mean / unit. Its variance is mean x unit.

    Attributes:
        mean: of the draws, not of the count.
        unit: length of one count, such as 1e-3 for milliseconds.
    """

    mean: float = field()
    unit: float = 1e-3

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)
        _check_positive(self, "unit", self.unit)
        fix = "choose a larger unit"
        _check(self.mean / self.unit < 1e15, self, "mean", self.mean, expected="below 1e15 units", fix=fix)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.asarray(self.unit * rng.poisson(self.mean / self.unit, size))

    def scaled(self, factor: float) -> "Poisson":
        return replace(self, mean=self.mean * factor, unit=self.unit * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Distribution):
    """Memoryless: times between failures at a constant rate of 1 / mean."""

    mean: float = field()

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.exponential(self.mean, size)

    def scaled(self, factor: float) -> "Exponential":
        return replace(self, mean=self.mean * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull(Distribution):
    """Times between failures whose rate falls (shape < 1, early failures) or rises (shape > 1, wear) with age.

    Attributes:
        mean: of the draws.
        shape: above 0; 1 is the exponential distribution.
    """

    mean: float = field()
    shape: float

    def __post_init__(self) -> None:
        _check_positive(self, "mean", self.mean)
        _check(isfinite(self.shape) and self.shape >= 0.05, self, "shape", self.shape, expected="at least 0.05")

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.asarray(self.mean / gamma(1 + 1 / self.shape) * rng.weibull(self.shape, size))

    def scaled(self, factor: float) -> "Weibull":
        return replace(self, mean=self.mean * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical(Distribution):
    """One of the measured `samples`, each as likely."""

    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Empirical":
        """From any sequence or array of numbers."""
        return cls(samples=tuple(float(sample) for sample in samples))

    def __post_init__(self) -> None:
        _check(len(self.samples) > 0, self, "samples", self.samples, expected="at least one number")
        for sample in self.samples:
            _check_not_negative(self, "every sample", sample)

    @property
    def mean(self) -> float:
        return sum(self.samples) / len(self.samples)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.asarray(self.samples, dtype=np.float64)[rng.integers(len(self.samples), size=size)]

    def scaled(self, factor: float) -> "Empirical":
        return replace(self, samples=tuple(sample * factor for sample in self.samples))
