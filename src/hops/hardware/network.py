"""The network as ranks see it: links that messages share, and one route per pair of ranks."""

from collections.abc import Mapping
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
    """Links, and the route of every (source rank, target rank) that exchanges messages."""

    links: tuple[Link, ...]
    routes: Mapping[tuple[int, int], Route]

    @classmethod
    def uniform(cls, num_ranks: int, *, latency_s: float = 0.0) -> "Network":
        """Every pair of ranks at the same latency, no link shared."""
        route = Route(latency_s=latency_s)
        pairs = ((a, b) for a in range(num_ranks) for b in range(num_ranks) if a != b)
        return cls(links=(), routes=dict.fromkeys(pairs, route))
