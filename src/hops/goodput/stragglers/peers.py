"""Who is slower than others of equal work: devices of one kind, by the times of their ops."""

from collections.abc import Sequence
from math import log

import numpy as np

from hops.actions import ACTION_OPS, Op
from hops.goodput.stragglers.series import Series
from hops.schedule import Profile
from hops.trace import Trace

_FEWEST = 3  # of two that differ nobody can say which is the slow one
_APART = 4.0  # times the peers' own scatter


def slower_than_peers(
    trace: Trace, all_series: Sequence[Series], expected: Profile | None, least: float
) -> list[tuple[Series, float, float]]:
    """Series of slow ranks, their factor, and how many times the scatter of the others they are away.

    A rank's pace is the mean over its ops of the logarithm of its median time, less what is expected. Without an
    expectation all stages but the first and the last (embedding, head) count as equal work; then a stage with more
    layers looks like a slow device, because nothing in a trace tells them apart.
    """
    paces = {series.rank: pace for series in all_series if (pace := _pace(trace, series, expected)) is not None}
    found = []
    for series in all_series:
        kind = _kind(trace, series.rank)
        others = [paces[rank] for rank in paces if rank != series.rank and _kind(trace, rank) == kind]
        if series.rank not in paces or len(others) + 1 < _FEWEST:
            continue
        middle = float(np.median(others))
        scatter = max(float(np.median(np.abs(np.asarray(others) - middle))) / 0.6745, log(least) / _APART)
        excess = paces[series.rank] - middle
        if excess >= log(least) and excess >= _APART * scatter:
            found.append((series, float(np.exp(excess)), excess / scatter))
    return found


def _pace(trace: Trace, series: Series, expected: Profile | None) -> float | None:
    """None for ranks whose work is not comparable."""
    meta = trace.meta
    stages = [stage for stage, owner in enumerate(meta.rank_of_stage) if owner == series.rank]
    ends = {0, meta.num_stages - 1}
    if expected is None and ends & set(stages):
        return None
    excesses = []
    for stage in stages:
        for op in ACTION_OPS:
            rows = series.rows[(trace.stage[series.rows] == stage) & (trace.op[series.rows] == op)]
            if len(rows):
                planned = 0.0 if expected is None else log(_seconds(expected, stage, op) * 1e9)
                excesses.append(float(np.median(np.log(trace.duration_ns[rows].astype(np.float64)))) - planned)
    return float(np.mean(excesses)) if excesses else None


def _seconds(expected: Profile, stage: int, op: Op) -> float:
    by_op = {
        Op.F: expected.forward_s,
        Op.B: expected.fused_backward_s,
        Op.I: expected.input_backward_s,
        Op.W: expected.weight_backward_s,
    }
    return max(by_op[op][stage], 1e-9)


def _kind(trace: Trace, rank: int) -> str:
    """The kind of device: simulated runs name it before its id."""
    name = trace.meta.devices[rank]
    return name.rpartition(" ")[0] if trace.meta.source == "simulated" else name
