"""A time that no run of one plan can beat, in closed form: what the local search minimises.

For stage s: H is the time of all stages before it (F down, backward up), R that of all stages behind it, both with
their messages; c = f + b, n the microbatches it may have in flight. Every run needs

    H + m c                                                   its own work, between the first arrival and the way back
    H + (m - n + 1) c + max((n-1) f, R) + max((n-1) b, R)     1F1B: waits for the first backward, and for the last ones
    (if m <= n: H + c + max(max((m-1) f, R) + (m-1) b, (m-1) f + R), as all forwards come first)
    H + (1 + (m-1) // n) (R + c)                              1F1B: F of microbatch j + n comes after B of j
    m x bytes / bandwidth                                     of every link, for all messages of a microbatch on it

and then the optimizer step of the slowest device, the tied-embedding reduction and the host's gap.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import inf

import numpy as np

from hops.build.costs import host_gap, reduction_nic, tied_reduction
from hops.compiled import available
from hops.cost.collectives import reduction_seconds
from hops.distributions import FloatArray
from hops.hardware.devices import Interconnect
from hops.planner.block_costs import MessageTimes, Tables
from hops.planner.one_f_one_b import ANY, FUSED, GPIPE, ONE_F_ONE_B, floor_terms, one_f_one_b_s
from hops.planner.problem import IntArray, Pool, ScheduleFamily
from hops.program.shape import Shape
from hops.spec.spec import Spec

Block = tuple[IntArray, IntArray, IntArray]  # kinds, first layers, layers after the last
_CODES = {
    ScheduleFamily.ANY: ANY,
    ScheduleFamily.ONE_F_ONE_B: ONE_F_ONE_B,
    ScheduleFamily.GPIPE: GPIPE,
    ScheduleFamily.FUSED: FUSED,
}
MESSAGES = {"overlapped": 0.0, "blocking": 2.0, "blocking_fused": 1.0}  # at least so many keep both ranks busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to place the model: the device of every rank, and the layers of every stage."""

    devices: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LayoutBound:
    """Lower bounds of layouts under one family of schedules.

    Attributes:
        spec: the base spec: reductions, optimizer, messages.
        size: microbatches per iteration.
        ways: of the messages.
        chunks, v_shaped: placement of the stages on the ranks.
    """

    spec: Spec
    pool: Pool
    tables: Tables
    ways: MessageTimes
    family: ScheduleFamily
    size: int
    chunks: int = 1
    v_shaped: bool = False
    _tied: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)
    _gaps: dict[int, float] = field(default_factory=dict, repr=False)

    def shape(self, ranks: int) -> Shape:
        if self.v_shaped:
            return Shape.v(ranks, num_microbatches=self.size)
        return Shape.loop(ranks, num_microbatches=self.size, chunks=self.chunks)

    def seconds(self, layout: Layout) -> float:
        """Of one iteration; infinite if the layout cannot fit into memory."""
        return self.parts(layout)[1]

    def parts(self, layout: Layout) -> tuple[float, float]:
        """Of the pipeline alone, and of the iteration with what follows it."""
        device = np.array(layout.devices, dtype=np.int64)
        layers = np.array(layout.layers, dtype=np.int64)
        if self.chunks == 1:
            kind, rank_of = self.pool.kind_of[device], np.arange(len(device))
            ends = np.cumsum(layers)
            block = (kind, ends - layers, ends)
            if not self._terms(device, kind, layers):
                return inf, inf
            first, last, pipeline, link = self._out.tolist()
        else:
            rank_of = np.array(self.shape(len(device)).rank_of_stage)
            kind = self.pool.kind_of[device[rank_of]]
            ends = np.cumsum(layers)
            block = (kind, ends - layers, ends)
            if not self._fits(rank_of, block):
                return inf, inf
            pipeline = self._of_chunks(rank_of, device, block)
            first = last = link = 0.0
        tied = max(first, last) + self._tied_s(int(device[0]), int(device[rank_of[-1]]))
        reduced = tied + self._own_reduction(rank_of, device, block) if self.family is not ScheduleFamily.ANY else tied
        end = float(max(pipeline, link, reduced)) + self._step(len(device), rank_of, block)
        return float(pipeline), end

    @property
    def is_exact(self) -> bool:
        """Whether `exact` is known at little cost: 1F1B, messages overlapped, numba there to compile it."""
        return self.family is ScheduleFamily.ONE_F_ONE_B and self.spec.pipeline.p2p == "overlapped" and available()

    def exact(self, layout: Layout) -> float:
        """Seconds of an iteration but for shared links and jitter; `seconds` is a little less."""
        pipeline_s, iteration_s = self.parts(layout)
        if iteration_s == inf:
            return inf
        device = np.array(layout.devices, dtype=np.int64)
        ends = np.cumsum(np.array(layout.layers, dtype=np.int64))
        block = (self.pool.kind_of[device], ends - layout.layers, ends)
        down, up = self.ways.seconds[device[:-1], device[1:]], self.ways.seconds[device[1:], device[:-1]]
        both = (down + up) / 2  # as the profile that schedules get has it
        took = one_f_one_b_s.fast(self.size, self.tables.forward[block], self.tables.fused[block], both, both)
        return iteration_s + max(0.0, float(took) - pipeline_s)

    def _terms(self, device: IntArray, kind: IntArray, layers: IntArray) -> bool:
        """The closed form, into `_out`; whether the layout fits."""
        tables, ways = self.tables, self.ways
        fits: bool = floor_terms.fast(
            _CODES[self.family],
            self.size,
            MESSAGES[self.spec.pipeline.p2p],
            device,
            kind,
            layers,
            tables.forward,
            tables.fused,
            tables.inputs,
            tables.weights,
            tables.static,
            tables.activation,
            tables.kept,
            self.pool.memory_bytes,
            ways.seconds,
            ways.links,
            ways.link_s,
            self.load,
            self._out,
        )
        return fits

    @cached_property
    def _out(self) -> FloatArray:
        return np.zeros(4)

    @cached_property
    def load(self) -> FloatArray:
        """Room for the kernels: seconds on each link."""
        return np.zeros(self.ways.num_links)

    def _fits(self, rank_of: IntArray, block: Block) -> bool:
        """Whether weights, states and the activations that a schedule with chunks needs fit on every device."""
        kind, starts, ends = block
        flight = self._flight(int(rank_of.max()) + 1, len(rank_of))
        needed = self.tables.static[starts, ends] + flight * self.tables.activation[starts, ends]
        held = np.bincount(rank_of, weights=needed)
        memory = np.zeros(len(held))
        memory[rank_of] = self.pool.memory_bytes[kind]
        return bool((held <= memory).all())

    def _flight(self, ranks: int, stages: int) -> IntArray:
        """Microbatches in flight per stage: in interleaved 1F1B certain, in V schedules what the thriftiest needs.

        Interleaved 1F1B runs 2 (p - 1 - r) + (chunks - 1) p forwards on rank r before its first pair, p of each chunk
        in turn. `v_half` holds half of what 1F1B's first rank does.
        """
        if self.v_shaped:
            return np.full(stages, min(self.size, ranks // 2 + 1), dtype=np.int64)
        flight = np.ones(stages, dtype=np.int64)
        for rank in range(ranks if self.family is ScheduleFamily.FUSED else 0):
            ahead = min(2 * (ranks - 1 - rank) + (self.chunks - 1) * ranks + 1, self.size * self.chunks)
            rounds, rest = divmod(ahead, ranks * self.chunks)
            for chunk in range(self.chunks):
                flight[chunk * ranks + rank] = rounds * ranks + min(ranks, max(0, rest - chunk * ranks))
        return flight

    def _of_chunks(self, rank_of: IntArray, device: IntArray, block: Block) -> float:
        """Ranks with several stages: the way to a rank's first stage, and its own work."""
        tables = self.tables
        forward, fused = tables.forward[block], tables.fused[block]
        cheaper = fused
        if self.family is ScheduleFamily.ANY:
            cheaper = np.minimum(fused, tables.inputs[block] + tables.weights[block])
        of_stage = device[rank_of]
        arrived = np.concatenate([[0.0], np.cumsum(forward[:-1] + self.ways.seconds[of_stage[:-1], of_stage[1:]])])
        load = self.size * np.bincount(rank_of, weights=forward + cheaper)
        return float((arrived[: len(device)] + load).max())

    def _own_reduction(self, rank_of: IntArray, device: IntArray, block: Block) -> float:
        """Seconds of the data-parallel reduction of the first rank, over its share of its host's NIC."""
        section = self.spec.optimizer
        if not section.enabled or section.data_parallel == 1:
            return 0.0
        ranks = device.tolist()
        parameters = int(self.tables.parameters[block[1:]][rank_of == 0].sum())
        on_node = sum(self.pool.nodes[each] == self.pool.nodes[ranks[0]] for each in ranks)
        nic = self._nics[ranks[0]]
        return reduction_seconds(
            section.gradient_reduction,
            parameters * section.gradient_bytes,
            section.data_parallel,
            bandwidth=nic.bandwidth / on_node,
            latency_s=nic.latency_s,
        )

    @cached_property
    def _nics(self) -> list[Interconnect]:
        return [reduction_nic(self.pool.known, each) for each in self.pool.ids]

    @cached_property
    def _is_tied(self) -> bool:
        section = self.spec.optimizer
        return bool(section.enabled and section.tied_embeddings)

    def _tied_s(self, first: int, last: int) -> float:
        """Expected seconds of the tied-embedding reduction between these devices."""
        if not self._is_tied or first == last:
            return 0.0
        if (first, last) not in self._tied:
            drawn, _ = tied_reduction(self.pool.known, self.pool.ids[first], self.pool.ids[last])
            self._tied[first, last] = drawn.mean
        return self._tied[first, last]

    @cached_property
    def tied(self) -> FloatArray:
        """Expected seconds of the tied-embedding reduction by first and last device."""
        classes, size = self.pool.classes, len(self.pool.ids)
        known: dict[object, float] = {}
        seconds = np.zeros((size, size))
        for first, last in permutations(range(size), 2):
            key = (classes[first], classes[last])
            if key not in known:
                known[key] = self._tied_s(first, last)
            seconds[first, last] = known[key]
        return seconds

    def _step(self, ranks: int, rank_of: IntArray, block: Block) -> float:
        """The host's gap, and the optimizer step: the slowest where ranks wait for each other, else the fastest."""
        section = self.spec.optimizer
        if not section.enabled:
            return 0.0
        optimizer = np.zeros(ranks)
        np.maximum.at(optimizer, rank_of, self.tables.step[block])
        norm = float(self.tables.norm[block].max())
        return self.gap_s(ranks) + norm + float(optimizer.max() if section.synchronized else optimizer.min())

    def gap_s(self, ranks: int) -> float:
        """The host's, with so many ranks."""
        if ranks not in self._gaps:
            self._gaps[ranks] = host_gap(self.pool.known, ranks)
        return self._gaps[ranks]
