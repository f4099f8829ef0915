"""Everybody waits for the device, which does its lost action again and goes on; nothing else is lost."""

from typing import ClassVar

from hops.goodput.ledger import Cause
from hops.goodput.recovery.base import RECOVERIES, Phase, Recovery, RecoveryPolicy, Situation


@RECOVERIES.register("stall")
class Stall(RecoveryPolicy):
    """Everybody waits until the device is back and has done its lost action again, as in `hops run`.

    It is asked only when the transport gave up, which fails the job.
    """

    awaits_return: ClassVar[bool] = True

    def react(self, situation: Situation) -> Recovery:
        assert not situation.vacant, "stops are awaited inside their iteration"
        return Recovery(phases=(Phase(cause=Cause.RESTART, length_ns=self.times.restart_ns),), rollback=False)
