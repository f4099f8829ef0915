"""Schedules fall into families by what is known of them beforehand: in-flight microbatches, form of the backward."""

from enum import Enum

from hops.config.schedule import ScheduleChoice


class Family(Enum):
    """What a bound may assume of a schedule."""

    ONE_F_ONE_B = "1f1b"  # fused backwards, at most p - s microbatches in flight on stage s
    GPIPE = "gpipe"  # fused backwards, all forwards first
    FUSED = "fused"  # fused backwards in any order
    ANY = "any"  # any order, fused or split


_FAMILIES = {"1f1b": Family.ONE_F_ONE_B, "gpipe": Family.GPIPE, "interleaved_1f1b": Family.FUSED}


def family_of(schedule: ScheduleChoice) -> Family:
    """The family of a schedule; of one that is not ours, nothing is assumed."""
    known = schedule.name in _FAMILIES
    return _FAMILIES[schedule.name] if known else Family.ANY
