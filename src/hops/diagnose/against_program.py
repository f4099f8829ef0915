"""Whether a trace ran a given program, iteration by iteration, and where it left it first."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hops.errors import UsageError
from hops.program.program import Program
from hops.program.reading import load_program
from hops.program.text import marked_excerpt
from hops.trace.order import program_from_trace
from hops.trace.trace import Stream, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """The first action of an iteration that is not the program's.

    Attributes:
        iteration, rank: where.
        position: how many actions of the rank agreed before it.
        ran, expected: the actions there; "" if one of them has none left.
        excerpt: what ran, with a mark there.
    """

    iteration: int
    rank: int
    position: int
    ran: str
    expected: str
    excerpt: str

    def __str__(self) -> str:
        ran, expected = self.ran or "nothing more", self.expected or "nothing more"
        return f"iteration {self.iteration}, rank {self.rank}, action {self.position}: ran {ran}, expected {expected}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstProgram:
    """A trace against the program of a file.

    Attributes:
        name: of the file.
        iterations: how many the trace has; those of `others` (numbers) did not run the program.
        first: where the first of them left it.
    """

    name: str
    iterations: int
    others: tuple[int, ...]
    first: Departure | None


def against_program(trace: Trace, path: Path) -> AgainstProgram:
    """Compare the order of actions of every iteration with the program in a file. Pairs count as their two actions.

    Raises ProgramError if the file holds no program that can run, UsageError if it is one for another pipeline.
    """
    program = load_program(path)
    _check_shape(trace, program, path)
    numbers = np.unique(trace.iteration[trace.stream == Stream.COMPUTE]).tolist()
    first, others = None, []
    for number in numbers:
        ran = program_from_trace(trace, iteration=number)
        if not ran.same_order(program):
            others.append(number)
            first = first or _departure(number, ran, program)
    return AgainstProgram(name=path.name, iterations=len(numbers), others=tuple(others), first=first)


def _check_shape(trace: Trace, program: Program, path: Path) -> None:
    meta, shape = trace.meta, program.shape
    for what, got, expected in (
        ("rank of stage", list(shape.rank_of_stage), list(meta.rank_of_stage)),
        ("slices per microbatch", shape.slices, meta.slices),
        ("copies of the model", shape.copies, meta.copies),
        ("microbatches", shape.num_microbatches, meta.num_microbatches),
    ):
        if got != expected:
            raise UsageError(
                f"{path}: the program has {what} {got}, but the trace {expected}; expected a program for the same "
                "pipeline"
            )


def _departure(iteration: int, ran: Program, program: Program) -> Departure:
    for rank in range(program.num_ranks):
        mine, wanted = [*map(str, ran.actions(rank))], [*map(str, program.actions(rank))]
        same = next(
            (n for n, (a, b) in enumerate(zip(mine, wanted, strict=False)) if a != b), min(len(mine), len(wanted))
        )
        if same < max(len(mine), len(wanted)):
            return Departure(
                iteration=iteration,
                rank=rank,
                position=same,
                ran=mine[same] if same < len(mine) else "",
                expected=wanted[same] if same < len(wanted) else "",
                excerpt=marked_excerpt(ran, {rank: same}),
            )
    raise AssertionError("orders that differ differ somewhere")
