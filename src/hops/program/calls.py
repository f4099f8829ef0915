"""Fused exchanges of all directions: the calls that Megatron-LM's interleaved schedule makes without overlap.

A rank computes, then makes a call, which posts at once the sends of what it has computed and the receives of what it
computes next, and ends when all of them are delivered (`send_forward_backward_recv_forward_backward` and its kin,
`megatron/core/pipeline_parallel/schedules.py`). In its steady state a rank computes a forward and the backward after it
between two calls: a couple. Orders whose calls do not meet cannot run so.
"""

from dataclasses import replace

import numpy as np

from hops.errors import ProgramError
from hops.program.action import Op
from hops.program.check import check_complete
from hops.program.lowering import Lowered, lower_complete
from hops.program.program import Program
from hops.program.wiring import NONE


def with_calls(program: Program) -> Program | None:
    """The program with couples as entries of the stream; None: its calls do not meet. Raises what `lower` raises."""
    alone = ~program.in_pair
    opens = (program.op[:-1] == Op.F) & np.isin(program.op[1:], (Op.B, Op.I)) & alone[:-1] & alone[1:]
    opens &= np.diff(program.rank_of_action) == 0
    apart = np.append(True, np.diff(program.step) > 0)
    apart[1:] &= ~opens
    coupled = replace(program, step=np.cumsum(apart) - 1)
    check_complete(program)
    try:
        low = lower_complete(coupled)
    except ProgramError:
        return None
    return coupled if _meet(coupled, low) else None


def _meet(program: Program, low: Lowered) -> bool:
    """Whether all calls end: each when all of its messages are posted by their other end."""
    rank_of_action = program.rank_of_action
    sender = np.full(len(low.receiver), NONE)
    givers = np.flatnonzero(low.bring != NONE)
    sender[low.bring[givers]] = rank_of_action[givers]
    travels = sender != low.receiver
    ends = np.array([low.rank_first[:-1], low.rank_first[1:]]).T.tolist()

    def of_step(column: list[int], step: int) -> list[int]:
        keys = column[low.first[step] : low.first[step + 1]]
        return [key for key in keys if key != NONE and travels[key]]

    need, bring = low.need.tolist(), low.bring.tolist()
    at = [first for first, _ in ends]  # the step that each rank's call comes before
    sent, wanted = set[int](), set[int]()

    def messages(rank: int) -> tuple[list[int], list[int]]:
        """What the call of a rank sends and receives."""
        first, behind = ends[rank]
        sends = of_step(bring, at[rank] - 1) if at[rank] > first else []
        return sends, of_step(need, at[rank]) if at[rank] < behind else []

    waiting = dict.fromkeys(range(program.num_ranks))
    while waiting:
        rank = next(iter(waiting))
        del waiting[rank]
        while at[rank] <= ends[rank][1]:
            sends, receives = messages(rank)
            fresh = [key for key in sends if key not in sent] + [key for key in receives if key not in wanted]
            sent.update(sends)
            wanted.update(receives)
            waiting |= dict.fromkeys(int(end) for key in fresh for end in (sender[key], low.receiver[key]))
            if not wanted.issuperset(sends) or not sent.issuperset(receives):
                break
            at[rank] += 1
        waiting.pop(rank, None)
    return all(place > behind for place, (_, behind) in zip(at, ends, strict=True))
