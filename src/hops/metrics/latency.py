"""How long a microbatch is on its way: from its F on stage 0 to the end of its last backward there."""

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.metrics.run import Run, is_action


def microbatch_latencies_ns(run: Run) -> NDArray[np.int64]:
    """Latency of every microbatch of every iteration, in order; those without a backward are left out."""
    rows = run.trace.where(is_action(run.trace) & (run.trace.stage == 0))
    key = rows.iteration.astype(np.int64) * (int(rows.microbatch.max(initial=0)) + 1) + rows.microbatch
    keys, index = np.unique(key, return_inverse=True)
    forward = rows.op == Op.F
    start = np.full(len(keys), np.iinfo(np.int64).max)
    end = np.full(len(keys), -1, dtype=np.int64)
    np.minimum.at(start, index[forward], rows.start_ns[forward])
    np.maximum.at(end, index[~forward], rows.end_ns[~forward])
    latencies: NDArray[np.int64] = (end - start)[end >= start]
    return latencies
