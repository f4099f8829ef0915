"""When a program's actions run, and what memory they take, by the longest path through it: no network, no faults.

It agrees to the nanosecond with the engine on a network of latencies. Blocking messages are an approximation, see
`evaluate`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hops.program.action import Op
from hops.program.coded import NUM_OPS, Coded, IntArray
from hops.program.program import Program
from hops.timing.longest_path import arrange
from hops.timing.stage_costs import StageCosts, durations_ns, hops_ns


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


def evaluate(program: Program, profile: StageCosts) -> Evaluation:
    """Run a checked program with the profile's times, each rounded to nanoseconds.

    Overlapped messages arrive one hop after their action's end. With `profile.blocking`, a rank is busy for a hop after
    each action that sends and for a hop before each that takes; a send and the taking that follows it run at once, as
    Megatron-LM's fused calls do. Senders do not wait for receivers: the makespan of 1F1B is the engine's on stages of
    equal times, and a lower bound of it on others; that of other orders is an estimate, and says nothing about orders
    that stall with blocking messages.

    Raises ProgramError if the program deadlocks.
    """
    coded = Coded.of(program.shape, program.ranks, program.pairs)
    duration = durations_ns(profile).reshape(-1)
    order = arrange(coded, duration.tolist(), hops_ns(profile).tolist(), blocking=profile.blocking)
    if order.position != coded.first[1:].tolist():
        program.check()
    start = order.start
    end = start + duration[coded.kind]
    in_flight, in_bytes = peaks(coded, profile)
    return Evaluation(
        start_ns=coded.split(start), end_ns=coded.split(end), peak_in_flight=in_flight, peak_bytes=in_bytes
    )


def peaks(coded: Coded, profile: StageCosts) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Most microbatches in flight, and most bytes of activations, per rank.

    A rank runs one action at a time, so that what it holds while one runs follows from the order alone.
    """
    count = np.zeros((profile.shape.num_stages, NUM_OPS), dtype=np.int64)
    count[:, [Op.B, Op.W]] = 1
    freed = np.zeros_like(count)
    whole, kept = np.array(profile.activation_bytes), np.array(profile.kept_for_weight_bytes)
    freed[:, Op.B], freed[:, Op.I], freed[:, Op.W] = whole, whole - kept, kept
    is_forward = coded.op == Op.F
    started = (is_forward.astype(np.int64), np.where(is_forward, whole[coded.stage], 0))
    ended = (count.reshape(-1)[coded.kind], freed.reshape(-1)[coded.kind])
    most = (_most(gain, loss, coded) for gain, loss in zip(started, ended, strict=True))
    in_flight, in_bytes = most
    return in_flight, in_bytes


def _most(gain: IntArray, loss: IntArray, coded: Coded) -> tuple[int, ...]:
    held = np.cumsum(gain - loss) + loss  # while the action runs
    before = np.concatenate([[0], np.cumsum(gain - loss)])
    bounds = pairwise(coded.first.tolist())
    return tuple(int(held[a:b].max() - before[a]) if b > a else 0 for a, b in bounds)
