"""The ledger says where every nanosecond of a life went; its entries sum to the time that has passed."""

from dataclasses import dataclass, field
from enum import StrEnum


class TimeUse(StrEnum):
    """What time was spent on. All but the first are losses."""

    PRODUCTIVE = "productive"  # iterations that were kept, at the pace without any fault
    SLOW = "slow"  # what kept iterations took longer because devices or links were slow, or a link was down
    DEGRADED = "degraded"  # what they took longer because devices were missing (reroute, replan)
    STALLED = "stalled"  # what they took longer because a device was away and its action was redone (stall)
    REDONE = "redone"  # work that was lost: iterations since the last checkpoint, and the one in progress
    CHECKPOINT = "checkpoint"  # training stood still while state was saved
    DETECTION = "detection"  # nobody had noticed yet
    WAITING = "waiting"  # for a repair or a spare
    RESTART = "restart"  # processes and communicators start
    RELOAD = "reload"  # state is read from storage or copied from a peer
    RECONFIGURE = "reconfigure"  # work is assigned anew


KEPT = (TimeUse.PRODUCTIVE, TimeUse.SLOW, TimeUse.DEGRADED, TimeUse.STALLED)  # time of iterations; a rollback undoes it
LOSSES = tuple(cause for cause in TimeUse if cause is not TimeUse.PRODUCTIVE)


@dataclass(slots=True)
class Ledger:
    """Nanoseconds by cause."""

    spent_ns: dict[TimeUse, int] = field(default_factory=lambda: dict.fromkeys(TimeUse, 0))

    def spend(self, cause: TimeUse, length_ns: int) -> None:
        """Time passes."""
        self.spent_ns[cause] += length_ns

    def copy(self) -> "Ledger":
        """The ledger as it is now."""
        return Ledger(dict(self.spent_ns))

    def undo(self, since: "Ledger") -> None:
        """The iterations since then are lost: their time becomes work that is redone."""
        for cause in KEPT:
            self.spent_ns[TimeUse.REDONE] += self.spent_ns[cause] - since.spent_ns[cause]
            self.spent_ns[cause] = since.spent_ns[cause]

    @property
    def total_ns(self) -> int:
        """All time that has passed."""
        return sum(self.spent_ns.values())
