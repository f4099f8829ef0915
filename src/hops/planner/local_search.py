"""Local search on a layout: which devices, in which order, with how many layers each. The moves are compiled.

Its rates turn a time budget into steps, so that a budget gives the same layouts on any machine.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.compiled import kernel
from hops.planner.layout import Freedom, Layout
from hops.planner.layout_problem import LayoutProblem, layers_by_rule

Judge = Callable[[Layout, float], float]
"""judge(layout, limit): its value, which may be anything above the limit where it is above it"""
DRAWS = 4  # random numbers per step
LAYER, LAYER_FAR, SWAP, SWAP_DEVICES, RELOCATE, REPLACE, DROP, ADD = range(8)
LAYOUT_S = 60e-6  # one value of a layout, plus the following per stage; measured on two cores of a cloud CPU
LAYOUT_STAGE_S = 0.6e-6


def layout_s(ranks: int) -> float:
    """Seconds that one step of the search takes, at the rates above."""
    return LAYOUT_S + LAYOUT_STAGE_S * ranks


class LayoutArrays(NamedTuple):
    """A layout with room to grow, which moves read and write.

    Attributes:
        device: of each rank; shape (devices + 1,), of which the first `size[0]` count.
        layers: of each stage; shape (chunks x (devices + 1),), of which the first `size[1]` count.
        spare: devices that no rank has; shape (devices,), of which the first `size[2]` count.
        size: how many ranks, stages and spare devices there are.
    """

    device: IntArray
    layers: IntArray
    spare: IntArray
    size: IntArray

    @classmethod
    def of(cls, layout: Layout, devices: int, chunks: int = 1) -> "LayoutArrays":
        """A layout, with room for so many devices."""
        device = np.zeros(devices + 1, dtype=np.int64)
        layers = np.zeros(chunks * (devices + 1), dtype=np.int64)
        device[: len(layout.devices)] = layout.devices
        layers[: len(layout.layers)] = layout.layers
        size = np.array([len(layout.devices), len(layout.layers), 0])
        arrays = cls(device, layers, np.zeros(devices, dtype=np.int64), size)
        find_spare(arrays)
        return arrays

    @property
    def layout(self) -> Layout:
        ranks, stages, _ = self.size.tolist()
        return Layout(devices=tuple(self.device[:ranks].tolist()), layers=tuple(self.layers[:stages].tolist()))


@kernel
def find_spare(here: LayoutArrays) -> None:
    """Fill in the devices that no rank has, in rising order."""
    used = np.zeros(len(here.spare), np.int64)
    for rank in range(here.size[0]):
        used[here.device[rank]] = 1
    here.size[2] = 0
    for device in range(len(here.spare)):
        if used[device] == 0:
            here.spare[here.size[2]] = device
            here.size[2] += 1


@kernel
def propose(move: int, here: LayoutArrays, draws: FloatArray, out: LayoutArrays) -> bool:
    """Fill `out` with a neighbour of the layout, drawn by numbers in [0, 1); its spare devices are not filled in.

    False if the move is not possible here. SWAP, RELOCATE, DROP and ADD need one stage per rank.
    """
    ranks, stages, num_spare = here.size[0], here.size[1], here.size[2]
    count = stages if move <= LAYER_FAR else ranks
    one, two = int(draws[1] * count), int(draws[2] * count)
    for rank in range(ranks):
        out.device[rank] = here.device[rank]
    for stage in range(stages):
        out.layers[stage] = here.layers[stage]
    out.size[0], out.size[1] = ranks, stages
    if move <= LAYER_FAR:  # one layer to a neighbour, or to any stage
        if move == LAYER:
            two = one + 1 if draws[2] < 0.5 else one - 1
        if one == two or two < 0 or two >= stages or here.layers[one] < 2:
            return False
        out.layers[one] -= 1
        out.layers[two] += 1
        return True
    if move <= SWAP_DEVICES:  # two stages trade places, or devices alone
        if one == two:
            return False
        out.device[one], out.device[two] = here.device[two], here.device[one]
        if move == SWAP:
            out.layers[one], out.layers[two] = here.layers[two], here.layers[one]
        return True
    if move == RELOCATE:  # a run of stages goes elsewhere: a node's devices, for example
        length = 1 + int(draws[3] * draws[3] * (ranks // 2))
        length = min(length, ranks - one)
        spot = int(draws[2] * (ranks - length + 1))
        if spot == one:
            return False
        place = 0
        for stage in range(ranks - length + 1):  # the others in turn, with the run before the one at `spot`
            if stage == spot:
                for number in range(length):
                    source = one + number
                    out.device[place], out.layers[place] = here.device[source], here.layers[source]
                    place += 1
            if stage < ranks - length:
                source = stage if stage < one else stage + length
                out.device[place], out.layers[place] = here.device[source], here.layers[source]
                place += 1
        return True
    if move == REPLACE:  # a spare device takes the place of one that is used
        if num_spare == 0:
            return False
        out.device[one] = here.spare[int(draws[3] * num_spare)]
        return True
    if move == DROP:  # a stage is given up; its layers go to others
        if ranks < 2:
            return False
        for stage in range(one, ranks - 1):
            out.device[stage], out.layers[stage] = here.device[stage + 1], here.layers[stage + 1]
        for number in range(here.layers[one]):
            out.layers[int((draws[2] + draws[3] * number) % 1.0 * (ranks - 1))] += 1
        out.size[0], out.size[1] = ranks - 1, ranks - 1
        return True
    if num_spare == 0 or here.layers[two] < 2:  # ADD: a spare device takes a layer from a stage
        return False
    spot = int(draws[1] * (ranks + 1))
    for stage in range(ranks, spot, -1):
        out.device[stage], out.layers[stage] = here.device[stage - 1], here.layers[stage - 1]
    out.layers[two if two < spot else two + 1] -= 1
    out.device[spot] = here.spare[int(draws[3] * num_spare)]
    out.layers[spot] = 1
    out.size[0], out.size[1] = ranks + 1, ranks + 1
    return True


def moves_of(freedom: Freedom) -> tuple[int, ...]:
    """The moves that are allowed."""
    both = freedom.devices and freedom.layers and freedom.chunks == 1
    allowed = {
        LAYER: freedom.layers,
        LAYER_FAR: freedom.layers,
        SWAP: both,
        SWAP_DEVICES: freedom.devices,
        RELOCATE: both,
        REPLACE: freedom.devices and freedom.subset,
        DROP: both and freedom.subset,
        ADD: both and freedom.subset,
    }
    return tuple(move for move, yes in allowed.items() if yes)


def local_search(
    problem: LayoutProblem, judge: Judge, start: Layout, *, steps: int, seed: int, heat: float = 0.0
) -> Layout:
    """The best layout found by so many random moves.

    A move is kept unless it makes the value worse by more than a threshold that falls to nothing (threshold accepting,
    Dueck and Scheuer 1990): at first `heat`, as a part of the value. No clock is read: a call gives the same again.
    """
    moves = moves_of(problem.freedom)
    if not moves or steps <= 0:
        return start
    devices, chunks = len(problem.pool.ids), problem.freedom.chunks
    here, out = (LayoutArrays.of(start, devices, chunks) for _ in range(2))
    best, best_value = start, judge(start, np.inf)
    here_value = best_value
    for number, draws in enumerate(np.random.default_rng(seed).random((steps, DRAWS))):
        if not propose.fast(moves[int(draws[0] * len(moves))], here, draws, out):
            continue
        changed = out.layout
        if problem.freedom.rule is not None:
            changed = Layout(devices=changed.devices, layers=layers_by_rule(problem, changed.devices))
        limit = here_value * (1 + heat * (1 - number / steps))
        value = judge(changed, limit)
        if value <= limit:
            here, here_value = LayoutArrays.of(changed, devices, chunks), value
            if value < best_value:
                best, best_value = changed, value
    return best
