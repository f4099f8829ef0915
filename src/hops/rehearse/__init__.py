"""A spec's program in a real runtime, on this machine: what happened beside what was predicted."""

from hops.rehearse.rehearsal import Rehearsal, rehearse

__all__ = ["Rehearsal", "rehearse"]
