"""Links share their bandwidth equally among the messages on them, at each instant.

A message holds every link of its route while its bytes move, at the rate of the tightest one. When a message joins
or leaves, those that share a link with it are re-rated. After its last byte a message needs the route's latency.
Source of the model: progressive filling without redistribution, the equal-share rule of the design document.
"""

from collections.abc import Callable
from math import ceil, isfinite
from typing import Any

from hops.engine.loop import Loop
from hops.hardware.network import Network
from hops.units import NS_PER_S

_ROUNDING_NS = 1e-6  # a finish computed this close above a whole nanosecond is that nanosecond


class _Transfer:
    """Bytes on their way."""

    __slots__ = ("arrive", "links", "rate", "remaining", "since_ns", "version")

    def __init__(self, links: tuple[int, ...], num_bytes: int, arrive: tuple[Any, ...]) -> None:
        self.links = links
        self.remaining = float(num_bytes)
        self.rate = 0.0  # bytes per ns
        self.since_ns = 0
        self.version = 0
        self.arrive = arrive  # (delay_ns, handler, arguments)


class Links:
    """The links of a network, with what is on them now."""

    def __init__(self, loop: Loop, network: Network) -> None:
        self._loop = loop
        self._full_per_ns = [link.bandwidth / NS_PER_S for link in network.links]
        self._per_ns = list(self._full_per_ns)  # what of it is left now
        self._on: list[list[_Transfer]] = [[] for _ in network.links]
        self._network = network
        self._shared: dict[tuple[int, int], tuple[int, ...]] = {}  # links of limited bandwidth, by pair in use

    def send(
        self, pair: tuple[int, int], num_bytes: int, delay_ns: int, handler: Callable[..., None], *arguments: Any
    ) -> "_Transfer | None":
        """Move bytes from rank to rank now, then call `handler(*arguments)` `delay_ns` after the last byte left.

        Returns what `cancel` takes; None: no bytes are on a link.
        """
        if pair not in self._shared:
            self._shared[pair] = tuple(
                link for link in self._network.routes[pair].links if isfinite(self._full_per_ns[link])
            )
        links = self._shared[pair]
        if num_bytes and links:
            transfer = _Transfer(links, num_bytes, (delay_ns, handler, arguments))
            self._join(transfer)
            return transfer
        if delay_ns:
            self._loop.at(self._loop.now + delay_ns, handler, *arguments)
        else:
            handler(*arguments)
        return None

    def cancel(self, transfer: "_Transfer") -> None:
        """Take a transfer off its links, if its bytes still move; its handler is then never called."""
        if transfer not in self._on[transfer.links[0]]:
            return
        transfer.version += 1
        for link in transfer.links:
            self._on[link].remove(transfer)
        self._rerate(transfer.links)

    def scale(self, link: int, factor: float) -> None:
        """From now on, this part of the link's full bandwidth is there."""
        self._per_ns[link] = self._full_per_ns[link] * factor
        self._rerate((link,))

    def _join(self, transfer: _Transfer) -> None:
        transfer.since_ns = self._loop.now
        for link in transfer.links:
            self._on[link].append(transfer)
        self._rerate(transfer.links)

    def _finish(self, transfer: _Transfer, version: int) -> None:
        if version != transfer.version:
            return  # it was re-rated since; a later event stands for it
        for link in transfer.links:
            self._on[link].remove(transfer)
        self._rerate(transfer.links)
        delay_ns, handler, arguments = transfer.arrive
        if delay_ns:
            self._loop.at(self._loop.now + delay_ns, handler, *arguments)
        else:
            handler(*arguments)

    def _rerate(self, links: tuple[int, ...]) -> None:
        """Give every message on these links its present rate and finish."""
        on, per_ns, now = self._on, self._per_ns, self._loop.now
        affected = dict.fromkeys(transfer for link in links for transfer in on[link])
        for transfer in affected:
            rate = min(per_ns[link] / len(on[link]) for link in transfer.links)
            if rate == transfer.rate:
                continue
            transfer.remaining -= (now - transfer.since_ns) * transfer.rate
            transfer.since_ns = now
            transfer.rate = rate
            transfer.version += 1
            self._loop.at(now + _left_ns(transfer.remaining, rate), self._finish, transfer, transfer.version)


def _left_ns(num_bytes: float, per_ns: float) -> int:
    return max(0, ceil(num_bytes / per_ns - _ROUNDING_NS))
