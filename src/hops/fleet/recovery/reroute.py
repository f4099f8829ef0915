"""Data-parallel peers of a broken device take its microbatches into their bubbles, until it is back.

ReCycle (Gandhi et al. 2024, arXiv 2405.14009): copies of the same stage hold the same weights, so any of them can run
a microbatch of a copy whose device is gone; the backward in halves (I, W) leaves room for that.
"""

from math import ceil

from hops.fleet.recovery.base import RECOVERIES, FleetLayout, Phase, Reaction, RecoveryPolicy, Situation, Unit, Variant
from hops.fleet.time_use import TimeUse


@RECOVERIES.register("reroute")
class Reroute(RecoveryPolicy):
    """Peers take the microbatches of broken devices into their bubbles until these are back.

    A stage that no copy holds any more is read from the last checkpoint once a device for it is back.
    """

    def react(self, situation: Situation) -> Reaction:
        gone = situation.out | situation.vacant
        dead = self._dead_places(gone)
        if dead:
            return self._restart(situation, gone, dead)
        phases = (
            Phase(cause=TimeUse.DETECTION, length_ns=self.times.detection_ns),
            Phase(cause=TimeUse.RECONFIGURE, length_ns=self.times.reconfigure_ns),
        )
        return Reaction(phases=phases, rollback=False, out=gone)

    def rejoin(self, situation: Situation) -> Reaction:
        back = frozenset(unit for unit in situation.out if situation.back_ns[unit] <= situation.now_ns)
        phases = (
            Phase(cause=TimeUse.RELOAD, length_ns=self.times.copy_ns),
            Phase(cause=TimeUse.RECONFIGURE, length_ns=self.times.reconfigure_ns),
        )
        return Reaction(phases=phases, rollback=False, out=situation.out - back)

    def layout(self, out: frozenset[Unit]) -> FleetLayout:
        if not out:
            return FleetLayout()
        return FleetLayout(common=Variant(extra=tuple(map(self._extra, self._gone_by_place(out)))))

    def _extra(self, gone: int) -> int:
        """Microbatches that the busiest peer takes: those of the gone, dealt to the copies that are left."""
        return ceil(self.fleet.microbatches * gone / (self.fleet.replicas - gone))

    def _restart(self, situation: Situation, gone: frozenset[Unit], dead: list[int]) -> Reaction:
        """Wait until every place has a device somewhere, then read the checkpoint."""
        returns = [min(situation.back_ns[unit] for unit in gone if unit.device == place) for place in dead]
        ready_ns = max(returns)
        starts_ns = max(ready_ns, situation.now_ns + self.times.detection_ns)
        still = frozenset(unit for unit in gone if situation.back_ns[unit] > starts_ns)
        phases = (
            *self.from_checkpoint(situation, ready_ns),
            Phase(cause=TimeUse.RECONFIGURE, length_ns=self.times.reconfigure_ns if still else 0),
        )
        return Reaction(phases=phases, rollback=True, out=still)

    def _dead_places(self, gone: frozenset[Unit]) -> list[int]:
        return [place for place, count in enumerate(self._gone_by_place(gone)) if count == self.fleet.replicas]

    def _gone_by_place(self, gone: frozenset[Unit]) -> list[int]:
        counts = [0] * len(self.fleet.devices)
        for unit in gone:
            counts[unit.device] += 1
        return counts
