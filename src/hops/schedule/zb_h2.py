"""ZB-H2: twice 1F1B's forwards in flight, so that no rank waits once it has begun (arXiv 2401.10241, section 2.3)."""

from collections.abc import Iterator

from hops.actions import Op
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import weave
from hops.schedule.profile import Profile
from hops.schedule.program import Program


@SCHEDULERS.register("zb_h2")
class ZBH2(StaticScheduler):
    """Stage s of p warms up with 2 (p - s) - 1 forwards, then runs I, W (once 2 s + 1 I's are done) and F in turn."""

    def build(self, profile: Profile) -> Program:
        stages, microbatches = profile.shape.num_stages, profile.shape.num_microbatches
        ranks = (weave(stage, _ops(stage, stages, microbatches), microbatches) for stage in range(stages))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _ops(stage: int, num_stages: int, num_microbatches: int) -> Iterator[Op]:
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
