"""Hot spares take the places of broken devices; their state comes from a data-parallel peer or from a checkpoint."""

from typing import ClassVar

from hops.goodput.ledger import Cause
from hops.goodput.recovery.base import RECOVERIES, Phase, Recovery, RecoveryPolicy, Situation


@RECOVERIES.register("spare")
class Spare(RecoveryPolicy):
    """Hot spares take the places, with the state of a peer (only the iteration in progress is lost) or a checkpoint.

    If spares run out, everybody waits until enough broken devices are repaired: these become spares.
    """

    keeps_spares: ClassVar[bool] = True

    def react(self, situation: Situation) -> Recovery:
        filled_ns = situation.filled_at(len(situation.vacant))
        if not self.times.from_peer or not self._peers_hold(situation):
            return Recovery(phases=self.from_checkpoint(situation, filled_ns), rollback=True)
        *before, _ = self.from_checkpoint(situation, filled_ns)
        copy = Phase(cause=Cause.RELOAD, length_ns=self.times.copy_ns if situation.vacant else 0)
        return Recovery(phases=(*before, copy), rollback=False)

    def _peers_hold(self, situation: Situation) -> bool:
        """Whether of every vacant place some copy is whole."""
        places = [unit.device for unit in situation.vacant]
        return all(places.count(place) < self.fleet.replicas for place in set(places))
