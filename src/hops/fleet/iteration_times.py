"""How long iterations take under every condition that occurs: simulated once per condition, then drawn from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hops.build.prepared import PreparedRun, length_ns
from hops.faults.plan import FOREVER, NO_FAULTS, Fault, FaultKind, FaultPlan
from hops.fleet.recovery.base import PLAIN, Variant
from hops.units import NS_PER_S

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = -8.0, 40.0  # knots reach from a probability of 3e-4 to all but 4e-18 of 1
_KNOTS = np.concatenate((np.exp(np.linspace(_LOWEST, 0.0, 100)), np.linspace(1.05, _HIGHEST, 400)))


@dataclass(frozen=True, slots=True, eq=False)
class IterationTimes:
    """Quantiles of simulated iteration times (ns): between samples by interpolation, beyond the largest as a normal.

    The slowest of n independent pipelines has the quantile p^(1/n) of one. Up to the largest of S samples that is
    theirs; beyond it the tail of a normal with their standard deviation goes on from it. Samples that are all the same
    give exactly that value.

    Attributes:
        mean_ns: of the samples.
        quantiles_ns: at the probabilities 1 - exp(-knot).
        steady: whether all iterations take the same time.
    """

    mean_ns: float
    quantiles_ns: Floats
    steady: bool

    @classmethod
    def of(cls, samples_ns: Ints) -> "IterationTimes":
        """From iteration times of at least one iteration."""
        ordered = np.sort(samples_ns).astype(np.float64)
        size = len(ordered)
        probabilities = -np.expm1(-_KNOTS)
        inner = np.interp(probabilities, (np.arange(size) + 0.5) / size, ordered)
        deviation = float(ordered.std(ddof=1)) if size > 1 else 0.0
        if deviation == 0.0:
            return cls(float(ordered[0]), inner, steady=True)
        last = 1 - 0.5 / size
        beyond = probabilities > last
        normal = NormalDist()
        scores = np.asarray([-normal.inv_cdf(float(np.exp(-knot))) for knot in _KNOTS[beyond]])
        inner[beyond] = ordered[-1] + deviation * (scores - normal.inv_cdf(last))
        return cls(float(ordered.mean()), inner, steady=False)

    def longer(self, factor: float) -> "IterationTimes":
        """The same shape, every time `factor` times as long."""
        return IterationTimes(self.mean_ns * factor, self.quantiles_ns * factor, self.steady)

    def slowest(self, uniforms: Floats, count: int) -> Floats:
        """Iteration times of the slowest of `count` pipelines, one per uniform draw from (0, 1)."""
        return self.at(slowest_knots(uniforms, count))

    def at(self, knots: Floats) -> Floats:
        """The quantiles at the probabilities 1 - exp(-knot)."""
        if self.steady:
            return np.full(knots.shape, self.mean_ns)
        found: Floats = np.interp(knots, _KNOTS, self.quantiles_ns)
        return found


def slowest_knots(uniforms: Floats, count: int | Floats) -> Floats:
    """Where among the quantiles of one pipeline the slowest of `count` lies, for uniform draws from (0, 1)."""
    return np.asarray(-np.log(-np.expm1(np.log(uniforms) / count)))


Condition = tuple[Variant, tuple[Fault, ...]]
FEWER = 12  # iterations simulated per condition with faults
_STRIDE = 1_000_003  # between the seeds of touched iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeCopies:
    """Copies that are alike: how many, how their pipeline differs from the spec's, what lasts (`conditions`)."""

    count: int
    variant: Variant = PLAIN
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationDraws:
    """Iteration times of the whole fleet in ns: as it is, with nothing slow, and as planned with nothing missing."""

    actual: Floats
    unslowed: Floats
    planned: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTimes:
    """Iteration times of the whole fleet under one condition: the slowest copy decides.

    Attributes:
        counts: copies in each group of like ones; last, those that do not run, if any.
        groups: of every group that runs, the times of one copy as it is, and with nothing slow.
        planned: times of one copy as planned.
    """

    counts: tuple[int, ...]
    groups: tuple[tuple[IterationTimes, IterationTimes], ...]
    planned: IterationTimes

    @property
    def mean_ns(self) -> float:
        """Mean of one copy of the slowest group."""
        return max(as_is.mean_ns for as_is, _ in self.groups)

    def draw(self, count: int, rng: np.random.Generator) -> IterationDraws:
        """`count` iterations.

        Every group draws its slowest copy; the same draw says how long it would have taken without faults, and as
        planned. Copies that do not run would have run as planned.
        """
        uniforms = 1.0 - rng.random((len(self.counts), count))  # not 0
        np.minimum(uniforms, 1 - 2.0**-53, out=uniforms)
        knots = slowest_knots(uniforms, np.asarray(self.counts, dtype=np.float64)[:, None])
        planned_rows = self.planned.at(knots)
        sound_rows = [
            row if sound is self.planned else sound.at(where)
            for row, where, (_, sound) in zip(planned_rows, knots, self.groups, strict=False)
        ]
        rows = [
            row if as_is is sound else as_is.at(where)
            for row, where, (as_is, sound) in zip(sound_rows, knots, self.groups, strict=False)
        ]
        planned = planned_rows.max(axis=0, initial=0.0)
        whole = len(rows) == len(knots) and all(sound is self.planned for _, sound in self.groups)
        return IterationDraws(
            actual=_largest(rows, count),
            unslowed=planned if whole else _largest(sound_rows, count),
            planned=planned,
        )


def _largest(rows: Sequence[Floats], count: int) -> Floats:
    """The largest of each column; 0 without rows."""
    return reduce(np.maximum, rows) if rows else np.zeros(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One iteration of one copy in which something changes, and the same iteration without faults, in ns.

    `failed_ns`: when the transport gave up; the iteration is then lost.
    """

    actual_ns: int
    unslowed_ns: int
    planned_ns: int
    failed_ns: int | None = None


class IterationTimeTable:
    """Simulates `samples` iterations once per condition (one if nothing is drawn), and every touched one by itself."""

    def __init__(self, pipeline_of: Callable[[Variant], PreparedRun | None], *, samples: int, seed: int) -> None:
        self._pipeline_of, self._samples, self._seed = pipeline_of, samples, seed
        self._spreads: dict[Condition, IterationTimes] = {}
        self._few_sound_ns: dict[Variant, int] = {}  # `FEWER` iterations without faults

    def seconds(self, variant: Variant) -> float | None:
        """Mean iteration time without faults; None if such a pipeline cannot run."""
        if self._pipeline_of(variant) is None:
            return None
        return self.spread(variant).mean_ns / NS_PER_S

    def spread(self, variant: Variant = PLAIN, faults: tuple[Fault, ...] = ()) -> IterationTimes:
        """Iteration times while these faults (`conditions`) last.

        Without faults: from all samples. With faults: the same shape, longer by the ratio of `FEWER` iterations with
        and without them, which have the same draws, so that the ratio hardly scatters.
        """
        key = (variant, faults)
        if key not in self._spreads:
            if not faults:
                self._spreads[key] = IterationTimes.of(self._lengths(variant, self._samples))
            elif self._samples == 1:
                self._spreads[key] = IterationTimes.of(self._lengths(variant, 1, faults))
            else:
                few = min(FEWER, self._samples)
                if variant not in self._few_sound_ns:
                    self._few_sound_ns[variant] = int(self._lengths(variant, few).sum())
                ratio = int(self._lengths(variant, few, faults).sum()) / self._few_sound_ns[variant]
                self._spreads[key] = self.spread(variant).longer(ratio)
        return self._spreads[key]

    def _lengths(self, variant: Variant, samples: int, faults: tuple[Fault, ...] = ()) -> Ints:
        return self._pipeline(variant).lengths_ns(samples, self._seed, FaultPlan(faults=faults))

    def of_fleet(self, groups: Sequence[LikeCopies], missing: int) -> FleetTimes:
        """Iteration times of copies that are alike within each group; `missing` copies do not run."""
        counts = [group.count for group in groups]
        return FleetTimes(
            counts=(*counts, missing) if missing else tuple(counts),
            groups=tuple((self.spread(each.variant, each.faults), self.spread(each.variant)) for each in groups),
            planned=self.spread(),
        )

    def touched(self, variant: Variant, faults: Sequence[Fault], number: int) -> Touched:
        """The iteration of one copy that starts at time 0 of these faults. `number` gives it draws of its own."""
        seed = self._seed + _STRIDE * (number + 1)
        pipeline = self._pipeline(variant)
        plan = FaultPlan(faults=tuple(sorted(faults, key=_order)))
        unslowed = pipeline.alone_ns(seed, NO_FAULTS)
        planned = unslowed if variant == PLAIN else self._pipeline(PLAIN).alone_ns(seed, NO_FAULTS)
        if any(fault.kind is FaultKind.STOP for fault in faults):
            actual, failed = pipeline.alone_ns(seed, plan), None
        else:
            outcome = pipeline.until_stop(seed, plan)
            failed = None if outcome.interruption is None else outcome.interruption.at_ns
            actual = failed if failed is not None else length_ns(outcome.trace)
        return Touched(actual_ns=actual, unslowed_ns=unslowed, planned_ns=planned, failed_ns=failed)

    def _pipeline(self, variant: Variant) -> PreparedRun:
        pipeline = self._pipeline_of(variant)
        assert pipeline is not None, "policies lay out only what can run"
        return pipeline


def conditions(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults that last all the time and differ in nothing but what they do, in one order."""
    return tuple(sorted((replace(each, start_ns=0, end_ns=FOREVER, cause="") for each in faults), key=_order))


def _order(fault: Fault) -> tuple[int, str, str, int]:
    return fault.start_ns, fault.kind, fault.target, fault.end_ns
