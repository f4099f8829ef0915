"""The plug-in interface of schedules: two methods, `configure` before the run, `next_actions` during it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hops.errors import UsageError
from hops.program.action import Action, Pair
from hops.program.policy import PlacedPolicy, View
from hops.program.program import Program
from hops.program.shape import Shape
from hops.registry import Registry
from hops.timing.stage_costs import StageCosts


class Scheduler(ABC):
    """Decides what each rank runs next. Constructor parameters are the schedule's own parameters in a spec.

    The default placement is one stage per rank; a schedule with chunks overrides `shape`.
    """

    needs: ClassVar[str] = ""
    """What `shape` asks of p ranks and m microbatches, in words, where it asks anything; for `hops list schedules`."""

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """The placement it needs. Raises UsageError if it cannot arrange these numbers."""
        return Shape.loop(num_ranks, num_microbatches=num_microbatches)

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:  # noqa: ARG003 (members look)
        """The parameters with which it might have this placement; `shape` says whether it has.

        By default none but its defaults. A schedule of chunks takes their number from the placement, and offers what
        else is worth a try.
        """
        yield {}

    @abstractmethod
    def configure(self, profile: StageCosts) -> None:
        """Called once before the run, with expected times and memory."""

    def placed(self, expected: StageCosts) -> PlacedPolicy:
        """Itself as a policy, configured and ready to run."""
        self.configure(expected)
        return PlacedPolicy(shape=expected.shape, policy=self)

    @abstractmethod
    def next_actions(self, view: View) -> Sequence[Action | Pair]:
        """What the idle rank `view.rank` shall run next, in that order.

        The rank runs them one after the other, waiting for the inputs of each; a pair, a forward and then a backward,
        runs as one. Empty: nothing now; the rank is asked again when something arrives for it.
        """


class StaticScheduler(Scheduler):
    """A schedule whose order is fixed before the run: builds a program in `configure`."""

    tells_microbatches_apart: ClassVar[bool] = False  # whether `build` looks at the work of each microbatch
    _program: Program | None = None

    @abstractmethod
    def build(self, profile: StageCosts) -> Program:
        """The program for this profile.

        Microbatches are alike in it (the mean in time, the largest in memory) unless the class tells them apart.
        """

    def configure(self, profile: StageCosts) -> None:
        self._program = self.build(profile if self.tells_microbatches_apart else profile.alike())

    @property
    def program(self) -> Program:
        """The program that `configure` built."""
        assert self._program is not None, "configure comes before program"
        return self._program

    def next_actions(self, view: View) -> Sequence[Action | Pair]:
        """The rank's whole list, at its first question in an iteration."""
        first = self.program.actions(view.rank)[0]
        return () if view.done(first) else tuple(self.program.rank(view.rank))


SCHEDULERS: Registry[Scheduler] = Registry(family="schedule", group="hops.schedules")


OF_PLACEMENT = ("chunks", "slices")  # parameters that a placement decides


def variants(name: str, placement: Shape) -> Iterator[tuple[str, Scheduler]]:
    """A schedule, in every form that has this placement, and what to call it: by its name and what it states."""
    family = SCHEDULERS.get(name)
    for parameters in family.parameters_for(placement):
        scheduler = family(**parameters)
        try:
            shape = scheduler.shape(placement.num_ranks, placement.whole_microbatches)
        except UsageError:
            continue
        if shape == placement:
            stated = ", ".join(f"{key}: {value}" for key, value in parameters.items() if key not in OF_PLACEMENT)
            yield f"{name} {{{stated}}}" if stated else name, scheduler


def chunks_of(placement: Shape) -> int:
    """Stages per rank where all ranks have as many."""
    return placement.num_stages // placement.num_ranks
