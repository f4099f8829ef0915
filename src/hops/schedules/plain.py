"""GPipe: every forward, then every backward (arXiv 1811.06965)."""

from pathlib import Path

from hops.errors import UsageError
from hops.program.action import Action, Op
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("gpipe")
class GPipe(StaticScheduler):
    """All forwards in order, then all backwards in the same order: every rank holds all microbatches at the turn."""

    def build(self, profile: StageCosts) -> Program:
        microbatches = range(profile.shape.num_microbatches)
        ranks = (
            tuple(Action(stage, op, microbatch) for op in (Op.F, Op.B) for microbatch in microbatches)
            for stage in range(profile.shape.num_stages)
        )
        return Program(shape=profile.shape, ranks=tuple(ranks))


@SCHEDULERS.register("1f1b")
class OneFOneB(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, as in Megatron-LM, so that it holds at most min(p - s, m)."""

    def build(self, profile: StageCosts) -> Program:
        stages = range(profile.shape.num_stages)
        ranks = tuple(_order(stage, len(stages), profile.shape.num_microbatches) for stage in stages)
        return Program(shape=profile.shape, ranks=ranks)


def _order(stage: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    warmup = min(num_stages - 1 - stage, num_microbatches)
    forwards = [Action(stage, Op.F, microbatch) for microbatch in range(num_microbatches)]
    backwards = [Action(stage, Op.B, microbatch) for microbatch in range(num_microbatches)]
    steady = num_microbatches - warmup
    turns = (action for pair in zip(forwards[warmup:], backwards[:steady], strict=True) for action in pair)
    return (*forwards[:warmup], *turns, *backwards[steady:])


@SCHEDULERS.register("program")
class FromFile(StaticScheduler):
    """Runs the program in a file, in the text form of `Program`. It brings its own placement.

    Args:
        file: its path, relative to the current folder. It is read and checked when the schedule is made.
    """

    def __init__(self, *, file: str | None = None) -> None:
        self.file = file
        self._loaded = None if file is None else Program.load(Path(file))

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError unless there is a program and it is for these numbers."""
        if self._loaded is None:
            raise UsageError("program: it needs a file, such as {name: program, file: mine.txt}")
        shape = self._loaded.shape
        if (shape.num_ranks, shape.num_microbatches) != (num_ranks, num_microbatches):
            raise UsageError(
                f"program: {self.file} is for {shape.num_ranks} ranks and {shape.num_microbatches} microbatches, "
                f"but got {num_ranks} and {num_microbatches}"
            )
        return shape

    def build(self, profile: StageCosts) -> Program:
        assert self._loaded is not None, "shape comes before build"
        return self._loaded
