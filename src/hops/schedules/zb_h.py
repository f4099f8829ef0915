"""ZB-H1: 1F1B's order and memory, with weight backwards moved into its bubbles (arXiv 2401.10241, section 2.2)."""

from collections.abc import Iterator

from hops.program.action import Op
from hops.program.columns import weave
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("zb_h1")
class ZBH1(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, and runs its first W after the I of microbatch s."""

    def build(self, profile: StageCosts) -> Program:
        stages, microbatches = profile.shape.num_stages, profile.shape.num_microbatches
        ranks = (weave(stage, _zb_h1_ops(stage, stages, microbatches), microbatches) for stage in range(stages))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _zb_h1_ops(stage: int, num_stages: int, num_microbatches: int) -> Iterator[Op]:
    warmup = min(num_stages - 1 - stage, num_microbatches)
    late = min(stage, num_microbatches)
    yield from [Op.F] * warmup
    for microbatch in range(num_microbatches):
        if microbatch + warmup < num_microbatches:
            yield Op.F
        yield Op.I
        if microbatch >= late:
            yield Op.W
    yield from [Op.W] * late


@SCHEDULERS.register("zb_h2")
class ZBH2(StaticScheduler):
    """Stage s of p warms up with 2 (p - s) - 1 forwards, then runs I, W (once 2 s + 1 I's are done) and F in turn."""

    def build(self, profile: StageCosts) -> Program:
        stages, microbatches = profile.shape.num_stages, profile.shape.num_microbatches
        ranks = (weave(stage, _zb_h2_ops(stage, stages, microbatches), microbatches) for stage in range(stages))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _zb_h2_ops(stage: int, num_stages: int, num_microbatches: int) -> Iterator[Op]:
    warmup = min(2 * (num_stages - stage) - 1, num_microbatches)
    late = min(2 * stage, num_microbatches)
    yield from [Op.F] * warmup
    for microbatch in range(num_microbatches):
        yield Op.I
        if microbatch >= late:
            yield Op.W
        if microbatch + warmup < num_microbatches:
            yield Op.F
    yield from [Op.W] * late
