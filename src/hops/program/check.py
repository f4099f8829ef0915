"""Whether a program is complete: each action there once, on its rank, and after what it needs from its own rank."""

import numpy as np
from numpy.typing import NDArray

from hops.errors import ProgramError
from hops.program.action import NUM_OPS, Action, Op
from hops.program.program import Program
from hops.program.text import marked_excerpt


def check_complete(program: Program) -> None:
    """Raise ProgramError, with a mark in the grid, at the first fault.

    Every (stage, microbatch) has one F, then either one B, or one I and after it one W, all on the stage's rank; pairs
    are an F and a B or I of another stage or microbatch. Of several copies of the model, a microbatch has one.
    """
    shape = program.shape
    if program.num_ranks != shape.num_ranks:
        raise ProgramError(f"the program has {program.num_ranks} ranks, expected {shape.num_ranks}, one line per rank")
    _check_pairs(program)
    _check_names(program)
    _check_size(program)
    _check_each_once(program)


def rank_and_index(program: Program, position: int) -> tuple[int, int]:
    """The rank of a position of the columns, and the index in the rank's list."""
    rank = int(np.searchsorted(program.first, position, side="right")) - 1
    return rank, position - int(program.first[rank])


def _fault(message: str, program: Program, position: int) -> ProgramError:
    rank, index = rank_and_index(program, position)
    grid = marked_excerpt(program, {rank: index})
    return ProgramError(f"rank {rank}, position {index} ({program.word(program.action(position))}): {message}\n{grid}")


def _check_pairs(program: Program) -> None:
    closes = np.flatnonzero(program.closes_pair)
    if not len(closes):
        return
    opens = closes - 1
    same = (program.stage[opens] == program.stage[closes]) & (program.microbatch[opens] == program.microbatch[closes])
    joins = (program.op[opens] == Op.F) & np.isin(program.op[closes], (Op.B, Op.I))
    wrong = opens[~joins | same]
    if len(wrong):
        rank, index = rank_and_index(program, int(wrong[0]))
        two = "+".join(program.word(program.action(int(at))) for at in (wrong[0], wrong[0] + 1))
        raise ProgramError(
            f"rank {rank}, position {index}: a pair joins an F with a B or I of another stage or "
            f"microbatch, but got {two}\n{marked_excerpt(program, {rank: index})}"
        )


def _check_names(program: Program) -> None:
    """Stages and microbatches exist, and stages are where they belong."""
    shape = program.shape
    problems = (
        (program.stage, shape.num_stages, "stage"),
        (program.microbatch, shape.num_microbatches, "microbatch"),
    )
    for column, limit, name in problems:
        if column.size and column.min() >= 0 and column.max() < limit:
            continue
        outside = np.flatnonzero((column < 0) | (column >= limit))
        if len(outside):
            position = int(outside[0])
            raise _fault(f"there is no {name} {column[position]}, expected 0 to {limit - 1}", program, position)
    owner = np.array(shape.rank_of_stage)[program.stage]
    misplaced = np.flatnonzero(owner != program.rank_of_action)
    if len(misplaced):
        position = int(misplaced[0])
        raise _fault(f"stage {program.stage[position]} is on rank {owner[position]}", program, position)


def _check_size(program: Program) -> None:
    """It is not so far from complete that naming what is missing is of no help."""
    stages, microbatches = program.shape.stages_per_copy, program.shape.num_microbatches
    if program.num_actions < stages * microbatches:
        raise ProgramError(
            f"the program has {program.num_actions} actions, expected at least {2 * stages * microbatches}: "
            f"an F and a B for each of {microbatches} microbatches on each of {stages} stages"
        )


def _check_each_once(program: Program) -> None:
    shape, count = program.shape, program.num_actions
    key = program.kind * shape.num_microbatches + program.microbatch
    place = np.full(shape.num_stages * NUM_OPS * shape.num_microbatches, count)
    position = np.arange(count)
    place[key[::-1]] = position[::-1]  # the first of its name
    repeated = np.flatnonzero(place[key] != position)
    if len(repeated):
        raise _fault("it is there twice", program, int(repeated[0]))
    forward, fused, split, weight = place.reshape(shape.num_stages, NUM_OPS, -1).transpose(1, 0, 2)
    wanted = _wanted(program, forward)
    backward = np.minimum(fused, split)
    in_order = (forward < backward) & (backward < count) & (np.maximum(fused, split) == count)
    _check_slices(program, forward, 1, (Op.F,))
    _check_slices(program, backward, -1, (Op.B, Op.I))
    in_order &= (weight == split) | ((split < weight) & (weight < count))  # equal: neither is there
    if (in_order | ~wanted).all():
        return

    def at_first(wrong: NDArray[np.bool_], place_of: NDArray[np.int64], message: str) -> None:
        if wrong.any():
            stage, microbatch = np.argwhere(wrong)[0]
            position = int(place_of[stage, microbatch])
            raise _fault(message.format(**_names(program, int(stage), int(microbatch))), program, position)

    at_first((fused < count) & (split < count), fused, "{B} and {I} are both there, expected one of them")
    at_first((fused < count) & (weight < count), weight, "{W} is there beside {B}, which includes it")
    _check_missing(wanted & (forward == count), "it lacks {F}", program)
    _check_missing(wanted & (backward == count), "it lacks {B} (or {I} and {W})", program)
    _check_missing((split < count) & (weight == count), "it lacks {W}, which {I} needs", program)
    at_first(backward < forward, backward, "it comes before {F}")
    at_first((weight < count) & (weight < split), weight, "it comes before {I}")


def _wanted(program: Program, forward: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which stage works on which microbatch: all of the copy that has most of its forwards; shape (stages, size).

    Raises ProgramError at an action of another copy.

    Args:
        program: of several copies, or of one.
        forward: where each F stands, the number of actions if nowhere; shape (stages, size).
    """
    copies, size = program.shape.copies, program.shape.num_microbatches
    if copies == 1:
        return np.ones(forward.shape, dtype=np.bool_)
    there = (forward < program.num_actions).reshape(copies, -1, size).sum(axis=1)
    stages = program.shape.stages_per_copy
    copy_of = there.argmax(axis=0)
    wrong = np.flatnonzero(program.stage // stages != copy_of[program.microbatch])
    if len(wrong):
        position = int(wrong[0])
        microbatch = int(program.microbatch[position])
        first = int(copy_of[microbatch]) * stages
        message = f"microbatch {microbatch} runs through stages {first} to {first + stages - 1}, another copy"
        raise _fault(message, program, position)
    wanted: NDArray[np.bool_] = np.repeat(np.arange(copies), stages)[:, None] == copy_of
    return wanted


def _check_slices(program: Program, place: NDArray[np.int64], step: int, ops: tuple[Op, ...]) -> None:
    """Slices of a microbatch follow one another on every stage: forwards from the first, backwards from the last.

    Args:
        program: whose slices they are; of one slice each, there is nothing to check.
        place: where each action stands, the number of actions if nowhere; shape (stages, slices of all microbatches).
        step: 1 if a slice comes after the one before it, -1 if after the one behind it.
        ops: of these actions.
    """
    slices = program.shape.slices
    if slices == 1:
        return
    ordered = place.reshape(len(place), -1, slices)[..., ::step]
    wrong = np.argwhere(ordered[..., 1:] < ordered[..., :-1])
    for stage, whole, turn in wrong.tolist():
        later = turn + 1 if step == 1 else slices - 2 - turn
        position = int(place[stage, whole * slices + later])
        other = f"{program.shape.name_of(whole * slices + later - step)}"
        names = " or ".join(f"{stage}{op.name}{other}" for op in ops)
        raise _fault(f"it comes before {names}, which it needs", program, position)


def _check_missing(wrong: NDArray[np.bool_], message: str, program: Program) -> None:
    if wrong.any():
        stage, microbatch = (int(index) for index in np.argwhere(wrong)[0])
        rank = program.shape.rank_of_stage[stage]
        grid = marked_excerpt(program, {rank: int(program.first[rank + 1] - program.first[rank])})
        raise ProgramError(
            f"rank {rank} is not complete: {message.format(**_names(program, stage, microbatch))}\n{grid}"
        )


def _names(program: Program, stage: int, microbatch: int) -> dict[str, str]:
    return {op.name: program.word(Action(stage, op, microbatch)) for op in (Op.F, Op.B, Op.I, Op.W)}
