"""A recorded run again, with some of its times made shorter: what it would have been without a straggler."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hops.build.prepared import length_ns
from hops.cost.table import TableCosts
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import HopsError
from hops.hardware.network import Network, Route
from hops.program.lowering import check
from hops.trace.order import program_from_trace
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S

MOST_REPLAYED = 20  # iterations; more of them tell the same


def replayed_ns(trace: Trace, iteration: int, durations_ns: NDArray[np.int64]) -> int | None:
    """How long an iteration takes in the order in which it ran, if its rows take `durations_ns` (one per row).

    Messages take their recorded times and share nothing; None if its order cannot be replayed (rows are missing).
    """
    chosen = (trace.iteration == iteration) & (trace.stream <= Stream.HOST)
    rows, lengths = trace.where(chosen), durations_ns[chosen]
    try:
        program = program_from_trace(trace, iteration=iteration)
        check(program)
        recorded = run_program(program, TableCosts.from_trace(rows, lengths), _network(rows, lengths), RunSettings())
    except HopsError:
        return None
    return length_ns(recorded)


def _network(rows: Trace, lengths: NDArray[np.int64]) -> Network:
    """Every way takes the median of its messages."""
    owners = rows.meta.rank_of_stage
    times: Mapping[tuple[int, int], list[int]] = {}
    times = {(a, b): [] for a in set(owners) for b in set(owners) if a != b}
    messages = rows.stream == Stream.MESSAGE
    for pair, length in zip(
        zip(rows.rank[messages].tolist(), rows.peer[messages].tolist(), strict=True),
        lengths[messages].tolist(),
        strict=True,
    ):
        times[pair].append(length)
    routes = {
        pair: Route(latency_s=float(np.median(found)) / NS_PER_S if found else 0.0) for pair, found in times.items()
    }
    return Network(links=(), routes=routes)
