"""GPipe: every forward, then every backward (arXiv 1811.06965)."""

from pathlib import Path

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import Op
from hops.program.builders import counted, kind_of, repeated
from hops.program.program import Program
from hops.program.reading import load_program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("gpipe")
class GPipe(StaticScheduler):
    """All forwards in order, then all backwards in the same order: every rank holds all microbatches at the turn."""

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        turns = ((Op.F, shape.num_microbatches), (Op.B, shape.num_microbatches))
        return counted(
            shape, [repeated(*(([kind_of(stage, op)], m) for op, m in turns)) for stage in range(shape.num_stages)]
        )


@SCHEDULERS.register("1f1b")
class OneFOneB(StaticScheduler):
    """Stage s of p warms up with p - 1 - s forwards, as in Megatron-LM, so that it holds at most min(p - s, m)."""

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        orders = [_one_f_one_b(stage, shape.num_stages, shape.num_microbatches) for stage in range(shape.num_stages)]
        return counted(shape, orders)


def _one_f_one_b(stage: int, num_stages: int, num_microbatches: int) -> IntArray:
    warmup = min(num_stages - 1 - stage, num_microbatches)
    forward, backward = kind_of(stage, Op.F), kind_of(stage, Op.B)
    return repeated(([forward], warmup), ([forward, backward], num_microbatches - warmup), ([backward], warmup))


@SCHEDULERS.register("program")
class FromFile(StaticScheduler):
    """Runs the program in a file, in the text form of `Program`. It brings its own placement.

    Args:
        file: its path, relative to the current folder. It is read and checked when the schedule is made.
    """

    def __init__(self, *, file: str | None = None) -> None:
        self.file = file
        self._loaded = None if file is None else load_program(Path(file))

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
