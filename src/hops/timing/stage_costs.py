"""What a scheduler may know about the pipeline it arranges: expected times and memory, nothing of the run."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.shape import Shape
from hops.units import to_ns

UNLIMITED = 1 << 60  # beyond any sum of times or bytes that fits a program, and far from overflow when doubled


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """Expected costs of one iteration. Tuples have one value per stage unless said otherwise; seconds and bytes.

    Attributes:
        shape: microbatches, and rank of every stage.
        forward_s, input_backward_s, weight_backward_s, fused_backward_s: F, I, W and B.
        hop_s: latency of a message between stages s and s + 1, either way; length stages - 1, 0 on the same rank.
        blocking: whether messages keep both ranks busy.
        pair_factor: time of a pair over that of its two actions apart.
        activation_bytes: what F allocates; kept_for_weight_bytes: what stays from the end of I to the end of W.
        budget_bytes: per rank, the activation budget: what activations may take at any time; None is no limit.
    """

    shape: Shape
    forward_s: tuple[float, ...]
    input_backward_s: tuple[float, ...]
    weight_backward_s: tuple[float, ...]
    fused_backward_s: tuple[float, ...]
    hop_s: tuple[float, ...]
    blocking: bool = False
    pair_factor: float = 1.0
    activation_bytes: tuple[int, ...]
    kept_for_weight_bytes: tuple[int, ...]
    budget_bytes: tuple[int | None, ...]

    @classmethod
    def uniform(
        cls, shape: Shape, *, f: float = 1.0, i: float = 1.0, w: float = 1.0, hop_s: float = 0.0
    ) -> "StageCosts":
        """The same times on every stage, activations of 2 bytes of which W keeps 1, no activation budget."""
        stages = shape.num_stages
        ranks = shape.rank_of_stage
        hops = tuple(hop_s if ranks[s] != ranks[s + 1] else 0.0 for s in range(stages - 1))
        return cls(
            shape=shape,
            forward_s=(f,) * stages,
            input_backward_s=(i,) * stages,
            weight_backward_s=(w,) * stages,
            fused_backward_s=(i + w,) * stages,
            hop_s=hops,
            activation_bytes=(2,) * stages,
            kept_for_weight_bytes=(1,) * stages,
            budget_bytes=(None,) * shape.num_ranks,
        )


class CostArrays(NamedTuple):
    """Stage costs as integers, in the order in which kernels take them. Times in ns, memory in bytes; read-only.

    Attributes:
        size: microbatches.
        times: shape (stages, 4), the durations of F, B, I, W.
        hop: shape (stages,), latency between stages s and s + 1; the last value is 0.
        rank_of: shape (stages,).
        later: shape (stages,), the next stage of the same rank, or -1.
        activation, kept: shape (stages,), what F allocates, and what of it stays between the ends of I and W.
        budget: shape (ranks,), UNLIMITED where there is none.
    """

    size: int
    times: IntArray
    hop: IntArray
    rank_of: IntArray
    later: IntArray
    activation: IntArray
    kept: IntArray
    budget: IntArray

    @property
    def num_stages(self) -> int:
        return len(self.rank_of)

    @property
    def num_ranks(self) -> int:
        return len(self.budget)

    @property
    def num_actions(self) -> int:
        """Actions of a program that splits every backward: the most there can be."""
        return 3 * self.num_stages * self.size

    @property
    def has_chunks(self) -> bool:
        """Whether some rank has several stages."""
        return bool((self.later >= 0).any())

    @property
    def longest_rank(self) -> int:
        """The most actions a rank can have."""
        return 3 * self.size * int(np.bincount(self.rank_of).max())


def cost_arrays(costs: StageCosts) -> CostArrays:
    """Stage costs for kernels, each time rounded to whole nanoseconds.

    Blocking messages are folded into the actions that take them, which is what `evaluate` makes of them when the
    sender's part hides behind the next receive; so a bound stays a bound, and orders stay comparable.
    """
    times = durations_ns(costs)
    hop = np.append(hops_ns(costs), 0)
    if costs.blocking:
        times[1:, Op.F] += hop[:-1]
        times[:, [Op.B, Op.I]] += hop[:, None]
        hop[:] = 0
    limits = [UNLIMITED if limit is None else min(limit, UNLIMITED) for limit in costs.budget_bytes]
    assert costs.shape.copies == 1, "kernels know one way through the stages"
    owners = costs.shape.rank_of_stage
    return CostArrays(
        size=costs.shape.num_microbatches,
        times=_frozen(times),
        hop=_frozen(hop),
        rank_of=_frozen(owners),
        later=_frozen(_later(owners)),
        activation=_frozen(costs.activation_bytes),
        kept=_frozen(costs.kept_for_weight_bytes),
        budget=_frozen(limits),
    )


def durations_ns(costs: StageCosts, *, factor: float = 1.0) -> IntArray:
    """Whole nanoseconds of F, B, I and W, times `factor`: shape (stages, 4)."""
    columns = (costs.forward_s, costs.fused_backward_s, costs.input_backward_s, costs.weight_backward_s)
    return to_ns(np.array(columns, dtype=np.float64).T * factor)


def hops_ns(costs: StageCosts) -> IntArray:
    """Whole nanoseconds between neighbouring stages: shape (stages - 1,)."""
    return to_ns(np.array(costs.hop_s, dtype=np.float64))


def _later(rank_of_stage: tuple[int, ...]) -> list[int]:
    """The next stage of the same rank, or -1, of every stage."""
    later, seen = [-1] * len(rank_of_stage), dict[int, int]()
    for stage in reversed(range(len(rank_of_stage))):
        rank = rank_of_stage[stage]
        if rank in seen:
            later[stage] = seen[rank]
        seen[rank] = stage
    return later


def _frozen(values: object) -> IntArray:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
