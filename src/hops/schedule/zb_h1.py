"""ZB-H1: 1F1B's order and memory, with weight backwards moved into its bubbles (arXiv 2401.10241, section 2.2)."""

from collections.abc import Iterator

from hops.actions import Op
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import weave
from hops.schedule.profile import Profile
from hops.schedule.program import Program


@SCHEDULERS.register("zb_h1")
class ZBH1(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, and runs its first W after the I of microbatch s."""

    def build(self, profile: Profile) -> Program:
        stages, microbatches = profile.shape.num_stages, profile.shape.num_microbatches
        ranks = (weave(stage, _ops(stage, stages, microbatches), microbatches) for stage in range(stages))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _ops(stage: int, num_stages: int, num_microbatches: int) -> Iterator[Op]:
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
