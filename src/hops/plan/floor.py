"""A time that no run of one plan can beat, in closed form: what the local search minimises.

For stage s: H is the time of all stages before it (F down, backward up), R that of all stages behind it, both with
their messages; c = f + b, n the microbatches it may have in flight. Every run needs

    H + m c                                                   its own work, between the first arrival and the way back
    H + (m - n + 1) c + max((n-1) f, R) + max((n-1) b, R)     1F1B: waits for the first backward, and for the last ones
    H + (1 + (m-1) // n) (R + c)                              1F1B: F of microbatch j + n comes after B of j
    m x bytes / bandwidth                                     of every link, for all messages of a microbatch on it

and then the optimizer step of the slowest device, the tied-embedding reduction and the host's gap.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from hops.api.cluster import interconnect
from hops.api.costs import host_gap, tied_reduction
from hops.api.trained import trained
from hops.cluster import Catalog, Interconnect, Topology
from hops.config import Spec
from hops.cost import reduction_seconds
from hops.draws import FloatArray
from hops.plan.family import Family, in_flight
from hops.plan.pool import IntArray, Pool
from hops.plan.tables import Tables
from hops.plan.ways import Ways
from hops.schedule import Shape

Block = tuple[IntArray, IntArray, IntArray]  # kinds, first layers, layers after the last
MESSAGES = {"overlapped": 0.0, "blocking": 2.0, "blocking_fused": 1.0}  # at least so many keep both ranks busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to place the model: the device of every rank, and the layers of every stage."""

    devices: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Floor:
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
    ways: Ways
    family: Family
    size: int
    chunks: int = 1
    v_shaped: bool = False
    _tied: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    def shape(self, ranks: int) -> Shape:
        if self.v_shaped:
            return Shape.v(ranks, num_microbatches=self.size)
        return Shape.loop(ranks, num_microbatches=self.size, chunks=self.chunks)

    def seconds(self, layout: Layout) -> float:
        """Of one iteration; infinite if the layout cannot fit into memory."""
        shape = self.shape(len(layout.devices))
        rank_of = np.array(shape.rank_of_stage)
        device = np.array(layout.devices)[rank_of]
        kind = self.pool.kind_of[device]
        layers = np.array(layout.layers, dtype=np.int64)
        ends = np.cumsum(layers)
        starts = ends - layers
        if not self.fits(shape, rank_of, kind, starts, ends):
            return float("inf")
        block = (kind, starts, ends)
        done = self._done(shape, rank_of, device, block)
        pipeline = max(float(done.max()), self._of_links(device), self._reduced(rank_of, device, block, done))
        return pipeline + self._step(shape, rank_of, block)

    def fits(self, shape: Shape, rank_of: IntArray, kind: IntArray, starts: IntArray, ends: IntArray) -> bool:
        """Whether weights, states and the activations that are certainly in flight fit on every device."""
        flight = np.array(in_flight(self.family, shape))
        needed = self.tables.static[starts, ends] + flight * self.tables.activation[starts, ends]
        if self.chunks == 1 and not self.v_shaped:
            return bool((needed <= self.pool.memory_bytes[kind]).all())
        held = np.bincount(rank_of, weights=needed)
        return bool((held <= self.pool.memory_bytes[kind[: shape.num_ranks]]).all())

    def _done(self, shape: Shape, rank_of: IntArray, device: IntArray, block: Block) -> FloatArray:
        """Per rank, when its own last action of the pipeline can have ended."""
        tables, size = self.tables, self.size
        forward, fused = tables.forward[block], tables.fused[block]
        inputs, weights = tables.inputs[block], tables.weights[block]
        down = self.ways.seconds[device[:-1], device[1:]]
        up = self.ways.seconds[device[1:], device[:-1]]
        to_here = _before(forward, down)
        if self.family is Family.ANY:
            cheaper = np.minimum(fused, inputs + weights)
            from_here = _before(np.minimum(fused, inputs), up)
        else:
            cheaper, from_here = fused, _before(fused, up)
        busy = self._with_messages(forward + cheaper, (down + up) / 2)
        if self.chunks > 1 or self.v_shaped:
            load = size * np.bincount(rank_of, weights=busy)
            return np.asarray(to_here[: shape.num_ranks] + load)
        there_and_back = forward + (np.minimum(fused, inputs) if self.family is Family.ANY else fused)
        trip = there_and_back.copy()
        trip[:-1] += down + up
        rest = np.cumsum(trip[::-1])[::-1] - trip
        if self.family is Family.ONE_F_ONE_B:
            flight = np.minimum(len(device) - np.arange(len(device)), size)
            around = to_here + from_here
            waits = np.maximum((flight - 1) * forward, rest) + np.maximum((flight - 1) * fused, rest)
            terms = [
                around + size * busy,
                around + (size - flight + 1) * busy + waits,
                around + (1 + (size - 1) // flight) * (rest + forward + fused),
            ]
        elif self.family is Family.GPIPE:
            path = float(forward.sum() + down.sum() + fused.sum() + up.sum())
            terms = [np.array([path + (size - 1) * (forward.max() + fused.max())])]
        else:
            idle = self._idle(block, forward, there_and_back, weights, rest)
            back = to_here + from_here + size * there_and_back
            done = to_here + size * busy + idle
            done[0] = max(done[0], back.max())
            return np.asarray(done)
        return np.full(len(device), max(float(term.max()) for term in terms))  # fused backwards end on stage 0

    def _idle(
        self,
        block: Block,
        forward: FloatArray,
        there_and_back: FloatArray,
        weights: FloatArray,
        rest: FloatArray,
    ) -> FloatArray:
        """What memory forces each stage to wait.

        For its first backward, with all the forwards done that fit; for its last one, with all the backwards done that
        can be put off.
        """
        tables = self.tables
        kind, starts, ends = block
        room = self.pool.memory_bytes[kind] - tables.static[starts, ends]
        activation, kept = (np.maximum(each[starts, ends], 1) for each in (tables.activation, tables.kept))
        most = np.minimum(room // activation, self.size)
        waiting = np.maximum(0.0, rest - (most - 1) * forward)
        put_off = np.minimum(np.maximum(room // kept, most), self.size)
        late = np.maximum(0.0, rest - (put_off - 1) * (there_and_back - forward + weights))
        return np.asarray(waiting + late)

    def _with_messages(self, busy: FloatArray, hop: FloatArray) -> FloatArray:
        """Work with the messages that keep a rank busy."""
        share = MESSAGES[self.spec.pipeline.p2p]
        return busy + share * (np.concatenate([[0.0], hop]) + np.concatenate([hop, [0.0]])) if share else busy

    def _of_links(self, device: IntArray) -> float:
        """The time that the fullest link needs for all messages of an iteration."""
        down = [(a, b) for a, b in zip(device[:-1].tolist(), device[1:].tolist(), strict=True) if a != b]
        return self.size * self.ways.fullest_link_s([*down, *((b, a) for a, b in down)])

    def _reduced(self, rank_of: IntArray, device: IntArray, block: Block, done: FloatArray) -> float:
        """When the reductions of gradients can have ended."""
        section = self.spec.optimizer
        if not section.enabled:
            return 0.0
        first, last = int(device[0]), int(device[-1])
        ended = float(max(done[0], done[rank_of[-1]])) + self._tied_s(first, last)
        if section.data_parallel == 1:
            return ended
        ranks = device[: len(done)].tolist()
        parameters = np.bincount(rank_of, weights=self.tables.parameters[block[1:]])
        on_node = Counter(self.pool.nodes[each] for each in ranks)
        own = [
            reduction_seconds(
                section.gradient_reduction,
                count * section.gradient_bytes,
                section.data_parallel,
                bandwidth=self._nics[each].bandwidth / on_node[self.pool.nodes[each]],
                latency_s=self._nics[each].latency_s,
            )
            for each, count in zip(ranks, parameters.tolist(), strict=True)
        ]
        if self.family is not Family.ANY:  # fused backwards end on stage 0; others may reduce while it is still at work
            ended += own[0]
        return ended

    @cached_property
    def _nics(self) -> list[Interconnect]:
        stated = self.spec.optimizer.reduction_interconnect
        catalog = Catalog.load([Path(name) for name in self.spec.hardware.catalog])
        between = None if stated is None else interconnect(stated, catalog, Topology.NETWORK)
        return [between or self.pool.cluster.nic(each) for each in self.pool.ids]

    def _tied_s(self, first: int, last: int) -> float:
        """Expected seconds of the tied-embedding reduction between these devices."""
        if not self.spec.optimizer.tied_embeddings or first == last:
            return 0.0
        if (first, last) not in self._tied:
            ends = {"placement": (self.pool.ids[first], self.pool.ids[last])}
            spec = self.spec.model_copy(update={"hardware": self.spec.hardware.model_copy(update=ends)})
            drawn, _ = tied_reduction(spec, Shape.loop(2, num_microbatches=1), self.pool.cluster, trained(spec).model)
            self._tied[first, last] = drawn.mean
        return self._tied[first, last]

    def _step(self, shape: Shape, rank_of: IntArray, block: Block) -> float:
        """The host's gap, and the optimizer step: the slowest where ranks wait for each other, else the fastest."""
        section = self.spec.optimizer
        if not section.enabled:
            return 0.0
        optimizer = np.zeros(shape.num_ranks)
        np.maximum.at(optimizer, rank_of, self.tables.step[block])
        norm = float(self.tables.norm[block].max())
        return host_gap(self.spec, shape) + norm + float(optimizer.max() if section.synchronized else optimizer.min())


def _before(work: FloatArray, hops: FloatArray) -> FloatArray:
    """Per stage, the work of all stages before it and the messages between."""
    return np.concatenate([[0.0], np.cumsum(work[:-1] + hops)])
