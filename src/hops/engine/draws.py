"""What is drawn for an iteration, in whole nanoseconds: how long actions take, messages travel, and its end lasts.

Draws depend on (seed, iteration, stage, op, microbatch) only, so that both engines, and all schedules, see the same.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.cost.base import CostModel
from hops.distributions import generators
from hops.hardware.network import Network, Route
from hops.program.action import ACTION_OPS, NUM_OPS, Op
from hops.program.shape import Shape
from hops.recent import Recent
from hops.units import to_ns

Ints = NDArray[np.int64]


def draw_durations(number: int, shape: Shape, costs: CostModel, seed: int) -> Ints:
    """Of every action: shape (stages * 4 ops, microbatches), or (stages * 4 ops, 1) where microbatches are alike."""
    drawn = costs.draw(number, shape.num_microbatches, seed)
    if drawn.strides[-1] == 0:  # the same for every microbatch
        drawn = drawn[..., :1]
    return to_ns(drawn).reshape(shape.num_stages * NUM_OPS, -1)


def draw_sizes(number: int, shape: Shape, costs: CostModel, seed: int) -> Ints:
    """Bytes of the message that each action sends: shape as of durations; 0 where nothing is sent."""
    work = costs.work(number, shape.num_microbatches, seed)
    sizes: Ints = np.rint(message_sizes(costs).reshape(-1, 1) * work).astype(np.int64)
    return sizes


def message_sizes(costs: CostModel) -> Ints:
    """Bytes that each stage sends after each op for a microbatch of work 1: shape (stages, 4)."""
    sends = [op for op in ACTION_OPS if op.sends]
    none = [0] * (NUM_OPS - len(sends))  # the ops that send come first
    sizes = [[costs.message_bytes(stage, op) for op in sends] + none for stage in range(costs.num_stages)]
    return np.array(sizes, dtype=np.int64).reshape(-1, NUM_OPS)


def draw_delays(number: int, shape: Shape, network: Network, seed: int) -> Ints:
    """Latency of the message that each action sends: shape as of durations; 0 where nothing is sent."""
    routes, fixed = _LATENCIES.of((network,), lambda: _latencies(shape, network), key=shape)
    if fixed is not None:
        return fixed
    delays = np.zeros((shape.num_stages, NUM_OPS, shape.num_microbatches), dtype=np.int64)
    places = [(stage, int(op)) for stage, op in routes]
    delays[tuple(np.array(places).T)] = _draw_routes(number, routes, shape.num_microbatches, seed)
    delays[:, Op.B] = delays[:, Op.I]  # a gradient is a gradient
    return delays.reshape(shape.num_stages * NUM_OPS, -1)


Routes = Mapping[tuple[int, Op], Route]
_LATENCIES: Recent[tuple[Routes, Ints | None]] = Recent(64)


def _latencies(shape: Shape, network: Network) -> tuple[Routes, Ints | None]:
    """The route of what each stage sends after F and I; and all delays, shape (stages * 4 ops, 1), if none is drawn."""
    routes = {
        (stage, op): network.routes[owner, target]
        for stage, owner in enumerate(shape.rank_of_stage)
        for op in (Op.F, Op.I)
        if (target := receiver(shape, stage, op)) not in (None, owner)
    }
    if any(route.jitter is not None or route.stall is not None for route in routes.values()):
        return routes, None
    delays = np.zeros((shape.num_stages, NUM_OPS, 1), dtype=np.int64)
    for (stage, op), route in routes.items():
        delays[stage, op] = to_ns(route.latency_s)
    delays[:, Op.B] = delays[:, Op.I]
    fixed = delays.reshape(shape.num_stages * NUM_OPS, -1)
    fixed.setflags(write=False)
    return routes, fixed


def receiver(shape: Shape, stage: int, op: Op) -> int | None:
    """The rank that needs the output of an op; None: nobody does."""
    other = shape.after(stage) if op is Op.F else shape.before(stage)
    return shape.rank_of_stage[other] if op.sends and other is not None else None


def _draw_routes(number: int, routes: Routes, count: int, seed: int) -> Ints:
    """Latency of `count` messages over each route, drawn for (seed, iteration, stage, op): shape (routes, count)."""
    keys = [(number, stage, int(op)) for stage, op in routes]
    seconds = np.empty((len(routes), count))
    seconds[:] = [[route.latency_s] for route in routes.values()]
    jittered = [(at, jitter) for at, route in enumerate(routes.values()) if (jitter := route.jitter) is not None]
    rngs = generators(seed, "latency", [keys[at] for at, _ in jittered])
    for (at, jitter), rng in zip(jittered, rngs, strict=True):
        seconds[at] += jitter.sample(rng, count)
    stalled = [(at, stall) for at, route in enumerate(routes.values()) if (stall := route.stall) is not None]
    rngs = generators(seed, "stall", [keys[at] for at, _ in stalled])
    for (at, stall), rng in zip(stalled, rngs, strict=True):
        hit = rng.random(count) < stall.probability
        seconds[at] += hit * stall.extra.sample(rng, count)
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
