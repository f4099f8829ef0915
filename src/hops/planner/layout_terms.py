"""The closed form of `layout_bound` for one stage per rank, as loops that numba can compile.

Written as loops for speed: the local search values tens of thousands of layouts (benchmarks/plan.py).
"""

from typing import NamedTuple

from hops.arrays import FloatArray, IntArray
from hops.compiled import kernel
from hops.planner.block_costs import BlockArrays, MessageArrays

ANY, ONE_F_ONE_B, GPIPE, FUSED = range(4)  # codes of ScheduleFamily
FIRST_END, LAST_END, PIPELINE, LINK = range(4)  # of the result


class LayoutRules(NamedTuple):
    """What is known of the schedule.

    Attributes:
        family: a code.
        size: microbatches per iteration.
        share: messages per microbatch and neighbour that keep a rank busy.
    """

    family: int
    size: int
    share: float


class Stages(NamedTuple):
    """A layout with one stage per rank: device, kind of device and number of layers of each; shape (stages,)."""

    device: IntArray
    kind: IntArray
    layers: IntArray


@kernel
def layout_terms(
    rules: LayoutRules,
    stages: Stages,
    blocks: BlockArrays,
    memory: IntArray,
    messages: MessageArrays,
    load: FloatArray,
    out: FloatArray,
) -> bool:
    """Fill `out` with when the first and the last rank and all ranks can have ended, and the fullest link's time.

    False if the layout does not fit. `memory`: bytes of each kind. `load`: room for the sums, one per link.
    """
    family, size = rules.family, rules.size
    device, kind, layers = stages.device, stages.kind, stages.layers
    forward, fused, inputs, weights = blocks.forward, blocks.fused, blocks.inputs, blocks.weights
    hop, links, link_s = messages.seconds, messages.links, messages.link_s
    count = len(device)
    before_f, before_b, rest = 0.0, 0.0, 0.0  # F, and backward, of all stages before; F and backward of all behind
    path, slowest_f, slowest_b, everything = 0.0, 0.0, 0.0, 0.0
    start = 0
    for stage in range(count):
        end = start + layers[stage]
        k = kind[stage]
        f = forward[k, start, end]
        b = fused[k, start, end]
        if family == ANY:
            b = min(b, inputs[k, start, end])
        rest += f + b
        path += f + fused[k, start, end]
        slowest_f, slowest_b = max(slowest_f, f), max(slowest_b, fused[k, start, end])
        if stage + 1 < count:
            both = hop[device[stage], device[stage + 1]] + hop[device[stage + 1], device[stage]]
            rest += both
            path += both
        start = end
    out[:] = 0.0
    start = 0
    for stage in range(count):
        end = start + layers[stage]
        k = kind[stage]
        f, b = forward[k, start, end], fused[k, start, end]
        i, w = inputs[k, start, end], weights[k, start, end]
        room = memory[k] - blocks.static[start, end]
        taken = blocks.activation[start, end]
        flight = min(count - stage, size)
        down, up, near = 0.0, 0.0, 0.0
        if stage + 1 < count:
            down, up = hop[device[stage], device[stage + 1]], hop[device[stage + 1], device[stage]]
            near += (down + up) / 2
        if stage > 0:
            near += (hop[device[stage - 1], device[stage]] + hop[device[stage], device[stage - 1]]) / 2
        certain = 1
        if family == ONE_F_ONE_B:
            certain = flight
        elif family == GPIPE:
            certain = size
        if certain * taken > room:
            return False
        if family == ANY:
            there = f + min(b, i)
            rest -= there + down + up
            behind = rest + down + up
            busy = f + min(b, i + w) + rules.share * near
            most = min(room // max(taken, 1), size)
            late = min(max(room // max(blocks.kept[start, end], 1), most), size)
            done = before_f + (size - 1) * busy + f + min(b, i + w)  # the first and the last message are on the way
            done += max(0.0, behind - (most - 1) * f) + max(0.0, behind - (late - 1) * (there - f + w))
            back = before_f + before_b + size * there
            everything = max(everything, back, done)
            out[FIRST_END] = max(out[FIRST_END], back)
            if stage == 0:
                out[FIRST_END] = max(out[FIRST_END], done)
            if stage == count - 1:
                out[LAST_END] = done
            before_b += min(b, i) + up
        else:
            there = f + b
            rest -= there + down + up
            behind = rest + down + up
            busy = there + rules.share * near
            around = before_f + before_b
            done = around + (size - 1) * busy + there  # the first and the last message are on the way
            if family == ONE_F_ONE_B:
                waits = max((flight - 1) * f, behind) + max((flight - 1) * b, behind)
                if flight == size:  # all forwards before the first backward
                    waits = max(max((size - 1) * f, behind) + (size - 1) * b, (size - 1) * f + behind)
                done = max(done, around + (size - flight) * busy + there + waits)
                done = max(done, around + (1 + (size - 1) // flight) * (behind + there))
            if family == GPIPE:
                done = path + (size - 1) * (slowest_f + slowest_b)
            everything = max(everything, done)
            before_b += b + up
        before_f += f + down
        start = end
    out[PIPELINE] = everything
    if family != ANY:  # fused backwards end on the first stage
        out[FIRST_END] = everything
        out[LAST_END] = everything
    load[:] = 0.0
    for stage in range(count - 1):
        here, there_device = device[stage], device[stage + 1]
        for number in range(links.shape[2]):
            link = links[here, there_device, number]
            if link >= 0:
                load[link] += link_s[here, there_device, number]
            link = links[there_device, here, number]
            if link >= 0:
                load[link] += link_s[there_device, here, number]
    out[LINK] = size * load.max()
    return True
