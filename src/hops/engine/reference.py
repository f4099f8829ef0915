"""The reference engine: ranks take their next action, actions take time, messages arrive. Short, and not fast.

A rank looks for work only when it becomes idle or something arrives for it. How an output reaches the next stage is
the transport's part (`hops.engine.transport`), what faults do to all this that of `hops.engine.breakage`.
"""

from collections.abc import Callable

from hops.cost.base import CostModel
from hops.cost.paired import AllPaired
from hops.engine.breakage import Breakage, InterruptedRunError
from hops.engine.draws import draw_delays, draw_durations, draw_end, draw_sizes
from hops.engine.fault_windows import FaultWindows, with_fault_rows
from hops.engine.iteration import Iteration, IterationEnd
from hops.engine.links import Links
from hops.engine.loop import Loop
from hops.engine.rank_order import RankOrder
from hops.engine.rows import NONE, Recorder, trace_meta
from hops.engine.settings import RunSettings
from hops.engine.stopped_run import Interruption, StoppedRun
from hops.engine.transport import Transport
from hops.errors import JobFailedError, StalledError
from hops.hardware.network import Network
from hops.program.action import Action, Op
from hops.program.wiring import Wiring
from hops.trace.trace import Stream, Trace

_COMPUTE, _MESSAGE = int(Stream.COMPUTE), int(Stream.MESSAGE)


class ReferenceRun:
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
        self.resting = bytearray(ranks)  # the host prepares the next entry
        self.held: dict[int, Action] = {}  # by rank: the first of a pair, whose output waits for the second
        self.left = bytearray(ranks)  # ranks that have ended their current iteration
        self.iterations: dict[int, Iteration] = {}
        self.ends: dict[int, IterationEnd] = {}
        self.gone: dict[int, int] = {}  # how many ranks are through with an iteration
        self.current: list[Iteration] = []
        self.transport = Transport.of(settings.p2p, self)
        names = (link.name for link in network.links)
        self.windows = FaultWindows.compile(settings.faults, ranks, names)
        self.breakage = Breakage(self, self.windows) if settings.faults.plan else None

    def run(self) -> Trace:
        """Simulate all iterations.

        Raises StalledError if ranks still wait when nothing is left to happen, and JobFailedError if the transport
        gives up.
        """
        try:
            self._follow()
        except InterruptedRunError as interrupted:
            raise JobFailedError(interrupted.interruption.message) from None
        return self._trace()

    def run_until_stop(self) -> StoppedRun:
        """Simulate until the first stop that hits a rank (or the transport gives up), or to the end."""
        interruption: Interruption | None = None
        if self.breakage is not None:
            self.breakage.until_stop = True
        try:
            self._follow()
        except InterruptedRunError as interrupted:
            interruption = interrupted.interruption
        return StoppedRun(trace=self._trace(), interruption=interruption)

    def _follow(self) -> None:
        if self.breakage is not None:
            self.breakage.await_edge()
        for rank in range(self.wiring.shape.num_ranks):
            self.current.append(self._iteration(0))
            self.order.begin(rank, self.current[rank])
            self.loop.wake(rank)
        self.loop.run()
        self._check_finished()

    def _trace(self) -> Trace:
        """What has happened."""
        self.current.clear()  # what iterations hold is not needed any more
        meta = trace_meta(self.wiring.shape, self.network, self.settings)
        return with_fault_rows(self.recorder.trace(meta), self.windows)

    # Actions

    def advance(self, rank: int) -> None:
        """Let an idle rank start what it can."""
        if self.busy[rank] or self.left[rank] or self.resting[rank]:
            return
        self.transport.reach(rank)
        if self.transport.holds(rank):
            return
        action = self.order.peek(rank)
        if action is None:
            if self.order.is_done(rank):
                self.left[rank] = 1
                self._end(self.current[rank].number).finished(rank)
            else:  # a policy that waits for something to come
                self.transport.idle(rank)
        elif self.order.can_start(self.current[rank], rank, action):
            self.transport.close(rank)
            self._take(rank, action)
        else:
            self.transport.await_input(rank, self.order.lacks(self.current[rank], rank, action))

    def _take(self, rank: int, action: Action) -> None:
        """Begin the rank's next action now."""
        self.order.take(rank)
        iteration = self.current[rank]
        stage, op, microbatch = action
        self.busy[rank] = 1
        durations = iteration.paired_ns if self.order.is_paired(rank) else iteration.duration_ns
        length = durations[stage][op][microbatch]
        if self.breakage is None:
            now = self.loop.now
            self.loop.at(now + length, self._finish, rank, iteration, action, now)
        else:
            row = (iteration.number, stage, int(op), microbatch)
            self.breakage.begin((rank,), length, row, self._finish, (rank, iteration, action))

    def _finish(self, rank: int, iteration: Iteration, action: Action, start_ns: int) -> None:
        """An action ends: record it, pass its output on, let the rank go on."""
        stage, op, microbatch = action
        peer = rank if self.order.is_paired(rank) else NONE
        ends = (iteration.number, (rank, peer), stage, op, microbatch, start_ns, self.loop.now, 0)
        self.recorder.message(_COMPUTE, *ends)
        self.busy[rank] = 0
        self.order.finished(rank, action)
        if self.order.in_pair(rank):
            self.held[rank] = action
            if self.order.is_paired(rank):
                self._second(rank)
                return
            self._rest(rank, self._second)  # in a couple the host takes its time
            return
        self._pass_on(rank, iteration, action)
        if rank in self.held:
            self._pass_on(rank, iteration, self.held.pop(rank))
        if self.order.is_done(rank):
            self.loop.wake(rank)
        else:
            self._rest(rank, self.loop.wake)

    def _second(self, rank: int) -> None:
        """Begin the second action of a pair or couple."""
        second = self.order.peek(rank)
        assert second is not None, "a pair has a second action"
        self._take(rank, second)

    def _rest(self, rank: int, then: Callable[[int], None]) -> None:
        """Let the host take its time, then go on."""
        if self.settings.host_per_action_ns:
            self.resting[rank] = 1
            self.loop.at(self.loop.now + self.settings.host_per_action_ns, self._rested, rank, then)
        else:
            then(rank)

    def _rested(self, rank: int, then: Callable[[int], None]) -> None:
        """The host has prepared what the rank does next."""
        self.resting[rank] = 0
        then(rank)

    # Messages

    def _pass_on(self, rank: int, iteration: Iteration, action: Action) -> None:
        """Give an action's output to the stage that needs it."""
        stage, op, microbatch = action
        base = self.wiring.brings[stage][op]
        if base < 0:
            return
        if self.wiring.local[stage][op]:
            self._deliver(rank, iteration, base + microbatch)
        else:
            self.transport.emit(iteration, action, base + microbatch)

    def transmit(self, iteration: Iteration, action: Action, key: int) -> None:
        """Put an action's output on its links now; `received` is called at its delivery."""
        if self.breakage is None:
            stage, op, microbatch = action
            pair, delay = self.ends_of(action), iteration.delay_ns[stage][op][microbatch]
            size = iteration.size_bytes[stage][op][microbatch]
            self.links.send(pair, size, delay, self.received, iteration, action, key, self.loop.now)
        else:
            self.breakage.transmit(iteration, action, key)

    def received(self, iteration: Iteration, action: Action, key: int, sent_ns: int) -> None:
        """A message is delivered: record it and wake the receiver."""
        stage, op, microbatch = action
        pair, size = self.ends_of(action), iteration.size_bytes[stage][op][microbatch]
        self.recorder.message(
            _MESSAGE, iteration.number, pair, stage, op, microbatch, sent_ns, self.loop.now, size
        )  # fmt: skip
        self._deliver(pair[1], iteration, key)
        self.transport.delivered(pair)

    def _deliver(self, rank: int, iteration: Iteration, key: int) -> None:
        """Something that a stage of `rank` needs is there."""
        iteration.arrived[key] = 1
        self.order.arrived(rank, iteration, key)
        if not self.busy[rank]:
            self.loop.wake(rank)

    def ends_of(self, action: Action) -> tuple[int, int]:
        """Sending and receiving rank of an action's output."""
        return self.wiring.shape.rank_of_stage[action[0]], self.wiring.target[action[0]][action[1]]

    # The end of an iteration

    def spend(
        self, ranks: tuple[int, ...], stream: Stream, number: int, op: Op, length_ns: int, then: Callable[[int], None]
    ) -> None:
        """Ranks work together now, outside the pipeline of iteration `number`; then call `then(rank)` for each."""
        arguments = (ranks, stream, number, op, then)
        if self.breakage is None:
            self.loop.at(self.loop.now + length_ns, self._spent, *arguments, self.loop.now)
        else:
            self.breakage.begin(ranks, length_ns, (number, NONE, int(op), NONE), self._spent, arguments)

    def _spent(
        self, ranks: tuple[int, ...], stream: Stream, number: int, op: Op, then: Callable[[int], None], start_ns: int
    ) -> None:
        """Work outside the pipeline ends: record it and go on."""
        for rank in ranks:
            self.recorder.work(stream, number, rank, NONE, op, NONE, start_ns, self.loop.now)
        for rank in ranks:
            then(rank)

    def _go_on(self, rank: int) -> None:
        """The rank may start its next iteration."""
        number = self.current[rank].number
        self.gone[number] = self.gone.get(number, 0) + 1
        if self.gone[number] == self.wiring.shape.num_ranks:
            del self.iterations[number], self.ends[number], self.gone[number]
            if self.settings.on_iteration is not None:
                self.settings.on_iteration(number)
        if number + 1 < self.settings.iterations:
            self.left[rank] = 0
            self.current[rank] = self._iteration(number + 1)
            self.order.begin(rank, self.current[rank])
            self.loop.wake(rank)

    def _iteration(self, number: int) -> Iteration:
        if number not in self.iterations:
            shape, seed = self.wiring.shape, self.settings.seed
            durations = draw_durations(number, shape, self.costs, seed)
            delays = draw_delays(number, shape, self.network, seed)
            sizes = draw_sizes(number, shape, self.costs, seed)
            self.iterations[number] = Iteration(number, self.wiring, durations, delays, sizes)
            if self.order.is_policy and self.settings.pair_factor != 1:
                together = AllPaired(inner=self.costs, factor=self.settings.pair_factor)
                self.iterations[number].pair(draw_durations(number, shape, together, seed), self.wiring)
        return self.iterations[number]

    def _end(self, number: int) -> IterationEnd:
        if number not in self.ends:
            shape = self.wiring.shape
            times = draw_end(number, shape, self.costs, self.settings.seed)
            tied = (shape.rank_of_stage[0], shape.rank_of_stage[-1])
            self.ends[number] = IterationEnd(times, number=number, tied=tied, spend=self.spend, go=self._go_on)
        return self.ends[number]

    # Words for a stall

    def _check_finished(self) -> None:
        if self.iterations:  # all ranks are through with those that are gone
            lines = [f"  rank {rank}: {self._waits_for(rank)}" for rank in range(len(self.current))]
            raise StalledError(
                f"the run stalled at {self.loop.now / 1e6:.3f} ms: nothing is left to happen, but ranks still wait\n"
                + "\n".join(lines)
                + f"\n{self._advice()}"
            )

    def _advice(self) -> str:
        """How to get rid of a stall."""
        never_repaired = "" if self.breakage is None else self.breakage.never_repaired()
        return never_repaired or self.transport.advice()

    def _waits_for(self, rank: int) -> str:
        """What keeps the rank from going on."""
        number = self.current[rank].number
        if self.breakage is not None and self.breakage.rank_down[rank]:
            return f"its device {self.breakage.device(rank)} is down"
        if sends := self.transport.waits_to_send(rank):
            return sends
        if self.left[rank]:
            return f"has ended iteration {number} and waits for the others"
        action = self.order.peek(rank)
        if action is None:
            return "its policy returned no action although work is left"
        return f"next is {action}, which waits for {self._missing(action)}"

    def _missing(self, action: Action) -> str:
        stage, op, microbatch = action
        producer = self.wiring.producer(stage, op)
        if producer is None:
            return "its own rank's earlier actions"
        what = f"{producer}F{microbatch}" if op is Op.F else f"the gradient of {producer}B{microbatch}"
        return f"{what} from rank {self.wiring.shape.rank_of_stage[producer]}"
