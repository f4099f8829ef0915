"""The network as ranks see it: links that messages share, and one route per pair of ranks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from hops.distributions import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction of a link. Its bandwidth (bytes/s) is shared equally by the messages on it at each instant."""

    name: str
    bandwidth: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class RareDelay:
    """With `probability`, a message takes `extra` (seconds) longer."""

    probability: float
    extra: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a message from one rank to another crosses.

    Attributes:
        links: indices into the network's links; the message holds all of them while its bytes move.
        latency_s: fixed time added after the last byte left.
        jitter: extra latency drawn per message, in seconds.
        stall: rare extra time.
    """

    links: tuple[int, ...] = ()
    latency_s: float = 0.0
    jitter: Distribution | None = None
    stall: RareDelay | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Links, and the route of every (source rank, target rank) that can exchange messages.

    Many ranks have far more pairs than messages: look routes up by their pair, and do not go through all of them.
    """

    links: tuple[Link, ...]
    routes: Mapping[tuple[int, int], Route]

    @classmethod
    def uniform(cls, num_ranks: int, *, latency_s: float = 0.0) -> "Network":
        """Every pair of ranks at the same latency, no link shared."""
        route = Route(latency_s=latency_s)
        pairs = ((a, b) for a in range(num_ranks) for b in range(num_ranks) if a != b)
        return cls(links=(), routes=dict.fromkeys(pairs, route))


class CrossedLinks(Mapping[tuple[int, int], tuple[int, ...]]):
    """The links of each route between the first `num_ranks` ranks, found when asked for, in the order of the pairs."""

    def __init__(self, network: Network, num_ranks: int) -> None:
        self._routes = network.routes
        self._num_ranks = num_ranks

    def __getitem__(self, pair: tuple[int, int]) -> tuple[int, ...]:
        if max(pair) >= self._num_ranks:
            raise KeyError(pair)
        return self._routes[pair].links

    def __contains__(self, pair: object) -> bool:
        return pair in self._routes and max(pair) < self._num_ranks  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(sorted(pair for pair in self._routes if max(pair) < self._num_ranks))

    def __len__(self) -> int:
        return sum(max(pair) < self._num_ranks for pair in self._routes)

    def __repr__(self) -> str:
        return repr(dict(self))
