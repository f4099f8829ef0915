"""The original HOPS's rule: zero bubble or 1F1B, chosen once per run by a closed form. Kept to compare with.

When it errs, see docs/explanation/hops-hetero.md: it chooses for the whole run what differs per microbatch.
"""

from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.plain import OneFOneB
from hops.schedules.zero_bubble_paper import ZeroBubblePaper
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("zb_or_1f1b")
class ZBOr1F1B(StaticScheduler):
    """Documents the original HOPS, to compare with: the paper's zero bubble or 1F1B for the whole run."""

    def build(self, profile: StageCosts) -> Program:
        chosen = ZeroBubblePaper() if wait_s(profile) > 0 else OneFOneB()
        chosen.configure(profile)
        return chosen.program


def wait_s(profile: StageCosts) -> float:
    """Seconds that the first microbatch spends in the stages after the slowest one, k: sum over s > k of F + B.

    So long does k wait for its first gradient, which 1F1B leaves idle and zero bubble fills. k is the first of the
    stages with the largest F + B. What splitting costs doesn't count.
    """
    fused = [f + b for f, b in zip(profile.forward_s, profile.fused_backward_s, strict=True)]
    return sum(fused[fused.index(max(fused)) + 1 :])
