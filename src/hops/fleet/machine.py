"""One life of a training run on a fleet: trains, breaks, recovers, up to a horizon, and says where the time went.

Iterations in which nothing changes are drawn from the distribution of their condition; those in which something
changes run in the engine; those that a stop hits are lost. Between events thousands of iterations are drawn at once.
"""

from bisect import insort
from collections import Counter

import numpy as np

from hops.errors import UsageError
from hops.faults.plan import Fault, FaultKind
from hops.fleet.fleet import Fleet, FleetPlan
from hops.fleet.health import Breakage, blocks, downtime_ns
from hops.fleet.iteration_times import Draws, IterationTimeTable, LikeCopies, Touched, conditions
from hops.fleet.recovery.base import FleetLayout, Reaction, RecoveryPolicy, Situation, Unit, Variant
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.time_use import Ledger, TimeUse
from hops.fleet.trajectory import NEVER, Saver, Trajectory

_MOST_AT_ONCE = 4096


class FleetMachine:
    """A state machine over time; `run` is its loop."""

    def __init__(
        self,
        policy: RecoveryPolicy,
        paces: IterationTimeTable,
        plan: FleetPlan,
        times: RecoveryTimes,
        fleet: Fleet,
        *,
        horizon_ns: int,
        rng: np.random.Generator,
    ) -> None:
        self.policy, self.paces, self.fleet, self.times = policy, paces, fleet, times
        self.plan, self.horizon_ns, self.rng = plan.concerning(fleet), horizon_ns, rng
        await_return = policy.awaits_return
        self.breakage = Breakage(self.plan, fleet, end_ns=horizon_ns + 1, awaits_return=await_return)
        self.saver = Saver(times)
        self.ledger = Ledger()
        self.now_ns = self.iterations = self.interruptions = self.touched = 0
        self.vacant: set[Unit] = set()
        self.out: frozenset[Unit] = frozenset()
        self.coming: tuple[frozenset[Unit], FleetLayout] | None = None  # out and layout after the recovery under way
        self.layout = policy.layout(self.out)
        self.free = times.spares if policy.keeps_spares else 0
        self.repairs_ns: list[int] = []
        self.lost_iterations: Counter[str] = Counter()
        self.in_progress = False  # whether an iteration was under way at the interruption
        self.history: list[tuple[int, dict[TimeUse, int]]] = []
        self._grouped: tuple[object, list[LikeCopies]] = (None, [])

    def run(self) -> Trajectory:
        """Live up to the horizon."""
        while self.now_ns < self.horizon_ns:
            self.history.append((self.now_ns, dict(self.ledger.spent_ns)))
            struck = [(unit, fault) for unit, fault in self.breakage.advance(self.now_ns) if self._uses(unit)]
            if struck:
                self._struck(struck)
            elif any(self.breakage.back_ns[unit] <= self.now_ns for unit in self.out):
                self._rejoin()
            elif self.saver.due_ns <= self.now_ns:
                self._save()
            else:
                self._train()
        self.history.append((self.now_ns, dict(self.ledger.spent_ns)))
        assert self.ledger.total_ns == self.now_ns == self.horizon_ns, "every nanosecond has its cause"
        return Trajectory(
            horizon_ns=self.horizon_ns,
            spent_ns=dict(self.ledger.spent_ns),
            iterations=self.iterations,
            interruptions=self.interruptions,
            lost_iterations=dict(self.lost_iterations),
            faults=Counter(each.fault.kind for each in self.plan if each.fault.start_ns < self.horizon_ns),
            downtime_ns=downtime_ns(self.plan, self.fleet, self.horizon_ns),
            touched_iterations=self.touched,
            history=tuple(self.history),
        )

    # Training

    def _train(self) -> None:
        """Draw iterations up to the next event; the one that crosses it is looked at closely."""
        assert not self.vacant, "training needs every place filled, or gone without"
        stop_ns = self.breakage.next_stop_ns(self._uses)
        change_ns = self.breakage.next_other_ns(self._runs)
        if self._blocked():
            self._touch(None, stop_ns)
            return
        limit_ns = min(stop_ns, change_ns, self.horizon_ns)
        pause_ns = min(self.saver.due_ns, self._next_return_ns())
        draws = self._draw(min(limit_ns, pause_ns) - self.now_ns)
        ends = self.now_ns + np.cumsum(np.rint(draws.actual).astype(np.int64))
        whole = int(np.searchsorted(ends, limit_ns, side="right"))
        wanted = int(np.searchsorted(ends, pause_ns, side="left")) + 1
        taken = min(whole, wanted)
        self._keep(draws, taken)
        if taken < min(wanted, len(ends)):  # the next one crosses the limit
            self._cross(_one(draws, taken), stop_ns, change_ns)

    def _cross(self, drawn: Draws, stop_ns: int, change_ns: int) -> None:
        """An iteration that does not end before something happens."""
        if change_ns < min(stop_ns, self.horizon_ns):
            self._touch(drawn, stop_ns)
        elif stop_ns < self.horizon_ns:
            self._lose_until(stop_ns)
        else:
            self._keep_part(drawn)

    def _touch(self, drawn: Draws | None, stop_ns: int) -> None:
        """Run the copies in which something changes during this iteration through the engine."""
        number, start_ns = self.touched, self.now_ns
        self.touched += 1
        length = 1.0 if drawn is None else float(drawn.actual[0])
        found: dict[int, Touched] = {}
        rest: Draws | None = None
        while todo := [
            copy
            for copy in self.breakage.changing(start_ns, start_ns + round(length))
            if self._runs(copy) and copy not in found
        ]:
            for copy in todo:
                faults = self._of_used(copy, self.breakage.from_now(copy, start_ns))
                found[copy] = self.paces.touched(self._variant(copy), faults, number)
            if rest is None:
                missing = len(self.layout.dropped)
                rest = self.paces.draw(self._group(frozenset(todo)), 1, missing, self.rng)
            length = max(float(rest.actual[0]), *(each.actual_ns for each in found.values()))
        assert rest is not None, "a touched iteration has a copy in which something changes"
        failed = {copy: each.failed_ns for copy, each in found.items() if each.failed_ns is not None}
        failed_ns = start_ns + min(failed.values()) if failed else NEVER
        end_ns = start_ns + round(length)
        if min(stop_ns, failed_ns) < min(end_ns + bool(failed), self.horizon_ns):
            self._lose_until(min(stop_ns, failed_ns))
            if failed_ns < stop_ns:
                self._transport_failed(list(failed))
            return
        whole = _with_touched(rest, list(found.values()))
        stalled = self.policy.awaits_return and any(self._has_stop(copy) for copy in found)
        if end_ns > self.horizon_ns:
            self._keep_part(whole, stalled=stalled)
        else:
            self._keep(whole, 1, stalled=stalled)

    def _keep(self, draws: Draws, count: int, *, stalled: bool = False) -> None:
        """The first `count` drawn iterations happened."""
        actual, planned, degraded = _split(draws, count)
        self.ledger.spend(TimeUse.PRODUCTIVE, int(planned.sum()))
        self.ledger.spend(TimeUse.DEGRADED, int(degraded.sum()))
        self.ledger.spend(TimeUse.STALLED if stalled else TimeUse.SLOW, int((actual - planned - degraded).sum()))
        self.now_ns += int(actual.sum())
        self.iterations += count

    def _keep_part(self, draws: Draws, *, stalled: bool = False) -> None:
        """The horizon comes during an iteration: what ran of it counts in the same proportions."""
        actual, planned, degraded = (int(each[0]) for each in _split(draws, 1))
        elapsed = self.horizon_ns - self.now_ns
        second, third = elapsed * degraded // actual, elapsed * (actual - planned - degraded) // actual
        self.ledger.spend(TimeUse.PRODUCTIVE, elapsed - second - third)
        self.ledger.spend(TimeUse.DEGRADED, second)
        self.ledger.spend(TimeUse.STALLED if stalled else TimeUse.SLOW, third)
        self.now_ns = self.horizon_ns

    def _lose_until(self, time_ns: int) -> None:
        """The iteration in progress is lost."""
        self.ledger.spend(TimeUse.REDONE, time_ns - self.now_ns)
        self.now_ns = time_ns
        self.in_progress = True

    # Who trains

    def _uses(self, unit: Unit) -> bool:
        """Whether a stop of the unit would be noticed now: it is used, or is to be when the recovery has ended."""
        if self.coming is not None:
            out, layout = self.coming
            return unit not in out and unit.replica not in layout.dropped
        return unit not in self.vacant and unit not in self.out and unit.replica not in self.layout.dropped

    def _runs(self, copy: int) -> bool:
        return copy not in self.layout.dropped

    def _variant(self, copy: int) -> Variant:
        return self.layout.special.get(copy, self.layout.common)

    def _of_used(self, copy: int, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """Without those of devices that are out."""
        absent = {self.fleet.devices[unit.device] for unit in self.out if unit.replica == copy}
        return tuple(fault for fault in faults if fault.target not in absent)

    def _lasting(self, copy: int) -> tuple[Fault, ...]:
        return self._of_used(copy, tuple(self.breakage.lasting.get(copy, ())))

    def _blocked(self) -> bool:
        return any(blocks(fault) for group in self._groups() for fault in group.faults)

    def _has_stop(self, copy: int) -> bool:
        return any(fault.kind is FaultKind.STOP for fault in self.breakage.from_now(copy, self.now_ns))

    def _groups(self) -> list[LikeCopies]:
        """All copies, those that are alike together; worked out anew when something has changed."""
        state = (self.breakage.changes, self.layout, self.out)
        if self._grouped[0] != state:
            self._grouped = (state, self._group(frozenset()))
        return self._grouped[1]

    def _group(self, without: frozenset[int]) -> list[LikeCopies]:
        differ = {copy for copy in (*self.breakage.lasting, *self.layout.special) if self._runs(copy)} - without
        kinds = Counter((self._variant(copy), conditions(self._lasting(copy))) for copy in sorted(differ))
        groups = [LikeCopies(count=count, variant=variant, faults=faults) for (variant, faults), count in kinds.items()]
        alike = self.fleet.replicas - len(self.layout.dropped) - len(differ | without)
        return [*groups, LikeCopies(count=alike, variant=self.layout.common)] if alike else groups

    def _draw(self, span_ns: int) -> Draws:
        """About as many iterations as fit into the span, and one more."""
        groups = self._groups()
        slowest = max(self.paces.spread(group.variant, group.faults).mean_ns for group in groups)
        if slowest <= 0:
            raise UsageError("an iteration takes no time at all: state times above 0")
        count = max(1, min(_MOST_AT_ONCE, int(span_ns / slowest * 1.02) + 2))
        return self.paces.draw(groups, count, len(self.layout.dropped), self.rng)

    def _next_return_ns(self) -> int:
        return min((self.breakage.back_ns[unit] for unit in self.out), default=NEVER)

    # Saving

    def _save(self) -> None:
        started_ns = self.now_ns
        if self._pass(TimeUse.CHECKPOINT, self.times.pause_ns):
            self.saver.taken(self.iterations, self.ledger, started_ns, self.now_ns)

    # Breaking and recovering

    def _struck(self, struck: list[tuple[Unit, Fault]]) -> None:
        """Devices stopped now, all at once."""
        self.interruptions += 1
        for unit in dict.fromkeys(unit for unit, _ in struck):
            self.vacant.add(unit)
            if self.policy.keeps_spares:
                insort(self.repairs_ns, self.breakage.back_ns[unit])
        self._recover(_named(struck[0][1]))

    def _transport_failed(self, copies: list[int]) -> None:
        """Messages waited too long for a link; a restart before it is back would fail again.

        With spares, the host behind it is replaced during the restart.
        """
        self.interruptions += 1
        self.breakage.settle(self.now_ns)
        links = [fault.end_ns for copy in copies for fault in self.breakage.lasting.get(copy, ()) if blocks(fault)]
        if not self._recover(FaultKind.LINK_DOWN.value):
            return
        if self.policy.keeps_spares:
            self.breakage.replace_links(copies)
        else:
            self._pass(TimeUse.WAITING, max(0, max(links, default=0) - self.now_ns))

    def _recover(self, name: str) -> bool:
        """Let the policy react; whether it came to its end."""
        self.saver.interrupted(self.now_ns)
        recovery = self.policy.react(self._situation())
        lost = int(self.in_progress)
        self.in_progress = False
        if recovery.rollback:
            last = self.saver.last(self.now_ns)
            lost += self.iterations - last.iterations
            self.ledger.undo(last.ledger)
            self.iterations = last.iterations
        self.lost_iterations[name] += lost
        return self._go_through(recovery)

    def _rejoin(self) -> None:
        recovery = self.policy.rejoin(self._situation())
        assert recovery is not None, "a policy that leaves units out takes them back"
        self._go_through(recovery)

    def _go_through(self, recovery: Reaction) -> bool:
        """Whether the last phase came to its end. Spare devices do not break while they stand by."""
        if not self.policy.keeps_spares:
            self.coming = (recovery.out, self.policy.layout(recovery.out))
        for phase in recovery.phases:
            if not self._pass(phase.cause, phase.length_ns):
                return False
            if phase.fills:
                self._fill(recovery.out)
        self.breakage.pass_by(self.now_ns, self._uses)
        self.layout = self.policy.layout(recovery.out)
        self.out, self.vacant, self.coming = recovery.out, set(), None
        if recovery.rollback:
            self.saver.restarted(self.now_ns)
        return True

    def _fill(self, out: frozenset[Unit]) -> None:
        """Devices stand in all vacant places that training does not go without."""
        self.breakage.pass_by(self.now_ns, self._uses)
        self._collect_repaired()
        if self.policy.keeps_spares:
            self.free -= len(self.vacant - out)
            assert self.free >= 0, "places are filled when there are devices for them"
        self.vacant &= out
        self.out &= out

    def _situation(self) -> Situation:
        self._collect_repaired()
        unnoticed = {unit for unit, back_ns in self.breakage.back_ns.items() if back_ns > self.now_ns}
        self.out |= {unit for unit in unnoticed - self.vacant if unit.replica in self.layout.dropped}
        return Situation(
            now_ns=self.now_ns,
            vacant=frozenset(self.vacant),
            out=self.out,
            back_ns=self.breakage.back_ns,
            free=self.free,
            repairs_ns=tuple(self.repairs_ns),
        )

    def _collect_repaired(self) -> None:
        while self.repairs_ns and self.repairs_ns[0] <= self.now_ns:
            self.repairs_ns.pop(0)
            self.free += 1

    def _pass(self, cause: TimeUse, length_ns: int) -> bool:
        """Time in which nobody trains; False if a stop, or the horizon, comes first."""
        end_ns = self.now_ns + length_ns
        until_ns = min(end_ns, self.breakage.next_stop_ns(self._uses), self.horizon_ns)
        self.ledger.spend(cause, until_ns - self.now_ns)
        self.now_ns = until_ns
        return until_ns == end_ns


def _split(draws: Draws, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole nanoseconds of each iteration: all, as planned, and more because devices are missing."""
    actual, unslowed, planned = (
        np.rint(each[:count]).astype(np.int64) for each in (draws.actual, draws.unslowed, draws.planned)
    )
    planned = np.minimum(planned, actual)
    return actual, planned, np.clip(unslowed - planned, 0, actual - planned)


def _one(draws: Draws, index: int) -> Draws:
    here = slice(index, index + 1)
    return Draws(actual=draws.actual[here], unslowed=draws.unslowed[here], planned=draws.planned[here])


def _with_touched(rest: Draws, touched: list[Touched]) -> Draws:
    """The slowest of all copies, each way of counting by itself."""
    return Draws(
        actual=np.maximum(rest.actual, max(each.actual_ns for each in touched)),
        unslowed=np.maximum(rest.unslowed, max(each.unslowed_ns for each in touched)),
        planned=np.maximum(rest.planned, max(each.planned_ns for each in touched)),
    )


def _named(fault: Fault) -> str:
    """What kind of thing broke: the first word of its cause, such as host."""
    words = fault.cause.split()
    return words[0] if words else "device"
