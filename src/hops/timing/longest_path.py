"""The longest path through a program: every rank runs its list, waiting for each action's message.

Messages need no list: an action of stage s takes one (F from stage s - 1, B or I from stage s + 1), and sends at most
one, so that each message has a slot of its own, and each slot one rank that can wait for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hops.compiled import kernel
from hops.program.action import Op
from hops.program.coded import CLOSES, NUM_OPS, OPENS, Coded, IntArray
from hops.program.shape import Shape

Ints = Sequence[int] | IntArray
START, POSITION, WAITS_FOR = -4, -3, -2  # places among the arguments of `run`


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Where actions take messages from, and put them. Lists have one value per kind (stage * 4 + op); -1: none.

    Attributes:
        source, target: the slot of microbatch 0; microbatch m has the slot m further on.
        target_rank: the rank that the sent message is for.
        hop: index of the pair of stages (s, s + 1) that the taken and the sent message cross.
    """

    source: list[int]
    target: list[int]
    target_rank: list[int]
    source_hop: list[int]
    target_hop: list[int]

    @classmethod
    def of(cls, shape: Shape) -> "Wiring":
        stages, size = shape.num_stages, shape.num_microbatches
        none = [-1] * (stages * NUM_OPS)
        wiring = cls(source=none[:], target=none[:], target_rank=none[:], source_hop=none[:], target_hop=none[:])
        for stage in range(stages):
            for op in (Op.F, Op.B, Op.I):
                step = 1 if op is Op.F else -1
                kind = stage * NUM_OPS + op
                row = 0 if op is Op.F else stages
                if 0 <= stage - step < stages:
                    wiring.source[kind] = (row + stage) * size
                    wiring.source_hop[kind] = min(stage, stage - step)
                if 0 <= stage + step < stages:
                    wiring.target[kind] = (row + stage + step) * size
                    wiring.target_rank[kind] = shape.rank_of_stage[stage + step]
                    wiring.target_hop[kind] = min(stage, stage + step)
        return wiring


@kernel
def run(
    first: Ints,
    kind: Ints,
    microbatch: Ints,
    pair: Ints,
    duration: Ints,
    source: Ints,
    target: Ints,
    target_rank: Ints,
    on_the_way: Ints,
    receive: Ints,
    send: Ints,
    arrival: list[int] | IntArray,
    start: list[int] | IntArray,
    position: list[int] | IntArray,
    waits_for: list[int] | IntArray,
    stack: list[int] | IntArray,
) -> None:
    """Fill `start` (per action), and `position` (per rank: first action that could not start; all ran if it is past).

    `first` has one value per rank and one more: where its actions begin. `kind`, `microbatch` and `pair`
    have one per action; a pair starts when both can, and sends when both are done.
    Per kind: `duration`; `source`, `target` and `target_rank` (see Wiring); `on_the_way`, how long its message is under
    way while both ranks work on; `receive` and `send`, how long taking and sending keep the rank busy, where a send and
    the taking that follows it run at once. `arrival` has one value per slot, all -1 before. Per rank: `position`
    (as in `first`), `waits_for` (-1) and `stack` (all ranks, in any order).
    """
    ranks = len(first) - 1
    free = [0] * ranks
    busy = [0] * ranks
    height = ranks
    while height > 0:
        height -= 1
        rank = stack[height]
        now = free[rank]
        sending = busy[rank]
        here = position[rank]
        end = first[rank + 1]
        while here < end:
            what = kind[here]
            ready = now
            slot = source[what]
            if slot >= 0:
                slot += microbatch[here]
                if arrival[slot] < 0:
                    waits_for[rank] = slot
                    break
                ready = max(ready, arrival[slot]) + receive[what]
            if pair[here] == OPENS:
                slot = source[kind[here + 1]]
                if slot >= 0:
                    slot += microbatch[here + 1]
                    if arrival[slot] < 0:
                        waits_for[rank] = slot
                        break
                    ready = max(ready, arrival[slot])
            now = max(ready, sending)
            start[here] = now
            now += duration[what]
            here += 1
            if pair[here - 1] == OPENS:
                continue
            sent = here - 1
            while True:
                what = kind[sent]
                slot = target[what]
                if slot >= 0:
                    slot += microbatch[sent]
                    arrival[slot] = now + on_the_way[what]
                    sending = now + send[what]
                    other = target_rank[what]
                    if waits_for[other] == slot:
                        waits_for[other] = -1
                        stack[height] = other
                        height += 1
                if pair[sent] != CLOSES:
                    break
                sent -= 1
        position[rank] = here
        free[rank] = now
        busy[rank] = sending


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """When every action of a program starts.

    Attributes:
        start: shape (actions,).
        position: per rank, its first action that never could start; one past its last if all did.
        waits_for: per rank, the slot of the message that this action (or pair) lacks; -1 if all started.
    """

    start: IntArray
    position: list[int]
    waits_for: list[int]


def arrange(coded: Coded, duration: list[int], hop: list[int], *, blocking: bool, fast: bool = False) -> Times:
    """Run the program with durations per kind and hops per pair of neighbouring stages, in any unit of time.

    `fast` uses the compiled kernel, which pays for programs that are run thousands of times.
    """
    wiring = Wiring.of(coded.shape)
    shape = coded.shape
    crossing = [hop[index] if index >= 0 else 0 for index in wiring.target_hop]
    taking = [hop[index] if index >= 0 else 0 for index in wiring.source_hop]
    none = [0] * len(duration)
    start, arrival = [0] * len(coded.stage), [-1] * (2 * shape.num_stages * shape.num_microbatches)
    position, waits_for, stack = coded.first[:-1].tolist(), [-1] * shape.num_ranks, list(range(shape.num_ranks))
    columns: list[list[int]] = [
        *(column.tolist() for column in (coded.first, coded.kind, coded.microbatch, coded.pair)),
        *(duration, wiring.source, wiring.target, wiring.target_rank),
        *((none, taking, crossing) if blocking else (crossing, none, none)),
        *(arrival, start, position, waits_for, stack),
    ]
    if not fast:
        run(*columns)
        return Times(start=np.array(start, dtype=np.int64), position=position, waits_for=waits_for)
    arrays = [np.array(column, dtype=np.int64) for column in columns]
    run.fast(*arrays)
    return Times(start=arrays[START], position=arrays[POSITION].tolist(), waits_for=arrays[WAITS_FOR].tolist())
