"""Local search on a layout: which devices, in which order, with how many layers each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hops.planner import anneal
from hops.planner.layout_bound import Layout
from hops.planner.problem import Pool

Value = Callable[[Layout], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """What the search may change.

    Attributes:
        devices, layers: which devices in which order; how many layers each stage has.
        subset: whether the number of devices may change, and unused ones be taken.
        chunks: stages per rank.
        rule: the layers that follow from the devices, where the spec states how (even, balanced).
    """

    devices: bool = True
    layers: bool = True
    subset: bool = True
    chunks: int = 1
    rule: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None

    @property
    def compiled_moves(self) -> tuple[int, ...]:
        """The moves of `anneal` that are allowed; none where it does not know enough: chunks, or a rule for layers."""
        if self.chunks > 1 or self.rule is not None:
            return ()
        both = self.devices and self.layers
        allowed = {
            anneal.LAYER: self.layers,
            anneal.LAYER_FAR: self.layers,
            anneal.SWAP: both,
            anneal.SWAP_DEVICES: self.devices,
            anneal.RELOCATE: both,
            anneal.REPLACE: self.devices and self.subset,
            anneal.DROP: both and self.subset,
            anneal.ADD: both and self.subset,
        }
        return tuple(move for move, yes in allowed.items() if yes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best layout of a search, and its value."""

    layout: Layout
    value: float


def improve(
    start: Layout, value: Value, pool: Pool, freedom: Freedom, *, evaluations: int, seed: int, heat: float = 0.0
) -> Found:
    """The best layout found by so many random moves.

    A move is kept unless it makes the value worse by more than a threshold that falls to nothing (threshold accepting,
    Dueck and Scheuer 1990): at first `heat`, as a part of the value. No clock is read: a call gives the same again.
    """
    rng = np.random.default_rng(seed)
    here = best = start
    here_value = best_value = value(start)
    moves = [move for move, allowed in _moves(freedom) if allowed]
    for number in range(evaluations if moves else 0):
        changed = moves[int(rng.integers(len(moves)))](_At(here=here, pool=pool, rng=rng))
        if changed is None or changed == here:
            continue
        if freedom.rule is not None and changed.devices != here.devices:
            changed = Layout(devices=changed.devices, layers=freedom.rule(changed.devices))
        changed_value = value(changed)
        if changed_value <= here_value * (1 + heat * (1 - number / evaluations)):
            here, here_value = changed, changed_value
            if here_value < best_value:
                best, best_value = here, here_value
    return Found(layout=best, value=best_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """Where a move starts from, and what it draws with."""

    here: Layout
    pool: Pool
    rng: np.random.Generator


Move = Callable[[_At], Layout | None]


def _moves(freedom: Freedom) -> list[tuple[Move, bool]]:
    one_chunk = freedom.chunks == 1
    return [
        (_move_layer, freedom.layers),
        (_move_layer_far, freedom.layers),
        (_swap_stages, freedom.devices and freedom.layers and one_chunk),
        (_swap_devices, freedom.devices),
        (_relocate, freedom.devices and freedom.layers and one_chunk),
        (_reverse, freedom.devices and freedom.layers and one_chunk),
        (_replace, freedom.devices and freedom.subset),
        (_drop, freedom.devices and freedom.layers and freedom.subset and one_chunk),
        (_add, freedom.devices and freedom.layers and freedom.subset and one_chunk),
    ]


def _two(size: int, rng: np.random.Generator) -> tuple[int, int] | None:
    """Two different places."""
    if size < 2:
        return None
    first = int(rng.integers(size))
    return first, (first + 1 + int(rng.integers(size - 1))) % size


def _shift(layers: tuple[int, ...], source: int, target: int) -> tuple[int, ...] | None:
    if layers[source] < 2:
        return None
    moved = list(layers)
    moved[source] -= 1
    moved[target] += 1
    return tuple(moved)


def _move_layer(at: _At) -> Layout | None:
    """One layer to a neighbouring stage."""
    stage = int(at.rng.integers(len(at.here.layers)))
    target = stage + (1 if at.rng.random() < 0.5 else -1)
    if not 0 <= target < len(at.here.layers):
        return None
    layers = _shift(at.here.layers, stage, target)
    return None if layers is None else Layout(devices=at.here.devices, layers=layers)


def _move_layer_far(at: _At) -> Layout | None:
    """One layer from any stage to any other."""
    pair = _two(len(at.here.layers), at.rng)
    layers = None if pair is None else _shift(at.here.layers, *pair)
    return None if layers is None else Layout(devices=at.here.devices, layers=layers)


def _swapped(values: tuple[int, ...], pair: tuple[int, int]) -> tuple[int, ...]:
    changed = list(values)
    changed[pair[0]], changed[pair[1]] = changed[pair[1]], changed[pair[0]]
    return tuple(changed)


def _swap_stages(at: _At) -> Layout | None:
    """Two stages trade places, with their devices."""
    pair = _two(len(at.here.layers), at.rng)
    if pair is None:
        return None
    return Layout(devices=_swapped(at.here.devices, pair), layers=_swapped(at.here.layers, pair))


def _swap_devices(at: _At) -> Layout | None:
    """Two ranks trade devices and keep their layers."""
    pair = _two(len(at.here.devices), at.rng)
    return None if pair is None else Layout(devices=_swapped(at.here.devices, pair), layers=at.here.layers)


def _relocate(at: _At) -> Layout | None:
    """A run of stages goes elsewhere: a node's devices, for example."""
    size = len(at.here.layers)
    if size < 2:
        return None
    start = int(at.rng.integers(size))
    length = int(at.rng.integers(1, max(2, size // 2 + 1)))
    run = range(start, min(size, start + length))
    rest = [stage for stage in range(size) if stage not in run]
    spot = int(at.rng.integers(len(rest) + 1))
    order = [*rest[:spot], *run, *rest[spot:]]
    return _in_order(at.here, order)


def _reverse(at: _At) -> Layout | None:
    """A run of stages is turned round."""
    pair = _two(len(at.here.layers), at.rng)
    if pair is None:
        return None
    low, high = min(pair), max(pair)
    stages = list(range(len(at.here.layers)))
    return _in_order(at.here, [*stages[:low], *stages[low : high + 1][::-1], *stages[high + 1 :]])


def _in_order(here: Layout, order: list[int]) -> Layout:
    return Layout(
        devices=tuple(here.devices[stage] for stage in order), layers=tuple(here.layers[stage] for stage in order)
    )


def _unused(at: _At) -> int | None:
    used = set(at.here.devices)
    free = [device for device in range(len(at.pool.ids)) if device not in used]
    return free[int(at.rng.integers(len(free)))] if free else None


def _replace(at: _At) -> Layout | None:
    """A device that is not used takes the place of one that is."""
    device = _unused(at)
    if device is None:
        return None
    rank = int(at.rng.integers(len(at.here.devices)))
    return Layout(devices=(*at.here.devices[:rank], device, *at.here.devices[rank + 1 :]), layers=at.here.layers)


def _drop(at: _At) -> Layout | None:
    """A stage is given up; its layers go to others at random, one by one."""
    size = len(at.here.layers)
    if size < 2:
        return None
    stage = int(at.rng.integers(size))
    layers = [count for spot, count in enumerate(at.here.layers) if spot != stage]
    for _ in range(at.here.layers[stage]):
        layers[int(at.rng.integers(size - 1))] += 1
    return Layout(devices=at.here.devices[:stage] + at.here.devices[stage + 1 :], layers=tuple(layers))


def _add(at: _At) -> Layout | None:
    """An unused device gets a stage of one layer, taken from any that has more."""
    device = _unused(at)
    givers = [stage for stage, count in enumerate(at.here.layers) if count > 1]
    if device is None or not givers:
        return None
    giver = givers[int(at.rng.integers(len(givers)))]
    layers = list(at.here.layers)
    layers[giver] -= 1
    spot = int(at.rng.integers(len(layers) + 1))
    devices = (*at.here.devices[:spot], device, *at.here.devices[spot:])
    return Layout(devices=devices, layers=(*layers[:spot], 1, *layers[spot:]))
