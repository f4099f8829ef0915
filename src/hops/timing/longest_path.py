"""The longest path through a program: every rank runs its list, waiting for each action's message.

Given an order in which all can run, it is one pass without queues. It agrees to the nanosecond with the engine on a
network of latencies; blocking messages are an approximation, see `evaluate`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.action import NUM_OPS, Op
from hops.program.lowering import Lowered, lower
from hops.program.postings import postings
from hops.program.program import Program
from hops.program.wiring import NONE
from hops.timing.memory_peaks import memory_peaks
from hops.timing.stage_costs import StageCosts, hops_of_microbatches_ns, microbatch_durations_ns
from hops.units import to_ns

AT_ONCE = np.zeros(0, dtype=np.int64)


class ActionTimes(NamedTuple):
    """How long each action and its messages take, in ns (or any unit); each of shape (actions,).

    Attributes:
        duration: of the action itself.
        lag: how long what it gives is under way while both ranks go on.
        receive: how long taking its message keeps the rank busy before it.
        send: how long giving keeps the rank busy after it. A send and the receive after it run at once.
        gap: the host's time between two steps of a rank.
        posted: the step that the receiver gets to when it posts the receive of each message, shape (messages,); empty
            where messages do not wait for that.
    """

    duration: IntArray
    lag: IntArray
    receive: IntArray
    send: IntArray
    gap: int = 0
    posted: IntArray = AT_ONCE

    @classmethod
    def of_kinds(cls, program: Program, duration: IntArray, hop: IntArray, *, blocking: bool) -> "ActionTimes":
        """From durations per kind (stage * 4 + op) and times of messages between stages s and s + 1.

        Args:
            program: whose actions they are.
            duration: shape (stages * 4,), or (stages * 4, microbatches).
            hop: shape (stages - 1,), or (stages - 1, microbatches).
            blocking: whether messages keep both ranks busy.
        """
        taken, given = (np.zeros((len(duration), *hop.shape[1:]), dtype=np.int64) for _ in range(2))
        taken[NUM_OPS + Op.F :: NUM_OPS] = given[Op.F : -NUM_OPS : NUM_OPS] = hop
        for op in (Op.B, Op.I):
            taken[op:-NUM_OPS:NUM_OPS] = given[NUM_OPS + op :: NUM_OPS] = hop
        durations, taking, giving = (_of_actions(program, table) for table in (duration, taken, given))
        nothing = np.zeros(program.num_actions, dtype=np.int64)
        if blocking:
            return cls(durations, nothing, taking, giving)
        return cls(durations, giving, nothing, nothing)


def _of_actions(program: Program, table: IntArray) -> IntArray:
    """The value of each action, from a table by kind, or by kind and microbatch; shape (actions,)."""
    values: IntArray = table[program.kind] if table.ndim == 1 else table[program.kind, program.microbatch]
    return values


def start_times(low: Lowered, times: ActionTimes) -> IntArray:
    """When each action starts if every rank is free at 0; shape (actions,)."""
    start = np.zeros(len(low.need), dtype=np.int64)
    free = np.zeros(len(low.rank_first) - 1, dtype=np.int64)
    longest_path.on(len(start), low, times, free, start)
    return start


@kernel
def longest_path(low: Lowered, times: ActionTimes, free: IntArray, start: IntArray) -> int:
    """Fill `start`, and return the last end. `free` says when each rank can begin, and in the end when it is through.

    A step of the stream starts when its rank is free and what its actions take is there; a pair's two actions run one
    after the other, and what they give goes when both are done.
    """
    given, lag = [0] * len(low.receiver), [0] * len(low.receiver)  # per message: when it can go, how long it takes
    reached = [0] * len(low.sequence)  # when the rank of each step gets to it
    waits = len(times.posted) > 0
    sending = [0] * len(free)  # per rank, until when its last send keeps it busy
    last = 0
    for step in low.sequence:
        rank = low.rank[step]
        begin, end = low.first[step], low.first[step + 1]
        ready = free[rank]
        if step > low.rank_first[rank]:
            ready += times.gap
        reached[step] = ready
        for action in range(begin, end):
            key = low.need[action]
            if key >= 0:
                leaves = given[key]
                if waits and times.posted[key] >= 0:
                    leaves = max(leaves, reached[times.posted[key]])
                ready = max(ready, leaves + lag[key])
            if action == begin:
                ready += times.receive[action]
        now = ready
        for action in range(begin, end):
            if action > begin:
                now += times.receive[action]
            now = max(now, sending[rank])
            start[action] = now
            now += times.duration[action]
        for action in range(end - 1, begin - 1, -1):
            key = low.bring[action]
            if key >= 0:
                given[key], lag[key] = now, times.lag[action]
                sending[rank] = now + times.send[action]
        free[rank] = now
        last = max(last, now)
    return last


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """What a program comes to. Integer nanoseconds from the start of the iteration, and bytes.

    Attributes:
        start_ns, end_ns: per rank, one value per action in the program's order.
        peak_in_flight: per rank, the most microbatches (per stage) whose F has started and whose B or W has not ended.
        peak_bytes: per rank, the most that activations take: F allocates at its start; at their ends I frees all but
            what W needs, W frees that, B frees all.
    """

    start_ns: tuple[IntArray, ...]
    end_ns: tuple[IntArray, ...]
    peak_in_flight: tuple[int, ...]
    peak_bytes: tuple[int, ...]

    @property
    def makespan_ns(self) -> int:
        """From 0 to the last end."""
        return max(int(end[-1]) for end in self.end_ns if len(end))

    @property
    def span_ns(self) -> tuple[int, ...]:
        """Per rank, from its first start to its last end."""
        pairs = zip(self.start_ns, self.end_ns, strict=True)
        return tuple(int(end[-1] - start[0]) if len(end) else 0 for start, end in pairs)

    @property
    def busy_ns(self) -> tuple[int, ...]:
        """Per rank, the sum of its actions' times."""
        return tuple(int((end - start).sum()) for start, end in zip(self.start_ns, self.end_ns, strict=True))

    @property
    def bubble_fraction(self) -> float:
        """1 - busy / (ranks x makespan): the window is the pipeline, first F to last backward."""
        return 1.0 - sum(self.busy_ns) / (len(self.busy_ns) * self.makespan_ns)


def action_times(program: Program, low: Lowered, profile: StageCosts) -> ActionTimes:
    """What the profile says of each action of a program that has been lowered."""
    hops = hops_of_microbatches_ns(profile)
    times = ActionTimes.of_kinds(program, _by_kind(profile), _squeezed(hops), blocking=profile.blocking)
    if profile.pair_factor != 1:
        together = _of_actions(program, _by_kind(profile, factor=profile.pair_factor))
        times = times._replace(duration=np.where(program.in_pair, together, times.duration))
    posted = AT_ONCE
    if profile.posted:
        receives, posted = postings(program, low), np.full(len(low.receiver), NONE)
        posted[receives.message] = receives.step
    return times._replace(gap=int(to_ns(np.array(profile.host_per_action_s))), posted=posted)


def _by_kind(profile: StageCosts, *, factor: float = 1.0) -> IntArray:
    """Durations as `ActionTimes.of_kinds` takes them."""
    each = microbatch_durations_ns(profile, factor=factor)
    return _squeezed(each.reshape(-1, each.shape[-1]))


def _squeezed(table: IntArray) -> IntArray:
    """Without the axis of microbatches where they are alike."""
    return table[:, 0] if table.shape[1] == 1 else table


def evaluate(program: Program, profile: StageCosts) -> Evaluation:
    """Run a program with the profile's times, each rounded to nanoseconds.

    Overlapped messages arrive one hop after their action's end; posted ones one hop after the later of that and the
    posting of their receive. With `profile.blocking`, a rank is busy for a hop after
    each action that sends and for a hop before each that takes; a send and the taking that follows it run at once, as
    Megatron-LM's fused calls do. Senders do not wait for receivers: the makespan of 1F1B is the engine's on stages of
    equal times, and a lower bound of it on others; that of other orders is an estimate, and says nothing about orders
    that stall with blocking messages.

    Raises ProgramError if it cannot run (see `lower`).
    """
    low = lower(program)
    times = action_times(program, low, profile)
    start = start_times(low, times)
    peaks = memory_peaks(program, profile)
    return Evaluation(
        start_ns=program.split(start),
        end_ns=program.split(start + times.duration),
        peak_in_flight=peaks.in_flight,
        peak_bytes=peaks.activation_bytes,
    )
