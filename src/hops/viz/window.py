"""The stretch of time that a timeline shows: whole iterations, or any interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.arrays import distinct
from hops.errors import UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S, to_ns
from hops.viz.style import NARROW, NUMBER_IN, WIDEST_IN

MOST_ITERATIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An interval of a trace, in ns since its start, and the iterations that begin in it.

    Attributes:
        starts_ns: start of each of `iterations`, same length.
        origin_ns: where its time axis has its zero: the start of the first iteration that was asked for, or of the run.
    """

    start_ns: int
    end_ns: int
    iterations: tuple[int, ...]
    starts_ns: tuple[int, ...]
    origin_ns: int = 0

    @property
    def label(self) -> str:
        """Of its time axis."""
        return (
            "time since start of run" if self.origin_ns == 0 else f"time since start of iteration {self.iterations[0]}"
        )

    def overlaps(self, trace: Trace) -> NDArray[np.bool_]:
        """Shape (rows,): whether any of the row lies inside. A row that only touches an edge does not."""
        inside = (trace.start_ns < self.end_ns) & (trace.end_ns > self.start_ns)
        instant = (trace.start_ns == trace.end_ns) & (trace.start_ns >= self.start_ns) & (trace.end_ns <= self.end_ns)
        return np.asarray(inside | instant)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUnit:
    """What an axis counts in."""

    name: str
    ns: int

    @classmethod
    def fit(cls, duration_ns: int) -> "TimeUnit":
        """The unit in which a duration is between about 1 and 10,000."""
        for unit in (cls(name="s", ns=10**9), cls(name="ms", ns=10**6), cls(name="µs", ns=10**3)):
            if duration_ns >= (10 if unit.name == "s" else 1) * unit.ns:
                return unit
        return cls(name="ns", ns=1)


def choose_window(
    trace: Trace,
    facts: RunFacts,
    *,
    iterations: Sequence[int] | None = None,
    window_s: tuple[float, float] | None = None,
) -> Window:
    """What was asked for, or as many of the iterations after warm-up as stay readable.

    Args:
        trace: what was recorded.
        facts: says how many iterations are warm-up.
        iterations: numbers of the iterations to show, from the first of them to the last.
        window_s: start and end in seconds since the start of the run.

    Raises:
        UsageError: nothing to draw, both given, an iteration that is not in the trace, an interval outside it, or
            nothing left by warm-up.
    """
    rows = _without_faults(trace)
    if not len(rows):
        raise UsageError("nothing to draw: the trace has no rows; expected at least one action")
    if iterations is not None and window_s is not None:
        raise UsageError("both iterations and a time window were asked for; expected one of them: leave one out")
    if window_s is not None:
        return _of_seconds(rows, window_s)
    present = distinct(rows.iteration)
    wanted = np.unique(readable_iterations(trace, facts) if iterations is None else np.asarray(iterations, dtype=int))
    missing = wanted[~np.isin(wanted, present)]
    if not wanted.size or missing.size:
        got = ", ".join(map(str, missing)) or "(none given)"
        raise UsageError(f"cannot show iteration {got}: the trace has iterations {present[0]} to {present[-1]}")
    return _of_iterations(rows, wanted)


def readable_iterations(trace: Trace, facts: RunFacts) -> tuple[int, ...]:
    """The first iterations after warm-up, as many as stay readable beside each other, at least one.

    Raises UsageError if warm-up leaves none.
    """
    run = Iterations.recorded(trace, facts)
    durations_ns = run.trace.duration_ns[(run.index == 0) & (run.trace.stream == Stream.COMPUTE)]
    width_in = width_for_numbers_in(durations_ns, int(run.end_ns[0] - run.start_ns[0]))
    fit = int(WIDEST_IN / width_in) if width_in else MOST_ITERATIONS
    return tuple(run.iterations[: min(MOST_ITERATIONS, max(1, fit))].tolist())


def width_for_numbers_in(durations_ns: NDArray[np.int64], span_ns: int) -> float:
    """Width of a span, in inches, at which all but the narrowest boxes of these durations hold their numbers."""
    narrow_ns = float(np.quantile(durations_ns, NARROW)) if len(durations_ns) else 0.0
    return NUMBER_IN * span_ns / narrow_ns if narrow_ns else 0.0


def _without_faults(trace: Trace) -> Trace:
    return trace.where(~np.isin(trace.stream, (Stream.FAULT, Stream.LOST)))


def _of_seconds(rows: Trace, window_s: tuple[float, float]) -> Window:
    first_ns, last_ns = int(rows.start_ns.min()), int(rows.end_ns.max())
    start_s, end_s = window_s
    if not (start_s < end_s and start_s * NS_PER_S < last_ns and end_s * NS_PER_S > first_ns):
        raise UsageError(
            f"cannot show {start_s:g} s to {end_s:g} s: expected start before end, "
            f"inside the trace's {first_ns / NS_PER_S:g} s to {last_ns / NS_PER_S:g} s"
        )
    return _window(rows, to_ns(start_s), to_ns(end_s))


def _of_iterations(rows: Trace, wanted: NDArray[np.integer[Any]]) -> Window:
    shown = rows.where((rows.iteration >= wanted[0]) & (rows.iteration <= wanted[-1]))
    start_ns, end_ns = int(shown.start_ns.min()), int(shown.end_ns.max())
    return replace(_window(rows, start_ns, max(end_ns, start_ns + 1)), origin_ns=start_ns)


def _window(rows: Trace, start_ns: int, end_ns: int) -> Window:
    numbers = distinct(rows.iteration)
    index = np.searchsorted(numbers, rows.iteration)
    starts_ns = np.full(numbers.size, np.iinfo(np.int64).max)
    np.minimum.at(starts_ns, index, rows.start_ns)
    inside = (starts_ns >= start_ns) & (starts_ns < end_ns)
    return Window(
        start_ns=start_ns,
        end_ns=end_ns,
        iterations=tuple(numbers[inside].tolist()),
        starts_ns=tuple(starts_ns[inside].tolist()),
    )
