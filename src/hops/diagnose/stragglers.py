"""Finds stragglers: what is slower than itself at other times, or slower than others of equal work."""

from dataclasses import dataclass
from math import log

import numpy as np

from hops.diagnose.episodes import Episode, by_link, episodes_of, not_shared
from hops.diagnose.peers import Uncompared, compare_peers
from hops.diagnose.replay import MOST_REPLAYED, replayed_ns
from hops.diagnose.series import FEWEST_OVER_TIME, Ints, device_series, link_series
from hops.errors import UsageError
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Trace

LINK_FACTOR = 1.2  # times of messages vary with what else is on the link


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Something slow, and the evidence.

    Attributes:
        what: `device` or `link`.
        names: the device; or the links that cannot be told apart, because the same messages cross them.
        ranks: that it slows, or whose messages cross it.
        against: `itself`, at other times; or `peers`, others of equal work.
        factor: how many times longer its times are.
        since_ms, until_ms: from the start of the trace; None: from its first, until its last action.
        measurements, compared_with: how many times lie in it, and outside.
        score: difference in standard errors.
        usual_ms, slow_ms: median time of the kind of action (or message) it spends most time on.
        cost_ms: how much longer an iteration is by it, from a replay without it; None: it cannot be replayed.
        cost_share: the same as part of the iteration.
        iterations: that it touches.
    """

    what: str
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    against: str
    factor: float
    since_ms: float | None
    until_ms: float | None
    measurements: int
    compared_with: int
    score: float
    usual_ms: float
    slow_ms: float
    cost_ms: float | None
    cost_share: float | None
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a trace says about stragglers.

    Attributes:
        stragglers: the most expensive first.
        compared: ranks that were compared with others of their kind.
        uncompared: ranks that were not, and why.
        over_time: ranks with enough actions to be compared with themselves at other times.
    """

    stragglers: tuple[Straggler, ...]
    compared: tuple[int, ...]
    uncompared: tuple[Uncompared, ...]
    over_time: tuple[int, ...]


def find_stragglers(
    trace: Trace, *, warmup_iterations: int = 0, expected: StageCosts | None = None, least: float = 1.03
) -> Findings:
    """All stragglers of a trace, the most expensive first, and what could not be compared.

    Args:
        trace: simulated or measured.
        warmup_iterations: first iterations left out.
        expected: what the stages should take; without it, stages between the first and the last count as equal work.
        least: smallest factor that is reported, more than 1.

    Raises UsageError for a factor of 1 or less.
    """
    if not least > 1:
        raise UsageError(f"--least: got {least:g}, expected a factor of more than 1, such as 1.03")
    numbers = np.unique(trace.iteration[trace.iteration >= 0])
    trace = trace.where(np.isin(trace.iteration, numbers[warmup_iterations:]))
    all_series = list(device_series(trace))
    devices = not_shared([each for one in all_series for each in episodes_of(one, log(least))], trace.meta.num_ranks)
    link_least = log(max(least, LINK_FACTOR))
    links = [each for series in link_series(trace) for each in episodes_of(series, link_least, lowest=True)]
    peers = compare_peers(trace, all_series, expected, least)
    of_rank = {series.rank: series for series in all_series}
    known = {episode.series.rank for episode in devices}
    against_peers = [
        Episode(
            series=of_rank[slow.rank], first=0, last=len(of_rank[slow.rank].rows), factor=slow.factor, score=slow.score
        )
        for slow in peers.slow
        if slow.rank not in known
    ]
    found = [_device(trace, episode, "itself") for episode in devices]
    found += [_device(trace, episode, "peers") for episode in against_peers]
    found += [_link(trace, names, episodes) for names, episodes in by_link(trace, links)]
    return Findings(
        stragglers=tuple(sorted(found, key=lambda each: -(each.cost_ms or 0.0))),
        compared=peers.compared,
        uncompared=peers.uncompared,
        over_time=tuple(series.rank for series in all_series if len(series.values) >= FEWEST_OVER_TIME),
    )


def _device(trace: Trace, episode: Episode, against: str) -> Straggler:
    rank = episode.series.rank
    return _straggler(trace, "device", (trace.meta.devices[rank],), [episode], against)


def _link(trace: Trace, names: tuple[str, ...], episodes: list[Episode]) -> Straggler:
    return _straggler(trace, "link", names, episodes, "itself")


def _straggler(trace: Trace, what: str, names: tuple[str, ...], episodes: list[Episode], against: str) -> Straggler:
    most = max(episodes, key=lambda each: len(each.rows))
    rows = np.sort(np.concatenate([each.rows for each in episodes]))
    all_rows = np.sort(np.concatenate([each.series.rows for each in episodes]))
    factor = float(np.exp(np.average([log(each.factor) for each in episodes], weights=[len(e.rows) for e in episodes])))
    ranks = {each.series.rank for each in episodes} | {each.series.peer for each in episodes if each.series.peer >= 0}
    usual_ms, slow_ms = _typical_ms(trace, most)
    cost_ms, share = _cost(trace, rows, factor)
    return Straggler(
        what=what,
        names=names,
        ranks=tuple(sorted(ranks)),
        against=against,
        factor=factor,
        since_ms=None if rows[0] == all_rows[0] else int(trace.start_ns[rows[0]]) / 1e6,
        until_ms=None if rows[-1] == all_rows[-1] else int(trace.end_ns[rows[-1]]) / 1e6,
        measurements=len(rows),
        compared_with=len(all_rows) - len(rows),
        score=most.score,
        usual_ms=usual_ms,
        slow_ms=slow_ms,
        cost_ms=cost_ms,
        cost_share=share,
        iterations=len(np.unique(trace.iteration[rows])),
    )


def _typical_ms(trace: Trace, episode: Episode) -> tuple[float, float]:
    """Median time of the kind of row that takes most of the episode, outside and in it."""
    rows, everything = episode.rows, episode.series.rows
    kind_of = trace.stage.astype(np.int64) * 16 + trace.op
    kinds, index = np.unique(kind_of[rows], return_inverse=True)
    kind = kinds[np.argmax(np.bincount(index, weights=trace.duration_ns[rows].astype(np.float64)))]
    slow = float(np.median(trace.duration_ns[rows[kind_of[rows] == kind]])) / 1e6
    outside = np.setdiff1d(everything[kind_of[everything] == kind], rows)
    usual = float(np.median(trace.duration_ns[outside])) / 1e6 if len(outside) else slow / episode.factor
    return usual, slow


def _cost(trace: Trace, rows: Ints, factor: float) -> tuple[float | None, float | None]:
    """How much longer an iteration is: replayed with its rows as they were, and `factor` times faster."""
    touched, counts = np.unique(trace.iteration[rows], return_counts=True)
    whole = touched[counts >= np.median(counts) / 2]  # not those of which it touches little
    chosen = whole[np.unique(np.linspace(0, len(whole) - 1, min(MOST_REPLAYED, len(whole))).round().astype(int))]
    lengths = trace.duration_ns.copy()
    faster = lengths.copy()
    faster[rows] = np.rint(faster[rows] / factor).astype(np.int64)
    with_it = [replayed_ns(trace, number, lengths) for number in chosen.tolist()]
    without = [replayed_ns(trace, number, faster) for number in chosen.tolist()]
    pairs = [(a, b) for a, b in zip(with_it, without, strict=True) if a is not None and b is not None]
    if not pairs:
        return None, None
    usual, better = (float(np.mean(each)) for each in zip(*pairs, strict=True))
    return (usual - better) / 1e6, (usual - better) / usual
