"""Everybody waits until the broken devices are back, then starts again from the last checkpoint."""

from hops.goodput.recovery.base import RECOVERIES, Recovery, RecoveryPolicy, Situation


@RECOVERIES.register("checkpoint_restart")
class CheckpointRestart(RecoveryPolicy):
    """Everybody waits for the repair, restarts, and does the work since the last checkpoint again."""

    def react(self, situation: Situation) -> Recovery:
        filled_ns = max((situation.back_ns[unit] for unit in situation.vacant), default=situation.now_ns)
        return Recovery(phases=self.from_checkpoint(situation, filled_ns), rollback=True)
