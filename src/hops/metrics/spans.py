"""Stage spans: from the first start to the last end of the actions of one rank in one iteration."""

import numpy as np

from hops.metrics.intervals import Ints
from hops.metrics.run import Run, is_action


def first_starts_and_last_ends_ns(run: Run) -> tuple[Ints, Ints]:
    """First start and last end of actions, shape (iterations, ranks); both are the window's start on an idle rank."""
    rows = np.flatnonzero(is_action(run.trace))
    cells = (run.index[rows], run.trace.rank[rows])
    first = np.full((run.num_iterations, run.num_ranks), np.iinfo(np.int64).max)
    last = np.repeat(run.pipeline_start_ns[:, None], run.num_ranks, axis=1)
    np.minimum.at(first, cells, run.trace.start_ns[rows])
    np.maximum.at(last, cells, run.trace.end_ns[rows])
    return np.minimum(first, last), last


def stage_spans_ns(run: Run) -> Ints:
    """Stage span of every rank and iteration, shape (iterations, ranks); 0 on a rank without actions."""
    first, last = first_starts_and_last_ends_ns(run)
    return last - first
