"""Whether a program can run: each action there once, on its rank, in order, and no rank waiting for ever."""

from collections.abc import Sequence

import numpy as np

from hops.errors import ProgramError
from hops.program.action import Action, Op
from hops.program.coded import NUM_OPS, Coded
from hops.program.shape import Shape
from hops.program.text import marked_excerpt
from hops.timing.longest_path import arrange

Ranks = Sequence[Sequence[Action]]
WAITING_RANKS_NAMED = 8


def check(shape: Shape, ranks: Ranks, pairs: Sequence[Sequence[int]]) -> None:
    """Raise ProgramError at the first fault.

    Every (stage, microbatch) has one F, then either one B, or one I and after it one W, all on the stage's rank; pairs
    are an F and a B or I that does not need it; and when each rank runs its list, waiting for the message of each
    action, all lists end.
    """
    if len(ranks) != shape.num_ranks:
        raise ProgramError(f"the program has {len(ranks)} ranks, expected {shape.num_ranks}, one line per rank")
    _check_pairs(ranks, pairs)
    coded = Coded.of(shape, ranks, pairs)
    _check_names(coded, ranks)
    _check_size(coded)
    _check_complete(coded, ranks)
    _check_deadlock(coded, ranks)


def _fail(message: str, ranks: Ranks, coded: Coded, position: int) -> ProgramError:
    rank = int(np.searchsorted(coded.first, position, side="right")) - 1
    index = position - int(coded.first[rank])
    grid = marked_excerpt(ranks, {rank: index})
    return ProgramError(f"rank {rank}, position {index} ({coded.action(position)}): {message}\n{grid}")


def _check_pairs(ranks: Ranks, pairs: Sequence[Sequence[int]]) -> None:
    """Each joins an F with a B or I of another stage or microbatch."""
    if len(pairs) not in {0, len(ranks)}:
        raise ProgramError(f"the program has pairs for {len(pairs)} ranks, expected none or {len(ranks)}")
    for rank, opening in enumerate(pairs):
        for position in opening:
            two = ranks[rank][position : position + 2]
            ops = tuple(action.op for action in two)
            if ops not in {(Op.F, Op.B), (Op.F, Op.I)} or two[0]._replace(op=two[1].op) == two[1]:
                raise ProgramError(
                    f"rank {rank}, position {position}: a pair joins an F with a B or I of another stage or "
                    f"microbatch, but got {'+'.join(map(str, two))}\n{marked_excerpt(ranks, {rank: position})}"
                )


def _check_names(coded: Coded, ranks: Ranks) -> None:
    """Stages and microbatches exist, and stages are where they belong."""
    shape = coded.shape
    problems = (
        (coded.stage, shape.num_stages, "stage"),
        (coded.microbatch, shape.num_microbatches, "microbatch"),
    )
    for column, limit, name in problems:
        outside = np.flatnonzero((column < 0) | (column >= limit))
        if len(outside):
            position = int(outside[0])
            message = f"there is no {name} {column[position]}, expected 0 to {limit - 1}"
            raise _fail(message, ranks, coded, position)
    owner = np.array(shape.rank_of_stage)[coded.stage]
    misplaced = np.flatnonzero(owner != coded.rank)
    if len(misplaced):
        position = int(misplaced[0])
        raise _fail(f"stage {coded.stage[position]} is on rank {owner[position]}", ranks, coded, position)


def _check_size(coded: Coded) -> None:
    """It is not so far from complete that naming what is missing is of no help."""
    stages, microbatches = coded.shape.num_stages, coded.shape.num_microbatches
    if len(coded.stage) < stages * microbatches:
        raise ProgramError(
            f"the program has {len(coded.stage)} actions, expected at least {2 * stages * microbatches}: "
            f"an F and a B for each of {microbatches} microbatches on each of {stages} stages"
        )


def _check_complete(coded: Coded, ranks: Ranks) -> None:
    """Each action is there once, and after what it needs from its own rank."""
    shape = coded.shape
    count = len(coded.stage)
    key = coded.kind * shape.num_microbatches + coded.microbatch
    place = np.full(shape.num_stages * NUM_OPS * shape.num_microbatches, count)
    place[key[::-1]] = np.arange(count)[::-1]  # the first of its name
    repeated = np.flatnonzero(place[key] != np.arange(count))
    if len(repeated):
        raise _fail("it is there twice", ranks, coded, int(repeated[0]))
    forward, fused, split, weight = place.reshape(shape.num_stages, NUM_OPS, -1).transpose(1, 0, 2)
    backward = np.minimum(fused, split)

    def at_first(wrong: np.ndarray, place_of: np.ndarray, message: str) -> None:
        if wrong.any():
            stage, microbatch = np.argwhere(wrong)[0]
            position = int(place_of[stage, microbatch])
            names = {op.name: Action(int(stage), op, int(microbatch)) for op in (Op.F, Op.B, Op.I, Op.W)}
            raise _fail(message.format(**names), ranks, coded, position)

    at_first((fused < count) & (split < count), fused, "{B} and {I} are both there, expected one of them")
    at_first((fused < count) & (weight < count), weight, "{W} is there beside {B}, which includes it")
    _check_missing(forward == count, "it lacks {F}", ranks, coded)
    _check_missing(backward == count, "it lacks {B} (or {I} and {W})", ranks, coded)
    _check_missing((split < count) & (weight == count), "it lacks {W}, which {I} needs", ranks, coded)
    at_first(backward < forward, backward, "it comes before {F}")
    at_first((weight < count) & (weight < split), weight, "it comes before {I}")


def _check_missing(wrong: np.ndarray, message: str, ranks: Ranks, coded: Coded) -> None:
    if wrong.any():
        stage, microbatch = (int(index) for index in np.argwhere(wrong)[0])
        rank = coded.shape.rank_of_stage[stage]
        names = {op.name: Action(stage, op, microbatch) for op in (Op.F, Op.B, Op.I, Op.W)}
        grid = marked_excerpt(ranks, {rank: len(ranks[rank])})
        raise ProgramError(f"rank {rank} is not complete: {message.format(**names)}\n{grid}")


def _check_deadlock(coded: Coded, ranks: Ranks) -> None:
    """Every list ends. The message tells which action each stuck rank waits at, and for what."""
    shape = coded.shape
    unit = [1] * (shape.num_stages * NUM_OPS)
    order = arrange(coded, unit, [0] * (shape.num_stages - 1), blocking=False)
    first = coded.first.tolist()
    stuck = {rank: at - first[rank] for rank, at in enumerate(order.position) if at < first[rank + 1]}
    if stuck:
        named = list(stuck.items())[:WAITING_RANKS_NAMED]
        waits = [_waits(shape, ranks, rank, index, order.waits_for[rank]) for rank, index in named]
        more = [f"  and {len(stuck) - len(waits)} more ranks"] if len(stuck) > len(waits) else []
        text = "\n".join(["the program deadlocks:", *waits, *more, marked_excerpt(ranks, stuck)])
        raise ProgramError(text)


def _waits(shape: Shape, ranks: Ranks, rank: int, index: int, slot: int) -> str:
    line, microbatch = divmod(slot, shape.num_microbatches)
    is_gradient, stage = divmod(line, shape.num_stages)
    sender = stage + 1 if is_gradient else stage - 1
    wanted = {Action(sender, op, microbatch) for op in ((Op.B, Op.I) if is_gradient else (Op.F,))}
    other = shape.rank_of_stage[sender]
    place = next(place for place, action in enumerate(ranks[other]) if action in wanted)
    return f"  rank {rank} waits at {ranks[rank][index]} for {ranks[other][place]}, position {place} of rank {other}"
