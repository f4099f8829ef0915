"""What a scheduler may know about the pipeline it arranges: expected times and memory, nothing of the run."""

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from hops.arrays import FloatArray, IntArray
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
        hop_s: time of a message between stages s and s + 1, either way; length stages - 1, 0 on the same rank.
        hop_bytes_s: the part of hop_s that its bytes take; () is none of it.
        blocking: whether messages keep both ranks busy.
        posted: whether a message starts only once its receive is posted (`hops.program.postings`).
        host_per_action_s: the host's time between two entries of a rank's stream.
        microbatch_work: a factor per microbatch on all times of its actions, on hop_bytes_s and on its activations; ()
            where all are 1.
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
    hop_bytes_s: tuple[float, ...] = ()
    blocking: bool = False
    posted: bool = False
    host_per_action_s: float = 0.0
    microbatch_work: tuple[float, ...] = ()
    pair_factor: float = 1.0
    activation_bytes: tuple[int, ...]
    kept_for_weight_bytes: tuple[int, ...]
    budget_bytes: tuple[int | None, ...]

    @property
    def work(self) -> FloatArray:
        """The work of each microbatch: shape (microbatches,), or (1,) where they are alike."""
        return np.array(self.microbatch_work or (1.0,))

    @property
    def work_is_uneven(self) -> bool:
        """Whether some microbatch has more work than another."""
        return len(set(self.microbatch_work)) > 1

    def alike(self, work: float | None = None) -> "StageCosts":
        """The same with microbatches that are all alike, of the work given.

        None: times of the mean, activations of the largest, so that what fits these costs fits the others as well.
        """
        if not self.microbatch_work:
            return self
        held = max(self.microbatch_work) if work is None else work
        factor = sum(self.microbatch_work) / len(self.microbatch_work) if work is None else work
        rounded = ceil if work is None else floor

        def times(each: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(factor * seconds for seconds in each)

        return replace(
            self,
            microbatch_work=(),
            forward_s=times(self.forward_s),
            input_backward_s=times(self.input_backward_s),
            weight_backward_s=times(self.weight_backward_s),
            fused_backward_s=times(self.fused_backward_s),
            hop_s=tuple(self.message_seconds(np.array([factor]))[:, 0].tolist()),
            hop_bytes_s=times(self.hop_bytes_s),
            activation_bytes=tuple(rounded(held * size) for size in self.activation_bytes),
            kept_for_weight_bytes=tuple(rounded(held * size) for size in self.kept_for_weight_bytes),
        )

    def message_seconds(self, work: FloatArray) -> FloatArray:
        """Messages of microbatches of this work: shape (stages - 1, len(work))."""
        grows = np.array(self.hop_bytes_s or (0.0,) * len(self.hop_s)).reshape(-1, 1)
        seconds: FloatArray = np.array(self.hop_s, dtype=np.float64).reshape(-1, 1) + grows * (work - 1)
        return seconds

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
        times: shape (stages, 4), the durations of F, B, I, W of a microbatch of mean work.
        hop: shape (stages,), latency between stages s and s + 1; the last value is 0.
        rank_of: shape (stages,).
        later: shape (stages,), the next stage of the same rank, or -1.
        activation, kept: shape (stages,), what F of the largest microbatch allocates, and what of it stays between the
            ends of I and W.
        budget: shape (ranks,), UNLIMITED where there is none.
        each, each_hop: times and hop of every microbatch, shapes (stages, 4, size) and (stages, size), or with 1 in
            place of size where they are alike.
        gap: the host's time between two actions of a rank.
        posted: whether messages wait for their receives.
    """

    size: int
    times: IntArray
    hop: IntArray
    rank_of: IntArray
    later: IntArray
    activation: IntArray
    kept: IntArray
    budget: IntArray
    each: IntArray
    each_hop: IntArray
    gap: int
    posted: bool

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
    def is_plain(self) -> bool:
        """Whether actions of a kind take the same time, and wait for nothing but their input and their rank."""
        return self.each.shape[-1] == 1 and self.gap == 0 and not self.posted

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
    alike = costs.alike()
    times, each = durations_ns(alike)[..., None], microbatch_durations_ns(costs)
    hop, each_hop = (np.pad(hops_of_microbatches_ns(given), ((0, 1), (0, 0))) for given in (alike, costs))
    if costs.blocking:
        for table, late in ((times, hop), (each, each_hop)):
            table[1:, Op.F] += late[:-1]
            table[:, [Op.B, Op.I]] += late[:, None]
            late[:] = 0
    limits = [UNLIMITED if limit is None else min(limit, UNLIMITED) for limit in costs.budget_bytes]
    assert costs.shape.copies == 1, "kernels know one way through the stages"
    owners = costs.shape.rank_of_stage
    return CostArrays(
        size=costs.shape.num_microbatches,
        times=_frozen(times[..., 0]),
        hop=_frozen(hop[:, 0]),
        rank_of=_frozen(owners),
        later=_frozen(_later(owners)),
        activation=_frozen(alike.activation_bytes),
        kept=_frozen(alike.kept_for_weight_bytes),
        budget=_frozen(limits),
        each=_frozen(each),
        each_hop=_frozen(each_hop),
        gap=int(to_ns(np.array(costs.host_per_action_s))),
        posted=costs.posted,
    )


def durations_ns(costs: StageCosts, *, factor: float = 1.0) -> IntArray:
    """Whole nanoseconds of F, B, I and W of a microbatch of work 1, times `factor`: shape (stages, 4)."""
    columns = (costs.forward_s, costs.fused_backward_s, costs.input_backward_s, costs.weight_backward_s)
    return to_ns(np.array(columns, dtype=np.float64).T * factor)


def microbatch_durations_ns(costs: StageCosts, *, factor: float = 1.0) -> IntArray:
    """The same of every microbatch: shape (stages, 4, microbatches), or (stages, 4, 1) where they are alike."""
    columns = (costs.forward_s, costs.fused_backward_s, costs.input_backward_s, costs.weight_backward_s)
    return to_ns(np.array(columns, dtype=np.float64).T[..., None] * costs.work * factor)


def hops_ns(costs: StageCosts) -> IntArray:
    """Whole nanoseconds between neighbouring stages, of a microbatch of work 1: shape (stages - 1,)."""
    return to_ns(np.array(costs.hop_s, dtype=np.float64))


def hops_of_microbatches_ns(costs: StageCosts) -> IntArray:
    """The same of every microbatch: shape (stages - 1, microbatches), or (stages - 1, 1) where they are alike."""
    return to_ns(costs.message_seconds(costs.work))


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
