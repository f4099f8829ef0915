"""A program as a grid to read: its order, or given an evaluation, its actions over time."""

from collections.abc import Sequence

import numpy as np

from hops.program.action import Action
from hops.program.program import Program
from hops.program.text import order_grid
from hops.timing.longest_path import Evaluation

NS_PER_MS = 1e6
IDLE = "."


def grid(program: Program, evaluation: Evaluation | None = None, *, width: int | None = None) -> str:
    """One row per rank.

    Without an evaluation, actions in order, as PyTorch writes them; `width` cuts rows off (None: does not). With one, a
    time axis of `width` characters (None: 100): actions carry their names where these fit, else columns carry op
    letters. Letters are lower case on a rank's second chunk (and then upper case again, by turns); `.` is idle.
    """
    if evaluation is None:
        return order_grid([program.words(rank) for rank in range(program.num_ranks)], width=width)
    return _time_grid(program, evaluation, 100 if width is None else width)


def _time_grid(program: Program, evaluation: Evaluation, width: int) -> str:
    label = f"rank {program.num_ranks - 1} | "
    columns = max(1, width - len(label))
    names = [_names(program, rank) for rank in range(program.num_ranks)]
    write = _named if _names_fit(names, evaluation, columns) else _lettered
    rows = [
        f"rank {rank:>{len(label) - 8}} | {write(row, evaluation, rank, columns)}" for rank, row in enumerate(names)
    ]
    makespan_ms = evaluation.makespan_ns / NS_PER_MS
    head = f"{makespan_ms:.3f} ms in all, {makespan_ms / columns:.3f} ms per column"
    return "\n".join([head, *rows])


def _names(program: Program, rank: int) -> list[str]:
    """`F0`, on every second chunk `f0`."""
    chunk = {stage: number for number, stage in enumerate(program.shape.stages_of(rank))}
    return [_name(program, action, chunk[action.stage]) for action in program.actions(rank)]


def _name(program: Program, action: Action, chunk: int) -> str:
    letter = action.op.name if chunk % 2 == 0 else action.op.name.lower()
    return f"{letter}{program.shape.name_of(action.microbatch)}"


def _names_fit(names: Sequence[Sequence[str]], evaluation: Evaluation, columns: int) -> bool:
    """Whether every action has room for its name and a space."""
    for row, start, end in zip(names, evaluation.start_ns, evaluation.end_ns, strict=True):
        room = (end - start) * columns // max(evaluation.makespan_ns, 1)
        if (room <= [len(name) for name in row]).any():
            return False
    return True


def _named(names: Sequence[str], evaluation: Evaluation, rank: int, columns: int) -> str:
    """Every action over its time: its name, dashes and a space."""
    scale = columns / max(evaluation.makespan_ns, 1)
    starts, ends = (np.rint(times[rank] * scale).astype(int) for times in (evaluation.start_ns, evaluation.end_ns))
    text = [IDLE] * columns
    for name, start, end in zip(names, starts.tolist(), ends.tolist(), strict=True):
        text[start:end] = f"{name.ljust(end - start - 1, '-')} "
    return "".join(text)


def _lettered(names: Sequence[str], evaluation: Evaluation, rank: int, columns: int) -> str:
    """What runs in the middle of each column."""
    middles = (np.arange(columns) + 0.5) * (evaluation.makespan_ns / columns)
    starts, ends = evaluation.start_ns[rank], evaluation.end_ns[rank]
    running = np.searchsorted(starts, middles, side="right") - 1
    return "".join(
        names[index][0] if index >= 0 and middle < ends[index] else IDLE
        for index, middle in zip(running.tolist(), middles.tolist(), strict=True)
    )
