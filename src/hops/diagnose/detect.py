"""Which schedule a trace followed, whatever it was called: its order of actions against every schedule's program."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.errors import HopsError, TraceError
from hops.program.action import ACTION_OPS, Op
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler, variants
from hops.schedules.builtins import CHOOSERS, KEPT_TO_COMPARE
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """The order that most iterations ran.

    Attributes:
        program: that order.
        names: the schedules that give exactly this order here; several where they coincide, () if none does.
        iterations: how many iterations ran it.
        others: numbers of the iterations that ran another order.
    """

    program: Program
    names: tuple[str, ...]
    iterations: int
    others: tuple[int, ...]

    def contradicts(self, label: str) -> bool:
        """Whether the label names a schedule of ours that gives another order than the one that ran."""
        names = {name.partition(" ")[0] for name in self.names}  # without what they state
        return bool(names) and label in _comparable() and label not in names


def detect(trace: Trace) -> Detected:
    """Compare the order of actions of every iteration with the programs of all static schedules for this shape.

    Schedules that choose among others are left out: what they chose has a name of its own.
    Schedules that look at times get the medians of the trace. Raises TraceError if the trace has no actions.
    """
    groups = _same_order(trace)
    most = max(groups, key=len)
    program = program_from_trace(trace, iteration=most[0])
    names = tuple(
        name for name, candidate in _programs(program.shape, _medians(trace)) if candidate.same_order(program)
    )
    others = sorted(number for group in groups if group is not most for number in group)
    return Detected(program=program, names=names, iterations=len(most), others=tuple(others))


def _same_order(trace: Trace) -> list[list[int]]:
    """Numbers of iterations, grouped by their order of actions; the groups in order of their first member."""
    rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W))
    if not len(rows):
        raise TraceError("the trace has no compute actions; expected at least one iteration's")
    order = np.lexsort((rows.start_ns, rows.rank, rows.iteration))
    code = np.stack([column[order] for column in (rows.rank, rows.stage, rows.op, rows.microbatch)])
    numbers, first = np.unique(rows.iteration[order], return_index=True)
    groups: dict[bytes, list[int]] = {}
    for number, part in zip(numbers.tolist(), np.split(code, first[1:], axis=1), strict=True):
        groups.setdefault(part.tobytes(), []).append(number)
    return list(groups.values())


def _programs(shape: Shape, profile: StageCosts) -> Iterator[tuple[str, Program]]:
    """Every static schedule's program for the shape, by name; those that cannot arrange it are passed over."""
    for name in _comparable():
        for called, scheduler in variants(name, shape):
            if not isinstance(scheduler, StaticScheduler):
                continue
            try:
                scheduler.configure(profile)
            except HopsError:
                continue
            yield called, scheduler.program


def _comparable() -> list[str]:
    """Names of schedules whose programs are their own."""
    return [name for name in SCHEDULERS.names() if name not in (*CHOOSERS, *KEPT_TO_COMPARE)]


def _medians(trace: Trace) -> StageCosts:
    """Median seconds of every op of every stage; an op that never ran takes what B = I + W leaves."""
    rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W))
    shape = trace.meta.shape
    seconds = {op: _by_stage(rows, op, shape.num_stages) for op in ACTION_OPS}
    uniform = StageCosts.uniform(shape)
    split = np.where(seconds[Op.I] + seconds[Op.W] > 0, seconds[Op.I] + seconds[Op.W], seconds[Op.B])
    return StageCosts(
        shape=shape,
        forward_s=tuple(seconds[Op.F].tolist()),
        input_backward_s=tuple(np.where(seconds[Op.I] > 0, seconds[Op.I], split / 2).tolist()),
        weight_backward_s=tuple(np.where(seconds[Op.W] > 0, seconds[Op.W], split / 2).tolist()),
        fused_backward_s=tuple(split.tolist()),
        hop_s=uniform.hop_s,
        activation_bytes=uniform.activation_bytes,
        kept_for_weight_bytes=uniform.kept_for_weight_bytes,
        budget_bytes=uniform.budget_bytes,
    )


def _by_stage(rows: Trace, op: Op, num_stages: int) -> NDArray[np.float64]:
    """Median seconds per stage, 0 where it never ran. Shape (stages,)."""
    mine = rows.where(rows.op == op)
    medians = [np.median(durations) if len(durations := mine.duration_ns[mine.stage == s]) else 0.0 for s in
               range(num_stages)]  # fmt: skip
    return np.asarray(medians, dtype=np.float64) / NS_PER_S
