"""How the groups of a device exchange: the span of its group along every axis, and what overlapping costs."""

from dataclasses import dataclass

from hops.axes import Axis
from hops.cost.group_times import collective_seconds
from hops.hardware.span import ALONE, Span
from hops.model.kernels import Collective, GroupPart

OVERLAP_SLOWDOWN = 0.15
"""What computing loses for each second that a collective runs beside it: copies take units and memory bandwidth. An
engineering default, to be replaced by a fitted profile; measured slowdowns are 0.1 to 0.2 of the computing that is
overlapped (arXiv 2507.03114)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroups:
    """The groups that a device is in; along axes that are not here it is alone.

    Attributes:
        spans: by axis and part of its group. The data axis' holds those that reduce gradients together: data x context.
        overlap_slowdown: seconds that computing loses for each second of a collective beside it.
        factors: measured over modelled seconds, by the term of a collective; those of others are as modelled.
    """

    spans: tuple[tuple[Axis, GroupPart, Span], ...] = ()
    overlap_slowdown: float = OVERLAP_SLOWDOWN
    factors: tuple[tuple[str, float], ...] = ()

    def span(self, axis: Axis, part: GroupPart = "whole") -> Span:
        """The device's group along an axis, or a part of it."""
        return next((span for each, of, span in self.spans if each is axis and of == part), ALONE)

    def seconds(self, collective: Collective) -> float:
        """All calls of a collective, with nothing hidden."""
        span = self.span(collective.axis, collective.part)
        factor = next((each for name, each in self.factors if name == collective.name), 1.0)
        return factor * collective.calls * collective_seconds(collective.kind, collective.bytes, span)

    def exposed(self, exchanged_s: float, computed_s: float) -> float:
        """What a collective adds beside computing that may hide it: its rest, and what computing loses meanwhile."""
        hidden = min(exchanged_s, computed_s)
        return exchanged_s - hidden + self.overlap_slowdown * hidden


NO_GROUPS = DeviceGroups()
