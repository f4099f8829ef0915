"""A program is data: for every rank, its actions in order, as columns of integers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hops.arrays import IntArray
from hops.errors import ProgramError
from hops.program.action import ACTION_OPS, NUM_OPS, Action, Pair
from hops.program.shape import Shape

_HEAD = re.compile(r"microbatches (\d{1,9}), rank of stage((?: \d{1,9})+)(?:, copies (\d))?(?:, slices (\d{1,4}))?")
LONGEST_ACTION = 16
EXPECTED_HEAD = "expected a first line such as 'microbatches 8, rank of stage 0 1 2 3'"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """The actions of every rank, in the order it runs them; rank after rank in columns of shape (actions,), read-only.

    The text form has one line per rank, actions separated by spaces, and a first line that gives the shape:
    `microbatches 2, rank of stage 0 1`, followed by `, copies 2` where the model is there twice
    and `, slices 2` where each action is one of so many slices of a microbatch (`0F1.0`). Blank lines and what
    follows a `#` are left out when it is read. Pairs are printed `0F8+7B0`.

    Nothing is checked here: `hops.program.lowering.lower` does, on every program that is to run.

    Attributes:
        stage, op, microbatch: of each action.
        step: which entry of the stream it is, counted over all ranks; the two actions of a pair have the same.
        first: where the actions of each rank begin, and one more; shape (ranks + 1,).
    """

    shape: Shape
    stage: IntArray
    op: IntArray
    microbatch: IntArray
    step: IntArray
    first: IntArray

    def __post_init__(self) -> None:
        for name in ("stage", "op", "microbatch", "step", "first"):
            getattr(self, name).setflags(write=False)

    @classmethod
    def of(cls, shape: Shape, ranks: Iterable[Iterable[Action | Pair]]) -> "Program":
        """From every rank's entries, in order; any integers are taken as they are."""
        numbers: list[int] = []
        lengths: list[int] = []
        steps: list[int] = []
        step = 0
        for entries in ranks:
            before = len(steps)
            for entry in entries:
                for stage, op, microbatch in entry if isinstance(entry, Pair) else (entry,):
                    numbers += (stage, op, microbatch)
                    steps.append(step)
                step += 1
            lengths.append(len(steps) - before)
        columns = np.array(numbers, dtype=np.int64).reshape(-1, 3).T.copy()
        return cls(
            shape=shape,
            stage=columns[0],
            op=columns[1],
            microbatch=columns[2],
            step=np.array(steps, dtype=np.int64),
            first=np.cumsum([0, *lengths]),
        )

    def __str__(self) -> str:
        stages = " ".join(map(str, self.shape.rank_of_stage))
        copies = f", copies {self.shape.copies}" if self.shape.copies > 1 else ""
        slices = f", slices {self.shape.slices}" if self.shape.slices > 1 else ""
        head = f"microbatches {self.shape.whole_microbatches}, rank of stage {stages}{copies}{slices}"
        return "\n".join([head, *(" ".join(self.words(rank)) for rank in range(self.num_ranks))])

    def __repr__(self) -> str:
        shape = self.shape
        return f"<Program: {shape.num_stages} stages x {shape.num_microbatches} microbatches on {self.num_ranks} ranks>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Program)
            and self.same_order(other)
            and self.shape == other.shape
            and np.array_equal(self.step, other.step)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.stage.tobytes(), self.op.tobytes(), self.microbatch.tobytes()))

    def same_order(self, other: "Program") -> bool:
        """Whether every rank runs the same actions in the same order, paired or not."""
        columns = ("first", "stage", "op", "microbatch")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in columns)

    @classmethod
    def parse(cls, text: str, *, source: str = "program") -> "Program":
        """Read what `str` prints. Raises ProgramError saying `source:line:word`; the order is left to `lower`."""
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
        entries = (_parse_row(line, f"{source}:{number}", shape.slices) for number, line in rows)
        if shape.copies > 1:
            entries = ([_of_own_copy(entry, shape, rank) for entry in row] for rank, row in enumerate(entries))
        return cls.of(shape, entries)

    @classmethod
    def load(cls, path: Path) -> "Program":
        """Read a program file. Raises ProgramError saying file and line; the order is left to `lower`."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ProgramError(f"{path}: cannot be read as a program: {why}") from error
        return cls.parse(text, source=str(path))

    @property
    def num_ranks(self) -> int:
        return len(self.first) - 1

    @property
    def num_actions(self) -> int:
        return len(self.stage)

    @property
    def kind(self) -> IntArray:
        """Stage and op in one number, stage * 4 + op; shape (actions,)."""
        return self.stage * NUM_OPS + self.op

    @property
    def rank_of_action(self) -> IntArray:
        """The rank whose list each action is in; shape (actions,)."""
        return np.repeat(np.arange(self.num_ranks), np.diff(self.first))

    @property
    def closes_pair(self) -> IntArray:
        """1 where an action is the second of a pair, else 0; shape (actions,)."""
        closes = np.zeros(self.num_actions, dtype=np.int64)
        closes[1:] = self.step[1:] == self.step[:-1]
        return closes

    @property
    def in_pair(self) -> NDArray[np.bool_]:
        """Whether an action is one of a pair; shape (actions,)."""
        inside = np.zeros(self.num_actions, dtype=np.bool_)
        (second,) = np.nonzero(self.closes_pair)
        inside[second] = inside[second - 1] = True
        return inside

    def rank(self, number: int) -> Iterator[Action | Pair]:
        """The entries of a rank's stream, in order."""
        low, high = self.first[number], self.first[number + 1]
        steps = self.step[low:high].tolist()
        actions = self.actions(number)
        at = 0
        while at < len(actions):
            if at + 1 < len(actions) and steps[at] == steps[at + 1]:
                yield Pair(actions[at], actions[at + 1])
                at += 2
            else:
                yield actions[at]
                at += 1

    def actions(self, rank: int) -> tuple[Action, ...]:
        """A rank's actions in order, those of pairs one after the other."""
        part = slice(self.first[rank], self.first[rank + 1])
        columns = zip(self.stage[part].tolist(), self.op[part].tolist(), self.microbatch[part].tolist(), strict=True)
        return tuple([Action(stage, ACTION_OPS[op], microbatch) for stage, op, microbatch in columns])

    def word(self, entry: Action | Pair) -> str:
        """An entry as it is printed: `2F0`, `2F0+5B1`, and of slices `2F0.1`."""
        if self.shape.slices == 1:
            return str(entry)
        if isinstance(entry, Pair):
            return "+".join(map(self.word, entry))
        return f"{entry.stage}{entry.op.name}{self.shape.name_of(entry.microbatch)}"

    def words(self, rank: int) -> list[str]:
        """A rank's entries as they are printed."""
        return [self.word(entry) for entry in self.rank(rank)]

    def action(self, position: int) -> Action:
        """The action at a position of the columns."""
        return Action(int(self.stage[position]), ACTION_OPS[self.op[position]], int(self.microbatch[position]))

    def split(self, column: IntArray) -> tuple[IntArray, ...]:
        """A column over all actions as one array per rank."""
        return tuple(np.split(column, self.first[1:-1]))


def _parse_head(line: str, where: str) -> Shape:
    match = _HEAD.fullmatch(line)
    if match is None:
        raise ProgramError(f"{where}: got {line[:40]!r}, {EXPECTED_HEAD}")
    rank_of_stage = tuple(int(rank) for rank in match[2].split())
    used = set(rank_of_stage)
    if max(used) >= len(used):
        unused = next(rank for rank in range(len(used)) if rank not in used)
        raise ProgramError(f"{where}: rank {unused} has no stage, expected ranks 0 to {max(used)} all used")
    copies = int(match[3] or 1)
    if copies < 1 or len(rank_of_stage) % copies:
        raise ProgramError(
            f"{where}: {len(rank_of_stage)} stages are not {copies} copies of a model, each with as many"
        )
    slices = int(match[4] or 1)
    if slices < 1:
        raise ProgramError(f"{where}: a microbatch cannot be cut into {slices} slices, expected at least 1")
    return Shape(num_microbatches=int(match[1]) * slices, rank_of_stage=rank_of_stage, copies=copies, slices=slices)


def _of_own_copy(entry: Action | Pair, shape: Shape, rank: int) -> Action | Pair:
    """With the stage of the copy that the rank has, where the entry names the first copy's for it, as papers do."""
    if isinstance(entry, Pair):
        return Pair(*(_own_stage(action, shape, rank) for action in entry))
    return _own_stage(entry, shape, rank)


def _own_stage(action: Action, shape: Shape, rank: int) -> Action:
    stages = range(action.stage, shape.num_stages, shape.stages_per_copy)
    return action._replace(stage=next((s for s in stages if shape.rank_of_stage[s] == rank), action.stage))


def _parse_row(line: str, where: str, slices: int) -> Sequence[Action | Pair]:
    entries: list[Action | Pair] = []
    for word, text in enumerate(line.split(), start=1):
        parts = text.split("+")
        if len(parts) > 2:
            raise ProgramError(f"{where}:{word}: got {text!r}, expected at most two actions joined by +")
        if max(map(len, parts)) > LONGEST_ACTION:
            raise ProgramError(f"{where}:{word}: got {text[:20]}..., expected at most {LONGEST_ACTION} characters")
        try:
            actions = [_parse_action(part, slices) for part in parts]
        except ProgramError as error:
            raise ProgramError(f"{where}:{word}: {error}") from error
        entries.append(Pair(*actions) if len(actions) == 2 else actions[0])
    return entries


def _parse_action(text: str, slices: int) -> Action:
    """Raises ProgramError; of several slices each action says which."""
    if slices == 1:
        return Action.parse(text)
    whole, dot, number = text.partition(".")
    if not dot or not number.isdecimal() or int(number) >= slices:
        raise ProgramError(f"not an action on a slice: got {text!r}, expected slice 0 to {slices - 1}, such as 2F0.1")
    action = Action.parse(whole)
    return action._replace(microbatch=action.microbatch * slices + int(number))
