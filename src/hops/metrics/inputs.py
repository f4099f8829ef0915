"""What each action takes from another rank, and when that was made; a pair is one piece of work.

A pair starts when the inputs of both its actions are there, and sends when both are done. Its two rows in a trace
follow each other and bear their own rank as `peer` (see hops.trace.trace.COLUMNS).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations
from hops.trace.order import paired_rows, producer_rows


class ActionInputs(NamedTuple):
    """One value per row of the trace. Shapes are (rows,).

    Attributes:
        source: row of the action on another rank whose output the row takes; -1: none. The first action of a pair
            takes what either of the two takes, whichever was made later; the second takes nothing.
        ready_ns: when that was made: the end of the source, or of the pair that it is in. 0 without a source.
        last: the row itself, or the second action of the pair that it opens.
    """

    source: Ints
    ready_ns: Ints
    last: Ints

    @property
    def closes(self) -> NDArray[np.bool_]:
        """Which rows are the second action of a pair."""
        second = np.zeros(len(self.last), dtype=bool)
        second[self.last[self.last != np.arange(len(self.last))]] = True
        return second


def inputs_from_elsewhere(run: Iterations) -> ActionInputs:
    """ActionInputs of every row of a run; rows that take nothing from another rank have none."""
    trace = run.trace
    first, second = paired_rows(trace)
    last = np.arange(len(trace))
    last[first] = second
    made_ns = trace.end_ns[last]
    source = producer_rows(trace)
    source[(source >= 0) & (trace.rank[source] == trace.rank)] = -1
    ready_ns = np.where(source >= 0, made_ns[source], 0)
    later = ready_ns[second] > ready_ns[first]
    source[first] = np.where(later, source[second], source[first])
    ready_ns[first] = np.maximum(ready_ns[first], ready_ns[second])
    source[second], ready_ns[second] = -1, 0
    return ActionInputs(source=source, ready_ns=ready_ns, last=last)
