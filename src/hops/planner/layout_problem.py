"""The problem that a search for layouts solves, as data: devices, costs of blocks of layers, messages, what follows.

Nothing here knows a spec but the functions that read one; searches and bounds know only what these return.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.build.costs import host_gap
from hops.build.figures import Figures
from hops.build.reductions import reduction_nic, tied_reduction
from hops.cost.collectives import reduced_bytes, reduction_seconds
from hops.hardware.devices import Interconnect
from hops.model.partition import Partition
from hops.planner.block_costs import BlockCosts, MessageTimes
from hops.planner.layout import Freedom, LayerRule, Layout
from hops.planner.problem import Group, Pool, ScheduleFamily
from hops.program.shape import Shape
from hops.spec.open import OpenSpec
from hops.spec.pipeline import ELEMENT_BYTES

BUSY_MESSAGES = {
    "overlapped": 0.0,
    "posted": 0.0,
    "blocking": 2.0,
    "blocking_fused": 1.0,
}  # at least so many keep both ranks busy


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientReduction:
    """The data-parallel reduction of a rank.

    Attributes:
        algorithm: as `optimizer.gradient_reduction` names it.
        reduced_bytes: per parameter.
        copies: that reduce together, at least 2.
        nics: of every device.
        nodes: of every device; the ranks on one share its NIC.
    """

    algorithm: str
    reduced_bytes: float
    copies: int
    nics: tuple[Interconnect, ...]
    nodes: tuple[str, ...]

    def seconds(self, devices: Sequence[int], parameters: int) -> float:
        """Of the first of these devices."""
        first = devices[0]
        nic = self.nics[first]
        sharing = sum(self.nodes[each] == self.nodes[first] for each in devices)
        return reduction_seconds(
            self.algorithm,
            parameters * self.reduced_bytes,
            self.copies,
            bandwidth=nic.bandwidth / sharing,
            latency_s=nic.latency_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterPipeline:
    """What follows the last backward, in expected seconds; the optimizer step of a block is in its costs.

    Attributes:
        gap_s: of the host by number of ranks, shape (devices + 1,).
        tied_s: of the tied-embedding reduction by first and last device, shape (devices, devices); 0 where it is none.
        synchronized: whether all ranks wait for the slowest step.
        reduction: of gradients; None without copies.
    """

    gap_s: FloatArray
    tied_s: FloatArray
    synchronized: bool
    reduction: GradientReduction | None

    @classmethod
    def of(cls, pool: Pool) -> "AfterPipeline":
        """What the spec of a pool has; nothing at all where its optimizer is switched off."""
        known, size = pool.known, len(pool.ids)
        section = known.spec.optimizer
        if not section.enabled:
            nothing = np.zeros(size + 1)
            return cls(gap_s=nothing, tied_s=np.zeros((size, size)), synchronized=False, reduction=None)
        reduction = None
        assert section.gradient_reduction is not None, "loading a spec fills it in"
        if section.data_parallel > 1:
            reduction = GradientReduction(
                algorithm=section.gradient_reduction,
                reduced_bytes=reduced_bytes(
                    section.gradient_bytes,
                    ELEMENT_BYTES[known.spec.pipeline.precision],
                    distributed=section.distributed,
                ),
                copies=section.data_parallel,
                nics=tuple(reduction_nic(known, each) for each in pool.ids),
                nodes=pool.nodes,
            )
        return cls(
            gap_s=np.array([host_gap(known, ranks) for ranks in range(size + 1)]),
            tied_s=_tied_s(known, pool) if section.tied_embeddings else np.zeros((size, size)),
            synchronized=section.synchronized,
            reduction=reduction,
        )


def _tied_s(known: Figures, pool: Pool) -> FloatArray:
    """Devices of one class are alike, so that each pair of classes is asked for once."""
    by_class: dict[object, float] = {}
    seconds = np.zeros((len(pool.ids), len(pool.ids)))
    for first, last in permutations(range(len(pool.ids)), 2):
        key = (pool.classes[first], pool.classes[last])
        if key not in by_class:
            drawn, _ = tied_reduction(known, pool.ids[first], pool.ids[last])
            by_class[key] = drawn.mean
        seconds[first, last] = by_class[key]
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutProblem:
    """Which layout is best for one family of schedules?

    Attributes:
        freedom: what may change of the stated layout, whose `devices` are at least those that the spec lists, and whose
            `layers` are None unless it states numbers.
        family: what is known of the schedules.
        size: microbatches per iteration.
        v_shaped: whether stages are placed down and up again.
        blocks: costs of layers a to b on every kind.
        busy_messages: at least so many messages per microbatch and neighbour keep both ranks busy.
    """

    pool: Pool
    freedom: Freedom
    family: ScheduleFamily
    size: int
    v_shaped: bool
    blocks: BlockCosts
    messages: MessageTimes
    busy_messages: float
    after: AfterPipeline
    devices: tuple[int, ...]
    layers: tuple[int, ...] | None

    @property
    def num_layers(self) -> int:
        return self.blocks.num_layers

    @property
    def counts(self) -> IntArray:
        """Devices of each kind that may be used."""
        if self.freedom.devices:
            return self.pool.counts
        of_kind = self.pool.kind_of[list(self.devices)]
        return np.bincount(of_kind, minlength=len(self.pool.kinds)).astype(np.int64)

    @property
    def most_ranks(self) -> int:
        return min(int(self.counts.sum()), self.num_layers)

    @property
    def stated(self) -> Layout:
        """The stated layout, as far as it is one: where no layers are stated, as many on every rank as there are."""
        layers = self.layers if self.layers is not None else (self.num_layers,) * len(self.devices)
        return Layout(devices=self.devices, layers=layers)

    def shape(self, ranks: int) -> Shape:
        if self.v_shaped:
            return Shape.v(ranks, num_microbatches=self.size)
        return Shape.loop(ranks, num_microbatches=self.size, chunks=self.freedom.chunks)


def layout_problem(
    opened: OpenSpec, group: Group, pool: Pool, blocks: BlockCosts, messages: MessageTimes, after: AfterPipeline
) -> LayoutProblem:
    """The problem of a group of an open spec."""
    stated = group.spec.pipeline.partition
    layers = stated if isinstance(stated, tuple) else None
    return LayoutProblem(
        pool=pool,
        freedom=Freedom(
            devices=opened.placement,
            layers=opened.partition,
            subset=opened.placement and layers is None,
            chunks=group.chunks,
            rule=None if opened.partition or layers is not None else LayerRule(str(stated)),
        ),
        family=group.family,
        size=group.size,
        v_shaped=group.v_shaped,
        blocks=blocks,
        messages=messages,
        busy_messages=BUSY_MESSAGES[group.spec.pipeline.p2p],
        after=after,
        devices=tuple(pool.ids.index(each) for each in group.spec.hardware.ranks()),
        layers=layers,
    )


def layers_by_rule(problem: LayoutProblem, devices: tuple[int, ...]) -> tuple[int, ...]:
    """The layers that `partition: even` gives these devices where it is stated, else what `balanced` does."""
    if problem.freedom.rule is LayerRule.EVEN:
        return Partition.even(problem.num_layers, len(devices) * problem.freedom.chunks).layers
    rank_of = problem.shape(len(devices)).rank_of_stage
    kinds = problem.pool.kind_of[[devices[rank] for rank in rank_of]]
    return Partition.balanced_by_table((problem.blocks.forward + problem.blocks.fused)[kinds]).layers
