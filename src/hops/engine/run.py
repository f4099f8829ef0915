"""A run under way: ranks take their next action, actions take time, messages arrive.

`ReferenceRun` holds what all modes share; how an output reaches the next stage is in `overlapped` and `blocking`.
A rank looks for work only when it becomes idle or something arrives for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from hops.cost.base import CostModel
from hops.engine.iteration import Iteration, IterationEnd, draw_delays, draw_durations
from hops.engine.links import Links
from hops.engine.loop import Loop
from hops.engine.rank_order import RankOrder
from hops.engine.rows import Recorder, message_sizes, trace_meta
from hops.engine.settings import RunSettings
from hops.errors import StalledError
from hops.hardware.network import Network
from hops.program.action import Action, Op
from hops.program.wiring import Wiring
from hops.trace.trace import Stream, Trace

_COMPUTE, _MESSAGE = int(Stream.COMPUTE), int(Stream.MESSAGE)


class ReferenceRun(ABC):
    """One simulation. Everything indexed by rank is a list; everything about an iteration is in `Iteration`."""

    def __init__(
        self, order: RankOrder, wiring: Wiring, costs: CostModel, network: Network, settings: RunSettings
    ) -> None:
        ranks = wiring.shape.num_ranks
        self.order, self.wiring, self.costs, self.network, self.settings = order, wiring, costs, network, settings
        self.loop = Loop(ranks)
        self.loop.decide = self.advance
        self.links = Links(self.loop, network)
        self.recorder = Recorder()
        self.busy = bytearray(ranks)
        self.held: dict[int, Action] = {}  # by rank: the first of a pair, whose output waits for the second
        self.left = bytearray(ranks)  # ranks that have ended their current iteration
        self.iterations: dict[int, Iteration] = {}
        self.steps: dict[int, IterationEnd] = {}
        self.gone: dict[int, int] = {}  # how many ranks are through with an iteration
        self.current: list[Iteration] = []
        self.sizes = message_sizes(costs)
        self.message_bytes: list[list[int]] = self.sizes.tolist()

    def run(self) -> Trace:
        """Simulate all iterations. Raises StalledError if ranks still wait when nothing is left to happen."""
        for rank in range(self.wiring.shape.num_ranks):
            self.current.append(self._iteration(0))
            self.order.begin(rank, self.current[rank])
            self.loop.wake(rank)
        self.loop.run()
        self._check_finished()
        return self.trace()

    def trace(self) -> Trace:
        """What has happened."""
        self.current.clear()  # what iterations hold is not needed any more
        meta = trace_meta(self.wiring.shape, self.network, self.settings)
        return self.recorder.trace(meta, self.sizes)

    @abstractmethod
    def advance(self, rank: int) -> None:
        """Let an idle rank start what it can."""

    @abstractmethod
    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        """An action has ended whose output, known as `key`, another rank needs."""

    def start(self, rank: int, action: Action) -> None:
        """Begin an action now."""
        iteration = self.current[rank]
        stage, op, microbatch = action
        self.busy[rank] = 1
        now = self.loop.now
        end = now + iteration.duration_ns[stage][op][microbatch]
        self.loop.at(end, self.finish, rank, iteration, action, now)

    def finish(self, rank: int, iteration: Iteration, action: Action, start_ns: int) -> None:
        """An action ends: record it, pass its output on, let the rank go on."""
        stage, op, microbatch = action
        self.recorder.row(_COMPUTE, iteration.number, stage, op, microbatch, start_ns, self.loop.now)
        self.busy[rank] = 0
        self.order.finished(rank, action)
        if self.order.in_pair(rank):
            self.held[rank] = action
            self._take(rank)
            return
        self._pass_on(rank, iteration, action)
        if rank in self.held:
            self._pass_on(rank, iteration, self.held.pop(rank))
        self.loop.wake(rank)

    def spend(
        self,
        ranks: tuple[int, ...],
        stream: Stream,
        number: int,
        op: Op,
        length_ns: int,
        then: Callable[[int], None],
    ) -> None:
        """Ranks work together now, outside the pipeline of iteration `number`; then call `then(rank)` for each."""
        now = self.loop.now
        self.loop.at(now + length_ns, self.spent, ranks, stream, number, op, then, now)

    def spent(
        self, ranks: tuple[int, ...], stream: Stream, number: int, op: Op, then: Callable[[int], None], start_ns: int
    ) -> None:
        """Work outside the pipeline ends: record it and go on."""
        for rank in ranks:
            self.recorder.row(stream, number, rank, op, 0, start_ns, self.loop.now)
        for rank in ranks:
            then(rank)

    def _take(self, rank: int) -> None:
        """Start the rank's next action."""
        action = self.order.peek(rank)
        assert action is not None, "a pair has a second action"
        self.order.take(rank)
        self.start(rank, action)

    def _pass_on(self, rank: int, iteration: Iteration, action: Action) -> None:
        """Give an action's output to the stage that needs it."""
        stage, op, microbatch = action
        base = self.wiring.brings[stage][op]
        if base < 0:
            return
        if self.wiring.local[stage][op]:
            self.deliver(rank, iteration, base + microbatch)
        else:
            self.emit(iteration, action, base + microbatch)

    def transmit(self, iteration: Iteration, action: Action, key: int) -> None:
        """Put an action's output on its links now; `received` is called at its delivery."""
        stage, op, _ = action
        pair = (self.wiring.shape.rank_of_stage[stage], self.wiring.target[stage][op])
        size = self.message_bytes[stage][op]
        self.links.send(pair, size, iteration.delay_ns[key], self.received, iteration, action, key, self.loop.now)

    def received(self, iteration: Iteration, action: Action, key: int, sent_ns: int) -> None:
        """A message is delivered: record it and wake the receiver."""
        stage, op, microbatch = action
        self.recorder.row(_MESSAGE, iteration.number, stage, op, microbatch, sent_ns, self.loop.now)
        self.deliver(self.wiring.target[stage][op], iteration, key)

    def deliver(self, rank: int, iteration: Iteration, key: int) -> None:
        """Something that a stage of `rank` needs is there."""
        iteration.arrived[key] = 1
        self.order.arrived(rank, iteration, key)
        if not self.busy[rank]:
            self.loop.wake(rank)

    def end_iteration(self, rank: int) -> None:
        """The rank has run all its actions of the iteration (called once per iteration and rank)."""
        self.left[rank] = 1
        self._step(self.current[rank].number).finished(rank)

    def _go_on(self, rank: int) -> None:
        """The rank may start its next iteration."""
        number = self.current[rank].number
        self.gone[number] = self.gone.get(number, 0) + 1
        if self.gone[number] == self.wiring.shape.num_ranks:
            del self.iterations[number], self.steps[number], self.gone[number]
            if self.settings.on_iteration is not None:
                self.settings.on_iteration(number)
        if number + 1 < self.settings.iterations:
            self.left[rank] = 0
            self.current[rank] = self._iteration(number + 1)
            self.order.begin(rank, self.current[rank])
            self.loop.wake(rank)

    def _iteration(self, number: int) -> Iteration:
        if number not in self.iterations:
            seed, wiring = self.settings.seed, self.wiring
            durations = draw_durations(number, wiring, self.costs, seed)
            delays = draw_delays(number, wiring, self.network, seed)
            self.iterations[number] = Iteration(number, wiring, durations, delays)
        return self.iterations[number]

    def _step(self, number: int) -> IterationEnd:
        if number not in self.steps:
            owners = self.wiring.shape.rank_of_stage
            costs = self.costs.step(number, self.settings.seed)
            ends = (owners[0], owners[-1])
            ranks = self.wiring.shape.num_ranks
            self.steps[number] = IterationEnd(
                costs, number=number, tied=ends, num_ranks=ranks, spend=self.spend, go=self._go_on
            )
        return self.steps[number]

    def _check_finished(self) -> None:
        if self.iterations:  # all ranks are through with those that are gone
            lines = [f"  rank {rank}: {self.waits_for(rank)}" for rank in range(len(self.current))]
            raise StalledError(
                f"the run stalled at {self.loop.now / 1e6:.3f} ms: nothing is left to happen, but ranks still wait\n"
                + "\n".join(lines)
                + f"\n{self.advice()}"
            )

    def waits_for(self, rank: int) -> str:
        """What keeps the rank from going on, for messages."""
        number = self.current[rank].number
        if self.left[rank]:
            return f"has ended iteration {number} and waits for the others"
        action = self.order.peek(rank)
        if action is None:
            return "its policy returned no action although work is left"
        return f"next is {action}, which waits for {self._missing(action)}"

    def advice(self) -> str:
        """How to get rid of a stall, for messages."""
        return "check the program: each rank's order must be possible given the others' (hops schedule check)"

    def _missing(self, action: Action) -> str:
        stage, op, microbatch = action
        producer = self.wiring.producer(stage, op)
        if producer is None:
            return "its own rank's earlier actions"
        what = f"{producer}F{microbatch}" if op is Op.F else f"the gradient of {producer}B{microbatch}"
        return f"{what} from rank {self.wiring.shape.rank_of_stage[producer]}"
