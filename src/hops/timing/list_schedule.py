"""List scheduling: simulated forward in time, every rank runs what a rule prefers of what is there.

There is one clock (`start_clock`, `next_rank`) and three ways to choose: closed-form policies
(`list_schedule`), an order taken as priorities (`list_schedule_by_priority`), and the nominal times of a pattern that
repeats (`list_schedule_by_pattern`). All keep to the activation budget.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.program import Program
from hops.timing.order_rows import OrderRows
from hops.timing.stage_costs import UNLIMITED, CostArrays

NONE = -1
LOOK_AHEAD = 24  # places past the first open one in which a rank looks for something it could run


class Clock(NamedTuple):
    """Where a list schedule stands. Times in ns, memory in bytes; kernels change the arrays in place.

    Attributes:
        arrived: when the input of each F (row 0) and of each B or I (row 1) is there, UNLIMITED while unknown; shape
            (2, stages, size).
        free: the end of each rank's last action; due: when it looks again for work; held: what its activations take;
            each of shape (ranks,).
        reserve: what the rank's later stages take for one microbatch; shape (stages,).
    """

    arrived: IntArray
    free: IntArray
    due: IntArray
    held: IntArray
    reserve: IntArray


@kernel
def start_clock(costs: CostArrays) -> Clock:
    """Time 0: only the first stage has inputs."""
    stages, ranks = len(costs.rank_of), len(costs.budget)
    arrived = np.full((2, stages, costs.size), UNLIMITED, dtype=np.int64)
    arrived[0, 0, :] = 0
    reserve = np.zeros(stages, dtype=np.int64)
    for s in range(stages - 1, -1, -1):
        if costs.later[s] >= 0:
            reserve[s] = reserve[costs.later[s]] + costs.activation[costs.later[s]]
    due = np.full(ranks, UNLIMITED, dtype=np.int64)
    due[costs.rank_of[0]] = 0
    return Clock(arrived, np.zeros(ranks, dtype=np.int64), due, np.zeros(ranks, dtype=np.int64), reserve)


@kernel
def next_rank(due: IntArray) -> int:
    """The first rank that looks for work at the earliest time."""
    rank = 0
    for r in range(1, len(due)):
        if due[r] < due[rank]:
            rank = r
    return rank


# The three kernels below unpack records before their loops, and each spells out what running an action changes: to look
# into a record, or to pass arrays to another kernel, counts references, and an action took 180 ns in place of 20.


class Rule(IntEnum):
    """The rows of a policy, an array of shape (rules, stages).

    IN_FLIGHT: start no forward while that many microbatches are in flight.
    SPLIT_LAST, SPLIT_FIRST: how many of the last and first backwards to split into I and W; the others are fused.
    PREFER: with a forward and a backward at hand, 0 takes the forward, 1 the backward.
    PATIENCE: run a W only if the next known arrival is at least so many percent of its time away.
    DEFER: once more than that many W wait, they go first.
    """

    IN_FLIGHT = 0
    SPLIT_LAST = 1
    SPLIT_FIRST = 2
    PREFER = 3
    PATIENCE = 4
    DEFER = 5


class Rules(NamedTuple):
    """A policy's rows by name, see `Rule`; each of shape (stages,)."""

    in_flight: IntArray
    split_last: IntArray
    split_first: IntArray
    prefer: IntArray
    patience: IntArray
    defer: IntArray


@kernel
def rules_of(policy: IntArray) -> Rules:
    """Views of a policy's rows."""
    return Rules(policy[0], policy[1], policy[2], policy[3], policy[4], policy[5])


@kernel
def list_schedule(costs: CostArrays, rules: Rules, out: OrderRows) -> int:
    """Fill `out` and return the makespan (ns); UNLIMITED if the rules get stuck.

    A forward starts only if its rank's memory then still takes the same microbatch in the rank's later stages.
    """
    size, times, hop, rank_of, later, activation, kept, budget, _, _, _, _ = costs
    in_flight, split_last, split_first, prefer, patience, defer = rules
    kinds, length = out
    stages = len(rank_of)
    arrived, free, due, held, reserve = start_clock(costs)
    forwards = np.zeros(stages, dtype=np.int64)
    backwards = np.zeros(stages, dtype=np.int64)
    waiting = np.zeros(stages, dtype=np.int64)  # W whose I has run
    first_stage = np.full(len(budget), NONE, dtype=np.int64)
    for s in range(stages - 1, -1, -1):
        first_stage[rank_of[s]] = s
    length[:] = 0
    makespan = 0
    while True:
        rank = next_rank(due)
        now = due[rank]
        if now >= UNLIMITED:
            break
        # What could start now: the last stage with a backward, the last with a forward, the first with a W. `blocked`
        # is a forward whose input is there but whose memory is not; `soon` is the next arrival that is known.
        forward, backward, weight, blocked = NONE, NONE, NONE, NONE
        soon = UNLIMITED
        s = first_stage[rank]
        while s >= 0:
            j = backwards[s]
            if j < size:
                if arrived[1, s, j] <= now:
                    backward = s
                else:
                    soon = min(soon, arrived[1, s, j])
            j = forwards[s]
            if j < size and j - backwards[s] < in_flight[s]:
                if held[rank] + activation[s] + reserve[s] <= budget[rank]:
                    if arrived[0, s, j] <= now:
                        forward = s
                    else:
                        soon = min(soon, arrived[0, s, j])
                elif arrived[0, s, j] <= now:
                    blocked = s
            if waiting[s] > 0 and weight < 0:
                weight = s
            s = later[s]
        # Which of them: W that have piled up; then F or backward as preferred, but a W first where it makes room for a
        # preferred F; then a W, if it makes room or if no message comes before it could end.
        s, op = NONE, NONE
        if weight >= 0 and waiting[weight] > defer[weight]:
            s, op = weight, 3
        elif forward >= 0 and (backward < 0 or prefer[forward] == 0):
            s, op = forward, 0
        elif backward >= 0:
            s, op = backward, 2
            if blocked >= 0 and weight >= 0 and prefer[blocked] == 0:
                s, op = weight, 3
        elif weight >= 0 and (
            blocked >= 0 or soon >= UNLIMITED or (soon - now) * 100 >= patience[weight] * times[weight, 3]
        ):
            s, op = weight, 3
        if s < 0:
            due[rank] = soon
            continue
        if op == 2 and split_first[s] <= backwards[s] < size - split_last[s]:
            op = 1
        # Where W needs more than F kept, splitting takes memory: a W makes room for it, or else it is fused.
        if op == 2 and held[rank] - activation[s] + kept[s] > budget[rank]:
            op = 1
            if weight >= 0:
                s, op = weight, 3
        j = 0  # of a W it makes no difference
        if op == 0:
            j = forwards[s]
            forwards[s] += 1
        elif op == 3:
            waiting[s] -= 1
        else:
            j = backwards[s]
            backwards[s] += 1
            if op == 2:
                waiting[s] += 1
        ended = now + times[s, op]
        kinds[rank, length[rank]] = s * 4 + op
        length[rank] += 1
        makespan = max(makespan, ended)
        # Until then the rank is busy; memory changes; what the action gives is under way, and its receiver looks for
        # work when that is there, or later if it is busy then.
        free[rank] = ended
        due[rank] = ended
        target, arrives = NONE, ended
        if op == 0:
            held[rank] += activation[s]
            if s < stages - 1:
                target = s + 1
                arrives = ended + hop[s]
                arrived[0, target, j] = arrives
            else:
                arrived[1, s, j] = ended
        elif op == 3:
            held[rank] -= kept[s]
        else:
            held[rank] -= activation[s]
            if op == 2:
                held[rank] += kept[s]
            if s > 0:
                target = s - 1
                arrives = ended + hop[target]
                arrived[1, target, j] = arrives
        if target >= 0 and rank_of[target] != rank:
            receiver = rank_of[target]
            due[receiver] = min(due[receiver], max(free[receiver], arrives))
    for s in range(stages):
        if backwards[s] < size or waiting[s] > 0:
            return UNLIMITED
    return makespan


class Priorities(NamedTuple):
    """An order with its microbatches, shape (ranks, longest) each; the first `length` (ranks,) of a row count."""

    kinds: IntArray
    microbatch: IntArray
    length: IntArray


def priorities_of(program: Program) -> Priorities:
    """A program's order; its pairs are forgotten."""
    length = np.diff(program.first)
    shape = (program.num_ranks, int(length.max()))
    kinds, microbatch = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    place = np.arange(program.num_actions) - np.repeat(program.first[:-1], length)
    kinds[program.rank_of_action, place] = program.kind
    microbatch[program.rank_of_action, place] = program.microbatch
    return Priorities(kinds, microbatch, length)


@kernel
def list_schedule_by_priority(costs: CostArrays, durations: IntArray, order: Priorities, look_ahead: int) -> int:
    """The makespan (ns) with durations (stages, 4 ops, size); UNLIMITED if it gets stuck.

    An idle rank runs the first action of its row that is open and ready, at most `look_ahead` places past the first
    open one (0: the order as it stands), starting a forward only if memory allows it. One out of turn must leave room
    for its microbatch in the rank's later stages.
    """
    size, _, hop, rank_of, _, activation, kept, budget, _, _, _, _ = costs
    kinds, microbatch, length = order
    stages, ranks = len(rank_of), len(budget)
    arrived, free, due, held, reserve = start_clock(costs)
    is_done = np.zeros(kinds.shape, dtype=np.int64)
    split_end = np.full((stages, size), UNLIMITED, dtype=np.int64)  # of I: from then on W can run
    first = np.zeros(ranks, dtype=np.int64)  # place of the first open action
    makespan = 0
    while True:
        rank = next_rank(due)
        now = due[rank]
        if now >= UNLIMITED:
            break
        chosen = NONE
        soon = UNLIMITED
        at = first[rank]
        stop = min(length[rank], at + look_ahead + 1)
        while at < stop and chosen < 0:
            if is_done[rank, at] == 0:
                s, op, j = kinds[rank, at] >> 2, kinds[rank, at] & 3, microbatch[rank, at]
                ready = UNLIMITED
                if op == 0:
                    room = reserve[s] if at > first[rank] else 0
                    if held[rank] + activation[s] + room <= budget[rank]:
                        ready = arrived[0, s, j]
                elif op == 3:
                    ready = split_end[s, j]
                else:
                    ready = arrived[1, s, j]
                if ready <= now:
                    chosen = at
                else:
                    soon = min(soon, ready)
            at += 1
        if chosen < 0:
            due[rank] = soon
            continue
        s, op, j = kinds[rank, chosen] >> 2, kinds[rank, chosen] & 3, microbatch[rank, chosen]
        ended = now + durations[s, op, j]
        is_done[rank, chosen] = 1
        while first[rank] < length[rank] and is_done[rank, first[rank]] == 1:
            first[rank] += 1
        if op == 2:
            split_end[s, j] = ended
        makespan = max(makespan, ended)
        # Until then the rank is busy; memory changes; what the action gives is under way, and its receiver looks for
        # work when that is there, or later if it is busy then.
        free[rank] = ended
        due[rank] = ended
        target, arrives = NONE, ended
        if op == 0:
            held[rank] += activation[s]
            if s < stages - 1:
                target = s + 1
                arrives = ended + hop[s]
                arrived[0, target, j] = arrives
            else:
                arrived[1, s, j] = ended
        elif op == 3:
            held[rank] -= kept[s]
        else:
            held[rank] -= activation[s]
            if op == 2:
                held[rank] += kept[s]
            if s > 0:
                target = s - 1
                arrives = ended + hop[target]
                arrived[1, target, j] = arrives
        if target >= 0 and rank_of[target] != rank:
            receiver = rank_of[target]
            due[receiver] = min(due[receiver], max(free[receiver], arrives))
    for rank in range(ranks):
        if first[rank] < length[rank]:
            return UNLIMITED
    return makespan


@kernel
def list_schedule_by_pattern(costs: CostArrays, nominal: IntArray, period: int, out: OrderRows) -> int:
    """Fill `out` and return the makespan; UNLIMITED if it gets stuck. Ranks have two stages each.

    Microbatch j of each F and I has its nominal time, `nominal` (2 ops: F and I; stages) and j periods; only their
    order counts. An idle rank runs the nominally first action that is ready and that memory allows. A forward of the
    first stage must leave room for those of the second that nominally come before it. A W, oldest first, runs when
    there is nothing else, or when it makes room for what would come before anything else.
    """
    size, times, hop, rank_of, later, activation, kept, budget, _, _, _, _ = costs
    kinds, length = out
    stages, ranks = len(rank_of), len(budget)
    arrived, free, due, held, _ = start_clock(costs)
    count = np.zeros((2, stages), dtype=np.int64)  # F and I that have run
    first_stage = np.zeros(ranks, dtype=np.int64)
    for s in range(stages):
        if later[s] >= 0:
            first_stage[rank_of[s]] = s
    put_off = np.zeros((ranks, 2 * size), dtype=np.int64)  # stages of the I that have run, in order
    splits, weights = np.zeros(ranks, dtype=np.int64), np.zeros(ranks, dtype=np.int64)  # how many I, W have run
    length[:] = 0
    makespan = 0
    while True:
        rank = next_rank(due)
        now = due[rank]
        if now >= UNLIMITED:
            break
        stage, which, best, blocked = NONE, NONE, UNLIMITED, UNLIMITED
        soon = UNLIMITED
        up = later[first_stage[rank]]
        s = first_stage[rank]
        while s >= 0:
            for kind in range(2):
                j = count[kind, s]
                if j < size:
                    time = nominal[kind, s] + period * j
                    if arrived[kind, s, j] > now:
                        soon = min(soon, arrived[kind, s, j])
                    elif time < best:
                        room = held[rank] - activation[s] + kept[s]
                        if kind == 0:
                            room = held[rank] + activation[s]
                            if s != up:
                                earlier = (
                                    j - (nominal[0, up] - nominal[0, s]) // period
                                )  # F of the second before this one
                                room += max(0, min(earlier, size) - count[0, up]) * activation[up]
                        if room <= budget[rank]:
                            stage, which, best = s, kind, time
                        else:
                            blocked = min(blocked, time)
            s = later[s]
        has_weight = weights[rank] < splits[rank]
        op, j = 2 * which, 0
        if has_weight and blocked < best:
            stage, op = put_off[rank, weights[rank]], 3
        elif stage < 0:
            if not has_weight:
                due[rank] = soon
                continue
            stage, op = put_off[rank, weights[rank]], 3
        if op == 3:
            weights[rank] += 1
        else:
            j = count[which, stage]
            count[which, stage] += 1
            if op == 2:
                put_off[rank, splits[rank]] = stage
                splits[rank] += 1
        ended = now + times[stage, op]
        kinds[rank, length[rank]] = stage * 4 + op
        length[rank] += 1
        makespan = max(makespan, ended)
        # Until then the rank is busy; memory changes; what the action gives is under way, and its receiver looks for
        # work when that is there, or later if it is busy then.
        free[rank] = ended
        due[rank] = ended
        target, arrives = NONE, ended
        if op == 0:
            held[rank] += activation[stage]
            if stage < stages - 1:
                target = stage + 1
                arrives = ended + hop[stage]
                arrived[0, target, j] = arrives
            else:
                arrived[1, stage, j] = ended
        elif op == 3:
            held[rank] -= kept[stage]
        else:
            held[rank] -= activation[stage]
            if op == 2:
                held[rank] += kept[stage]
            if stage > 0:
                target = stage - 1
                arrives = ended + hop[target]
                arrived[1, target, j] = arrives
        if target >= 0 and rank_of[target] != rank:
            receiver = rank_of[target]
            due[receiver] = min(due[receiver], max(free[receiver], arrives))
    for rank in range(ranks):
        if weights[rank] < 2 * size:
            return UNLIMITED
    return makespan
