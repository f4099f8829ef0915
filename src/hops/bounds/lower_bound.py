"""A lower bound on the makespan of any program for a profile.

It counts instead of naming: the j-th forward of a stage needs j forwards of the stage before, the j-th backward j of
the stage after, whatever microbatches these are. So it holds for every order, fused or split, in turn or not.
"""

from dataclasses import dataclass

import numpy as np

from hops.arrays import IntArray
from hops.bounds.one_machine import deferral, one_machine
from hops.bounds.release_times import earliest, latest, limits
from hops.bounds.shared_ranks import shared_deferral, tighten
from hops.errors import DoesNotFitError
from hops.program.action import Op
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


def lower_bound(profile: StageCosts) -> Bound:
    """The bound of a profile. Raises DoesNotFitError if one microbatch does not fit into some rank's memory."""
    return bound_of(cost_arrays(profile))


def bound_of(instance: CostArrays) -> Bound:
    """The bound of an instance; see `lower_bound`."""
    _check_memory(instance)
    _, pending = _limits(instance)
    paths = (*_heads(instance), *tails(instance))
    jackson, trade = (np.zeros(instance.num_ranks, dtype=np.int64) for _ in range(2))
    one_machine.fast(*instance, pending, *paths, jackson)
    deferral.fast(*instance, pending, *paths, trade)
    if instance.has_chunks:
        shared_deferral.fast(*instance, pending, *paths, trade)
    columns = zip(_loads(instance).tolist(), jackson.tolist(), trade.tolist(), strict=True)
    return Bound(ranks=tuple(RankBound(load_ns=a, one_machine_ns=b, deferral_ns=c) for a, b, c in columns))


def tails(instance: CostArrays) -> tuple[IntArray, IntArray]:
    """The least time from the end of each forward, and of each I, to the end; shapes (stages, size), last first."""
    ways = _zeros(instance), _zeros(instance)
    forward, backward, beside = _costs(instance)
    for _ in range(1 + SHARING_PASSES * instance.has_chunks):
        latest.fast(*instance, *_limits(instance), *ways)
        if instance.has_chunks:
            tighten.fast(instance.size, instance.rank_of, instance.later, backward, forward, beside, *ways[::-1])
    return ways


def _heads(instance: CostArrays) -> tuple[IntArray, IntArray]:
    heads = _zeros(instance), _zeros(instance)
    forward, backward, beside = _costs(instance)
    for _ in range(1 + SHARING_PASSES * instance.has_chunks):
        earliest.fast(*instance, *_limits(instance), *heads)
        if instance.has_chunks:
            tighten.fast(instance.size, instance.rank_of, instance.later, forward, backward, 0 * beside, *heads)
    return heads


def _costs(instance: CostArrays) -> tuple[IntArray, IntArray, IntArray]:
    """Per stage: the least time of a forward, of a backward's part that sends, and what a backward costs beside."""
    times = instance.times
    backward = np.minimum(times[:, Op.B], times[:, Op.I])
    whole = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    return times[:, Op.F].copy(), backward, whole - backward


def _limits(instance: CostArrays) -> tuple[IntArray, IntArray]:
    window = np.empty((instance.num_stages, instance.num_stages), dtype=np.int64)
    pending = np.empty(instance.num_stages, dtype=np.int64)
    limits.fast(*instance, window, pending)
    return window, pending


def _zeros(instance: CostArrays) -> IntArray:
    return np.zeros((instance.num_stages, instance.size), dtype=np.int64)


def _loads(instance: CostArrays) -> IntArray:
    times = instance.times
    backward = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    loads = np.zeros(instance.num_ranks, dtype=np.int64)
    np.add.at(loads, instance.rank_of, instance.size * (times[:, Op.F] + backward))
    return loads


def _check_memory(instance: CostArrays) -> None:
    needed = np.zeros(instance.num_ranks, dtype=np.int64)
    np.add.at(needed, instance.rank_of, instance.activation)
    for rank in np.flatnonzero(needed > instance.budget).tolist():
        raise DoesNotFitError(
            f"no program fits: rank {rank} has {instance.budget[rank]} bytes for activations, "
            f"but one microbatch needs {needed[rank]}"
        )
