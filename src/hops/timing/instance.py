"""A profile as integer arrays: what bound and search compute with."""

from dataclasses import dataclass

import numpy as np

from hops.arrays import IntArray
from hops.program.action import NUM_OPS, Op
from hops.timing.evaluate import durations_ns, hops_ns
from hops.timing.stage_costs import StageCosts

UNLIMITED = 1 << 60  # beyond any sum of times or bytes that fits a program, and far from overflow when doubled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """One scheduling problem. Times in ns, memory in bytes; arrays are read-only.

    Attributes:
        size: microbatches.
        times: shape (stages, 4), the durations of F, B, I, W.
        hop: shape (stages,), latency between stages s and s + 1; the last value is 0.
        rank_of: shape (stages,).
        later: shape (stages,), the next stage of the same rank, or -1.
        activation, kept: shape (stages,), what F allocates, and what of it stays between the ends of I and W.
        memory: shape (ranks,), UNLIMITED where there is no limit.
    """

    size: int
    times: IntArray
    hop: IntArray
    rank_of: IntArray
    later: IntArray
    activation: IntArray
    kept: IntArray
    memory: IntArray

    @classmethod
    def of(cls, profile: StageCosts) -> "Instance":
        """Blocking messages are folded into the actions that take them, which is what `evaluate` makes of them when
        the sender's part hides behind the next receive; so the bound stays a bound, and orders stay comparable.
        """
        stages = profile.shape.num_stages
        times = np.array(durations_ns(profile), dtype=np.int64).reshape(stages, NUM_OPS)
        hop = np.zeros(stages, dtype=np.int64)
        hop[:-1] = hops_ns(profile)
        if profile.blocking:
            times[1:, Op.F] += hop[:-1]
            times[:, [Op.B, Op.I]] += hop[:, None]
            hop[:] = 0
        limits = [UNLIMITED if limit is None else min(limit, UNLIMITED) for limit in profile.budget_bytes]
        return cls(
            size=profile.shape.num_microbatches,
            times=_frozen(times),
            hop=_frozen(hop),
            rank_of=_frozen(profile.shape.rank_of_stage),
            later=_frozen(_later(profile.shape.rank_of_stage)),
            activation=_frozen(profile.activation_bytes),
            kept=_frozen(profile.kept_for_weight_bytes),
            memory=_frozen(limits),
        )

    @property
    def num_stages(self) -> int:
        return len(self.rank_of)

    @property
    def num_ranks(self) -> int:
        return len(self.memory)

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

    @property
    def arrays(self) -> tuple[int, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
        """What every kernel takes first, in this order."""
        return self.size, self.times, self.hop, self.rank_of, self.later, self.activation, self.kept, self.memory


def _later(rank_of_stage: tuple[int, ...]) -> list[int]:
    stages = range(len(rank_of_stage))
    return [next((t for t in stages[s + 1 :] if rank_of_stage[t] == rank_of_stage[s]), -1) for s in stages]


def _frozen(values: object) -> IntArray:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
