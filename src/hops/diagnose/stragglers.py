"""Finds stragglers: what is slower than itself at other times, or slower than others of equal work."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from hops.diagnose.replay import MOST_REPLAYED, replayed_ns
from hops.diagnose.series import Ints, Level, Series, device_series, levels, link_series
from hops.errors import UsageError
from hops.program.action import ACTION_OPS, Op
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Trace

_FEWEST_PEERS = 3  # of two that differ nobody can say which is the slow one
_APART = 4.0  # times the peers' own scatter


def slower_than_peers(
    trace: Trace, all_series: Sequence[Series], expected: StageCosts | None, least: float
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
        if series.rank not in paces or len(others) + 1 < _FEWEST_PEERS:
            continue
        middle = float(np.median(others))
        scatter = max(float(np.median(np.abs(np.asarray(others) - middle))) / 0.6745, log(least) / _APART)
        excess = paces[series.rank] - middle
        if excess >= log(least) and excess >= _APART * scatter:
            found.append((series, float(np.exp(excess)), excess / scatter))
    return found


def _pace(trace: Trace, series: Series, expected: StageCosts | None) -> float | None:
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


def _seconds(expected: StageCosts, stage: int, op: Op) -> float:
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


_HELD = 0.1  # part of a series that a level must hold to be what is usual
_FEWEST = 10  # values of an episode
_AGREE = 0.5  # of its time, that another's episode must share, for both to be the same event
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episode:
    """Rows of one series that took `factor` times longer than usual."""

    series: Series
    first: int
    last: int
    factor: float
    score: float

    @property
    def rows(self) -> Ints:
        return self.series.rows[self.first : self.last]


def find_stragglers(
    trace: Trace, *, warmup_iterations: int = 0, expected: StageCosts | None = None, least: float = 1.03
) -> tuple[Straggler, ...]:
    """All stragglers of a trace, the most expensive first.

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
    devices = _not_shared(
        [each for series in device_series(trace) for each in _episodes(series, log(least))], trace.meta.num_ranks
    )
    link_least = log(max(least, LINK_FACTOR))
    links = [each for series in link_series(trace) for each in _episodes(series, link_least, lowest=True)]
    known = {episode.series.rank for episode in devices}
    against_peers = [
        Episode(series=series, first=0, last=len(series.rows), factor=factor, score=score)
        for series, factor, score in slower_than_peers(trace, list(device_series(trace)), expected, least)
        if series.rank not in known
    ]
    found = [_device(trace, episode, "itself") for episode in devices]
    found += [_device(trace, episode, "peers") for episode in against_peers]
    found += [_link(trace, names, episodes) for names, episodes in _by_link(trace, links)]
    return tuple(sorted(found, key=lambda each: -(each.cost_ms or 0.0)))


def _not_shared(episodes: Sequence[Episode], ranks: int) -> list[Episode]:
    """What most ranks share, such as a heavier batch, is nobody's fault."""
    return [each for each in episodes if ranks < 3 or 2 * _sharing(each, episodes) < ranks]


def _episodes(series: Series, least: float, *, lowest: bool = False) -> list[Episode]:
    cut = levels(series.values, least=least, lowest=lowest)
    held = [level for level in cut if level.last - level.first >= _HELD * len(series.values)]
    usual = min(level.mean for level in held or cut)
    return [
        Episode(
            series=series,
            first=level.first,
            last=level.last,
            factor=exp(level.mean - usual),
            score=_score(cut, number),
        )
        for number, level in enumerate(cut)
        if level.mean - usual >= least and level.last - level.first >= _FEWEST
    ]


def _score(cut: Sequence[Level], number: int) -> float:
    """Of the change into a level; of the change out of it if it is the first."""
    return cut[number].score if number else cut[1].score


def _sharing(episode: Episode, others: Iterable[Episode]) -> int:
    """How many series have an episode at about the same rows of the trace."""
    mine = (int(episode.rows[0]), int(episode.rows[-1]))
    shared = {
        (other.series.rank, other.series.peer)
        for other in others
        if _overlap(mine, (int(other.rows[0]), int(other.rows[-1]))) >= _AGREE
    }
    return len(shared)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Common part of two intervals, of the time that either covers."""
    common = min(one[1], other[1]) - max(one[0], other[0]) + 1
    return max(0, common) / (max(one[1], other[1]) - min(one[0], other[0]) + 1)


def _by_link(trace: Trace, episodes: Sequence[Episode]) -> list[tuple[tuple[str, ...], list[Episode]]]:
    """Links all of whose ways are slow at one time; without routes in the trace, the ways themselves."""
    left = list(episodes)
    found = []
    while left:
        together = [each for each in left if _overlap(_span(left[0]), _span(each)) >= _AGREE]
        pairs = {(each.series.rank, each.series.peer) for each in together}
        names = _links_of(trace, pairs)
        if names:
            crossing = [each for each in together if _crosses(trace, each, names[0])]
            found.append((names, crossing))
            left = [each for each in left if each not in crossing]
        else:
            found.append(((_way(trace, left[0].series),), [left[0]]))
            left = left[1:]
    return found


def _links_of(trace: Trace, slow: set[tuple[int, int]]) -> tuple[str, ...]:
    """The links crossed by most of the slow ways and by no other way that carries messages."""
    meta = trace.meta
    ways = {(series.rank, series.peer) for series in link_series(trace)}
    users = {
        number: {way for way in ways if way in meta.routes and number in meta.routes[way]}
        for number in range(len(meta.links))
    }
    guilty = [frozenset(crossing) for crossing in users.values() if crossing and crossing <= slow]
    if not guilty:
        return ()
    most = max(guilty, key=len)
    return tuple(meta.links[number].name for number, crossing in users.items() if crossing == most)


def _crosses(trace: Trace, episode: Episode, link: str) -> bool:
    way = (episode.series.rank, episode.series.peer)
    return way in trace.meta.routes and any(trace.meta.links[n].name == link for n in trace.meta.routes[way])


def _way(trace: Trace, series: Series) -> str:
    return f"{trace.meta.devices[series.rank]} to {trace.meta.devices[series.peer]}"


def _span(episode: Episode) -> tuple[int, int]:
    return int(episode.rows[0]), int(episode.rows[-1])


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
