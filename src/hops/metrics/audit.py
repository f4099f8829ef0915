"""An audit: what a run consists of, stage by stage and gap by gap, and what was unusual about it.

The same function serves simulated and measured traces. Times are medians with a robust spread (see Robust) over the
iterations after warm-up; field names are the keys of the JSON and bear their units.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.metrics.critical_path import Paths, critical_paths, previous_rows
from hops.metrics.inputs import inputs_from_elsewhere
from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations, is_action
from hops.metrics.parts import computed_ns, parts_ns
from hops.metrics.stalls import Robust, SlowIteration, find_stalls
from hops.metrics.throughput import iteration_times_ns
from hops.program.action import ACTION_OPS, Op
from hops.trace.trace import Stream

NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Of `count` durations: median and robust spread."""

    count: int
    median_ms: float
    spread_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTimes:
    """One op of one stage; the optimizer step has stage -1."""

    rank: int
    stage: int
    op: str
    times: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTimes:
    """From the end of an action to the start of one that it enabled.

    Attributes:
        source, target: ranks. Different: the target idled and waited for a message, so the gap is the message with
            all that sending and receiving cost the hosts. Equal: between actions of one rank, the input being there.
        op: what the action makes: F an activation, B or I a gradient; "" between actions of one rank.
    """

    source: int
    target: int
    op: str
    times: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationParts:
    """An iteration: pipeline + reduce + optimizer + host (see parts). None: the trace has no optimizer steps."""

    pipeline: Times
    reduce: Times | None
    optimizer: Times | None
    host: Times | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Everything an audit finds in the trace.

    Attributes:
        cut_iterations: numbers of those left out because the trace does not show when they ended.
        iterations: numbers of those that count; walls_ms: their times.
        stalls: in order of their iterations.
        paths: what each iteration's time consists of along its critical path.
    """

    warmup_iterations: int
    cut_iterations: tuple[int, ...]
    iterations: tuple[int, ...]
    walls_ms: tuple[float, ...]
    wall: Times
    parts: IterationParts
    ops: tuple[OpTimes, ...]
    gaps: tuple[GapTimes, ...]
    stalls: tuple[SlowIteration, ...]
    paths: Paths

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of numbers, text and None."""
        means = (self.paths.spent_ns.mean(axis=0) / NS_PER_MS).tolist()
        return {
            "warmup_iterations": self.warmup_iterations,
            "cut_iterations": list(self.cut_iterations),
            "iterations": [
                {"iteration": number, "wall_ms": wall}
                for number, wall in zip(self.iterations, self.walls_ms, strict=True)
            ],
            "wall": asdict(self.wall),
            "parts": asdict(self.parts),
            "ops": [asdict(each) for each in self.ops],
            "gaps": [asdict(each) for each in self.gaps],
            "stalls": [
                {
                    "iteration": stall.iteration,
                    "excess_ms": stall.excess_ns / NS_PER_MS,
                    "where": stall.term.to_dict(),
                    "where_excess_ms": stall.term_excess_ns / NS_PER_MS,
                }
                for stall in self.stalls
            ],
            "critical_path": [
                {**term.to_dict(), "mean_ms": mean} for term, mean in zip(self.paths.terms, means, strict=True)
            ],
        }


def audit(run: Iterations) -> Audit:
    """Audit the iterations of a run that count."""
    paths = critical_paths(run)
    walls = iteration_times_ns(run)
    return Audit(
        warmup_iterations=run.facts.warmup_iterations,
        cut_iterations=run.cut,
        iterations=tuple(run.iterations.tolist()),
        walls_ms=tuple((walls / NS_PER_MS).tolist()),
        wall=_times(walls),
        parts=_parts(run),
        ops=tuple(_ops(run)),
        gaps=tuple(_gaps(run)),
        stalls=find_stalls(run, paths),
        paths=paths,
    )


def _times(values_ns: Ints) -> Times:
    found = Robust.of(values_ns)
    return Times(count=found.count, median_ms=found.median / NS_PER_MS, spread_ms=found.spread / NS_PER_MS)


def _parts(run: Iterations) -> IterationParts:
    """Medians of the parts that follow each other in an iteration."""
    found = parts_ns(run)
    if found is None:
        return IterationParts(pipeline=_times(computed_ns(run) - run.start_ns), reduce=None, optimizer=None, host=None)
    host = found.host[run.followed]  # the last one ends with its own last row
    return IterationParts(
        pipeline=_times(found.pipeline),
        reduce=_times(found.reduce),
        optimizer=_times(found.optimizer),
        host=_times(host) if len(host) else None,
    )


def _ops(run: Iterations) -> list[OpTimes]:
    """Every op of every stage that ran, then the optimizer step of every rank."""
    trace = run.trace
    computed = trace.stream == Stream.COMPUTE
    found = []
    for op in (*ACTION_OPS, Op.OPTIMIZER):
        rows = np.flatnonzero(computed & (trace.op == op))
        for (rank, stage), values in _grouped(rows, trace.duration_ns, trace.rank, trace.stage):
            found.append(OpTimes(rank=rank, stage=stage, op=op.name, times=_times(values)))
    return sorted(found, key=lambda each: (each.op == Op.OPTIMIZER.name, each.stage, each.rank))


def _gaps(run: Iterations) -> list[GapTimes]:
    """Messages that somebody waited for, by link and op, then the time between actions, by rank."""
    trace = run.trace
    taken, before = inputs_from_elsewhere(run), previous_rows(run)
    source = taken.source
    waited = is_action(trace) & (source >= 0) & ((before < 0) | (taken.ready_ns > trace.end_ns[before]))
    follows = is_action(trace) & (before >= 0) & ~waited & ~taken.closes
    found = []
    rows = np.flatnonzero(waited)
    gap = np.maximum(trace.start_ns - taken.ready_ns, 0)
    for (sender, target, op), values in _grouped(rows, gap, trace.rank[source], trace.rank, trace.op[source]):
        found.append(GapTimes(source=sender, target=target, op=Op(op).name, times=_times(values)))
    rows = np.flatnonzero(follows)
    gap = np.maximum(trace.start_ns - trace.end_ns[before], 0)
    for (rank,), values in _grouped(rows, gap, trace.rank):
        found.append(GapTimes(source=rank, target=rank, op="", times=_times(values)))
    return found


def _grouped(rows: Ints, values: Ints, *keys: NDArray[np.integer]) -> list[tuple[tuple[int, ...], Ints]]:
    """Values of the rows, by the keys of the rows, sorted by key."""
    if not len(rows):
        return []
    table = np.stack([key[rows].astype(np.int64) for key in keys], axis=1)
    distinct, group = np.unique(table, axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    parts = np.split(values[rows][order], np.cumsum(np.bincount(group))[:-1])
    return [(tuple(key), part) for key, part in zip(distinct.tolist(), parts, strict=True)]
