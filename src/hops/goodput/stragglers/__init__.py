"""Stragglers: which device or link of a recorded run is slow, since when, and what it costs."""

from hops.goodput.stragglers.find import Straggler, find_stragglers

__all__ = ["Straggler", "find_stragglers"]
