"""What a trace measured of each device and of each way between two: logarithms of times, apart from what they did."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hops.distributions import FloatArray
from hops.program.action import Op
from hops.trace.trace import Stream, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """Times of one device or way in order.

    Attributes:
        rank: of the device, or of the sender; peer: the receiver, -1 for devices.
        rows: of the trace.
        values: logarithm of each time, less the mean of its kind (stage, op), so that only changes are left.
    """

    rank: int
    peer: int
    rows: Ints
    values: FloatArray


def device_series(trace: Trace) -> Iterator[Series]:
    """Actions of every rank."""
    actions = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W) & (trace.end_ns > trace.start_ns)
    for rank in range(trace.meta.num_ranks):
        rows = np.flatnonzero(actions & (trace.rank == rank))
        if len(rows):
            yield _series(trace, rank, -1, rows)


def link_series(trace: Trace) -> Iterator[Series]:
    """Messages of every (sender, receiver)."""
    messages = (trace.stream == Stream.MESSAGE) & (trace.end_ns > trace.start_ns)
    pairs = np.unique(np.stack((trace.rank[messages], trace.peer[messages])), axis=1).T
    for rank, peer in pairs.tolist():
        rows = np.flatnonzero(messages & (trace.rank == rank) & (trace.peer == peer))
        yield _series(trace, rank, peer, rows)


def _series(trace: Trace, rank: int, peer: int, rows: Ints) -> Series:
    logs = np.log(trace.duration_ns[rows].astype(np.float64))
    kinds = trace.stage[rows].astype(np.int64) * len(Op) + trace.op[rows]
    _, index = np.unique(kinds, return_inverse=True)
    counts = np.bincount(index)
    means = np.bincount(index, weights=logs) / counts
    return Series(rank=rank, peer=peer, rows=rows, values=logs - means[index])


_BLOCK = 5  # values whose median is one value, against single outliers
FEWEST_OVER_TIME = 4 * _BLOCK  # values: two blocks on either side of a change
_NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal
_QUIETEST = 1e-3  # noise of times that are all alike: no shift is surer than a tenth of a percent makes it
_CLIP = 4.0  # in standard deviations around the level, when a change is placed to the value
LEAST_SCORE = 8.0  # standard errors; 4.5 in a million blocks of pure normal noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Values `first` to `last` - 1 lie around `mean`; `score`: standard errors from the level before (0: no other)."""

    first: int
    last: int
    mean: float
    score: float


def levels(values: FloatArray, *, least: float, lowest: bool = False) -> tuple[Level, ...]:
    """Cut a series where its level changes by at least `least`.

    A block of values stands for its median, or its lowest value where others only make values larger (messages that
    share a link). Blocks are cut in two where the difference of means is largest in standard errors, as long as that is
    significant, and so on inside the parts (Scott and Knott 1974; Vostrikova 1981). The noise is taken from differences
    of neighbours, which a change of level hardly moves. At last each cut is moved to the value where it fits best.
    """
    if len(values) < FEWEST_OVER_TIME:
        return (Level(first=0, last=len(values), mean=float(np.median(values)) if len(values) else 0.0, score=0.0),)
    whole = len(values) // _BLOCK * _BLOCK
    cells = values[:whole].reshape(-1, _BLOCK)
    blocks = cells.min(axis=1) if lowest else np.median(cells, axis=1)
    noise = _noise(blocks)
    cuts = _cuts(blocks, 0, len(blocks), noise, least)
    placed = _placed(values, [cut * _BLOCK for cut in cuts])
    return _levels(values, placed, noise, least)


def _noise(blocks: FloatArray) -> float:
    steps = np.abs(np.diff(blocks)) / np.sqrt(2)
    return max(float(np.median(steps)) / _NORMAL_MAD, _QUIETEST)


def _cuts(blocks: FloatArray, first: int, last: int, noise: float, least: float) -> list[int]:
    if last - first < 4:
        return []
    part = blocks[first:last]
    size = len(part)
    sums = np.cumsum(part)
    left = np.arange(1, size)
    difference = sums[:-1] / left - (sums[-1] - sums[:-1]) / (size - left)
    score = np.abs(difference) * np.sqrt(left * (size - left) / size) / noise
    inner = slice(1, size - 2)  # two blocks on either side
    best = int(np.argmax(score[inner])) + 1
    if score[best] < LEAST_SCORE or abs(difference[best]) < least / 2:
        return []
    cut = first + best + 1
    return [*_cuts(blocks, first, cut, noise, least), cut, *_cuts(blocks, cut, last, noise, least)]


def _placed(values: FloatArray, cuts: list[int]) -> list[int]:
    """Each cut where the two levels around it fit the values best."""
    placed: list[int] = []
    for cut, after in pairwise([*cuts, len(values)]):
        before = placed[-1] if placed else 0
        left, right = float(np.median(values[before:cut])), float(np.median(values[cut:after]))
        first, last = max(before + 1, cut - 2 * _BLOCK), min(after - 1, cut + 2 * _BLOCK)
        window = values[first:last]
        spread = max(abs(right - left), _QUIETEST)
        wrong_left = np.minimum(np.abs(window - left), _CLIP * spread)
        wrong_right = np.minimum(np.abs(window - right), _CLIP * spread)
        cost = np.concatenate(([0.0], np.cumsum(wrong_left))) + np.concatenate(
            (np.cumsum(wrong_right[::-1])[::-1], [0.0])
        )
        placed.append(first + int(np.argmin(cost)))
    return placed


def _levels(values: FloatArray, cuts: list[int], noise: float, least: float) -> tuple[Level, ...]:
    """Levels between the cuts; neighbours that differ by less than `least` are one."""
    firsts = [0]
    for cut, after in pairwise([*dict.fromkeys(cuts), len(values)]):
        before = float(np.median(values[firsts[-1] : cut]))
        if abs(float(np.median(values[cut:after])) - before) >= least:
            firsts.append(cut)
    found: list[Level] = []
    for first, last in pairwise([*firsts, len(values)]):
        mean, score = float(np.median(values[first:last])), 0.0
        if found:
            before_size, size = (found[-1].last - found[-1].first) / _BLOCK, (last - first) / _BLOCK
            score = abs(mean - found[-1].mean) / (noise * float(np.sqrt(1 / before_size + 1 / size)))
        found.append(Level(first=first, last=last, mean=mean, score=score))
    return tuple(found)
