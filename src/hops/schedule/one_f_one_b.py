"""1F1B: after a warm-up of forwards, one forward and one backward in turn (PipeDream-Flush, arXiv 2006.09503)."""

from hops.actions import Action, Op
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.profile import Profile
from hops.schedule.program import Program


@SCHEDULERS.register("1f1b")
class OneFOneB(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, as in Megatron-LM, so that it holds at most min(p - s, m)."""

    def build(self, profile: Profile) -> Program:
        stages = range(profile.shape.num_stages)
        ranks = tuple(_order(stage, len(stages), profile.shape.num_microbatches) for stage in stages)
        return Program(shape=profile.shape, ranks=ranks)


def _order(stage: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    warmup = min(num_stages - 1 - stage, num_microbatches)
    forwards = [Action(stage, Op.F, microbatch) for microbatch in range(num_microbatches)]
    backwards = [Action(stage, Op.B, microbatch) for microbatch in range(num_microbatches)]
    steady = num_microbatches - warmup
    turns = (action for pair in zip(forwards[warmup:], backwards[:steady], strict=True) for action in pair)
    return (*forwards[:warmup], *turns, *backwards[steady:])
