"""What any block of layers costs on any kind of device: the numbers that all of planning works with."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.build.expected import message_seconds
from hops.build.figures import named_kernels, rates_of, workload
from hops.build.network import network_between
from hops.cost.analytic import AnalyticCosts
from hops.cost.iteration_end import optimizer_seconds
from hops.cost.roofline import DeviceRates
from hops.model.memory import stage_memory
from hops.model.partition import StageSlice
from hops.model.workload import StageWork, Workload, stage_work
from hops.planner.problem import Pool
from hops.program.action import Op
from hops.spec.spec import Spec


class BlockArrays(NamedTuple):
    """What kernels take of BlockCosts, under the same names."""

    forward: FloatArray
    fused: FloatArray
    inputs: FloatArray
    weights: FloatArray
    static: IntArray
    activation: IntArray
    kept: IntArray


class MessageArrays(NamedTuple):
    """What kernels take of MessageTimes, under the same names."""

    seconds: FloatArray
    links: IntArray
    link_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCosts:
    """Costs of the block of layers a to b - 1, at index [kind, a, b]; the embedding is in blocks with a = 0, the head
    in those with b = the number of layers. Infinite where a block has no layer.

    Attributes:
        forward, fused, inputs, weights: seconds of F, B, I and W per microbatch; shape (kinds, layers + 1, layers + 1).
        step, norm: seconds of the optimizer step, and of the gradient norm before it, which the slowest rank decides.
        static, activation, kept: bytes that are always held, that F allocates, that stay between I and W; the last
            three are the same on every kind, shape (layers + 1, layers + 1).
        parameters: of the block.
        message_bytes: between stages.
    """

    forward: FloatArray
    fused: FloatArray
    inputs: FloatArray
    weights: FloatArray
    step: FloatArray
    norm: FloatArray
    static: IntArray
    activation: IntArray
    kept: IntArray
    parameters: IntArray
    message_bytes: int

    @property
    def num_layers(self) -> int:
        return int(self.forward.shape[1]) - 1

    @property
    def whole(self) -> FloatArray:
        """F and the cheaper form of the backward."""
        return self.forward + np.minimum(self.fused, self.inputs + self.weights)

    @property
    def arrays(self) -> BlockArrays:
        """For kernels."""
        return BlockArrays(
            forward=self.forward,
            fused=self.fused,
            inputs=self.inputs,
            weights=self.weights,
            static=self.static,
            activation=self.activation,
            kept=self.kept,
        )

    @classmethod
    def by_layer(
        cls,
        forward: FloatArray,
        fused: FloatArray,
        *,
        static: Sequence[int] = (),
        activation: Sequence[int] = (),
        message_bytes: int = 0,
    ) -> "BlockCosts":
        """Of layers that differ, by prefix sums. I and W each take half of B.

        `forward` and `fused` are seconds of every layer on every kind, shape (kinds, layers); `static` and `activation`
        bytes of every layer, () being none; `message_bytes` goes between any two layers.
        """
        layers = forward.shape[1]
        nothing = [0] * layers
        held, taken = (_blocks(np.array(each or nothing)[None])[0] for each in (static, activation))
        whole = _blocks(fused)
        return cls(
            forward=_blocks(forward),
            fused=whole,
            inputs=whole / 2,
            weights=whole / 2,
            step=np.zeros_like(whole),
            norm=np.zeros_like(whole),
            static=_bytes(held),
            activation=_bytes(taken),
            kept=_bytes(taken),
            parameters=np.zeros(held.shape, dtype=np.int64),
            message_bytes=message_bytes,
        )


def _blocks(per_layer: FloatArray) -> FloatArray:
    """Sums over all blocks, shape (kinds, layers + 1, layers + 1)."""
    sums = np.concatenate([np.zeros((len(per_layer), 1)), np.cumsum(per_layer, axis=1)], axis=1)
    table = sums[:, None, :] - sums[:, :, None]
    empty = np.tri(table.shape[1], dtype=bool)  # b <= a
    return np.where(empty, np.inf, table)


def _bytes(table: FloatArray) -> IntArray:
    return np.where(np.isfinite(table), table, 0).astype(np.int64)


def block_costs(spec: Spec, pool: Pool) -> BlockCosts:
    """Those of a spec's model on the kinds of a pool, from the same cost model that is simulated."""
    work = workload(spec, named_kernels(spec))
    blocks = _LikeBlocks(work.model.layers) if work.model.alike else _UnlikeBlocks(work.model.layers)
    parts = blocks.parts()
    works = tuple(stage_work(work.model, part, work.batch, work.how, work.shards) for part in parts)
    memories = tuple(
        stage_memory(
            work.model,
            part,
            work.batch,
            work.how,
            work.optimizer,
            shards=work.shards,
            states=work.states,
            transients=work.transients,
        )
        for part in parts
    )
    names = ("forward", "fused", "inputs", "weights", "step", "norm")
    seconds: dict[str, list[FloatArray]] = {name: [] for name in names}
    of_kinds = tuple(pool.cluster.devices[pool.of_kind(kind)[0]] for kind in range(len(pool.kinds)))
    for rates in rates_of(pool.known, of_kinds):
        costs = AnalyticCosts(
            works=works,
            rates=(rates,) * len(parts),
            memories=memories,
            split_overhead=spec.pipeline.split_overhead,
        )
        for name, op in (("forward", Op.F), ("fused", Op.B), ("inputs", Op.I), ("weights", Op.W)):
            seconds[name].append(blocks.spread([costs.seconds(stage, op) for stage in range(len(parts))]))
        seconds["step"].append(blocks.spread([_step(spec, work, each, rates) for each in works]))
        seconds["norm"].append(blocks.spread([_norm(spec, each, rates) for each in works]))
    tables = {name: np.array(each) for name, each in seconds.items()}
    if not spec.pipeline.first_stage_splits:
        tables["weights"][:, 0] = tables["fused"][:, 0]
        tables["inputs"][:, 0] = np.where(np.isfinite(tables["inputs"][:, 0]), 0.0, np.inf)

    def of_bytes(values: list[int]) -> IntArray:
        return _bytes(blocks.spread([float(each) for each in values]))

    return BlockCosts(
        **tables,
        static=of_bytes([each.static_bytes for each in memories]),
        activation=of_bytes([each.activation_bytes for each in memories]),
        kept=of_bytes([each.kept_for_weight_bytes for each in memories]),
        parameters=of_bytes([each.parameters for each in works]),
        message_bytes=works[0].message_bytes,
    )


def _step(spec: Spec, work: Workload, block: StageWork, rates: DeviceRates) -> float:
    section = spec.optimizer
    if not section.enabled:
        return 0.0
    if section.update_time is not None:
        return section.update_time.build().mean
    per_parameter = work.optimizer.step_bytes(work.how.element_bytes) / work.states.optimizer
    return optimizer_seconds(block.parameters, layers=block.num_layers, bytes_per_parameter=per_parameter, rates=rates)


def _norm(spec: Spec, block: StageWork, rates: DeviceRates) -> float:
    if not spec.optimizer.enabled or spec.optimizer.update_time is not None:
        return 0.0
    return block.num_layers * rates.norm_layer_s


@dataclass(frozen=True, slots=True)
class _LikeBlocks:
    """Layers are alike, so that a block is known by its length and the ends of the model that it holds."""

    layers: int

    def parts(self) -> list[StageSlice]:
        """All different blocks: inner ones, first ones, last ones, the whole model."""
        ends = ((False, False), (True, False), (False, True))
        lengths = range(1, self.layers + 1)
        inner = [StageSlice(layers=n, embedding=first, head=last) for first, last in ends for n in lengths]
        return [*inner, StageSlice(layers=self.layers, embedding=True, head=True)]

    def spread(self, values: Sequence[float]) -> FloatArray:
        """Values of the different blocks, at [a, b]; infinite where b <= a."""
        layers = self.layers
        inner, first, last = (np.array([np.inf, *values[n * layers : (n + 1) * layers]]) for n in range(3))
        length = np.arange(layers + 1)[None, :] - np.arange(layers + 1)[:, None]
        table = np.where(length > 0, inner[length.clip(min=0)], np.inf)
        table[0, :] = first
        table[:, layers] = last[::-1]
        table[0, layers] = values[-1]
        return table


@dataclass(frozen=True, slots=True)
class _UnlikeBlocks:
    """Layers differ, so that every block is one of its own."""

    layers: int

    def parts(self) -> list[StageSlice]:
        """All blocks, by first layer and then by length."""
        return [
            StageSlice(layers=end - first, embedding=first == 0, head=end == self.layers, first=first)
            for first in range(self.layers)
            for end in range(first + 1, self.layers + 1)
        ]

    def spread(self, values: Sequence[float]) -> FloatArray:
        """Values of the blocks, at [a, b]; infinite where b <= a."""
        table = np.full((self.layers + 1, self.layers + 1), np.inf)
        table[np.triu_indices(self.layers + 1, k=1)] = values
        return table


@dataclass(frozen=True, kw_only=True)
class MessageTimes:
    """All ways of a pool, as the engine's network has them.

    Attributes:
        seconds: expected, of a message of the run's size from any device to any other; 0 to itself.
        links: links that a way shares with others, shape (devices, devices, most such links of a way); -1 for none.
        link_s: seconds of the message on each.
        num_links: of all, at least 1.
    """

    seconds: FloatArray
    links: IntArray
    link_s: FloatArray
    num_links: int

    @classmethod
    def of(cls, pool: Pool, message_bytes: int) -> "MessageTimes":
        """The ways of a pool for messages of this size."""
        network = network_between(pool.known, pool.ids, message_bytes)
        size = len(pool.ids)
        seconds = np.zeros((size, size))
        users: Counter[int] = Counter()
        for pair, route in network.routes.items():
            seconds[pair] = message_seconds(route, network.links, message_bytes)
            users.update(route.links)
        shared = {pair: [link for link in route.links if users[link] > 1] for pair, route in network.routes.items()}
        most = max(map(len, shared.values()), default=0)
        links = np.full((size, size, most), -1, dtype=np.int64)
        link_s = np.zeros((size, size, most))
        for (source, target), numbers in shared.items():
            links[source, target, : len(numbers)] = numbers
            link_s[source, target, : len(numbers)] = [message_bytes / network.links[link].bandwidth for link in numbers]
        return cls(seconds=seconds, links=links, link_s=link_s, num_links=max(1, len(network.links)))

    @property
    def arrays(self) -> MessageArrays:
        """For kernels."""
        return MessageArrays(seconds=self.seconds, links=self.links, link_s=self.link_s)

    def nearest_s(self, pool: Pool) -> FloatArray:
        """Per kind, of a message between a device of the kind and the one nearest to it."""
        between = np.where(np.eye(len(self.seconds), dtype=bool), inf, np.minimum(self.seconds, self.seconds.T))
        nearest = between.min(axis=1, initial=inf)
        least = [nearest[pool.kind_of == kind].min() for kind in range(len(pool.kinds))]
        return np.where(np.isfinite(least), least, 0.0)
