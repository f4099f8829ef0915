"""Programs as PyTorch's schedule CSV: a row per rank, a cell per action, as `torch.distributed.pipelining` loads them.

Two kinds: compute-only, whose communication PyTorch adds, and with communication, which it runs as it stands. A cell is
`2F0`, `(0F8;3B7)OVERLAP_F_B` for a pair, `2SEND_F0` or `2RECV_F0`; empty cells are idle. Sources: `_Action` and
`_PipelineScheduleRuntime._load_csv` of PyTorch 2.13 and 2.14. Releases before 2.6 wrote B for the backward for inputs
of a split backward, which is I here; a file that has W and no I is read so.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from hops.decode.decode import read_text
from hops.errors import ProgramError, UsageError
from hops.program.action import Action, Op, Pair
from hops.program.posting_check import check_postings, compute_only, last_backward
from hops.program.program import LONGEST_ACTION, Program
from hops.program.shape import Shape
from hops.program.streams import Entry, Posting, PostingKind, with_postings

_PAIR = re.compile(r"\(([^;()]{3,16});([^;()]{3,16})\)OVERLAP_F_B")
_POSTING = re.compile(r"(\d{1,9})(SEND_F|RECV_F|SEND_B|RECV_B)(\d{1,9})")
_UPKEEP = re.compile(r"\d{1,9}(UNSHARD|RESHARD|REDUCE_GRAD)")
EXPECTED = "expected such as 2F0, (0F8;3B7)OVERLAP_F_B, 2SEND_F0, 2REDUCE_GRAD, or nothing"


def check_can_be_told(shape: Shape) -> None:
    """Raise UsageError for what PyTorch's runtime has no words for: a stage on two ranks, slices of a microbatch."""
    for what, number in (("copies of the model", shape.copies), ("slices per microbatch", shape.slices)):
        if number > 1:
            raise UsageError(
                f"the program has {number} {what}, but PyTorch's schedules have one of each stage and whole "
                "microbatches; choose another schedule (`hops list schedules`)"
            )


def compute_csv(program: Program) -> str:
    """The compute-only form: PyTorch adds communication when it loads it. Raises as `check_can_be_told`."""
    check_can_be_told(program.shape)
    return _rows([map(_cell, program.rank(rank)) for rank in range(program.num_ranks)])


def communicating_csv(program: Program) -> str:
    """The form with communication (`compute_comms`), which PyTorch runs as it stands.

    Weights of FSDP stages are gathered before a stage's first action and stay; gradients are reduced after its last
    backward. Neither does anything for stages without FSDP or data parallelism, but the second scales gradients.
    Raises as `check_can_be_told`.
    """
    check_can_be_told(program.shape)
    return _rows([_with_upkeep(stream) for stream in with_postings(program)])


def _with_upkeep(stream: Sequence[Entry]) -> Iterable[str]:
    last, gathered, through = last_backward(stream), set[int](), list[int]()
    for place, entry in enumerate(stream):
        if not (isinstance(entry, Posting) and entry.kind.is_send):  # what others wait for goes first
            yield from (f"{stage}REDUCE_GRAD" for stage in through)
            through = []
        if not isinstance(entry, Posting):
            yield from (f"{stage}UNSHARD" for stage in _stages(entry) if stage not in gathered)
            gathered.update(_stages(entry))
        yield _cell(entry)
        through += [stage for stage in _stages(entry) if last[stage] == place]
    yield from (f"{stage}REDUCE_GRAD" for stage in through)


def _stages(entry: Entry) -> list[int]:
    return [action.stage for action in entry] if isinstance(entry, Pair) else [entry.stage]


def _cell(entry: Entry) -> str:
    return f"({entry.first};{entry.second})OVERLAP_F_B" if isinstance(entry, Pair) else str(entry)


def _rows(rows: Iterable[Iterable[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def load_csv(path: Path) -> Program:
    """Read a file of either kind. Raises ProgramError saying file, line and cell; the order is left to `lower`.

    Of a file with communication, the postings are checked: each message once, in the same order on both sides.
    """
    text = read_text(path, error=ProgramError, expected="a row of actions per rank")
    return parse_csv(text, source=str(path))


def parse_csv(text: str, *, source: str = "schedule.csv") -> Program:
    """The same from text. The placement is read off the rows."""
    streams = streams_of_csv(text, source=source)
    if not any(streams):
        raise ProgramError(f"{source}: it is empty, expected a row of actions per rank, such as 0F0,0F1,0B0,0B1")
    actions = _in_todays_words(compute_only(streams))
    program = Program.of(_shape(actions, source), actions)
    if any(isinstance(entry, Posting) for stream in streams for entry in stream):
        try:
            check_postings(program, _renamed(streams, actions))
        except ProgramError as error:
            raise ProgramError(f"{source}: {error}") from error
    return program


def streams_of_csv(text: str, *, source: str = "schedule.csv") -> list[list[Entry]]:
    """Every rank's actions and postings as they stand in the file. Raises ProgramError for a cell that is neither."""
    rows = [
        [_entry(cell.strip(), f"{source}:{line}:{number}") for number, cell in enumerate(row, start=1) if cell.strip()]
        for line, row in enumerate(csv.reader(StringIO(text)), start=1)
    ]
    while rows and not rows[-1]:
        rows.pop()
    return [[entry for entry in row if entry is not None] for row in rows]


def _entry(cell: str, where: str) -> Entry | None:
    """What a cell says; None for what happens to weights and gradients, which no program holds."""
    if _UPKEEP.fullmatch(cell):
        return None
    if match := _POSTING.fullmatch(cell):
        return Posting(int(match[1]), PostingKind(match[2]), int(match[3]))
    try:
        if match := _PAIR.fullmatch(cell):
            return Pair(Action.parse(match[1]), Action.parse(match[2]))
        return Action.parse(cell[: LONGEST_ACTION + 1])  # longer ones are none
    except ProgramError:
        raise ProgramError(f"{where}: got {cell[:40]!r}, {EXPECTED}") from None


def _in_todays_words(rows: Sequence[Sequence[Action | Pair]]) -> list[list[Action | Pair]]:
    """With I where a file of an older release says B for the first half of a split backward."""
    flat = [action for row in rows for entry in row for action in (entry if isinstance(entry, Pair) else (entry,))]
    if any(action.op is Op.I for action in flat):
        return [list(row) for row in rows]
    split = {(action.stage, action.microbatch) for action in flat if action.op is Op.W}

    def today(action: Action) -> Action:
        halves = action.op is Op.B and (action.stage, action.microbatch) in split
        return action._replace(op=Op.I) if halves else action

    return [[Pair(*map(today, entry)) if isinstance(entry, Pair) else today(entry) for entry in row] for row in rows]


def _renamed(streams: Sequence[Sequence[Entry]], rows: Sequence[Sequence[Action | Pair]]) -> list[list[Entry]]:
    """The streams with their actions taken from `rows`."""
    named = []
    for stream, row in zip(streams, rows, strict=True):
        actions = iter(row)
        named.append([entry if isinstance(entry, Posting) else next(actions) for entry in stream])
    return named


def _shape(rows: Sequence[Sequence[Action | Pair]], source: str) -> Shape:
    owner: dict[int, int] = {}
    microbatches = 0
    for rank, row in enumerate(rows):
        for entry in row:
            for stage, _, microbatch in entry if isinstance(entry, Pair) else (entry,):
                if owner.setdefault(stage, rank) != rank:
                    raise ProgramError(
                        f"{source}:{rank + 1}: stage {stage} is on rank {rank}, but on rank {owner[stage]} before: "
                        "expected every stage on one rank"
                    )
                microbatches = max(microbatches, microbatch + 1)
        if not row:
            raise ProgramError(f"{source}:{rank + 1}: no action of rank {rank}, expected a row of actions per rank")
    missing = next(stage for stage in range(len(owner) + 1) if stage not in owner)
    if missing < len(owner):
        raise ProgramError(f"{source}: stage {missing} is on no rank, expected stages 0 to {max(owner)} without a gap")
    return Shape(num_microbatches=microbatches, rank_of_stage=tuple(owner[stage] for stage in range(len(owner))))
