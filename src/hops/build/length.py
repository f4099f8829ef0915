"""Time is counted in 64 bits of nanoseconds: a run that cannot end within them is refused before it starts."""

from hops.errors import UsageError
from hops.spec.spec import Spec
from hops.timing.stage_costs import StageCosts
from hops.units import NS_PER_S

LONGEST_S = (1 << 62) / NS_PER_S  # half of what 64 bits hold, so that sums of two times fit
YEAR_S = 365.25 * 86_400


def check_length(spec: Spec, costs: StageCosts) -> None:
    """Raise UsageError if a run, one action after the other, would take more than 146 years."""
    costs = costs.alike()
    backward = zip(costs.input_backward_s, costs.weight_backward_s, costs.fused_backward_s, strict=True)
    compute_s = sum(costs.forward_s) + sum(max(into + weights, fused) for into, weights, fused in backward)
    optimizer = spec.optimizer
    step_s = 0.0 if optimizer.update_time is None else optimizer.update_time.build().mean
    each_s = (
        costs.shape.num_microbatches
        * (compute_s + 2 * sum(costs.hop_s) + 3 * costs.shape.num_stages * costs.host_per_action_s)
        + step_s
        + (optimizer.host_gap or 0.0)
    )
    total_s = each_s * spec.simulation.iterations
    if total_s > LONGEST_S:
        raise UsageError(
            f"got a run that takes up to {total_s / YEAR_S:.3g} years, expected at most {LONGEST_S / YEAR_S:.0f}, "
            "which fit into 64 bits of nanoseconds; shorten pipeline.stage_times, or lower simulation.iterations"
        )
