"""The longest path through 1F1B without its program: what `longest_path` gives for it, at a tenth of the price.

The planner asks for it hundreds of thousands of times; tests hold both equal.
"""

import numpy as np

from hops.arrays import FloatArray
from hops.compiled import kernel


@kernel
def one_f_one_b(size: int, forward: FloatArray, fused: FloatArray, hop: FloatArray) -> float:
    """The makespan of 1F1B with overlapped messages, in the unit of its times.

    `size` is the number of microbatches; `forward` and `fused` have one value per stage, `hop` one per pair of
    neighbours. Turn j has, on every stage, the F that stands before B of microbatch j (F j + 1 on the last but one,
    F j + 2 before that), then that B.
    """
    stages = len(forward)
    free, passed = np.zeros(stages), np.zeros(stages)  # end of a stage's last action, and of its last F
    for turn in range(1 - stages, size):
        for stage in range(stages - 1, -1, -1):
            number = turn + stages - 1 - stage
            if 0 <= number < size:
                arrived = 0.0 if stage == 0 else passed[stage - 1] + hop[stage - 1]
                passed[stage] = free[stage] = max(free[stage], arrived) + forward[stage]
        if turn >= 0:
            arrived = 0.0
            for stage in range(stages - 1, -1, -1):
                free[stage] = max(free[stage], arrived) + fused[stage]
                if stage > 0:
                    arrived = free[stage] + hop[stage - 1]
    return float(free.max())
