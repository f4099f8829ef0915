"""A run that faults disturb: what they hit is lost, and done again from its start once everything it needs is back.

A rank that is down counts as busy, so that nobody makes it start anything. Work is an action, or a part of the end of
an iteration; it is done by one rank, or by both ends of the tied reduction. A message is lost when its sender, its
receiver or a link of its route breaks while it is under way; what is sent while one of them is down waits.
"""

from collections.abc import Callable, Iterable
from typing import Any

from hops.cost.base import CostModel
from hops.engine.blocking import BlockingRun
from hops.engine.fault_windows import FaultWindows, WindowEdge, end_of, with_fault_rows
from hops.engine.iteration import Iteration
from hops.engine.overlapped import OverlappedRun
from hops.engine.rank_order import RankOrder
from hops.engine.rows import LOST_MESSAGE
from hops.engine.run import ReferenceRun
from hops.engine.settings import RunSettings
from hops.engine.stopped_run import Interruption, StoppedRun
from hops.errors import JobFailedError
from hops.faults.plan import FOREVER, Fault, FaultKind
from hops.hardware.network import Network
from hops.program.action import Action, Op
from hops.program.wiring import Wiring
from hops.trace.trace import Stream, Trace

WAITS = -1  # in place of a start: it waits for what is down


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
        self.row = row  # iteration, stage (-1: none), op, microbatch
        self.then = then  # called with arguments and start when it ends
        self.arguments = arguments
        self.start_ns = WAITS
        self.turn = 0  # raised whenever it is lost or begun

    def __str__(self) -> str:
        _, stage, op, microbatch = self.row
        what = Op(op).name if stage < 0 else str(Action(stage, Op(op), microbatch))
        return f"{what} of rank{'s' if len(self.ranks) > 1 else ''} {' and '.join(map(str, self.ranks))}"


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
        return f"the output of {self.action} from rank {self.ranks[0]} to rank {self.ranks[1]}"


_LOST = int(Stream.LOST)


class _InterruptedError(Exception):
    """Leaves the loop."""

    def __init__(self, interruption: Interruption) -> None:
        super().__init__()
        self.interruption = interruption


class Disturbed(ReferenceRun):
    """What faults do, whatever the mode of messages."""

    def __init__(
        self, order: RankOrder, wiring: Wiring, costs: CostModel, network: Network, settings: RunSettings
    ) -> None:
        super().__init__(order, wiring, costs, network, settings)
        self._ranks = range(wiring.shape.num_ranks)
        names = (link.name for link in network.links)
        self._disturbances = FaultWindows.compile(settings.faults, len(self._ranks), names)
        self._changes = iter(self._disturbances.changes)
        self._all_up = True
        self._rank_down = bytearray(len(self._ranks))
        self._link_down = bytearray(len(self._disturbances.links))
        self._work: list[Work | None] = [None] * len(self._ranks)
        self._under_way: dict[Message, None] = {}
        self._waiting: dict[Message, None] = {}
        self._until_stop = False

    def run(self) -> Trace:
        """Simulate all iterations. Raises StalledError, and JobFailedError if the transport gives up."""
        self._await_change()
        try:
            trace = super().run()
        except _InterruptedError as interrupted:
            raise JobFailedError(interrupted.interruption.message) from None
        return with_fault_rows(trace, self._disturbances)

    def run_until_stop(self) -> StoppedRun:
        """Simulate until the first stop that hits a rank (or the transport gives up), or to the end."""
        self._until_stop = True
        self._await_change()
        try:
            trace, interruption = super().run(), None
        except _InterruptedError as interrupted:
            interruption = interrupted.interruption
            self._lose_everything()
            trace = self.trace()
        return StoppedRun(trace=with_fault_rows(trace, self._disturbances), interruption=interruption)

    # Work

    def start(self, rank: int, action: Action) -> None:
        iteration = self.current[rank]
        stage, op, microbatch = action
        self.busy[rank] = 1
        length = iteration.duration_ns[stage][op][microbatch]
        row = (iteration.number, stage, int(op), microbatch)
        self._begin(Work((rank,), (), length, row, self.finish, (rank, iteration, action)))

    def spend(
        self,
        ranks: tuple[int, ...],
        stream: Stream,
        number: int,
        op: Op,
        length_ns: int,
        then: Callable[[int], None],
    ) -> None:
        arguments = (ranks, stream, number, op, then)
        self._begin(Work(ranks, self._links_of(op, ranks), length_ns, (number, -1, int(op), 0), self.spent, arguments))

    def _links_of(self, op: Op, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """The links that a reduction crosses."""
        if op is Op.GRAD_REDUCE and self._disturbances.reduction_links:
            return self._disturbances.reduction_links[ranks[0]]
        if op is Op.TIED_REDUCE:
            pairs = (ranks, ranks[::-1])
            return tuple(link for pair in pairs if pair in self.network.routes for link in self._route(pair))
        return ()

    def _route(self, pair: tuple[int, ...]) -> tuple[int, ...]:
        source, target = pair
        return self.network.routes[source, target].links

    def _begin(self, work: Work) -> None:
        """Start work, or let it wait for what is down."""
        for rank in work.ranks:
            self._work[rank] = work
        if self._is_blocked(work):
            self._arm(work, work.links)
            return
        now = self.loop.now
        work.start_ns, work.turn = now, work.turn + 1
        paces = [pace for rank in work.ranks if (pace := self._disturbances.rank_pace[rank])]
        paces += [pace for link in work.links if (pace := self._disturbances.link_pace[link])]
        end = end_of(now, work.length_ns, paces) if paces else now + work.length_ns
        self.loop.at(end, self._end, work, work.turn)

    def _end(self, work: Work, turn: int) -> None:
        if turn != work.turn:
            return  # it was lost; a later event stands for it
        for rank in work.ranks:
            self._work[rank] = None
        work.then(*work.arguments, work.start_ns)

    def _lose_work(self, work: Work) -> None:
        number, stage, op, microbatch = work.row
        if work.start_ns < self.loop.now:
            for rank in work.ranks:
                where = rank if stage < 0 else stage
                self.recorder.row(_LOST, number, where, op, microbatch, work.start_ns, self.loop.now)
        work.start_ns, work.turn = WAITS, work.turn + 1

    # Messages

    def transmit(self, iteration: Iteration, action: Action, key: int) -> None:
        stage, op, _ = action
        pair = (self.wiring.shape.rank_of_stage[stage], self.wiring.target[stage][op])
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
        message.sent_ns, message.turn = self.loop.now, message.turn + 1
        stage, op, _ = message.action
        size, delay = self.message_bytes[stage][op], message.iteration.delay_ns[message.key]
        message.transfer = self.links.send(message.ranks, size, delay, self._delivered, message, message.turn)

    def _delivered(self, message: Message, turn: int) -> None:
        if turn != message.turn:
            return  # it was lost
        del self._under_way[message]
        self.received(message.iteration, message.action, message.key, message.sent_ns)

    def _lose_message(self, message: Message) -> None:
        if message.transfer is not None:
            self.links.cancel(message.transfer)
        stage, op, microbatch = message.action
        if message.sent_ns < self.loop.now:
            number = message.iteration.number
            self.recorder.row(LOST_MESSAGE, number, stage, op, microbatch, message.sent_ns, self.loop.now)
        message.turn += 1
        del self._under_way[message]
        self._waiting[message] = None

    # What breaks and returns

    def _await_change(self) -> None:
        for time, change in self._changes:
            self.loop.fault_at(time, self._happen, change)
            return

    def _happen(self, change: WindowEdge) -> None:
        """Things break and return at this moment."""
        if not self.iterations:
            return  # the run is over
        self._break(change)
        for link, part in change.bandwidths:
            if link < len(self.network.links):
                self.links.scale(link, part)
        self._restore(change)
        self._await_change()

    def _break(self, change: WindowEdge) -> None:
        if self._until_stop and change.ranks_down:
            self._interrupt_by_stop(change.ranks_down)
        for rank in change.ranks_down:
            self._rank_down[rank] = self.busy[rank] = 1
        for link in change.links_down:
            self._link_down[link] = 1
        if not change.ranks_down and not change.links_down:
            return
        self._all_up = False
        waiting = list(self._waiting)
        for message in [each for each in self._under_way if self._is_blocked(each)]:
            self._lose_message(message)
            self._arm(message, message.links)
        for message in waiting:
            self._arm(message, set(message.links) & set(change.links_down))
        for work in self._all_work():
            waits = work.start_ns == WAITS
            if self._is_blocked(work) and not waits:
                self._lose_work(work)
            self._arm(work, set(work.links) & set(change.links_down))

    def _restore(self, change: WindowEdge) -> None:
        for rank in change.ranks_up:
            self._rank_down[rank] = 0
            self.busy[rank] = self._work[rank] is not None and not self.left[rank]
            self.loop.wake(rank)
        for link in change.links_up:
            self._link_down[link] = 0
        self._all_up = not any(self._rank_down) and not any(self._link_down)
        if not change.ranks_up and not change.links_up:
            return
        for work in self._all_work():
            if work.start_ns == WAITS and not self._is_blocked(work):
                self._begin(work)
        for message in list(self._waiting):
            if message in self._waiting:  # still, although others went before it
                self._send(message)

    def _all_work(self) -> list[Work]:
        return list(dict.fromkeys(work for work in self._work if work is not None))

    def _is_blocked(self, item: Work | Message) -> bool:
        if self._all_up:
            return False
        ranks, links = self._rank_down, self._link_down
        return any(ranks[rank] for rank in item.ranks) or any(links[link] for link in item.links)

    # Giving up

    def _arm(self, item: Work | Message, links: Iterable[int]) -> None:
        """Let the job fail if one of these links stays down for longer than the transport waits for it."""
        timeout, now = self.settings.faults.link_timeout_ns, self.loop.now
        if timeout is None:
            return
        for link in sorted(set(links)):
            if self._link_down[link] and self._disturbances.down_since(link, now)[1] - now > timeout:
                self.loop.fault_at(now + timeout, self._give_up, item, item.turn, link)

    def _give_up(self, item: Work | Message, turn: int, link: int) -> None:
        if item.turn != turn or not self.iterations:
            return
        timeout = self.settings.faults.link_timeout_ns
        assert timeout is not None
        now, name = self.loop.now, self._disturbances.links[link]
        since, _ = self._disturbances.down_since(link, now)
        self._interrupt(
            f"the job failed at {now / 1e6:.3f} ms: {item} waited {timeout / 1e6:.3f} ms for the link {name}, down "
            f"since {since / 1e6:.3f} ms, and the transport timed out; raise the timeout, or let messages wait",
            tuple(each for each in self._holding_up() if each.target == name and each.start_ns <= now < each.end_ns),
            item.ranks,
        )

    def _interrupt_by_stop(self, ranks: list[int]) -> None:
        faults = self._disturbances.stops_at(self.loop.now, ranks)
        names = ", ".join(dict.fromkeys(fault.target for fault in faults))
        self._interrupt(f"stopped at {self.loop.now / 1e6:.3f} ms: {names}", faults, tuple(ranks))

    def _interrupt(self, message: str, faults: tuple[Fault, ...], ranks: tuple[int, ...]) -> None:
        now, completed = self.loop.now, min(self.iterations)
        raise _InterruptedError(
            Interruption(at_ns=now, message=message, faults=faults, ranks=ranks, completed_iterations=completed)
        )

    def _lose_everything(self) -> None:
        """The job ends: all that is under way is lost."""
        for message in list(self._under_way):
            self._lose_message(message)
        for work in self._all_work():
            if work.start_ns != WAITS:
                self._lose_work(work)

    # Words

    def waits_for(self, rank: int) -> str:
        if self._rank_down[rank]:
            return f"its device {self._device(rank)} is down"
        return super().waits_for(rank)

    def advice(self) -> str:
        for_ever = [fault for fault in self._holding_up() if fault.end_ns >= FOREVER]
        if not for_ever:
            return super().advice()
        named = "; ".join(_named(fault) for fault in for_ever)
        return f"never repaired: {named}; give it an end, or a recovery policy that does without it"

    def _holding_up(self) -> list[Fault]:
        """The faults, by now or later on, of devices and links that are down now."""
        down = {self._device(rank) for rank in self._ranks if self._rank_down[rank]}
        down |= {name for name, flag in zip(self._disturbances.links, self._link_down, strict=True) if flag}
        kinds = (FaultKind.STOP, FaultKind.LINK_DOWN)
        return [fault for fault in self.settings.faults.plan if fault.kind in kinds and fault.target in down]

    def _device(self, rank: int) -> str:
        devices = self.settings.faults.devices
        return devices[rank] if devices else f"rank{rank}"


def _named(fault: Fault) -> str:
    cause = f" ({fault.cause})" if fault.cause else ""
    return f"{fault.kind} of {fault.target} since {fault.start_ns / 1e6:.3f} ms{cause}"


class DisturbedOverlappedRun(Disturbed, OverlappedRun):
    """Overlapped messages, with faults."""


class DisturbedBlockingRun(Disturbed, BlockingRun):
    """Blocking messages, with faults."""
