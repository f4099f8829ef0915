"""Automatic zero-bubble schedules under a memory limit: the heuristic of arXiv 2401.10241, section 3.1."""

from collections.abc import Callable
from itertools import product

import numpy as np

from hops.actions import ACTION_OPS, Op
from hops.errors import UsageError
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import at_least, weave
from hops.schedule.evaluate import durations_ns, hops_ns
from hops.schedule.profile import Profile
from hops.schedule.program import Program
from hops.schedule.zero_bubble_greedy import NO_LIMIT, Ints, greedy

Variant = tuple[bool, bool, bool]
VARIANTS: tuple[Variant, ...] = tuple((wait, prefer, fill) for wait, prefer, fill in product((True, False), repeat=3))


@SCHEDULERS.register("zero_bubble")
class ZeroBubble(StaticScheduler):
    """The best of eight greedy orders for the profile's times: the one whose longest stage span is shortest.

    Messages count as latencies, also where they are blocking.

    Args:
        max_activations: microbatches that a stage may hold, where F adds 1, and I and W each free a half. The default
            (None) is p, which makes it ZB-1p; 2 p makes it ZB-2p. The profile's memory limit, if any, holds as well.
    """

    def __init__(self, *, max_activations: int | None = None) -> None:
        self.max_activations = None if max_activations is None else at_least("max_activations", max_activations, 1)

    def build(self, profile: Profile) -> Program:
        """Raises UsageError if a rank's memory does not take one microbatch."""
        size = profile.shape.num_microbatches
        ops = [ACTION_OPS[code] for code in self._best_order(profile)]
        rows = (ops[start : start + 3 * size] for start in range(0, len(ops), 3 * size))
        ranks = tuple(weave(stage, row, size) for stage, row in enumerate(rows))
        return Program(shape=profile.shape, ranks=ranks)

    def _best_order(self, profile: Profile) -> list[int]:
        """Op codes of all stages, 3 x microbatches each, of the best variant."""
        stages, size = profile.shape.num_stages, profile.shape.num_microbatches
        find: Callable[..., int] = greedy.ready
        new = _array if greedy.is_compiled else _same
        columns = [new(column) for column in self._columns(profile)]
        best, chosen = NO_LIMIT, new([])
        mattered: dict[Variant, Ints] = {}
        for variant in VARIANTS:
            same = next((twin for axis, twin in _twins(variant) if not mattered[twin][axis]), None)
            if same is not None:
                mattered[variant] = mattered[same]
                continue
            ops, scratch, mattered[variant] = (new([0] * n) for n in (3 * size * stages, size * stages, 3))
            span = find(size, *columns, *variant, best, mattered[variant], scratch, ops)
            if span < best:
                best, chosen = span, ops
        return [int(code) for code in chosen]

    def _columns(self, profile: Profile) -> list[list[int]]:
        """What the greedy order takes per stage: times and hops (ns), and limits by count and by bytes."""
        stages = profile.shape.num_stages
        durations = durations_ns(profile)
        times = [durations[op :: len(ACTION_OPS)] for op in (Op.F, Op.I, Op.W)]
        most = stages if self.max_activations is None else self.max_activations
        memory = [NO_LIMIT if limit is None else min(limit, NO_LIMIT) for limit in profile.memory_bytes]
        for rank, (needed, limit) in enumerate(zip(profile.activation_bytes, memory, strict=True)):
            if needed > limit:
                raise UsageError(
                    f"zero_bubble: rank {rank} has {limit} bytes for activations, but one microbatch needs {needed}"
                )
        whole, kept = list(profile.activation_bytes), list(profile.kept_for_weight_bytes)
        return [*times, hops_ns(profile), [2 * most] * stages, whole, kept, memory]


def _twins(variant: Variant) -> list[tuple[int, Variant]]:
    """The variants with one false made true, and where."""
    wait, prefer, fill = variant
    twins = [(0, (True, prefer, fill)), (1, (wait, True, fill)), (2, (wait, prefer, True))]
    return [(axis, twin) for axis, twin in twins if not variant[axis]]


def _array(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _same(values: list[int]) -> Ints:
    return values
