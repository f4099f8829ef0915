"""Messages between any two devices of a pool: how long one alone takes, and which links they share."""

from collections import Counter
from dataclasses import dataclass
from math import inf

import numpy as np

from hops.api.transport import build_network
from hops.cluster import Network
from hops.config import Spec
from hops.cost import FixedCosts
from hops.draws import FloatArray
from hops.plan.pool import IntArray, Pool
from hops.schedule import Shape


@dataclass(frozen=True, kw_only=True)
class Ways:
    """All ways of a pool, as the engine's network has them.

    Attributes:
        seconds: expected, of a message of the run's size from any device to any other; 0 to itself.
        links: links that a way shares with others, shape (devices, devices, most such links of a way); -1 for none.
        link_s: seconds of the message on each.
        num_links: of all, at least 1.
    """

    seconds: FloatArray
    links: IntArray
    link_s: FloatArray
    num_links: int

    @classmethod
    def of(cls, spec: Spec, pool: Pool, message_bytes: int) -> "Ways":
        """The ways of a pool for messages of this size."""
        network = _network(spec, pool, message_bytes)
        size = len(pool.ids)
        seconds = np.zeros((size, size))
        users: Counter[int] = Counter()
        for pair, route in network.routes.items():
            slowest = min((network.links[link].bandwidth for link in route.links), default=inf)
            drawn = 0.0 if route.jitter is None else route.jitter.mean
            drawn += 0.0 if route.stall is None else route.stall.probability * route.stall.extra.mean
            seconds[pair] = route.latency_s + drawn + message_bytes / slowest
            users.update(route.links)
        shared = {pair: [link for link in route.links if users[link] > 1] for pair, route in network.routes.items()}
        most = max(map(len, shared.values()), default=0)
        links = np.full((size, size, most), -1, dtype=np.int64)
        link_s = np.zeros((size, size, most))
        for (source, target), numbers in shared.items():
            links[source, target, : len(numbers)] = numbers
            link_s[source, target, : len(numbers)] = [message_bytes / network.links[link].bandwidth for link in numbers]
        return cls(seconds=seconds, links=links, link_s=link_s, num_links=max(1, len(network.links)))

    def nearest_s(self, pool: Pool) -> FloatArray:
        """Per kind, of a message between a device of the kind and the one nearest to it."""
        between = np.where(np.eye(len(self.seconds), dtype=bool), inf, np.minimum(self.seconds, self.seconds.T))
        nearest = between.min(axis=1, initial=inf)
        least = [nearest[pool.kind_of == kind].min() for kind in range(len(pool.kinds))]
        return np.where(np.isfinite(least), least, 0.0)


def _network(spec: Spec, pool: Pool, message_bytes: int) -> Network:
    """The network of a run on all devices, with a stage more than ranks, so that no rank's own habits are in it."""
    ranks = len(pool.ids)
    everywhere = spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"placement": pool.ids})})
    shape = Shape(num_microbatches=1, rank_of_stage=(*range(ranks), 0))
    costs = FixedCosts.uniform(ranks + 1, bytes_per_message=message_bytes)
    return build_network(everywhere, shape, pool.cluster, costs)
