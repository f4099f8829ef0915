"""What faults do to a run: what they hit is lost, and done again from its start once everything it needs is back.

A rank that is down counts as busy, so that nobody makes it start anything. Work is an action, or a part of the end of
an iteration; it is done by one rank, or by both ends of the tied reduction. A message is lost when its sender, its
receiver or a link of its route breaks while it is under way; what is sent while one of them is down waits.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hops.engine.fault_windows import FaultWindows, WindowEdge, end_of
from hops.engine.iteration import Iteration
from hops.engine.stopped_run import Interruption, stopped_by_faults, timed_out, words_of_message, words_of_work
from hops.faults.plan import FOREVER, Fault, FaultKind
from hops.program.action import Action, Op
from hops.trace.trace import Stream

if TYPE_CHECKING:
    from hops.engine.reference import ReferenceRun

WAITS = -1  # in place of a start: it waits for what is down
_LOST = int(Stream.LOST)


class Work:
    """What ranks spend time on together."""

    __slots__ = ("arguments", "length_ns", "links", "ranks", "row", "start_ns", "then", "turn")

    def __init__(
        self,
        ranks: tuple[int, ...],
        links: tuple[int, ...],
        length_ns: int,
        row: tuple[int, int, int, int],
        then: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        self.ranks = ranks
        self.links = links
        self.length_ns = length_ns
        self.row = row  # iteration, stage (NONE: no action), op, microbatch
        self.then = then  # called with arguments and start when it ends
        self.arguments = arguments
        self.start_ns = WAITS
        self.turn = 0  # raised whenever it is lost or begun

    def __str__(self) -> str:
        _, stage, op, microbatch = self.row
        return words_of_work(stage, Op(op), microbatch, self.ranks)


class Message:
    """An action's output on its way, or waiting for the way."""

    __slots__ = ("action", "iteration", "key", "links", "ranks", "sent_ns", "transfer", "turn")

    def __init__(
        self, ranks: tuple[int, int], links: tuple[int, ...], iteration: Iteration, action: Action, key: int
    ) -> None:
        self.ranks = ranks
        self.links = links
        self.iteration = iteration
        self.action = action
        self.key = key
        self.sent_ns = WAITS
        self.transfer: Any = None
        self.turn = 0

    def __str__(self) -> str:
        return words_of_message(self.action, self.ranks)


class InterruptedRunError(Exception):
    """Leaves the loop."""

    def __init__(self, interruption: Interruption) -> None:
        super().__init__()
        self.interruption = interruption


class Breakage:
    """What is down, what is under way, and what waits.

    Attributes:
        rank_down: by rank, whether its device is down.
        until_stop: whether the first stop ends the run.
    """

    def __init__(self, run: "ReferenceRun", windows: FaultWindows) -> None:
        self._run, self._windows = run, windows
        self._edges = iter(windows.changes)
        self._all_up = True
        self.rank_down = bytearray(run.wiring.shape.num_ranks)
        self._link_down = bytearray(len(windows.links))
        self._work: list[Work | None] = [None] * len(self.rank_down)
        self._under_way: dict[Message, None] = {}
        self._waiting: dict[Message, None] = {}
        self.until_stop = False

    # Work

    def begin(
        self,
        ranks: tuple[int, ...],
        length_ns: int,
        row: tuple[int, int, int, int],
        then: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        """Ranks work together now, or once they can; then call `then(*arguments, start)`. `row`: as in `Work`."""
        self._begin(Work(ranks, self._links_of(Op(row[2]), ranks), length_ns, row, then, arguments))

    def _links_of(self, op: Op, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """The links that a reduction crosses."""
        if op is Op.GRAD_REDUCE and self._windows.reduction_links:
            return self._windows.reduction_links[ranks[0]]
        if op is Op.TIED_REDUCE:
            routes = self._run.network.routes
            return tuple(link for pair in (ranks, ranks[::-1]) if pair in routes for link in self._route(pair))
        return ()

    def _route(self, pair: tuple[int, ...]) -> tuple[int, ...]:
        source, target = pair
        return self._run.network.routes[source, target].links

    def _begin(self, work: Work) -> None:
        for rank in work.ranks:
            self._work[rank] = work
        if self._is_blocked(work):
            self._arm(work, work.links)
            return
        now = self._run.loop.now
        work.start_ns, work.turn = now, work.turn + 1
        paces = [pace for rank in work.ranks if (pace := self._windows.rank_pace[rank])]
        paces += [pace for link in work.links if (pace := self._windows.link_pace[link])]
        end = end_of(now, work.length_ns, paces) if paces else now + work.length_ns
        self._run.loop.at(end, self._end, work, work.turn)

    def _end(self, work: Work, turn: int) -> None:
        if turn != work.turn:
            return  # it was lost; a later event stands for it
        for rank in work.ranks:
            self._work[rank] = None
        work.then(*work.arguments, work.start_ns)

    def _lose_work(self, work: Work) -> None:
        number, stage, op, microbatch = work.row
        now = self._run.loop.now
        if work.start_ns < now:
            for rank in work.ranks:
                self._run.recorder.work(_LOST, number, rank, stage, op, microbatch, work.start_ns, now)
        work.start_ns, work.turn = WAITS, work.turn + 1

    # Messages

    def transmit(self, iteration: Iteration, action: Action, key: int) -> None:
        """An action's output may leave now."""
        pair = self._run.ends_of(action)
        message = Message(pair, self._route(pair), iteration, action, key)
        self._waiting[message] = None
        self._send(message)

    def _send(self, message: Message) -> None:
        """Send a message that waits, unless something on its way is down."""
        if self._is_blocked(message):
            self._arm(message, message.links)
            return
        del self._waiting[message]
        self._under_way[message] = None
        message.sent_ns, message.turn = self._run.loop.now, message.turn + 1
        stage, op, microbatch = message.action
        size = message.iteration.size_bytes[stage][op][microbatch]
        delay = message.iteration.delay_ns[stage][op][microbatch]
        message.transfer = self._run.links.send(message.ranks, size, delay, self._delivered, message, message.turn)

    def _delivered(self, message: Message, turn: int) -> None:
        if turn != message.turn:
            return  # it was lost
        del self._under_way[message]
        self._run.received(message.iteration, message.action, message.key, message.sent_ns)

    def _lose_message(self, message: Message) -> None:
        run, now = self._run, self._run.loop.now
        if message.transfer is not None:
            run.links.cancel(message.transfer)
        stage, op, microbatch = message.action
        if message.sent_ns < now:
            number, size = message.iteration.number, message.iteration.size_bytes[stage][op][microbatch]
            run.recorder.message(_LOST, number, message.ranks, stage, op, microbatch, message.sent_ns, now, size)
        message.turn += 1
        del self._under_way[message]
        self._waiting[message] = None

    # What breaks and returns

    def await_edge(self) -> None:
        """Wait for the next moment at which things break or return."""
        for time, edge in self._edges:
            self._run.loop.fault_at(time, self._happen, edge)
            return

    def _happen(self, edge: WindowEdge) -> None:
        """Things break and return at this moment."""
        if not self._run.iterations:
            return  # the run is over
        self._break(edge)
        for link, part in edge.bandwidths:
            if link < len(self._run.network.links):
                self._run.links.scale(link, part)
        self._restore(edge)
        self.await_edge()

    def _break(self, edge: WindowEdge) -> None:
        if self.until_stop and edge.ranks_down:
            now, completed = self._run.loop.now, min(self._run.iterations)
            self._interrupt(stopped_by_faults(self._windows, now, tuple(edge.ranks_down), completed))
        for rank in edge.ranks_down:
            self.rank_down[rank] = self._run.busy[rank] = 1
        for link in edge.links_down:
            self._link_down[link] = 1
        if not edge.ranks_down and not edge.links_down:
            return
        self._all_up = False
        waiting = list(self._waiting)
        for message in [each for each in self._under_way if self._is_blocked(each)]:
            self._lose_message(message)
            self._arm(message, message.links)
        for message in waiting:
            self._arm(message, set(message.links) & set(edge.links_down))
        for work in self._all_work():
            waits = work.start_ns == WAITS
            if self._is_blocked(work) and not waits:
                self._lose_work(work)
            self._arm(work, set(work.links) & set(edge.links_down))

    def _restore(self, edge: WindowEdge) -> None:
        for rank in edge.ranks_up:
            self.rank_down[rank] = 0
            self._run.busy[rank] = self._work[rank] is not None and not self._run.left[rank]
            self._run.loop.wake(rank)
        for link in edge.links_up:
            self._link_down[link] = 0
        self._all_up = not any(self.rank_down) and not any(self._link_down)
        if not edge.ranks_up and not edge.links_up:
            return
        for work in self._all_work():
            if work.start_ns == WAITS and not self._is_blocked(work):
                self._begin(work)
        for message in list(self._waiting):
            self._send(message)

    def _all_work(self) -> list[Work]:
        return list(dict.fromkeys(work for work in self._work if work is not None))

    def _is_blocked(self, item: Work | Message) -> bool:
        if self._all_up:
            return False
        ranks, links = self.rank_down, self._link_down
        return any(ranks[rank] for rank in item.ranks) or any(links[link] for link in item.links)

    # Giving up

    def _arm(self, item: Work | Message, links: Iterable[int]) -> None:
        """Let the job fail if one of these links stays down for longer than the transport waits for it."""
        timeout, now = self._windows.faults.link_timeout_ns, self._run.loop.now
        if timeout is None:
            return
        for link in sorted(set(links)):
            if self._link_down[link] and self._windows.down_since(link, now)[1] - now > timeout:
                self._run.loop.fault_at(now + timeout, self._give_up, item, item.turn, link)

    def _give_up(self, item: Work | Message, turn: int, link: int) -> None:
        if item.turn == turn and self._run.iterations:
            now, completed = self._run.loop.now, min(self._run.iterations)
            self._interrupt(timed_out(self._windows, now, str(item), item.ranks, link, completed))

    def _interrupt(self, interruption: Interruption) -> None:
        """The job ends: all that is under way is lost."""
        for message in list(self._under_way):
            self._lose_message(message)
        for work in self._all_work():
            if work.start_ns != WAITS:
                self._lose_work(work)
        raise InterruptedRunError(interruption)

    # Words for a stall

    def never_repaired(self) -> str:
        """The faults that hold a stalled run up for ever; empty: none does."""
        down = {self.device(rank) for rank in range(len(self.rank_down)) if self.rank_down[rank]}
        down |= {name for name, flag in zip(self._windows.links, self._link_down, strict=True) if flag}
        kinds = (FaultKind.STOP, FaultKind.LINK_DOWN)
        plan = self._windows.faults.plan
        for_ever = [fault for fault in plan if fault.kind in kinds and fault.target in down and fault.end_ns >= FOREVER]
        if not for_ever:
            return ""
        named = "; ".join(_named(fault) for fault in for_ever)
        return f"never repaired: {named}; give it an end, or a recovery policy that does without it"

    def device(self, rank: int) -> str:
        """The rank's device, as faults name it."""
        devices = self._windows.faults.devices
        return devices[rank] if devices else f"rank{rank}"


def _named(fault: Fault) -> str:
    cause = f" ({fault.cause})" if fault.cause else ""
    return f"{fault.kind} of {fault.target} since {fault.start_ns / 1e6:.3f} ms{cause}"
