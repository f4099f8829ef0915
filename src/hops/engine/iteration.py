"""The state of one iteration: how long its actions take, and what has arrived. Ranks may be in different ones.

After its last action a rank reduces its gradients over the data-parallel group; the ranks of the first and the last
stage then all-reduce the gradients of tied embeddings. Synchronized (Megatron-LM's order): all ranks meet for the
global gradient norm, step, meet again, and start the next iteration together. Otherwise each goes on alone.
"""

from collections.abc import Callable

from hops.engine.draws import EndTimes, Ints
from hops.program.action import NUM_OPS, Op
from hops.program.wiring import Wiring
from hops.trace.trace import Stream


class Iteration:
    """One iteration under way.

    Attributes:
        number: from 0.
        duration_ns[stage][op][microbatch]: how long each action takes.
        paired_ns[stage][op][microbatch]: the same in a pair that a policy makes.
        delay_ns[stage][op][microbatch]: latency of the message that it sends.
        size_bytes[stage][op][microbatch]: its bytes.
        arrived[message key]: 1 once it has been delivered (or produced on the same rank).
    """

    __slots__ = ("arrived", "delay_ns", "duration_ns", "number", "paired_ns", "size_bytes")

    def __init__(self, number: int, wiring: Wiring, durations: Ints, delays: Ints, sizes: Ints) -> None:
        """`durations`, `delays`, `sizes`: as `hops.engine.draws` draws them."""
        self.number = number
        self.duration_ns = _nested(durations, wiring)
        self.paired_ns = self.duration_ns
        self.delay_ns = _nested(delays, wiring)
        self.size_bytes = _nested(sizes, wiring)
        self.arrived = bytearray(wiring.num_keys)

    def pair(self, durations: Ints, wiring: Wiring) -> None:
        """Let actions in a policy's pairs take other durations than those that run alone."""
        self.paired_ns = _nested(durations, wiring)


def _nested(drawn: Ints, wiring: Wiring) -> list[list[list[int]]]:
    """By stage, op and microbatch; where microbatches are alike they share one integer."""
    count, stages = wiring.shape.num_microbatches, wiring.shape.num_stages
    nested: list[list[list[int]]] = drawn.reshape(stages, NUM_OPS, -1).tolist()
    if drawn.shape[1] == count:
        return nested
    return [[each * count for each in stage] for stage in nested]


# spend(ranks, stream, iteration, op, length in ns, then): ranks work together, then `then(rank)` is called for each
Spend = Callable[[tuple[int, ...], Stream, int, Op, int, Callable[[int], None]], None]


class IterationEnd:
    """The end of iteration `number`.

    `finished(rank)`: a rank ran its last action; `spend`: how ranks spend time; `go(rank)`: the rank may go on.
    """

    def __init__(
        self, times: EndTimes, *, number: int, tied: tuple[int, int], spend: Spend, go: Callable[[int], None]
    ) -> None:
        self._times, self._number, self._spend, self._go = times, number, spend, go
        self._tied = tied if times.tied else ()
        self._tied_waiting: list[int] = []
        self._at_norm: list[int] = []
        self._at_end: list[int] = []

    def finished(self, rank: int) -> None:
        """The rank ran its last action of the iteration."""
        self._work((rank,), Stream.COLLECTIVE, Op.GRAD_REDUCE, self._times.grad[rank], self._reduced)

    def _reduced(self, rank: int) -> None:
        if rank not in self._tied:
            self._at_gradient_norm(rank)
            return
        self._tied_waiting.append(rank)
        if len(self._tied_waiting) == 2:  # both ends are there
            ends = tuple(self._tied_waiting)
            self._work(ends, Stream.COLLECTIVE, Op.TIED_REDUCE, self._times.tied, self._at_gradient_norm)

    def _at_gradient_norm(self, rank: int) -> None:
        for ready in self._meet(self._at_norm, rank):
            self._work((ready,), Stream.COMPUTE, Op.OPTIMIZER, self._times.optimizer[ready], self._stepped)

    def _stepped(self, rank: int) -> None:
        for ready in self._meet(self._at_end, rank):
            self._work((ready,), Stream.HOST, Op.HOST, self._times.host, self._go)

    def _meet(self, waiting: list[int], rank: int) -> list[int]:
        """The ranks that may go on now that this one has come: everybody at once, or just itself."""
        if not self._times.synchronized:
            return [rank]
        waiting.append(rank)
        return sorted(waiting) if len(waiting) == len(self._times.grad) else []

    def _work(
        self, ranks: tuple[int, ...], stream: Stream, op: Op, length_ns: int, then: Callable[[int], None]
    ) -> None:
        """Let ranks spend time together, if there is any to spend, then call `then(rank)` for each."""
        if length_ns:
            self._spend(ranks, stream, self._number, op, length_ns, then)
            return
        for rank in ranks:
            then(rank)
