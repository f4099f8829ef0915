"""The activation budget of a schedule that keeps to a stated number of microbatches, in bytes."""

from dataclasses import replace

from hops.errors import UsageError
from hops.timing.stage_costs import UNLIMITED, StageCosts

WITHOUT_SIZES = (2, 1)  # what F allocates and W keeps where nothing is known: W needs a half


def limited(name: str, profile: StageCosts, most: float) -> StageCosts:
    """The profile with sizes for all activations, and budgets that hold the limit as well.

    Args:
        name: of the schedule, for messages.
        profile: its own budgets, where it has some, hold in any case.
        most: what a rank may hold, as a multiple of what one microbatch takes there.

    Raises UsageError if a rank's memory does not take one microbatch.
    """
    sizes = list(zip(profile.activation_bytes, profile.kept_for_weight_bytes, strict=True))
    budgets = []
    for rank, limit in enumerate(profile.budget_bytes):
        stages = profile.shape.stages_of(rank)
        needed = sum(max(sizes[stage]) for stage in stages)
        if limit is not None and needed > limit:
            raise UsageError(
                f"{name}: rank {rank} has {limit} bytes for activations, but one microbatch needs {needed}"
            )
        if not needed:
            limit, needed = None, len(stages) * WITHOUT_SIZES[0]  # noqa: PLW2901 (a budget of bytes says nothing here)
            for stage in stages:
                sizes[stage] = WITHOUT_SIZES
        budgets.append(min(UNLIMITED if limit is None else limit, int(most * needed)))
    activation, kept = zip(*sizes, strict=True)
    return replace(profile, activation_bytes=activation, kept_for_weight_bytes=kept, budget_bytes=tuple(budgets))
