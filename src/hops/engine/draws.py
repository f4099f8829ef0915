"""What is drawn for an iteration, in whole nanoseconds: how long actions take, messages travel, and its end lasts.

Draws depend on (seed, iteration, stage, op, microbatch) only, so that both engines, and all schedules, see the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.cost.base import CostModel
from hops.distributions import generator
from hops.hardware.network import Network, Route
from hops.program.action import NUM_OPS, Op
from hops.program.shape import Shape
from hops.units import to_ns

Ints = NDArray[np.int64]


def draw_durations(number: int, shape: Shape, costs: CostModel, seed: int) -> Ints:
    """Of every action: shape (stages * 4 ops, microbatches), or (stages * 4 ops, 1) where microbatches are alike."""
    drawn = costs.draw(number, shape.num_microbatches, seed)
    if drawn.strides[-1] == 0:  # the same for every microbatch
        drawn = drawn[..., :1]
    return to_ns(drawn).reshape(shape.num_stages * NUM_OPS, -1)


def draw_delays(number: int, shape: Shape, network: Network, seed: int) -> Ints:
    """Latency of the message that each action sends: shape as of durations; 0 where nothing is sent."""
    routes = {
        (stage, op): network.routes[owner, target]
        for stage, owner in enumerate(shape.rank_of_stage)
        for op in (Op.F, Op.I)
        if (target := receiver(shape, stage, op)) not in (None, owner)
    }
    drawn = any(route.jitter is not None or route.stall is not None for route in routes.values())
    delays = np.zeros((shape.num_stages, NUM_OPS, shape.num_microbatches if drawn else 1), dtype=np.int64)
    for (stage, op), route in routes.items():
        delays[stage, op] = _draw_route(route, delays.shape[-1], (seed, number, stage, op))
    delays[:, Op.B] = delays[:, Op.I]  # a gradient is a gradient
    return delays.reshape(shape.num_stages * NUM_OPS, -1)


def receiver(shape: Shape, stage: int, op: Op) -> int | None:
    """The rank that needs the output of an op; None: nobody does."""
    other = stage + 1 if op is Op.F else stage - 1
    return shape.rank_of_stage[other] if op.sends and 0 <= other < shape.num_stages else None


def _draw_route(route: Route, count: int, key: tuple[int, int, int, int]) -> Ints | int:
    """Latency of `count` messages over a route, drawn for (seed, iteration, stage, op)."""
    if route.jitter is None and route.stall is None:
        return to_ns(route.latency_s)
    seed, *indices = key
    seconds = np.full(count, route.latency_s)
    if route.jitter is not None:
        seconds += route.jitter.sample(generator(seed, "latency", *indices), count)
    if route.stall is not None:
        rng = generator(seed, "stall", *indices)
        hit = rng.random(count) < route.stall.probability
        seconds += hit * route.stall.extra.sample(rng, count)
    return to_ns(seconds)


class EndTimes(NamedTuple):
    """How long the parts of an iteration's end take, ns; `grad`, `optimizer`: per rank."""

    grad: list[int]
    optimizer: list[int]
    tied: int
    host: int
    synchronized: bool


def draw_end(number: int, shape: Shape, costs: CostModel, seed: int) -> EndTimes:
    """The end of an iteration."""
    step = costs.step(number, seed)
    tied, host = to_ns(np.asarray([step.tied_reduce_s, step.host_s])).tolist()
    first, last = shape.rank_of_stage[0], shape.rank_of_stage[-1]
    return EndTimes(
        grad=_per_rank(step.grad_reduce_s, shape.num_ranks),
        optimizer=_per_rank(step.optimizer_s, shape.num_ranks),
        tied=tied if first != last else 0,
        host=host,
        synchronized=step.synchronized,
    )


def _per_rank(seconds: tuple[float, ...], num_ranks: int) -> list[int]:
    if not seconds:
        return [0] * num_ranks
    assert len(seconds) == num_ranks, f"step costs have {len(seconds)} values, expected one per rank ({num_ranks})"
    nanoseconds: list[int] = to_ns(np.asarray(seconds)).tolist()
    return nanoseconds
