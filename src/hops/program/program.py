"""A program is data: for every rank, its actions in order."""

import re
from dataclasses import dataclass
from pathlib import Path

from hops.errors import ProgramError
from hops.program.action import Action
from hops.program.shape import Shape

__all__ = ["Program", "Shape"]

_HEAD = re.compile(r"microbatches (\d{1,9}), rank of stage((?: \d{1,9})+)")
LONGEST_ACTION = 16
EXPECTED_HEAD = "expected a first line such as 'microbatches 8, rank of stage 0 1 2 3'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The actions of every rank, in the order it runs them.

    The text form has one line per rank, actions separated by spaces, and a first line that gives the shape:
    `microbatches 2, rank of stage 0 1`. Blank lines and what follows a `#` are left out when it is read.

    A forward and the backward after it can be joined into a pair, `0F8+7B0`, as DualPipe's overlapped forward and
    backward: it starts when both can, takes the time of both, and sends when both are done.

    Attributes:
        ranks: the actions of every rank.
        pairs: per rank, the positions of the forwards that open a pair, ascending; () if there is none on any rank.
    """

    shape: Shape
    ranks: tuple[tuple[Action, ...], ...]
    pairs: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        stages = " ".join(map(str, self.shape.rank_of_stage))
        head = f"microbatches {self.shape.num_microbatches}, rank of stage {stages}"
        return "\n".join([head, *(" ".join(self.words(rank)) for rank in range(len(self.ranks)))])

    def words(self, rank: int) -> list[str]:
        """The rank's line of the text form, word by word."""
        words = [str(action) for action in self.ranks[rank]]
        for position in reversed(self.pairs[rank] if self.pairs else ()):
            words[position : position + 2] = ["+".join(words[position : position + 2])]
        return words

    @classmethod
    def parse(cls, text: str, *, source: str = "program") -> "Program":
        """Read what `str` prints. Raises ProgramError saying `source:line:word`; the order is left to `check`."""
        bare = ((number, line.split("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1))
        lines = [(number, line) for number, line in bare if line]
        if not lines:
            raise ProgramError(f"{source}: it is empty, {EXPECTED_HEAD}")
        number, head = lines[0]
        shape = _parse_head(head, f"{source}:{number}")
        rows = lines[1:]
        if len(rows) != shape.num_ranks:
            raise ProgramError(
                f"{source}: got {len(rows)} lines of actions, expected {shape.num_ranks}, one per rank that has a stage"
            )
        parsed = [_parse_row(line, f"{source}:{number}") for number, line in rows]
        pairs = tuple(opening for _, opening in parsed)
        return cls(shape=shape, ranks=tuple(actions for actions, _ in parsed), pairs=pairs if any(pairs) else ())

    @classmethod
    def load(cls, path: Path) -> "Program":
        """Read and check a program file. Raises ProgramError saying file and line."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ProgramError(f"{path}: cannot be read as a program: {why}") from error
        program = cls.parse(text, source=str(path))
        try:
            program.check()
        except ProgramError as error:
            raise ProgramError(f"{path}: {error}") from error
        return program

    def check(self) -> None:
        """Raise ProgramError, with a mark in the grid, unless it is complete, in order and free of deadlock."""
        from hops.program.check import check

        check(self.shape, self.ranks, self.pairs)

    @property
    def num_actions(self) -> int:
        return sum(map(len, self.ranks))


def _parse_head(line: str, where: str) -> Shape:
    match = _HEAD.fullmatch(line)
    if match is None:
        raise ProgramError(f"{where}: got {line[:40]!r}, {EXPECTED_HEAD}")
    rank_of_stage = tuple(int(rank) for rank in match[2].split())
    used = set(rank_of_stage)
    if max(used) >= len(used):
        unused = next(rank for rank in range(len(used)) if rank not in used)
        raise ProgramError(f"{where}: rank {unused} has no stage, expected ranks 0 to {max(used)} all used")
    return Shape(num_microbatches=int(match[1]), rank_of_stage=rank_of_stage)


def _parse_row(line: str, where: str) -> tuple[tuple[Action, ...], tuple[int, ...]]:
    actions: list[Action] = []
    pairs = []
    for word, text in enumerate(line.split(), start=1):
        parts = text.split("+")
        if len(parts) > 2:
            raise ProgramError(f"{where}:{word}: got {text!r}, expected at most two actions joined by +")
        if max(map(len, parts)) > LONGEST_ACTION:
            raise ProgramError(f"{where}:{word}: got {text[:20]}..., expected at most {LONGEST_ACTION} characters")
        if len(parts) == 2:
            pairs.append(len(actions))
        try:
            actions.extend(map(Action.parse, parts))
        except ProgramError as error:
            raise ProgramError(f"{where}:{word}: {error}") from error
    return tuple(actions), tuple(pairs)
