"""A new plan for what is left: broken copies are dropped or cut anew, and the others take over what they do not do."""

from math import ceil

from hops.fleet.recovery.base import (
    AS_PLANNED,
    RECOVERIES,
    FleetLayout,
    Phase,
    Reaction,
    RecoveryPolicy,
    Situation,
    Unit,
    Variant,
)
from hops.fleet.time_use import TimeUse

SHARES = (1.0, 0.75, 0.5, 0.25)  # of the usual microbatches, that a copy with fewer devices may keep


@RECOVERIES.register("replan")
class Replan(RecoveryPolicy):
    """Goes on from the last checkpoint with the fastest plan for the devices that are left.

    Every plan keeps the global batch: what broken copies do not do, whole ones do. If no plan can run, everybody waits
    for the next device that comes back.
    """

    def react(self, situation: Situation) -> Reaction:
        gone = situation.out | situation.vacant
        best = self._best(gone)
        if best is not None:
            detection, _, restart, reload = self.from_checkpoint(situation, situation.now_ns)
            return Reaction(phases=(detection, self._reconfigure(), restart, reload), rollback=True, out=gone)
        for ready_ns in sorted({situation.back_ns[unit] for unit in gone}):
            left = frozenset(unit for unit in gone if situation.back_ns[unit] > ready_ns)
            if self._best(left) is not None:
                phases = (*self.from_checkpoint(situation, ready_ns), self._reconfigure())
                return Reaction(phases=phases, rollback=True, out=left)
        raise AssertionError("the spec's own plan runs")

    def rejoin(self, situation: Situation) -> Reaction:
        """State is saved first, then everybody starts with the plan for more devices."""
        still = frozenset(unit for unit in situation.out if situation.back_ns[unit] > situation.now_ns)
        phases = (
            Phase(cause=TimeUse.CHECKPOINT, length_ns=self.times.write_ns),
            self._reconfigure(),
            Phase(cause=TimeUse.RESTART, length_ns=self.times.restart_ns),
            Phase(cause=TimeUse.RELOAD, length_ns=self.times.reload_ns),
        )
        return Reaction(phases=phases, rollback=False, out=still)

    def layout(self, out: frozenset[Unit]) -> FleetLayout:
        best = self._best(out)
        assert best is not None, "devices are left out only where a plan can run without them"
        return best

    def _reconfigure(self) -> Phase:
        return Phase(cause=TimeUse.RECONFIGURE, length_ns=self.times.reconfigure_ns)

    def _best(self, gone: frozenset[Unit]) -> FleetLayout | None:
        """The fastest layout without these units; None if none can run."""
        if not gone:
            return AS_PLANNED
        missing: dict[int, tuple[int, ...]] = {}
        for unit in sorted(gone):
            missing[unit.replica] = (*missing.get(unit.replica, ()), unit.device)
        timed = [(seconds, layout) for layout in self._layouts(missing) if (seconds := self._slowest(layout))]
        return min(timed, key=lambda pair: pair[0])[1] if timed else None

    def _slowest(self, layout: FleetLayout) -> float | None:
        """Iteration time of a layout; None if a part of it cannot run."""
        whole = self.fleet.replicas - len(layout.special) - len(layout.dropped)
        variants = {*layout.special.values(), *((layout.common,) if whole else ())}
        times = [self.seconds(variant) for variant in variants]
        known = [each for each in times if each is not None]
        return max(known) if len(known) == len(times) else None

    def _layouts(self, missing: dict[int, tuple[int, ...]]) -> list[FleetLayout]:
        whole = self.fleet.replicas - len(missing)
        own = self.fleet.microbatches
        found = []
        if whole:
            more = ceil(own * self.fleet.replicas / whole)
            found.append(FleetLayout(common=Variant(microbatches=more), dropped=frozenset(missing)))
        for share in SHARES if whole else SHARES[:1]:
            kept = max(1, int(own * share))
            more = ceil((own * self.fleet.replicas - kept * len(missing)) / whole) if whole else own
            special = {copy: Variant(microbatches=kept, without=without) for copy, without in missing.items()}
            found.append(FleetLayout(common=Variant(microbatches=more), special=special))
        return found
