"""What holds for all layouts of a problem: whether one fits, the least bottleneck, the bound over all choices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hops.planner.bottleneck import Bottleneck, Problem, least_bottleneck
from hops.planner.bound import Choices, Items, by_place
from hops.planner.layout_problem import LayoutProblem
from hops.planner.problem import ScheduleFamily


@dataclass(frozen=True, kw_only=True)
class ProblemBounds:
    """Each is computed when it is first asked for, and once."""

    problem: LayoutProblem

    @cached_property
    def bottleneck_problem(self) -> Problem:
        """With the microbatches in flight that the family is certain of, by position."""
        problem, blocks = self.problem, self.problem.blocks
        flight = {
            ScheduleFamily.ONE_F_ONE_B: np.minimum(np.arange(1, problem.most_ranks + 1), problem.size),
            ScheduleFamily.GPIPE: np.array([problem.size]),
        }.get(problem.family, np.array([1]))
        needed = (blocks.static[None] + flight[:, None, None] * blocks.activation[None]).astype(np.int64)
        return Problem(seconds=blocks.whole, needed=needed, memory=problem.pool.memory_bytes, counts=problem.counts)

    @cached_property
    def bottleneck(self) -> Bottleneck | None:
        """None if nothing fits. For several chunks it is only a start: what it proves is for one stage per rank."""
        return least_bottleneck(self.bottleneck_problem)

    @property
    def fits(self) -> bool:
        """Whether anything may fit: with several chunks, what is known of one stage per rank does not decide."""
        return self.problem.freedom.chunks > 1 or self.bottleneck is not None

    @cached_property
    def choices(self) -> Choices:
        """The bound over all choices."""
        problem, after = self.problem, self.problem.after
        found, chunked = self.bottleneck, problem.freedom.chunks > 1
        is_least = found is not None and found.exact and not chunked
        return Choices(
            items=Items.of(problem.blocks, problem.pool, problem.counts, problem.messages.nearest_s(problem.pool)),
            family=problem.family,
            size=problem.size,
            least=found.seconds if found is not None and is_least else self._by_capacity(),
            gap_s=float(after.gap_s[1]),
            end_s=self._least_end(),
            tied_s=self._least_tied(),
            ends_together=after.synchronized,
            chunked=chunked,
        )

    def _by_capacity(self) -> float:
        """The least time within which all devices together could hold the layers, whatever else they would need."""
        problem, blocks = self.problem, self.problem.blocks
        fits = blocks.static[None] <= problem.pool.memory_bytes[:, None, None]
        per_length = by_place(np.where(fits, blocks.whole, np.inf)).min(axis=1)
        times = np.unique(per_length[np.isfinite(per_length)])
        length = np.arange(problem.num_layers + 1)
        low, high = 0, len(times) - 1
        while low < high:
            middle = (low + high) // 2
            most = np.where(per_length <= times[middle], length, 0).max(axis=1)
            low, high = (low, middle) if (most * problem.counts).sum() >= problem.num_layers else (middle + 1, high)
        return float(times[low]) if len(times) else 0.0

    def _least_end(self) -> float:
        """The step that every iteration needs: where all ranks wait, some hold the average share of layers at least."""
        problem = self.problem
        available = max(1, int(problem.counts.sum()))
        shared = problem.after.synchronized and problem.freedom.chunks == 1
        share = -(-problem.num_layers // available) if shared else 1
        return float(by_place(problem.blocks.step)[:, :, share:].min())

    def _least_tied(self) -> float:
        """Of two devices; 0 where the reduction may begin before all backwards have ended."""
        problem = self.problem
        if problem.family is ScheduleFamily.ANY or problem.freedom.chunks > 1 or len(problem.pool.ids) == 1:
            return 0.0
        tied = problem.after.tied_s
        return float(tied[~np.eye(len(tied), dtype=bool)].min())
