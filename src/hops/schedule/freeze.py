"""The order of compute actions in a trace as a program, whoever decided it: a policy, or a real run."""

import numpy as np

from hops.actions import Action, Op
from hops.errors import TraceError
from hops.schedule.program import Program
from hops.schedule.shape import Shape
from hops.trace import Stream, Trace


def freeze(trace: Trace, *, iteration: int | None = None) -> Program:
    """Every rank's actions in order of their start.

    Args:
        trace: simulated or measured.
        iteration: which one; None means the first in the trace.

    Raises TraceError if the trace has no actions of that iteration. The program is not checked: a measured trace may
    lack rows.
    """
    is_action = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W)
    numbers = np.unique(trace.iteration[is_action])
    if len(numbers) == 0 or (iteration is not None and iteration not in numbers):
        known = f"it has iterations {numbers[0]} to {numbers[-1]}" if len(numbers) else "it has none"
        wanted = "any iteration" if iteration is None else f"iteration {iteration}"
        raise TraceError(f"the trace has no compute actions of {wanted}; {known}")
    chosen = numbers[0] if iteration is None else iteration
    rows = trace.where(is_action & (trace.iteration == chosen))
    shape = Shape(num_microbatches=trace.meta.num_microbatches, rank_of_stage=trace.meta.rank_of_stage)
    return Program(shape=shape, ranks=tuple(_actions(rows, rank) for rank in range(shape.num_ranks)))


def _actions(rows: Trace, rank: int) -> tuple[Action, ...]:
    of_rank = rows.rank == rank
    columns = (column[of_rank].tolist() for column in (rows.stage, rows.op, rows.microbatch))
    return tuple(Action(stage, Op(op), microbatch) for stage, op, microbatch in zip(*columns, strict=True))
