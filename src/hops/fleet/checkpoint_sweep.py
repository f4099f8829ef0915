"""The checkpoint interval is swept around theory's optimum; the best one is read off a curve through all points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hops.distributions import FloatArray
from hops.errors import UsageError
from hops.fleet.recovery_times import daly_interval, young_interval
from hops.fleet.study import Study
from hops.units import NS_PER_S, to_ns

POINTS = 15
SPAN = 4.0  # from the optimum in theory over this, to it times this


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalPoint:
    """Mean goodput over the seeds at one interval, and its standard error (None for one seed)."""

    interval_s: float
    goodput: float
    error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSweep:
    """Goodput by checkpoint interval.

    Attributes:
        best_s: where the curve a/tau + b + c tau + d tau^2 through what the points lose is lowest, and what it says
            there. Single points scatter too much to be compared: near the optimum the curve is flat.
        young_s, daly_s: the best intervals in theory.
    """

    points: tuple[IntervalPoint, ...]
    best_s: float
    best_goodput: float
    young_s: float
    daly_s: float
    mtbf_s: float
    pause_s: float


def sweep_intervals(
    study: Study, *, points: int = POINTS, on_point: Callable[[int], None] | None = None
) -> IntervalSweep:
    """Simulate all seeds at `points` intervals, evenly spaced in their logarithm.

    Raises UsageError if nothing ever stops or checkpoints cost nothing, for then there is nothing to weigh.
    """
    pause_s = study.times.pause_ns / NS_PER_S
    if study.mtbf_s == float("inf"):
        raise UsageError(
            "--sweep-checkpoint-interval: nothing stops in any of the lives, so the best interval is none; "
            "raise --days or --seeds, or state a shorter time between failures"
        )
    if pause_s == 0:
        raise UsageError(
            "--sweep-checkpoint-interval: a checkpoint costs nothing, so the shortest interval is the best; "
            "state failure.recovery.checkpoint.pause"
        )
    young_s = young_interval(pause_s, study.mtbf_s)
    highest = min(young_s * SPAN, study.horizon_ns / NS_PER_S)
    intervals = np.geomspace(min(young_s, highest) / SPAN, highest, points)
    found = []
    for number, interval_s in enumerate(intervals.tolist()):
        goodputs = np.asarray([each.goodput for each in study.every(to_ns(interval_s)).trajectories()])
        error = float(goodputs.std(ddof=1) / np.sqrt(len(goodputs))) if len(goodputs) > 1 else None
        found.append(IntervalPoint(interval_s=interval_s, goodput=float(goodputs.mean()), error=error))
        if on_point is not None:
            on_point(number)
    best_s, least_lost = lowest_of_curve([each.interval_s for each in found], [1 - each.goodput for each in found])
    return IntervalSweep(
        points=tuple(found),
        best_s=best_s,
        best_goodput=1 - least_lost,
        young_s=young_s,
        daly_s=daly_interval(pause_s, study.mtbf_s),
        mtbf_s=study.mtbf_s,
        pause_s=pause_s,
    )


def lowest_of_curve(intervals_s: Sequence[float], lost: Sequence[float]) -> tuple[float, float]:
    """Where, among the intervals, the curve through the lost shares is lowest, and what is lost there.

    Checkpoints cost in proportion to 1/tau, lost work to tau, and failures while it is done again to tau^2.
    """
    scale = float(np.exp(np.mean(np.log(intervals_s))))
    tau = np.asarray(intervals_s) / scale
    fine = np.geomspace(tau[0], tau[-1], 20_001)
    factors, *_ = np.linalg.lstsq(_terms(tau), np.asarray(lost), rcond=None)
    curve = _terms(fine) @ factors
    best = int(np.argmin(curve))
    return float(fine[best] * scale), float(curve[best])


def _terms(tau: FloatArray) -> FloatArray:
    return np.stack((1 / tau, np.ones_like(tau), tau, tau**2), axis=1)
