"""Monte Carlo: one spec under many seeds: how long iterations take, how surely, and what is missed how often."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, isnan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from hops.arrays import FloatArray
from hops.build.prepared import is_steady
from hops.errors import DoesNotFitError, UsageError
from hops.processes import cores, on_cores
from hops.spec.spec import Spec
from hops.sweep.outcome import Outcome, outcome

CONFIDENCE = 0.95
BATCH = 32  # samples between two looks at the precision
SAMPLED = ("iteration_time.mean_ms", "throughput.samples_per_s", "throughput.tokens_per_s", "peak_memory.share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number that samples tell, and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure over all samples: its mean and the times below which 5, 50 and 95 % of samples are."""

    mean: Estimate
    p5: Estimate
    p50: Estimate
    p95: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What many seeds give.

    Attributes:
        asked: how many were asked for; fewer were run if the precision was reached or nothing in the spec is drawn.
        steady: nothing in the spec is drawn, so that all samples are alike, and one was run.
        seeds: of every sample that ran to its end; iteration_ms: its iteration time.
        iteration_time: its spread in ms; None if no sample ran.
        figures: spreads of other figures, by name, as far as they are known.
        out_of_memory: probability that a sample does not fit.
        failed: probability that a sample ends for any other reason; reasons: why, with how often.
        deadline_ms: what an iteration may take; missed: probability that one takes longer, or none is there at all.
    """

    asked: int
    steady: bool
    seeds: tuple[int, ...]
    iteration_ms: tuple[float, ...]
    iteration_time: Spread | None
    figures: Mapping[str, Spread]
    out_of_memory: Estimate
    failed: Estimate
    reasons: Mapping[str, int]
    deadline_ms: float | None
    missed: Estimate | None

    @property
    def by_seed(self) -> dict[int, float]:
        """Iteration times in ms by seed."""
        return dict(zip(self.seeds, self.iteration_ms, strict=True))

    @property
    def count(self) -> int:
        """How many samples were run."""
        return len(self.iteration_ms) + sum(self.reasons.values())


def sample(
    spec: Spec,
    count: int,
    *,
    deadline_ms: float | None = None,
    precision: float | None = None,
    jobs: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> Samples:
    """Run a spec with `count` seeds, from its own on.

    Args:
        spec: noise, stalls and faults of it are drawn anew for every seed, as its sections say.
        count: of samples, at least 2.
        deadline_ms: what an iteration may take.
        precision: stop as soon as the mean iteration time is known to this part of itself (0.01: to 1 %).
        jobs: processes; default: all cores. The samples are the same for any number.
        on_done: called with how many samples were done before the one that has ended.

    Raises UsageError for numbers that make no sense.
    """
    _check(count, deadline_ms, precision)
    tell = on_done or (lambda _: None)
    steady = is_steady(spec) and not spec.failure.enabled
    found: list[Outcome] = []
    for batch in _batches(spec.simulation.seed, 1 if steady else count):
        tasks = [(spec.with_({"simulation.seed": seed}), SAMPLED) for seed in batch]
        found += on_cores(_one, tasks, jobs or cores(), on_done=partial(_tell_after, tell, len(found)))
        if precision is not None and _is_known(found, precision):
            break
    return summarize_samples(found, spec.simulation.seed, asked=count, steady=steady, deadline_ms=deadline_ms)


def _tell_after(tell: Callable[[int], None], before: int, number: int) -> None:
    tell(before + number)


def _one(task: tuple[Spec, Sequence[str]]) -> Outcome:
    return outcome(*task)


def _batches(first: int, count: int) -> Iterator[range]:
    for begin in range(0, count, BATCH):
        yield range(first + begin, first + min(begin + BATCH, count))


def _check(count: int, deadline_ms: float | None, precision: float | None) -> None:
    if count < 2:
        raise UsageError(f"--samples: got {count}, expected at least 2, so that a spread can be seen")
    if deadline_ms is not None and not deadline_ms > 0:
        raise UsageError(f"--deadline: got {deadline_ms:g} ms, expected a time above 0")
    if precision is not None and not 0 < precision < 1:
        raise UsageError(f"--precision: got {precision:g}, expected a part of the mean between 0 and 1, such as 0.01")


def _is_known(found: Sequence[Outcome], precision: float) -> bool:
    times = _values(found, 0)
    if len(times) < BATCH:
        return False
    estimate = mean_of(times)
    return (estimate.high - estimate.low) / 2 <= precision * estimate.value


def summarize_samples(
    found: Sequence[Outcome], first_seed: int, *, asked: int, steady: bool, deadline_ms: float | None
) -> Samples:
    """The spreads and probabilities of outcomes with the figures SAMPLED."""
    times = _values(found, 0)
    failures = [each.reason.partition("\n")[0] for each in found if each.status != "ok"]
    does_not_fit = sum(why.startswith(DoesNotFitError.__name__) for why in failures)
    spreads = {name: spread for place, name in enumerate(SAMPLED) if (spread := spread_of(_values(found, place)))}
    late = None if deadline_ms is None else len(failures) + int((times > deadline_ms).sum())
    return Samples(
        asked=asked,
        steady=steady,
        seeds=tuple(seed for seed, each in enumerate(found, start=first_seed) if each.status == "ok"),
        iteration_ms=tuple(times.tolist()),
        iteration_time=spreads.pop(SAMPLED[0], None),
        figures=spreads,
        out_of_memory=probability(does_not_fit, len(found)),
        failed=probability(len(failures) - does_not_fit, len(found)),
        reasons={why: failures.count(why) for why in dict.fromkeys(failures)},
        deadline_ms=deadline_ms,
        missed=None if late is None else probability(late, len(found)),
    )


def _values(found: Sequence[Outcome], place: int) -> FloatArray:
    known = [each.figures[place] for each in found if each.status == "ok"]
    return np.array([value for value in known if value is not None], dtype=np.float64)


def spread_of(values: FloatArray) -> Spread | None:
    """Mean and quantiles; None without values."""
    if not len(values):
        return None
    p5, p50, p95 = (quantile_of(values, share) for share in (0.05, 0.5, 0.95))
    return Spread(mean=mean_of(values), p5=p5, p50=p50, p95=p95)


def mean_of(values: FloatArray) -> Estimate:
    """The mean, by the central limit theorem."""
    mean = float(values.mean())
    half = _Z * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0
    return Estimate(value=mean, low=mean - half, high=mean + half)


def quantile_of(values: FloatArray, share: float) -> Estimate:
    """A quantile, between two of the sorted values whatever they are distributed by (binomial, normal approximation).

    Source: Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2. With too few values the interval
    ends at the least or greatest of them.
    """
    ordered, count = np.sort(values), len(values)
    half = _Z * sqrt(count * share * (1 - share))
    low, high = floor(count * share - half), ceil(count * share + half)
    return Estimate(
        value=float(np.quantile(ordered, share)),
        low=float(ordered[max(0, low - 1)]),
        high=float(ordered[min(count - 1, high - 1)]),
    )


def probability(hits: int, count: int) -> Estimate:
    """A probability from how often something was seen (Wilson's interval, 1927, which holds at 0 and 1 as well)."""
    share, spread = hits / count, _Z * _Z / count
    centre = (share + spread / 2) / (1 + spread)
    half = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    low, high = centre - half, centre + half
    return Estimate(value=share, low=0.0 if hits == 0 else low, high=1.0 if hits == count else high)


def paired_difference(one: Mapping[int, float], other: Mapping[int, float]) -> Estimate | None:
    """How much longer the second takes, in the mean over seeds that both have; the same draws hit both.

    None with fewer than two such seeds.
    """
    both = sorted(one.keys() & other.keys())
    if len(both) < 2:
        return None
    found = mean_of(np.array([other[seed] - one[seed] for seed in both]))
    assert not isnan(found.value)
    return found


_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


def samples_to_dict(found: Samples) -> dict[str, Any]:
    """Plain data for JSON."""
    from dataclasses import asdict

    return {"samples": found.count, **asdict(found)}
