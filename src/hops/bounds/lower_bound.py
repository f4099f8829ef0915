"""A lower bound on the makespan of any program for a profile.

It counts instead of naming: the j-th forward of a stage needs j forwards of the stage before, the j-th backward j of
the stage after, whatever microbatches these are. So it holds for every order, fused or split, in turn or not.
"""

from dataclasses import dataclass, replace

import numpy as np

from hops.arrays import IntArray
from hops.bounds.one_machine import deferral, one_machine
from hops.bounds.release_times import LONG, Heads, MemoryLimits, earliest, latest, memory_limits
from hops.bounds.shared_ranks import shared_deferral, tighten
from hops.errors import DoesNotFitError
from hops.program.action import Op
from hops.timing.retiming import Tails
from hops.timing.stage_costs import CostArrays, StageCosts, cost_arrays

SHARING_PASSES = 2  # of raising heads and tails where stages share ranks; a third changes next to nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBound:
    """What one rank alone says about the makespan, in ns.

    Attributes:
        load_ns: its own work, each backward in the cheaper of its two forms.
        one_machine_ns: preemptive one-machine bound over its actions, with the earliest starts and the shortest ways to
            the end that dependencies and memory allow (Jackson's rule: of what is released, longest way to go first).
        deferral_ns: the best trade between W put off past the last backward, which fill the drain, and what splitting
            them costs.
    """

    load_ns: int
    one_machine_ns: int
    deferral_ns: int

    @property
    def value_ns(self) -> int:
        return max(self.load_ns, self.one_machine_ns, self.deferral_ns)

    @property
    def binding(self) -> str:
        """The first term that reaches the value: load, one_machine or deferral."""
        terms = {"load": self.load_ns, "one_machine": self.one_machine_ns, "deferral": self.deferral_ns}
        return next(name for name, term in terms.items() if term == self.value_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A makespan that no program can beat, and which rank and term say so. `ranks` has one value per rank."""

    ranks: tuple[RankBound, ...]

    @property
    def value_ns(self) -> int:
        return max(rank.value_ns for rank in self.ranks)

    @property
    def binding_rank(self) -> int:
        return max(range(len(self.ranks)), key=lambda rank: self.ranks[rank].value_ns)

    @property
    def binding(self) -> str:
        """The binding term of the binding rank."""
        return self.ranks[self.binding_rank].binding

    def gap(self, makespan_ns: int) -> float:
        """How far above the bound a makespan is, as a fraction of the bound."""
        return makespan_ns / self.value_ns - 1 if self.value_ns else 0.0


def lower_bound(costs: StageCosts) -> Bound:
    """The bound of stage costs. Raises DoesNotFitError if one microbatch does not fit into some rank's memory.

    Where microbatches differ, all count with the least of their work, and a rank's load with the work of all of them,
    from the earliest start of any. Where the host takes time between entries, a rank has at least one entry per forward
    (a backward may be paired with it).
    """
    arrays = cost_arrays(costs)
    _check_memory(arrays)
    least = least_arrays(costs)
    bound = bound_of(least)
    if not costs.work_is_uneven and arrays.gap == 0:
        return bound
    starts = np.full(arrays.num_ranks, LONG)
    np.minimum.at(starts, arrays.rank_of, _heads(least).forward[:, 0])
    entries = arrays.size * np.bincount(arrays.rank_of)
    loads = starts + _loads(arrays, costs.pair_factor) + (entries - 1) * arrays.gap
    return Bound(ranks=tuple(replace(rank, load_ns=int(load)) for rank, load in zip(bound.ranks, loads, strict=True)))


def least_arrays(costs: StageCosts) -> CostArrays:
    """Costs that no action can be below, whichever of them run in pairs, and whatever the microbatch."""
    arrays = cost_arrays(costs.alike(min(costs.microbatch_work, default=1.0)))
    if costs.pair_factor == 1:
        return arrays
    times = np.floor(arrays.times * costs.pair_factor).astype(np.int64)
    times.setflags(write=False)  # as all of them: kernels are compiled anew for what can be written to
    return arrays._replace(times=times, each=times[..., None])


def bound_of(costs: CostArrays) -> Bound:
    """The same for arrays."""
    _check_memory(costs)
    costs = _relaxed(costs)
    pending, heads, tails = _limits(costs).pending, _heads(costs), tails_of(costs)
    jackson, trade = (np.zeros(costs.num_ranks, dtype=np.int64) for _ in range(2))
    one_machine.fast(costs, pending, heads, tails, jackson)
    deferral.fast(costs, pending, heads, tails, trade)
    if costs.has_chunks:
        shared_deferral.fast(costs, pending, heads, tails, trade)
    columns = zip(_loads(costs, 1.0).tolist(), jackson.tolist(), trade.tolist(), strict=True)
    return Bound(ranks=tuple(RankBound(load_ns=a, one_machine_ns=b, deferral_ns=c) for a, b, c in columns))


def tails_of(costs: CostArrays) -> Tails:
    """The least time from the end of each action to the end of the run."""
    costs = _relaxed(costs)
    tails = Tails(_zeros(costs), _zeros(costs))
    forward, backward, beside = _least_times(costs)
    for _ in range(1 + SHARING_PASSES * costs.has_chunks):
        latest.fast(costs, _limits(costs), tails)
        if costs.has_chunks:
            tighten.fast(costs, backward, forward, beside, tails.after_backward, tails.after_forward)
    return tails


def _relaxed(costs: CostArrays) -> CostArrays:
    """W needs at most what F keeps: the terms below count on it, and less memory is taken than is (recomputation)."""
    return costs._replace(kept=np.minimum(costs.kept, costs.activation))


def _heads(costs: CostArrays) -> Heads:
    heads = Heads(_zeros(costs), _zeros(costs))
    forward, backward, beside = _least_times(costs)
    for _ in range(1 + SHARING_PASSES * costs.has_chunks):
        earliest.fast(costs, _limits(costs), heads)
        if costs.has_chunks:
            tighten.fast(costs, forward, backward, 0 * beside, heads.forward, heads.backward)
    return heads


def _least_times(costs: CostArrays) -> tuple[IntArray, IntArray, IntArray]:
    """Per stage: the least time of a forward, of a backward's part that sends, and what a backward costs beside."""
    times = costs.times
    backward = np.minimum(times[:, Op.B], times[:, Op.I])
    whole = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    return times[:, Op.F].copy(), backward, whole - backward


def _limits(costs: CostArrays) -> MemoryLimits:
    square = (costs.num_stages, costs.num_stages)
    limits = MemoryLimits(np.empty(square, dtype=np.int64), np.empty(square[0], dtype=np.int64))
    memory_limits.fast(costs, limits)
    return limits


def _zeros(costs: CostArrays) -> IntArray:
    return np.zeros((costs.num_stages, costs.size), dtype=np.int64)


def _loads(costs: CostArrays, factor: float) -> IntArray:
    """The work of each rank, times `factor`, each backward in the cheaper of its two forms."""
    times = np.floor(costs.each * factor).astype(np.int64)
    backward = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    loads = np.zeros(costs.num_ranks, dtype=np.int64)
    np.add.at(loads, costs.rank_of, (times[:, Op.F] + backward).sum(axis=1) * (costs.size // times.shape[2]))
    return loads


def _check_memory(costs: CostArrays) -> None:
    needed = np.zeros(costs.num_ranks, dtype=np.int64)
    np.add.at(needed, costs.rank_of, costs.activation)
    for rank in np.flatnonzero(needed > costs.budget).tolist():
        raise DoesNotFitError(
            f"no program fits: rank {rank} has {costs.budget[rank]} bytes for activations, "
            f"but one microbatch needs {needed[rank]}"
        )
