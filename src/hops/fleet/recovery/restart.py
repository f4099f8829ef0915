"""Everybody waits until the broken devices are back, then starts again from the last checkpoint."""

from typing import ClassVar

from hops.fleet.recovery.base import RECOVERIES, Phase, Reaction, RecoveryPolicy, Situation
from hops.fleet.time_use import TimeUse


@RECOVERIES.register("checkpoint_restart")
class CheckpointRestart(RecoveryPolicy):
    """Everybody waits for the repair, restarts, and does the work since the last checkpoint again."""

    def react(self, situation: Situation) -> Reaction:
        filled_ns = max((situation.back_ns[unit] for unit in situation.vacant), default=situation.now_ns)
        return Reaction(phases=self.from_checkpoint(situation, filled_ns), rollback=True)


@RECOVERIES.register("stall")
class WaitForRepair(RecoveryPolicy):
    """Everybody waits until the device is back and has done its lost action again, as in `hops run`.

    It is asked only when the transport gave up, which fails the job.
    """

    awaits_return: ClassVar[bool] = True

    def react(self, situation: Situation) -> Reaction:
        assert not situation.vacant, "stops are awaited inside their iteration"
        return Reaction(phases=(Phase(cause=TimeUse.RESTART, length_ns=self.times.restart_ns),), rollback=False)


@RECOVERIES.register("spare")
class Spare(RecoveryPolicy):
    """Hot spares take the places, with the state of a peer (only the iteration in progress is lost) or a checkpoint.

    If spares run out, everybody waits until enough broken devices are repaired: these become spares.
    """

    keeps_spares: ClassVar[bool] = True

    def react(self, situation: Situation) -> Reaction:
        filled_ns = situation.filled_at(len(situation.vacant))
        if not self.times.from_peer or not self._peers_hold(situation):
            return Reaction(phases=self.from_checkpoint(situation, filled_ns), rollback=True)
        *before, _ = self.from_checkpoint(situation, filled_ns)
        copy = Phase(cause=TimeUse.RELOAD, length_ns=self.times.copy_ns if situation.vacant else 0)
        return Reaction(phases=(*before, copy), rollback=False)

    def _peers_hold(self, situation: Situation) -> bool:
        """Whether of every vacant place some copy is whole."""
        places = [unit.device for unit in situation.vacant]
        return all(places.count(place) < self.fleet.replicas for place in set(places))
