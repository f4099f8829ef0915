"""Episodes: when a device or a way between two was slower than usual, and which of them are one event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from hops.diagnose.series import Ints, Level, Series, levels, link_series
from hops.trace.trace import Trace

_HELD = 0.1  # part of a series that a level must hold to be what is usual
_FEWEST = 10  # values of an episode
_AGREE = 0.5  # of its time, that another's episode must share, for both to be the same event


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episode:
    """Rows of one series that took `factor` times longer than usual; `score`: how sure that is, in standard errors."""

    series: Series
    first: int
    last: int
    factor: float
    score: float

    @property
    def rows(self) -> Ints:
        return self.series.rows[self.first : self.last]

    @property
    def span(self) -> tuple[int, int]:
        """Its first and its last row of the trace."""
        return int(self.rows[0]), int(self.rows[-1])


def episodes_of(series: Series, least: float, *, lowest: bool = False) -> list[Episode]:
    """Times at which the level of a series is at least `least` (a logarithm) above the usual one.

    `lowest`: others only make its values larger (messages that share a link).
    """
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


def not_shared(episodes: Sequence[Episode], ranks: int) -> list[Episode]:
    """What most ranks share, such as a heavier batch, is nobody's fault."""
    return [each for each in episodes if ranks < 3 or 2 * _sharing(each, episodes) < ranks]


def by_link(trace: Trace, episodes: Sequence[Episode]) -> list[tuple[tuple[str, ...], list[Episode]]]:
    """Links all of whose ways are slow at one time; without routes in the trace, the ways themselves."""
    left = list(episodes)
    found = []
    while left:
        at_once = [each for each in left if _overlap(left[0].span, each.span) >= _AGREE]
        pairs = {(each.series.rank, each.series.peer) for each in at_once}
        names = _links_of(trace, pairs)
        if names:
            crossing = [each for each in at_once if _crosses(trace, each, names[0])]
            found.append((names, crossing))
            left = [each for each in left if each not in crossing]
        else:
            found.append(((_way(trace, left[0].series),), [left[0]]))
            left = left[1:]
    return found


def _score(cut: Sequence[Level], number: int) -> float:
    """Of the change into a level; of the change out of it if it is the first."""
    return cut[number].score if number else cut[1].score


def _sharing(episode: Episode, others: Iterable[Episode]) -> int:
    """How many series have an episode at about the same rows of the trace."""
    shared = {
        (other.series.rank, other.series.peer) for other in others if _overlap(episode.span, other.span) >= _AGREE
    }
    return len(shared)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Common part of two intervals, of the time that either covers."""
    common = min(one[1], other[1]) - max(one[0], other[0]) + 1
    return max(0, common) / (max(one[1], other[1]) - min(one[0], other[0]) + 1)


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
