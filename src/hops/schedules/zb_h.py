"""ZB-H1 and ZB-H2: 1F1B's order with weight backwards moved into its bubbles (arXiv 2401.10241, sections 2.2 and 2.3).

H1 keeps 1F1B's memory; H2 takes about twice as much and has no bubble on equal stages.
"""

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.builders import counted, kind_of, repeated
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("zb_h1")
class ZBH1(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, and runs its first W after the I of microbatch s."""

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        return counted(shape, [zb_h1_order(stage, shape) for stage in range(shape.num_stages)])


def zb_h1_order(stage: int, shape: Shape) -> IntArray:
    """The kinds of a stage in order."""
    size = shape.num_microbatches
    f, i, w = (kind_of(stage, op) for op in (Op.F, Op.I, Op.W))
    warmup, late = min(shape.num_stages - 1 - stage, size), min(stage, size)
    forwards = size - warmup
    both = min(late, forwards)  # turns with F and without W, then those with both or neither, then the rest
    middle = ([i], late - both) if late > forwards else ([f, i, w], forwards - both)
    return repeated(([f], warmup), ([f, i], both), middle, ([i, w], size - max(late, forwards)), ([w], late))


@SCHEDULERS.register("zb_h2")
class ZBH2(StaticScheduler):
    """Stage s of p warms up with 2 (p - s) - 1 forwards, then runs I, W (once 2 s + 1 I's are done) and F in turn."""

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        return counted(shape, [zb_h2_order(stage, shape) for stage in range(shape.num_stages)])


def zb_h2_order(stage: int, shape: Shape) -> IntArray:
    """The kinds of a stage in order."""
    size = shape.num_microbatches
    f, i, w = (kind_of(stage, op) for op in (Op.F, Op.I, Op.W))
    warmup, late = min(2 * (shape.num_stages - stage) - 1, size), min(2 * stage, size)
    forwards = size - warmup
    both = min(late, forwards)  # turns without W and with F, then those with only one of them, then the rest
    middle = ([i], late - both) if late > forwards else ([i, w, f], forwards - both)
    return repeated(([f], warmup), ([i, f], both), middle, ([i, w], size - max(late, forwards)), ([w], late))
