"""The original HOPS's rule: zero bubble or 1F1B, chosen once per run by a closed form. Kept to compare with.

When it errs, see docs/explanation/hops-hetero.md: it chooses for the whole run what differs per microbatch.
"""

from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.one_f_one_b import OneFOneB
from hops.schedule.profile import Profile
from hops.schedule.program import Program
from hops.schedule.zero_bubble import ZeroBubble


@SCHEDULERS.register("zb_or_1f1b")
class ZBOr1F1B(StaticScheduler):
    """Zero bubble if what it saves outweighs what splitting costs the slowest stage, else 1F1B; see `gain_s`."""

    def build(self, profile: Profile) -> Program:
        chosen = ZeroBubble() if gain_s(profile) > 0 else OneFOneB()
        chosen.configure(profile)
        return chosen.program


def gain_s(profile: Profile) -> float:
    """Seconds that zero bubble is expected to save over 1F1B, seen from the slowest stage k (the first of equals).

    Splitting frees k from waiting for the first microbatch's way through the stages after it, sum over s > k of F + B,
    and shortens the drain through the stages before it by their W. It costs k, per microbatch, I + W - B.
    """
    stages = range(profile.shape.num_stages)
    fused = [profile.forward_s[s] + profile.fused_backward_s[s] for s in stages]
    slowest = max(stages, key=fused.__getitem__)
    saved = sum(fused[slowest + 1 :]) + sum(profile.weight_backward_s[:slowest])
    split = profile.input_backward_s[slowest] + profile.weight_backward_s[slowest]
    return saved - profile.shape.num_microbatches * (split - profile.fused_backward_s[slowest])
