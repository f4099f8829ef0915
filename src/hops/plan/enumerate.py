"""All layouts of a small problem, each once: devices that are alike and equally connected are not told apart."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import comb

from hops.plan.floor import Layout
from hops.plan.local import Freedom
from hops.plan.pool import Pool


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
    """All layouts that a search from `start` could reach."""
    if not freedom.devices:
        sequences: Iterator[tuple[int, ...]] = iter([start.devices])
    else:
        sizes = range(1, min(len(pool.ids), num_layers) + 1) if freedom.subset else [len(start.devices)]
        sequences = (sequence for size in sizes for sequence in _sequences(pool, size))
    for devices in sequences:
        if freedom.rule is not None:
            yield Layout(devices=devices, layers=freedom.rule(devices))
        elif not freedom.layers:
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
