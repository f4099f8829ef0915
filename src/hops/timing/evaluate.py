"""When a program's actions run, and what memory they take, by the longest path through it: no network, no faults.

It agrees to the nanosecond with the engine on a network of latencies. Blocking messages are an approximation, see
`evaluate`.
"""

from dataclasses import dataclass

from hops.arrays import IntArray
from hops.program.lowering import lower
from hops.program.program import Program
from hops.timing.longest_path import ActionTimes, start_times
from hops.timing.memory_peaks import memory_peaks
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
    """Run a program with the profile's times, each rounded to nanoseconds.

    Overlapped messages arrive one hop after their action's end. With `profile.blocking`, a rank is busy for a hop after
    each action that sends and for a hop before each that takes; a send and the taking that follows it run at once, as
    Megatron-LM's fused calls do. Senders do not wait for receivers: the makespan of 1F1B is the engine's on stages of
    equal times, and a lower bound of it on others; that of other orders is an estimate, and says nothing about orders
    that stall with blocking messages.

    Raises ProgramError if it cannot run (see `lower`).
    """
    low = lower(program)
    durations = durations_ns(profile).reshape(-1)
    times = ActionTimes.of_kinds(program, durations, hops_ns(profile), blocking=profile.blocking)
    start = start_times(low, times)
    peaks = memory_peaks(program, profile)
    return Evaluation(
        start_ns=program.split(start),
        end_ns=program.split(start + times.duration),
        peak_in_flight=peaks.in_flight,
        peak_bytes=peaks.activation_bytes,
    )
