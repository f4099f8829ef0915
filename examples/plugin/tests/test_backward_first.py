# ruff: noqa: INP001 (a test folder is no package)
"""The plug-in passes the suite that HOPS's own schedules pass."""

from hops_backward_first import BackwardFirst

from hops.program.shape import Shape
from hops.schedules.base import Scheduler
from hops.testing.schedules import SchedulerConformance


class TestBackwardFirst(SchedulerConformance):
    def make(self) -> Scheduler:
        return BackwardFirst(extra=1)

    def most_in_flight(self, shape: Shape, rank: int) -> int | None:
        return shape.num_ranks - rank + 1
