"""Every nanosecond of a trajectory has a use; the times by use sum to the time that has passed."""

from collections.abc import Mapping
from enum import StrEnum


class TimeUse(StrEnum):
    """What time was spent on. All but the first are losses."""

    PRODUCTIVE = "productive"  # iterations that were kept, as fast as without any fault
    SLOW = "slow"  # what kept iterations took longer because devices or links were slow, or a link was down
    DEGRADED = "degraded"  # what they took longer because devices were missing (reroute, replan)
    STALLED = "stalled"  # what they took longer because a device was away and its action was redone (stall)
    REDONE = "redone"  # work that was lost: iterations since the last checkpoint, and the one in progress
    CHECKPOINT = "checkpoint"  # training stood still while state was saved
    DETECTION = "detection"  # nobody had noticed yet
    WAITING = "waiting"  # for a repair, a spare, or the end of a planned stop
    RESTART = "restart"  # processes and communicators start
    RELOAD = "reload"  # state is read from storage or copied from a peer
    RECONFIGURE = "reconfigure"  # work is assigned anew


KEPT = (TimeUse.PRODUCTIVE, TimeUse.SLOW, TimeUse.DEGRADED, TimeUse.STALLED)  # of iterations; a rollback undoes it
LOSSES = tuple(use for use in TimeUse if use is not TimeUse.PRODUCTIVE)


def nothing_spent() -> dict[TimeUse, int]:
    """Nanoseconds by use before anything happened."""
    return dict.fromkeys(TimeUse, 0)


def spend(spent_ns: Mapping[TimeUse, int], more_ns: Mapping[TimeUse, int]) -> dict[TimeUse, int]:
    """The times by use with more on top."""
    found = dict(spent_ns)
    for use, length_ns in more_ns.items():
        found[use] += length_ns
    return found


def undo(spent_ns: Mapping[TimeUse, int], since: Mapping[TimeUse, int]) -> dict[TimeUse, int]:
    """The iterations since then are lost: their time becomes work that is redone."""
    found = dict(spent_ns)
    for use in KEPT:
        found[TimeUse.REDONE] += found[use] - since[use]
        found[use] = since[use]
    return found
