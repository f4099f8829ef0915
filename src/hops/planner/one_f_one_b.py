"""The closed form of `floor` for one stage per rank, and the recurrence of 1F1B, as loops that numba can compile.

Written as loops for speed: the local search values tens of thousands of layouts (benchmarks/plan.py).
"""

import numpy as np

from hops.compiled import kernel
from hops.distributions import FloatArray
from hops.planner.problem import IntArray

ANY, ONE_F_ONE_B, GPIPE, FUSED = range(4)
FIRST_END, LAST_END, PIPELINE, LINK = range(4)  # of the result


@kernel
def floor_terms(
    family: int,
    size: int,
    share: float,
    device: IntArray,
    kind: IntArray,
    layers: IntArray,
    forward: FloatArray,
    fused: FloatArray,
    inputs: FloatArray,
    weights: FloatArray,
    static: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    hop: FloatArray,
    links: IntArray,
    link_s: FloatArray,
    load: FloatArray,
    out: FloatArray,
) -> bool:
    """Fill `out` with when the first and the last rank and all ranks can have ended, and the fullest link's time.

    False if the layout does not fit. `share`: messages per microbatch and neighbour that keep a rank busy. `links` and
    `link_s`, shape (devices, devices, most links of a way): shared links, -1 for none, and seconds on each. `load`:
    room for the sums, one per link.
    """
    stages = len(device)
    before_f, before_b, rest = 0.0, 0.0, 0.0  # F, and backward, of all stages before; F and backward of all behind
    path, slowest_f, slowest_b, everything = 0.0, 0.0, 0.0, 0.0
    start = 0
    for stage in range(stages):
        end = start + layers[stage]
        k = kind[stage]
        f = forward[k, start, end]
        b = fused[k, start, end]
        if family == 0:
            b = min(b, inputs[k, start, end])
        rest += f + b
        path += f + fused[k, start, end]
        slowest_f, slowest_b = max(slowest_f, f), max(slowest_b, fused[k, start, end])
        if stage + 1 < stages:
            both = hop[device[stage], device[stage + 1]] + hop[device[stage + 1], device[stage]]
            rest += both
            path += both
        start = end
    out[:] = 0.0
    start = 0
    for stage in range(stages):
        end = start + layers[stage]
        k = kind[stage]
        f, b = forward[k, start, end], fused[k, start, end]
        i, w = inputs[k, start, end], weights[k, start, end]
        room = memory[k] - static[start, end]
        taken = activation[start, end]
        flight = min(stages - stage, size)
        down, up, near = 0.0, 0.0, 0.0
        if stage + 1 < stages:
            down, up = hop[device[stage], device[stage + 1]], hop[device[stage + 1], device[stage]]
            near += (down + up) / 2
        if stage > 0:
            near += (hop[device[stage - 1], device[stage]] + hop[device[stage], device[stage - 1]]) / 2
        certain = 1
        if family == 1:
            certain = flight
        elif family == 2:
            certain = size
        if certain * taken > room:
            return False
        if family == 0:
            there = f + min(b, i)
            rest -= there + down + up
            behind = rest + down + up
            busy = f + min(b, i + w) + share * near
            most = min(room // max(taken, 1), size)
            late = min(max(room // max(kept[start, end], 1), most), size)
            done = before_f + (size - 1) * busy + f + min(b, i + w)  # the first and the last message are on the way
            done += max(0.0, behind - (most - 1) * f) + max(0.0, behind - (late - 1) * (there - f + w))
            back = before_f + before_b + size * there
            everything = max(everything, back, done)
            out[0] = max(out[0], back)
            if stage == 0:
                out[0] = max(out[0], done)
            if stage == stages - 1:
                out[1] = done
            before_b += min(b, i) + up
        else:
            there = f + b
            rest -= there + down + up
            behind = rest + down + up
            busy = there + share * near
            around = before_f + before_b
            done = around + (size - 1) * busy + there  # the first and the last message are on the way
            if family == 1:
                waits = max((flight - 1) * f, behind) + max((flight - 1) * b, behind)
                if flight == size:  # all forwards before the first backward
                    waits = max(max((size - 1) * f, behind) + (size - 1) * b, (size - 1) * f + behind)
                done = max(done, around + (size - flight) * busy + there + waits)
                done = max(done, around + (1 + (size - 1) // flight) * (behind + there))
            if family == 2:
                done = path + (size - 1) * (slowest_f + slowest_b)
            everything = max(everything, done)
            before_b += b + up
        before_f += f + down
        start = end
    out[2] = everything
    if family != 0:  # fused backwards end on the first stage
        out[0] = everything
        out[1] = everything
    load[:] = 0.0
    for stage in range(stages - 1):
        here, there_device = device[stage], device[stage + 1]
        for number in range(links.shape[2]):
            link = links[here, there_device, number]
            if link >= 0:
                load[link] += link_s[here, there_device, number]
            link = links[there_device, here, number]
            if link >= 0:
                load[link] += link_s[there_device, here, number]
    out[3] = size * load.max()
    return True


@kernel
def one_f_one_b_s(size: int, forward: FloatArray, fused: FloatArray, down: FloatArray, up: FloatArray) -> float:
    """The makespan (s) of 1F1B with overlapped messages that share nothing, as `hops.timing.longest_path` has it.

    `forward` and `fused` have one value per stage, `down` and `up` one per pair of neighbours. Turn j has, on every
    stage, the F that stands before B of microbatch j (F j + 1 on the last but one, F j + 2 before that), then that B.
    """
    stages = len(forward)
    free, passed = np.zeros(stages), np.zeros(stages)  # end of a stage's last action, and of its last F
    for turn in range(1 - stages, size):
        for stage in range(stages - 1, -1, -1):
            number = turn + stages - 1 - stage
            if 0 <= number < size:
                arrived = 0.0 if stage == 0 else passed[stage - 1] + down[stage - 1]
                passed[stage] = free[stage] = max(free[stage], arrived) + forward[stage]
        if turn >= 0:
            arrived = 0.0
            for stage in range(stages - 1, -1, -1):
                free[stage] = max(free[stage], arrived) + fused[stage]
                if stage > 0:
                    arrived = free[stage] + up[stage - 1]
    return float(free.max())
