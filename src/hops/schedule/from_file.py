"""A program of one's own, read from a file."""

from pathlib import Path

from hops.errors import UsageError
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape


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

    def build(self, profile: Profile) -> Program:
        assert self._loaded is not None, "shape comes before build"
        return self._loaded
