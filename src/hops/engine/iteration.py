"""The state of one iteration: how long its actions take, and what has arrived. Ranks may be in different ones."""

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.cluster import Network
from hops.cost import CostModel
from hops.draws import FloatArray, generator
from hops.engine.wiring import Wiring

NANOSECONDS = 1_000_000_000


def to_ns(seconds: FloatArray) -> NDArray[np.int64]:
    """Seconds to the nearest nanosecond."""
    return np.rint(seconds * NANOSECONDS).astype(np.int64)


class Iteration:
    """One iteration under way.

    Attributes:
        number: from 0.
        duration_ns[stage][op][microbatch]: how long each action takes.
        delay_ns[message key]: latency of each message.
        arrived[message key]: 1 once it has been delivered (or produced on the same rank).
    """

    __slots__ = ("arrived", "delay_ns", "duration_ns", "number")

    def __init__(self, number: int, wiring: Wiring, duration_ns: list[list[list[int]]], delay_ns: list[int]) -> None:
        self.number = number
        self.duration_ns = duration_ns
        self.delay_ns = delay_ns
        self.arrived = bytearray(wiring.num_keys)


def draw_durations(number: int, wiring: Wiring, costs: CostModel, seed: int) -> list[list[list[int]]]:
    """Nanoseconds of every action of an iteration, as [stage][op][microbatch]."""
    durations: list[list[list[int]]] = to_ns(costs.draw(number, wiring.shape.num_microbatches, seed)).tolist()
    return durations


def draw_delays(number: int, wiring: Wiring, network: Network, seed: int) -> list[int]:
    """Latency in ns of every message of an iteration, by message key."""
    delays = np.zeros(wiring.num_keys, dtype=np.int64)
    count = wiring.shape.num_microbatches
    for stage, owner in enumerate(wiring.shape.rank_of_stage):
        for op in (Op.F, Op.I):
            base = wiring.brings[stage][op]
            if base < 0 or wiring.local[stage][op]:
                continue
            route = network.routes[owner, wiring.target[stage][op]]
            seconds = np.full(count, route.latency_s)
            if route.jitter is not None:
                seconds += route.jitter.sample(generator(seed, "latency", number, stage, op), count)
            if route.stall is not None:
                rng = generator(seed, "stall", number, stage, op)
                hit = rng.random(count) < route.stall.probability
                seconds += hit * route.stall.extra.sample(rng, count)
            delays[base : base + count] = to_ns(seconds)
    delays_list: list[int] = delays.tolist()
    return delays_list
