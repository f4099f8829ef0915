"""A spec's program in a real runtime, on this machine: what happened beside what was predicted."""

from hops.rehearse.rehearsal import Rehearsal, RehearsalEffort, rehearse, rehearse_all

__all__ = ["Rehearsal", "RehearsalEffort", "rehearse", "rehearse_all"]
