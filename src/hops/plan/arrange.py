"""From sets of items to layouts: slow stages first, devices of one node side by side."""

from collections.abc import Iterable, Sequence

from hops.plan.bound import Items
from hops.plan.floor import Layout
from hops.plan.knapsack import FIRST, LAST, WHOLE, Pick
from hops.plan.pool import Pool


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
