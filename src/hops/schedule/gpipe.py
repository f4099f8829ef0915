"""GPipe: every forward, then every backward (arXiv 1811.06965)."""

from hops.actions import Action, Op
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.profile import Profile
from hops.schedule.program import Program


@SCHEDULERS.register("gpipe")
class GPipe(StaticScheduler):
    """All forwards in order, then all backwards in the same order: every rank holds all microbatches at the turn."""

    def build(self, profile: Profile) -> Program:
        microbatches = range(profile.shape.num_microbatches)
        ranks = (
            tuple(Action(stage, op, microbatch) for op in (Op.F, Op.B) for microbatch in microbatches)
            for stage in range(profile.shape.num_stages)
        )
        return Program(shape=profile.shape, ranks=tuple(ranks))
