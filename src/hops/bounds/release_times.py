"""Heads and tails: how early each action can start, and how long the run must go on after it, at the least.

Both are longest paths over counted actions: the messages, a stage's own work, and what its memory forces, namely that a
forward waits for the backwards that make room for it. In the code, d is what a backward costs a rank beside I, with the
cheaper of B and I + W counted.
"""

from typing import NamedTuple

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.timing.retiming import Tails
from hops.timing.stage_costs import CostArrays

NEVER = -(1 << 60)
LONG = 1 << 60


class MemoryLimits(NamedTuple):
    """What memory forces on every stage, counted in microbatches; see `memory_limits`.

    Attributes:
        window: shape (stages, stages); pending: shape (stages,). Both at most `size`, which means no limit.
    """

    window: IntArray
    pending: IntArray


class Heads(NamedTuple):
    """The earliest start (ns) of the j-th forward, and of the j-th B or I, of each stage; shapes (stages, size)."""

    forward: IntArray
    backward: IntArray


@kernel
def memory_limits(costs: CostArrays, out: MemoryLimits) -> None:
    """Fill in what memory forces on every stage.

    `window[s, u]`, for stages s <= u of one rank: forward j of s starts only after backward j - window of u has ended,
    because the microbatches in between sit in s and in the rank's stages before it, while the oldest of them needs room
    in the stages after s up to u to get on. For the same reason forward j of u waits for that backward of s, since its
    own microbatch sits in the stages in between. `pending[s]`: W j of s ends before backward j + pending, and forward
    j + pending, of s start. Both at most `size`, which means no limit.
    """
    size, rank_of, later, activation = costs.size, costs.rank_of, costs.later, costs.activation
    kept, memory, window, pending = costs.kept, costs.budget, out.window, out.pending
    stages = len(rank_of)
    held = [0] * stages  # by one microbatch, in the stage and those before it on the rank
    window[:] = size
    for s in range(stages):
        held[s] += activation[s]
        room = memory[rank_of[s]]
        pending[s] = size
        if kept[s] > 0:
            pending[s] = min(size, (room - held[s]) // kept[s] + 1)
        u = s
        while u >= 0 and held[s] > 0:
            window[s, u] = min(size, room // held[s])
            u = later[u]
            if u >= 0:
                room -= activation[u]
        if later[s] >= 0:
            held[later[s]] = held[s]


@kernel
def earliest(costs: CostArrays, limits: MemoryLimits, heads: Heads) -> None:
    """Raise the earliest starts of the j-th forward and the j-th backward of each stage; shapes (stages, size).

    A stage's own work enters through anchors: from an action that can't start before time h, the rank has at least the
    later actions of the stage to do. `anchor` keeps the best h less the work of the actions before; `anchor_w` is the
    same with the W of those backwards.
    """
    size, times, hop, rank_of = costs.size, costs.times, costs.hop, costs.rank_of
    later, activation, kept, memory = costs.later, costs.activation, costs.kept, costs.budget
    window, pending, forward, backward = limits.window, limits.pending, heads.forward, heads.backward
    stages = len(rank_of)
    anchor = [NEVER] * stages
    anchor_w = [NEVER] * stages
    passed = [0] * stages
    joined = [0] * stages
    former = [-1] * stages
    held = [0] * stages  # by one microbatch, in the stage and those before it on the rank
    for s in range(stages):
        held[s] += activation[s]
        if later[s] >= 0:
            held[later[s]] = held[s]
            former[later[s]] = s
    for j in range(size):
        for s in range(stages):
            f = times[s, 0]
            i = min(times[s, 1], times[s, 2])
            d = min(times[s, 1], times[s, 2] + times[s, 3]) - i
            head = forward[s, j]
            if s > 0:
                head = max(head, forward[s - 1, j] + times[s - 1, 0] + hop[s - 1])
            if j > 0:
                head = max(head, forward[s, j - 1] + f)
                u = later[s]
                while u >= 0:
                    ended = j - window[s, u]
                    if ended >= 0:
                        head = max(head, backward[u, ended] + min(times[u, 1], times[u, 2]))
                    u = later[u]
                t = former[s]
                while t >= 0:
                    ended = j - window[t, s]
                    if ended >= 0:
                        head = max(head, backward[t, ended] + min(times[t, 1], times[t, 2]))
                    t = former[t]
                # The stage's own limit: p backwards ended, q of them with their W; more of the one save the other.
                least = LONG
                for p in range(max(0, j + 1 - window[s, s]), j + 1):
                    q = 0
                    if kept[s] > 0:
                        q = max(0, p - (memory[rank_of[s]] - held[s] * (j + 1 - p)) // kept[s])
                    work = j * f + p * i
                    head_p = max(anchor[s] + work, anchor_w[s] + work + q * d)
                    ended = 0
                    if p > 0:
                        ended = backward[s, p - 1] + i
                        if q == p:
                            ended += d
                    head_p = max(head_p, ended)
                    least = min(least, head_p)
                    if q == 0 or ended >= least or least <= head:
                        break
                head = max(head, least)
            forward[s, j] = head
            while passed[s] < j and backward[s, passed[s]] < head:
                passed[s] += 1
            before = j * f + passed[s] * i
            anchor[s] = max(anchor[s], head - before)
            anchor_w[s] = max(anchor_w[s], head - before - passed[s] * d)
            while joined[s] < j and backward[s, joined[s]] <= head:
                k = joined[s]
                before = j * f + k * i
                anchor[s] = max(anchor[s], backward[s, k] - before)
                anchor_w[s] = max(anchor_w[s], backward[s, k] - before - k * d)
                joined[s] += 1
        for s in range(stages - 1, -1, -1):
            f = times[s, 0]
            i = min(times[s, 1], times[s, 2])
            d = min(times[s, 1], times[s, 2] + times[s, 3]) - i
            head = max(backward[s, j], forward[s, j] + f)
            if s < stages - 1:
                head = max(head, backward[s + 1, j] + min(times[s + 1, 1], times[s + 1, 2]) + hop[s])
            if j > 0:
                head = max(head, backward[s, j - 1] + i)
            work = (j + 1) * f + j * i
            q = max(0, j - pending[s] + 1)
            head = max(head, anchor[s] + work, anchor_w[s] + work + q * d)
            if q > 0:
                head = max(head, backward[s, q - 1] + i + d)
            backward[s, j] = head


@kernel
def latest(costs: CostArrays, limits: MemoryLimits, tails: Tails) -> None:
    """Raise the least time from the end of the j-th last forward, and of the I of the j-th last backward, to the end.

    The same as `earliest` with time running backwards: backwards come first there, then forwards.
    """
    size, times, hop, rank_of = costs.size, costs.times, costs.hop, costs.rank_of
    later, window, pending, after_forward = costs.later, limits.window, limits.pending, tails.after_forward
    after_backward = tails.after_backward
    stages = len(rank_of)
    anchor = [NEVER] * stages
    anchor_w = [NEVER] * stages
    passed = [0] * stages
    joined = [0] * stages
    former = [-1] * stages
    for s in range(stages):
        if later[s] >= 0:
            former[later[s]] = s
    for j in range(size):
        for s in range(stages):
            f = times[s, 0]
            i = min(times[s, 1], times[s, 2])
            d = min(times[s, 1], times[s, 2] + times[s, 3]) - i
            tail = max(after_backward[s, j], (j + 1) * d + j * i)
            if s > 0:
                tail = max(tail, after_backward[s - 1, j] + min(times[s - 1, 1], times[s - 1, 2]) + hop[s - 1])
            t = former[s]
            while t >= 0:
                follows = j - window[t, s]
                if follows >= 0:
                    tail = max(tail, after_forward[t, follows] + times[t, 0])
                t = former[t]
            u = later[s]
            while u >= 0:
                follows = j - window[s, u]
                if follows >= 0:
                    tail = max(tail, after_forward[u, follows] + times[u, 0])
                u = later[u]
            if j > 0:
                tail = max(tail, after_backward[s, j - 1] + i)
                started = max(0, j + 1 - window[s, s])
                tail = max(tail, anchor[s] + j * i + started * f, anchor_w[s] + j * (i + d) + started * f)
                if started > 0:
                    tail = max(tail, after_forward[s, started - 1] + f)
                if j >= pending[s]:
                    tail = max(tail, after_forward[s, j - pending[s]] + f + d)
            after_backward[s, j] = tail
            while passed[s] < j and after_forward[s, passed[s]] < tail:
                passed[s] += 1
            anchor[s] = max(anchor[s], tail - j * i - passed[s] * f)
            while joined[s] < j and after_forward[s, joined[s]] <= tail:
                k = joined[s]
                anchor[s] = max(anchor[s], after_forward[s, k] - k * f - j * i)
                anchor_w[s] = max(anchor_w[s], after_forward[s, k] - k * f - j * i - (k + pending[s] - 1) * d)
                joined[s] += 1
        for s in range(stages - 1, -1, -1):
            f = times[s, 0]
            i = min(times[s, 1], times[s, 2])
            d = min(times[s, 1], times[s, 2] + times[s, 3]) - i
            tail = max(after_forward[s, j], after_backward[s, j] + i)
            if s < stages - 1:
                tail = max(tail, after_forward[s + 1, j] + times[s + 1, 0] + hop[s])
            if j > 0:
                tail = max(tail, after_forward[s, j - 1] + f)
            work = (j + 1) * i + j * f
            after_forward[s, j] = max(tail, anchor[s] + work, anchor_w[s] + work + j * d)
