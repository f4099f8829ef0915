"""Layouts: what they are, what of them may change, how items become one, and the list of all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import comb

from hops.planner.bound import Items
from hops.planner.knapsack import FIRST, LAST, WHOLE, Pick
from hops.planner.problem import Group, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to place the model: the device of every rank, and the layers of every stage."""

    devices: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A layout of a group. No run of it can beat `floor_s`, nor `floor`, the same in the objective's unit.

    `pipeline_s` is the part of the floor up to the last backward. `expected_s` is what its run takes but for shared
    links and jitter, if `is_exact`, else the floor.
    """

    group: Group
    layout: Layout
    floor: float
    floor_s: float
    pipeline_s: float
    expected_s: float
    is_exact: bool


class LayerRule(Enum):
    """How the layers follow from the devices, where the spec states it (`pipeline.partition`)."""

    EVEN = "even"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """What the search may change.

    Attributes:
        devices, layers: which devices in which order; how many layers each stage has.
        subset: whether the number of devices may change, and unused ones be taken.
        chunks: stages per rank.
        rule: the layers that follow from the devices; None: they do not.
    """

    devices: bool = True
    layers: bool = True
    subset: bool = True
    chunks: int = 1
    rule: LayerRule | None = None


def layout_of_pick(pick: Pick, items: Items, pool: Pool) -> Layout:
    """Slow stages first, as the closed form of 1F1B wants it; among equals, kind by kind.

    Exchanging a slower stage with a faster one in front of it never makes the time of 1F1B longer.
    """
    first = [item for item in pick.items if item[1] in (FIRST, WHOLE)]
    last = [item for item in pick.items if item[1] == LAST]
    inner = [item for item in pick.items if item not in first and item not in last]
    inner.sort(key=lambda item: (-float(items.whole[item]), item[0], item[2]))
    return place([(kind, length) for kind, _, length in (*first, *inner, *last)], pool)


def place(stages: Iterable[tuple[int, int]], pool: Pool) -> Layout:
    """The layout of stages given as (kind, layers): devices of a kind are taken node by node.

    A device on the node of the stage before is taken first, so that neighbours share a node where they can.
    """
    free = [pool.of_kind(kind) for kind in range(len(pool.kinds))]
    devices: list[int] = []
    lengths: list[int] = []
    for kind, length in stages:
        device = _nearest(free[kind], devices, pool.nodes)
        free[kind].remove(device)
        devices.append(device)
        lengths.append(length)
    return Layout(devices=tuple(devices), layers=tuple(lengths))


def _nearest(free: Sequence[int], placed: Sequence[int], nodes: Sequence[str]) -> int:
    """A free device on the last one's node, else on the node that has most free devices of the kind."""
    if placed:
        near = [device for device in free if nodes[device] == nodes[placed[-1]]]
        if near:
            return near[0]
    on_node = {nodes[device]: 0 for device in free}
    for device in free:
        on_node[nodes[device]] += 1
    return max(free, key=lambda device: (on_node[nodes[device]], -device))


def how_many(pool: Pool, num_layers: int, freedom: Freedom, start: Layout) -> int:
    """How many layouts there are, counting alike devices as different (so at least as many as are listed)."""
    total, sequences = 0, 1
    for ranks in range(1, len(pool.ids) + 1):
        sequences *= len(pool.ids) - ranks + 1
        if freedom.devices and (freedom.subset or ranks == len(start.devices)):
            total += sequences * (comb(num_layers - 1, ranks * freedom.chunks - 1) if freedom.layers else 1)
    if not freedom.devices:
        total = comb(num_layers - 1, len(start.layers) - 1) if freedom.layers else 1
    return total


def all_layouts(pool: Pool, num_layers: int, freedom: Freedom, start: Layout) -> Iterator[Layout]:
    """All layouts that a search from `start` could reach. Where a rule says the layers, they are those of `start`."""
    if not freedom.devices:
        sequences: Iterator[tuple[int, ...]] = iter([start.devices])
    else:
        sizes = range(1, min(len(pool.ids), num_layers) + 1) if freedom.subset else [len(start.devices)]
        sequences = (sequence for size in sizes for sequence in _sequences(pool, size))
    for devices in sequences:
        if not freedom.layers:
            yield Layout(devices=devices, layers=start.layers)
        else:
            for layers in _compositions(num_layers, len(devices) * freedom.chunks):
                yield Layout(devices=devices, layers=layers)


def _sequences(pool: Pool, size: int) -> Iterator[tuple[int, ...]]:
    """Sequences of devices; of devices of one class, the first free one is taken."""
    members: dict[tuple[object, ...], list[int]] = {}
    for device, key in enumerate(pool.classes):
        members.setdefault(key, []).append(device)
    queues = list(members.values())
    taken: Counter[int] = Counter()

    def extend(sequence: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(sequence) == size:
            yield sequence
            return
        for number, queue in enumerate(queues):
            if taken[number] < len(queue):
                device = queue[taken[number]]
                taken[number] += 1
                yield from extend((*sequence, device))
                taken[number] -= 1

    return extend(())


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of so many positive ones."""
    for cuts in combinations(range(1, total), parts - 1):
        ends = (*cuts, total)
        yield tuple(end - start for start, end in zip((0, *cuts), ends, strict=True))
