"""Ranks against others of their kind: who is slower than its peers, and who has none to be compared with."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from hops.diagnose.series import Series
from hops.program.action import ACTION_OPS, Op
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Trace

FEWEST = 3  # of two that differ nobody can say which is the slow one
_APART = 4.0  # times the peers' own scatter


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncompared:
    """Ranks that were compared with no others, and what would be needed."""

    ranks: tuple[int, ...]
    why: str
    needed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPeer:
    """A rank that is slower than its peers.

    Attributes:
        rank: the rank.
        factor: how many times longer its actions take than the peers' median.
        score: the same in the peers' own scatter.
    """

    rank: int
    factor: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerComparison:
    """Who was compared, who is slow, and who was not compared."""

    compared: tuple[int, ...]
    slow: tuple[SlowPeer, ...]
    uncompared: tuple[Uncompared, ...]


def compare_peers(
    trace: Trace, all_series: Sequence[Series], expected: StageCosts | None, least: float
) -> PeerComparison:
    """Compare ranks on devices of one kind, where there are at least three.

    A rank's level is the mean over its ops of the logarithm of its median time, less what is expected. Without an
    expectation all stages but the first and the last (embedding, head) count as equal work; then a stage with more
    layers looks like a slow device, because nothing in a trace tells them apart.
    """
    levels = {each.rank: level for each in all_series if (level := _level(trace, each, expected)) is not None}
    kinds = device_kinds(trace.meta.devices)
    sizes = Counter(kinds[rank] for rank in levels)
    compared = tuple(rank for rank in levels if sizes[kinds[rank]] >= FEWEST)
    slow = []
    for rank in compared:
        others = [levels[other] for other in levels if other != rank and kinds[other] == kinds[rank]]
        middle = float(np.median(others))
        scatter = max(float(np.median(np.abs(np.asarray(others) - middle))) / 0.6745, log(least) / _APART)
        excess = levels[rank] - middle
        if excess >= log(least) and excess >= _APART * scatter:
            slow.append(SlowPeer(rank=rank, factor=float(np.exp(excess)), score=excess / scatter))
    measured = [each.rank for each in all_series]
    return PeerComparison(
        compared=compared, slow=tuple(slow), uncompared=tuple(_uncompared(trace, measured, list(levels), kinds, sizes))
    )


def device_kinds(names: Sequence[str]) -> tuple[str, ...]:
    """The kind of every device by its name.

    Where several ranks have one name, names are kinds (`NVIDIA L4`). Where all differ, they are kinds with ids (`l4
    node2/0`), or ids alone (`rank 3`, `cuda:3`), by which all devices are of one kind.
    """
    if len(set(names)) < len(names):
        return tuple(names)
    return tuple(name.rpartition(" ")[0] or name.rstrip("0123456789") for name in names)


def _level(trace: Trace, series: Series, expected: StageCosts | None) -> float | None:
    """None for ranks whose work is not comparable."""
    stages = [stage for stage, owner in enumerate(trace.meta.rank_of_stage) if owner == series.rank]
    if expected is None and _at_an_end(trace, series.rank):
        return None
    excesses = []
    for stage in stages:
        for op in ACTION_OPS:
            rows = series.rows[(trace.stage[series.rows] == stage) & (trace.op[series.rows] == op)]
            if len(rows):
                planned = 0.0 if expected is None else log(_seconds(expected, stage, op) * 1e9)
                excesses.append(float(np.median(np.log(trace.duration_ns[rows].astype(np.float64)))) - planned)
    return float(np.mean(excesses)) if excesses else None


def _at_an_end(trace: Trace, rank: int) -> bool:
    """Whether it holds the first stage or the last one, with embedding or head."""
    owners = trace.meta.rank_of_stage
    return rank in (owners[0], owners[-1])


def _seconds(expected: StageCosts, stage: int, op: Op) -> float:
    by_op = {
        Op.F: expected.forward_s,
        Op.B: expected.fused_backward_s,
        Op.I: expected.input_backward_s,
        Op.W: expected.weight_backward_s,
    }
    return max(by_op[op][stage], 1e-9)


def _uncompared(
    trace: Trace, measured: Sequence[int], levelled: Sequence[int], kinds: Sequence[str], sizes: Counter[str]
) -> list[Uncompared]:
    found = []
    silent = tuple(rank for rank in range(trace.meta.num_ranks) if rank not in measured)
    if silent:
        found.append(
            Uncompared(ranks=silent, why="no action of theirs is recorded", needed="a trace with their actions")
        )
    ends = tuple(rank for rank in measured if rank not in levelled)
    if ends:
        found.append(
            Uncompared(
                ranks=ends,
                why="they hold the first or the last stage, with embedding or head",
                needed="--spec, which says what their stages should take",
            )
        )
    for kind in dict.fromkeys(kinds[rank] for rank in levelled):
        if sizes[kind] < FEWEST:
            ranks = tuple(rank for rank in levelled if kinds[rank] == kind)
            found.append(_too_few(ranks, kind, ends))
    return found


def _too_few(ranks: tuple[int, ...], kind: str, ends: tuple[int, ...]) -> Uncompared:
    of_kind = f"of kind {kind}" if kind.strip() not in ("", "rank") else "that can be compared"
    number = "only one rank" if len(ranks) == 1 else f"only {len(ranks)} ranks"
    more = "--spec, which makes the first and the last stage comparable, too, or " if ends else ""
    return Uncompared(
        ranks=ranks,
        why=f"there {'is' if len(ranks) == 1 else 'are'} {number} {of_kind}, and at least {FEWEST} are needed",
        needed=f"{more}a longer run, in which a rank that gets slow is compared with itself",
    )
