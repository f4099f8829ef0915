"""From a policy to an order: every rank takes what its rules prefer of what is there, simulated forward in time."""

from enum import IntEnum

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.timing.stage_costs import UNLIMITED


class Rule(IntEnum):
    """The rows of a policy; each has one value per stage.

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


NONE = -1


@kernel
def decode(
    size: int,
    times: IntArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    policy: IntArray,
    kinds: IntArray,
    length: IntArray,
) -> int:
    """Fill `kinds` (ranks, longest) and `length` (ranks,), and return the makespan; UNLIMITED if the policy gets stuck.

    A forward starts only if its rank's memory then still takes the same microbatch in the rank's later stages.
    """
    stages = len(rank_of)
    ranks = len(memory)
    forwards = np.zeros(stages, dtype=np.int64)
    backwards = np.zeros(stages, dtype=np.int64)
    waiting = np.zeros(stages, dtype=np.int64)
    arrived = np.full((2, stages, size), UNLIMITED, dtype=np.int64)  # inputs of forwards and of backwards
    arrived[0, 0, :] = 0
    free = np.zeros(ranks, dtype=np.int64)
    due = np.full(ranks, UNLIMITED, dtype=np.int64)  # when a rank looks again for work
    held = np.zeros(ranks, dtype=np.int64)
    first_stage = np.full(ranks, NONE, dtype=np.int64)
    reserve = np.zeros(stages, dtype=np.int64)
    for s in range(stages - 1, -1, -1):
        first_stage[rank_of[s]] = s
        if later[s] >= 0:
            reserve[s] = reserve[later[s]] + activation[later[s]]
    length[:] = 0
    due[rank_of[0]] = 0
    makespan = 0
    while True:
        rank = 0
        now = due[0]
        for r in range(1, ranks):
            if due[r] < now:
                now = due[r]
                rank = r
        if now >= UNLIMITED:
            break
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
            if j < size and j - backwards[s] < policy[0, s]:
                if held[rank] + activation[s] + reserve[s] <= memory[rank]:
                    if arrived[0, s, j] <= now:
                        forward = s
                    else:
                        soon = min(soon, arrived[0, s, j])
                elif arrived[0, s, j] <= now:
                    blocked = s
            if waiting[s] > 0 and weight < 0:
                weight = s
            s = later[s]
        s, op = NONE, NONE
        if weight >= 0 and waiting[weight] > policy[5, weight]:
            s, op = weight, 3
        elif forward >= 0 and (backward < 0 or policy[3, forward] == 0):
            s, op = forward, 0
        elif backward >= 0:
            s, op = backward, 2
            if blocked >= 0 and weight >= 0 and policy[3, blocked] == 0:
                s, op = weight, 3
        elif weight >= 0 and (
            blocked >= 0 or soon >= UNLIMITED or (soon - now) * 100 >= policy[4, weight] * times[weight, 3]
        ):
            s, op = weight, 3
        if s < 0:
            due[rank] = soon
            continue
        if op == 2 and (
            policy[2, s] <= backwards[s] < size - policy[1, s]
            or held[rank] - activation[s] + kept[s] > memory[rank]  # I may keep more than it gives back, B never does
        ):
            op = 1
        ended = now + times[s, op]
        kinds[rank, length[rank]] = s * 4 + op
        length[rank] += 1
        free[rank] = ended
        due[rank] = ended
        makespan = max(makespan, ended)
        target = NONE
        if op == 0:
            held[rank] += activation[s]
            if s < stages - 1:
                target = s + 1
                arrived[0, target, forwards[s]] = ended + hop[s]
            else:
                arrived[1, s, forwards[s]] = ended
            forwards[s] += 1
        elif op == 3:
            held[rank] -= kept[s]
            waiting[s] -= 1
        else:
            held[rank] -= activation[s]
            if op == 2:
                held[rank] += kept[s]
                waiting[s] += 1
            if s > 0:
                target = s - 1
                arrived[1, target, backwards[s]] = ended + hop[target]
            backwards[s] += 1
        if target >= 0 and rank_of[target] != rank:
            r = rank_of[target]
            message = hop[s] if op == 0 else hop[target]
            due[r] = min(due[r], max(free[r], ended + message))
    for s in range(stages):
        if backwards[s] < size or waiting[s] > 0:
            return UNLIMITED
    return makespan
