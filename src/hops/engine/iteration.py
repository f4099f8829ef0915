"""The state of one iteration: how long its actions take, and what has arrived. Ranks may be in different ones.

After its last action a rank reduces its gradients over the data-parallel group; the ranks of the first and the last
stage then all-reduce the gradients of tied embeddings. Synchronized (Megatron-LM's order): all ranks meet for the
global gradient norm, step, meet again, and start the next iteration together. Otherwise each goes on alone.
"""

from collections.abc import Callable

import numpy as np

from hops.cost.base import CostModel, StepCosts
from hops.distributions import generator
from hops.hardware.network import Network, Route
from hops.program.action import Op
from hops.program.wiring import Wiring
from hops.trace.trace import Stream
from hops.units import to_ns


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
        return [to_ns(route.latency_s)] * count
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


# spend(ranks, stream, iteration, op, length in ns, then): ranks work together, then `then(rank)` is called for each
Spend = Callable[[tuple[int, ...], Stream, int, Op, int, Callable[[int], None]], None]


class IterationEnd:
    """The end of iteration `number`.

    `finished(rank)`: a rank ran its last action; `spend`: how ranks spend time; `go(rank)`: the rank may go on.
    """

    def __init__(
        self,
        costs: StepCosts,
        *,
        number: int,
        tied: tuple[int, int],
        num_ranks: int,
        spend: Spend,
        go: Callable[[int], None],
    ) -> None:
        self._number, self._spend, self._go = number, spend, go
        self._grad_ns = _per_rank(costs.grad_reduce_s, num_ranks)
        self._optimizer_ns = _per_rank(costs.optimizer_s, num_ranks)
        self._tied_ns, self._host_ns = to_ns(np.asarray([costs.tied_reduce_s, costs.host_s])).tolist()
        self._tied = tied if self._tied_ns and tied[0] != tied[1] else ()
        self._tied_waiting: list[int] = []
        self._synchronized = costs.synchronized
        self._num_ranks = num_ranks
        self._at_norm: list[int] = []
        self._at_end: list[int] = []

    def finished(self, rank: int) -> None:
        """The rank ran its last action of the iteration."""
        self._work((rank,), Stream.COLLECTIVE, Op.GRAD_REDUCE, self._grad_ns[rank], self._reduced)

    def _reduced(self, rank: int) -> None:
        if rank not in self._tied:
            self._at_gradient_norm(rank)
            return
        self._tied_waiting.append(rank)
        if len(self._tied_waiting) == 2:  # both ends are there
            ends = tuple(self._tied_waiting)
            self._work(ends, Stream.COLLECTIVE, Op.TIED_REDUCE, self._tied_ns, self._at_gradient_norm)

    def _at_gradient_norm(self, rank: int) -> None:
        for ready in self._meet(self._at_norm, rank):
            self._work((ready,), Stream.COMPUTE, Op.OPTIMIZER, self._optimizer_ns[ready], self._stepped)

    def _stepped(self, rank: int) -> None:
        for ready in self._meet(self._at_end, rank):
            self._work((ready,), Stream.HOST, Op.HOST, self._host_ns, self._go)

    def _meet(self, waiting: list[int], rank: int) -> list[int]:
        """The ranks that may go on now that this one has come: everybody at once, or just itself."""
        if not self._synchronized:
            return [rank]
        waiting.append(rank)
        return sorted(waiting) if len(waiting) == self._num_ranks else []

    def _work(
        self, ranks: tuple[int, ...], stream: Stream, op: Op, length_ns: int, then: Callable[[int], None]
    ) -> None:
        """Let ranks spend time together, if there is any to spend, then call `then(rank)` for each."""
        if length_ns:
            self._spend(ranks, stream, self._number, op, length_ns, then)
            return
        for rank in ranks:
            then(rank)


def _per_rank(seconds: tuple[float, ...], num_ranks: int) -> list[int]:
    if not seconds:
        return [0] * num_ranks
    assert len(seconds) == num_ranks, f"step costs have {len(seconds)} values, expected one per rank ({num_ranks})"
    nanoseconds: list[int] = to_ns(np.asarray(seconds)).tolist()
    return nanoseconds
