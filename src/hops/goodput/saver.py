"""Checkpoints of a life: what is saved, what is being written, when the next one is due."""

from dataclasses import dataclass, field

from hops.goodput.ledger import Ledger
from hops.goodput.settings import RecoveryTimes

NEVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State after `iterations`, with the ledger of then; usable from `usable_ns` on."""

    iterations: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    usable_ns: int = 0


class Saver:
    """Decides when to save; keeps the last checkpoint that can be used. A life begins with one."""

    def __init__(self, times: RecoveryTimes) -> None:
        self._times = times
        self._saved, self._written = Checkpoint(), Checkpoint()
        self.due_ns = NEVER
        self.restarted(0)

    def restarted(self, now_ns: int) -> None:
        """Training starts from a checkpoint now."""
        self.due_ns = NEVER if self._times.interval_ns is None else now_ns + self._times.interval_ns

    def taken(self, iterations: int, ledger: Ledger, started_ns: int, now_ns: int) -> None:
        """A checkpoint was begun and training may go on now."""
        assert self._times.interval_ns is not None, "checkpoints are due only at an interval"
        usable_ns = max(now_ns, started_ns + self._times.write_ns) if self._times.asynchronous else now_ns
        self._saved = self.last(now_ns)
        self._written = Checkpoint(iterations=iterations, ledger=ledger.copy(), usable_ns=usable_ns)
        self.due_ns = max(now_ns + self._times.interval_ns, usable_ns)

    def last(self, now_ns: int) -> Checkpoint:
        """The newest checkpoint that can be used now."""
        return self._written if self._written.usable_ns <= now_ns else self._saved

    def interrupted(self, now_ns: int) -> None:
        """Something stopped: what is not wholly written is lost."""
        self._saved = self._written = self.last(now_ns)
