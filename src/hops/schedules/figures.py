"""What each schedule comes to on one small pipeline of equal stages: bubble, memory, messages that nothing hides."""

from dataclasses import dataclass, replace

from hops.errors import UsageError
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts

UNIT_S = 1e-3  # what F, I and W of one microbatch take on a rank, each
HOP_S = 1e-9  # so short that no other path becomes the longest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFigures:
    """Of a schedule with its defaults, F = I = W, and W keeping half of an activation.

    Attributes:
        bubble_fraction: idle share of the ranks' time from the first F to the last backward.
        peak_microbatches: the most activations of any rank, in those that one microbatch takes there.
        messages: latencies on the critical path: by how many the pipeline gets longer if each message takes one.
        copies: of the model, whose weights the ranks hold.
    """

    bubble_fraction: float
    peak_microbatches: float
    messages: int
    copies: int


def figures(name: str, num_ranks: int, num_microbatches: int) -> ScheduleFigures | str:
    """The figures, or why there are none: it refuses these numbers, or has no program before the run."""
    scheduler = SCHEDULERS.get(name)()
    if not isinstance(scheduler, StaticScheduler):
        return "it decides during the run"
    try:
        shape = scheduler.shape(num_ranks, num_microbatches)
    except UsageError as error:
        return str(error).removeprefix(f"{name}: ")
    share = UNIT_S * shape.num_ranks / shape.stages_per_copy
    costs = StageCosts.uniform(shape, f=share, i=share, w=share)
    scheduler.configure(costs)
    found = evaluate(scheduler.program, costs)
    latency = StageCosts.uniform(shape, hop_s=HOP_S).hop_s
    later = evaluate(scheduler.program, replace(costs, hop_s=latency))
    of_one = costs.activation_bytes[0] * shape.stages_per_copy * shape.slices / shape.num_ranks
    return ScheduleFigures(
        bubble_fraction=found.bubble_fraction,
        peak_microbatches=max(found.peak_bytes) / of_one,
        messages=round((later.makespan_ns - found.makespan_ns) / (HOP_S * 1e9)),
        copies=shape.copies,
    )
