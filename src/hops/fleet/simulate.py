"""One training run on a fleet: a plan's faults, drawn iterations and the engine answer what the machine wishes for.

Iterations in which nothing changes are drawn from the distribution of their condition; those in which something
changes run in the engine; those that a stop hits are lost. Between events thousands of iterations are drawn at once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hops.errors import UsageError
from hops.faults.plan import Fault, FaultKind
from hops.fleet.fault_timeline import FaultTimeline, blocks, downtime_ns
from hops.fleet.fleet import Fleet, FleetPlan
from hops.fleet.iteration_times import (
    FleetTimes,
    Ints,
    IterationDraws,
    IterationTimeTable,
    LikeCopies,
    Touched,
    conditions,
)
from hops.fleet.job_events import JobEvents
from hops.fleet.machine import advance, start
from hops.fleet.recovery.base import FleetLayout, RecoveryPolicy, Unit, Variant
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.state import (
    NEVER,
    Due,
    Event,
    FailedLinks,
    LetPass,
    LinksReplaced,
    Passed,
    Recovering,
    ReplaceLinks,
    Stopped,
    Train,
    Trained,
    TransportFailed,
)
from hops.fleet.time_use import TimeUse
from hops.fleet.trajectory import Trajectory

_MOST_AT_ONCE = 4096


def simulate_fleet(
    policy: RecoveryPolicy,
    table: IterationTimeTable,
    plan: FleetPlan,
    times: RecoveryTimes,
    fleet: Fleet,
    *,
    horizon_ns: int,
    rng: np.random.Generator,
) -> Trajectory:
    """Train from time 0 to the horizon.

    Args:
        policy: made for this run.
        table: how long iterations take.
        plan: what breaks; what concerns nothing in the fleet is passed over.
        times: what recovery costs.
        fleet: the copies of the pipeline.
        horizon_ns: until when, more than 0.
        rng: for the draws of iteration times.

    Raises UsageError if an iteration takes no time, or the policy fails.
    """
    return _Simulation(policy, table, plan.concerning(fleet), times, fleet, horizon_ns, rng).run()


class _Simulation:
    """The clock, the draws and the engine around the machine."""

    def __init__(
        self,
        policy: RecoveryPolicy,
        table: IterationTimeTable,
        plan: FleetPlan,
        times: RecoveryTimes,
        fleet: Fleet,
        horizon_ns: int,
        rng: np.random.Generator,
    ) -> None:
        self._policy, self._table, self._plan, self._times = policy, table, plan, times
        self._fleet, self._horizon_ns, self._rng = fleet, horizon_ns, rng
        self._faults = FaultTimeline(plan, fleet, end_ns=horizon_ns + 1, awaits_return=policy.awaits_return)
        self._job = JobEvents(plan)
        self._state, self._wish = start(policy, times)
        self._touched = 0  # iterations that ran in the engine
        self._history: list[tuple[int, Mapping[TimeUse, int]]] = []
        self._condition = self._condition_now()

    def run(self) -> Trajectory:
        while self._state.now_ns < self._horizon_ns:
            match self._wish:
                case Train(until_ns=until_ns):
                    self._record()
                    if not self._happened(until_ns):
                        self._train(until_ns)
                case LetPass(until_ns=until_ns):
                    self._let_pass(until_ns)
                case ReplaceLinks(copies=copies):
                    self._faults.replace_links(copies)
                    self._send(LinksReplaced())
        self._record()
        state = self._state
        assert sum(state.spent_ns.values()) == state.now_ns == self._horizon_ns, "every nanosecond has its use"
        return Trajectory(
            horizon_ns=self._horizon_ns,
            spent_ns=state.spent_ns,
            iterations=state.iterations,
            interruptions=state.interruptions,
            lost_iterations=state.lost_iterations,
            faults=Counter(each.fault.kind for each in self._plan if each.fault.start_ns < self._horizon_ns),
            downtime_ns=downtime_ns(self._plan, self._fleet, self._horizon_ns),
            touched_iterations=self._touched,
            history=tuple(self._history),
        )

    def _send(self, event: Event) -> None:
        self._state, self._wish = advance(self._state, event, self._policy, self._times)

    def _record(self) -> None:
        self._history.append((self._state.now_ns, self._state.spent_ns))

    # Time in which nobody trains

    def _happened(self, until_ns: int) -> bool:
        """Whether there was anything to do before training can go on."""
        now_ns = self._state.now_ns
        if stops := self._faults.advance(now_ns):
            self._send(Stopped(stops=stops))
        elif (event := self._job.take(now_ns, training=True)) is not None:
            self._send(event)
        elif until_ns <= now_ns:
            self._send(Due())
        else:
            return False
        return True

    def _let_pass(self, until_ns: int) -> None:
        """A stop, somebody who sees that training went wrong, or the horizon may come first."""
        uses = self._state.uses
        job_ns = max(self._state.now_ns, self._job.next_anyway_ns)
        now_ns = min(until_ns, self._faults.next_stop_ns(uses), job_ns, self._horizon_ns)
        if now_ns == until_ns and isinstance(self._state.doing, Recovering):
            unnoticed = self._faults.pass_by(now_ns, uses)
            if unnoticed:
                self._send(Stopped(stops=unnoticed))
        self._send(Passed(to_ns=now_ns))
        if now_ns < min(until_ns, self._horizon_ns):
            self._record()
            stops = self._faults.advance(now_ns)
            event = Stopped(stops=stops) if stops else self._job.take(now_ns, training=False)
            assert event is not None, "something came before the end"
            self._send(event)

    # Training

    def _train(self, until_ns: int) -> None:
        """Draw iterations up to the next event; the one that crosses it is looked at closely."""
        now_ns = self._state.now_ns
        job_ns = self._job.next_break_ns(wrong=self._state.sound is not None)
        break_ns = min(self._faults.next_stop_ns(self._state.uses), job_ns)
        change_ns = self._faults.next_other_ns(self._state.layout.dropped)
        condition = self._present_condition()
        if condition.times is None:
            self._touch(1, break_ns)
            return
        limit_ns = min(break_ns, change_ns, self._horizon_ns)
        pause_ns = min(until_ns, self._job.next_pause_ns)
        lengths = _Lengths.of(self._draw(condition.times, min(limit_ns, pause_ns) - now_ns))
        ends = now_ns + np.cumsum(lengths.actual)
        whole = int(np.searchsorted(ends, limit_ns, side="right"))
        wanted = int(np.searchsorted(ends, pause_ns, side="left")) + 1
        taken = min(whole, wanted)
        self._send(lengths.trained(slice(taken), TimeUse.SLOW))
        if taken == min(wanted, len(ends)):
            return
        if change_ns < min(break_ns, self._horizon_ns):
            self._touch(int(lengths.actual[taken]), break_ns)
        elif break_ns < self._horizon_ns:
            self._send(Passed(to_ns=break_ns))
        else:
            self._send(lengths.part(taken, self._horizon_ns - self._state.now_ns, TimeUse.SLOW))

    def _touch(self, length_ns: int, break_ns: int) -> None:
        """Run the copies in which something changes during this iteration through the engine."""
        number, start_ns = self._touched, self._state.now_ns
        self._touched += 1
        found: dict[int, Touched] = {}
        rest: IterationDraws | None = None
        while todo := [
            copy
            for copy in self._faults.changing(start_ns, start_ns + length_ns)
            if self._runs(copy) and copy not in found
        ]:
            for copy in todo:
                faults = self._of_used(copy, self._faults.from_now(copy, start_ns))
                found[copy] = self._table.touched(self._variant(copy), faults, number)
            if rest is None:
                others = self._table.of_fleet(self._alike(frozenset(todo)), len(self._state.layout.dropped))
                rest = others.draw(1, self._rng)
            length_ns = round(max(float(rest.actual[0]), *(each.actual_ns for each in found.values())))
        assert rest is not None, "a touched iteration has a copy in which something changes"
        failed = {copy: each.failed_ns for copy, each in found.items() if each.failed_ns is not None}
        failed_ns = start_ns + min(failed.values()) if failed else NEVER
        end_ns = start_ns + length_ns
        if min(break_ns, failed_ns) < min(end_ns + bool(failed), self._horizon_ns):
            self._send(Passed(to_ns=min(break_ns, failed_ns)))
            if failed_ns < break_ns:
                self._transport_failed(tuple(failed))
            return
        stalled = self._policy.awaits_return and any(self._has_stop(copy) for copy in found)
        use = TimeUse.STALLED if stalled else TimeUse.SLOW
        lengths = _Lengths.of(_with_touched(rest, list(found.values())))
        if end_ns > self._horizon_ns:
            self._send(lengths.part(0, self._horizon_ns - start_ns, use))
        else:
            self._send(lengths.trained(slice(1), use))

    def _transport_failed(self, copies: tuple[int, ...]) -> None:
        now_ns = self._state.now_ns
        self._faults.settle(now_ns)
        down = [fault.end_ns for copy in copies for fault in self._faults.lasting_in(copy) if blocks(fault)]
        self._send(TransportFailed(links=FailedLinks(copies=copies, back_ns=max(down, default=now_ns))))

    def _draw(self, times: FleetTimes, span_ns: int) -> IterationDraws:
        """About as many iterations as fit into the span, and one more."""
        if times.mean_ns <= 0:
            raise UsageError("an iteration takes no time at all: state times above 0")
        count = max(1, min(_MOST_AT_ONCE, int(span_ns / times.mean_ns * 1.02) + 2))
        return times.draw(count, self._rng)

    # Who trains, and how

    def _present_condition(self) -> "_Condition":
        """Worked out anew when something has changed."""
        known = self._condition
        if not (
            known.changes == self._faults.changes
            and known.layout is self._state.layout
            and known.out is self._state.out
        ):
            self._condition = self._condition_now()
        return self._condition

    def _condition_now(self) -> "_Condition":
        groups = self._alike(frozenset())
        blocked = any(blocks(fault) for group in groups for fault in group.faults)
        return _Condition(
            changes=self._faults.changes,
            layout=self._state.layout,
            out=self._state.out,
            times=None if blocked else self._table.of_fleet(groups, len(self._state.layout.dropped)),
        )

    def _alike(self, without: frozenset[int]) -> list[LikeCopies]:
        """All copies that run, those that are alike together."""
        layout = self._state.layout
        differ = {copy for copy in (*self._faults.lasting, *layout.special) if self._runs(copy)} - without
        kinds = Counter((self._variant(copy), conditions(self._lasting(copy))) for copy in sorted(differ))
        groups = [LikeCopies(count=count, variant=variant, faults=faults) for (variant, faults), count in kinds.items()]
        alike = self._fleet.replicas - len(layout.dropped) - len(differ | without)
        return [*groups, LikeCopies(count=alike, variant=layout.common)] if alike else groups

    def _runs(self, copy: int) -> bool:
        return copy not in self._state.layout.dropped

    def _variant(self, copy: int) -> Variant:
        layout = self._state.layout
        return layout.special.get(copy, layout.common)

    def _lasting(self, copy: int) -> tuple[Fault, ...]:
        return self._of_used(copy, self._faults.lasting_in(copy))

    def _of_used(self, copy: int, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """Without those of devices that are out."""
        absent = {self._fleet.devices[unit.device] for unit in self._state.out if unit.replica == copy}
        return tuple(fault for fault in faults if fault.target not in absent)

    def _has_stop(self, copy: int) -> bool:
        return any(fault.kind is FaultKind.STOP for fault in self._faults.from_now(copy, self._state.now_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """How long iterations take while nothing changes, and what it was worked out from.

    `times` is None if something lasts that no iteration ends under: the engine has to say what happens.
    """

    changes: int
    layout: FleetLayout
    out: frozenset[Unit]
    times: FleetTimes | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lengths:
    """Iterations in whole nanoseconds: all of it, as planned, and more because devices are missing. Shape (n,)."""

    actual: Ints
    planned: Ints
    degraded: Ints

    @classmethod
    def of(cls, draws: IterationDraws) -> "_Lengths":
        actual, planned = np.rint(draws.actual).astype(np.int64), np.rint(draws.planned).astype(np.int64)
        planned = np.minimum(planned, actual)
        if draws.unslowed is draws.planned:
            return cls(actual=actual, planned=planned, degraded=np.zeros_like(actual))
        unslowed = np.rint(draws.unslowed).astype(np.int64)
        return cls(actual=actual, planned=planned, degraded=np.clip(unslowed - planned, 0, actual - planned))

    def trained(self, which: slice, extra: TimeUse) -> Trained:
        """These iterations ended; `extra` is what the rest of their time was spent on."""
        actual, planned, degraded = (int(each[which].sum()) for each in (self.actual, self.planned, self.degraded))
        return _trained(len(self.actual[which]), actual, planned, degraded, extra)

    def part(self, index: int, elapsed_ns: int, extra: TimeUse) -> Trained:
        """Of an iteration during which the horizon comes, what ran counts in the same proportions."""
        actual, planned, degraded = (int(each[index]) for each in (self.actual, self.planned, self.degraded))
        second, third = elapsed_ns * degraded // actual, elapsed_ns * (actual - planned - degraded) // actual
        return _trained(0, elapsed_ns, elapsed_ns - second - third, second, extra)


def _trained(iterations: int, actual_ns: int, planned_ns: int, degraded_ns: int, extra: TimeUse) -> Trained:
    spent_ns = {
        TimeUse.PRODUCTIVE: planned_ns,
        TimeUse.DEGRADED: degraded_ns,
        extra: actual_ns - planned_ns - degraded_ns,
    }
    return Trained(iterations=iterations, spent_ns=spent_ns)


def _with_touched(rest: IterationDraws, touched: list[Touched]) -> IterationDraws:
    """The slowest of all copies, each way of counting by itself."""
    return IterationDraws(
        actual=np.maximum(rest.actual, max(each.actual_ns for each in touched)),
        unslowed=np.maximum(rest.unslowed, max(each.unslowed_ns for each in touched)),
        planned=np.maximum(rest.planned, max(each.planned_ns for each in touched)),
    )
