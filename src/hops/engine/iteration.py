"""The state of one iteration: how long its actions take, and what has arrived. Ranks may be in different ones."""

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.cluster import Network, Route
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
    count = wiring.shape.num_microbatches
    drawn = costs.draw(number, count, seed)
    if drawn.strides[-1] == 0:  # the same for every microbatch: share one integer
        constant: list[list[int]] = to_ns(drawn[..., 0]).tolist()
        return [[[value] * count for value in stage] for stage in constant]
    durations: list[list[list[int]]] = to_ns(drawn).tolist()
    return durations


def draw_delays(number: int, wiring: Wiring, network: Network, seed: int) -> list[int]:
    """Latency in ns of every message of an iteration, by message key."""
    delays = [0] * wiring.num_keys
    count = wiring.shape.num_microbatches
    for stage, owner in enumerate(wiring.shape.rank_of_stage):
        for op in (Op.F, Op.I):
            base = wiring.brings[stage][op]
            if base >= 0 and not wiring.local[stage][op]:
                route = network.routes[owner, wiring.target[stage][op]]
                delays[base : base + count] = _draw_route(route, count, (seed, number, stage, op))
    return delays


def _draw_route(route: Route, count: int, key: tuple[int, int, int, int]) -> list[int]:
    """Latency in ns of `count` messages over a route, drawn for (seed, iteration, stage, op)."""
    if route.jitter is None and route.stall is None:
        return [round(route.latency_s * NANOSECONDS)] * count
    seed, *indices = key
    seconds = np.full(count, route.latency_s)
    if route.jitter is not None:
        seconds += route.jitter.sample(generator(seed, "latency", *indices), count)
    if route.stall is not None:
        rng = generator(seed, "stall", *indices)
        hit = rng.random(count) < route.stall.probability
        seconds += hit * route.stall.extra.sample(rng, count)
    delays: list[int] = to_ns(seconds).tolist()
    return delays
