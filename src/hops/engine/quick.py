"""The short way through a program: its longest path, where nothing can happen that needs an event.

A program with overlapped messages on links that no two messages ever share has one possible course: an action starts
when its rank is free and its input is there. Following that course costs a fraction of a microsecond per action where
an event costs several. Whether messages did share a link shows afterwards; then the answer is thrown away, and the
events decide. Tests assert that both ways give the same trace, row by row. Code bent for speed: `benchmarks/engine.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from hops.compiled import available, kernel
from hops.cost.base import CostModel
from hops.engine.iteration import IterationEnd, draw_delays
from hops.engine.links import transfer_ns
from hops.engine.loop import Loop
from hops.engine.rows import Recorder, codes_of
from hops.engine.settings import RunSettings
from hops.hardware.network import Network
from hops.program.action import Op
from hops.program.program import Program
from hops.program.wiring import Wiring
from hops.trace.trace import Stream
from hops.units import to_ns

IntArray = NDArray[np.int64]
Ints = Sequence[int] | IntArray
COMPILED_FROM = 2_000_000  # actions of a run from which loading the compiled form pays
NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flat:
    """A program's actions one after the other, rank by rank; one value per action unless said otherwise.

    Attributes:
        first: where each rank's actions begin, and one more; length ranks + 1.
        stage, op, microbatch: of each action.
        cell: index into durations of shape (stages, 4, microbatches), flattened.
        need, bring: message keys that the action waits for and gives, or NONE.
        rank_of: rank that waits for what it gives.
        carry_ns: how long its message holds its links.
        pair: index of the (source, target) of its message in `pairs`, or NONE if it sends none.
        pairs: which rank pairs exchange messages.
    """

    first: list[int]
    stage: IntArray
    op: IntArray
    microbatch: IntArray
    cell: IntArray
    need: IntArray
    bring: IntArray
    rank_of: IntArray
    carry_ns: IntArray
    pair: IntArray
    pairs: tuple[tuple[int, int], ...]


@kernel
def follow(
    first: Ints,
    need: Ints,
    bring: Ints,
    rank_of: Ints,
    lag: Ints,
    duration: Ints,
    free: list[int] | IntArray,
    arrival: list[int] | IntArray,
    start: list[int] | IntArray,
    position: list[int] | IntArray,
    waits_for: list[int] | IntArray,
    stack: list[int] | IntArray,
) -> None:
    """Fill `start` (per action), and leave in `free` when each rank is through.

    `first` and the arrays beside it are as in `_Flat`; `lag` is how long after its end what an action gives arrives.
    `arrival` has one value per message key, all -1 before. Per rank: `position` (as in `first`; past the end after a
    course that did not stall), `waits_for` (-1), `stack` (all ranks).
    """
    height = len(first) - 1
    while height > 0:
        height -= 1
        rank = stack[height]
        at, end, now = position[rank], first[rank + 1], free[rank]
        while at < end:
            key = need[at]
            if key >= 0:
                there = arrival[key]
                if there < 0:
                    waits_for[rank] = key
                    break
                now = max(now, there)
            start[at] = now
            now += duration[at]
            key = bring[at]
            if key >= 0:
                arrival[key] = now + lag[at]
                waiter = rank_of[at]
                if waits_for[waiter] == key:
                    waits_for[waiter] = -1
                    stack[height] = waiter
                    height += 1
            at += 1
        position[rank], free[rank] = at, now


def quick_rows(
    program: Program, wiring: Wiring, costs: CostModel, network: Network, settings: RunSettings
) -> Recorder | None:
    """All rows of a run, or None if it needs events: pairs, a stall, or messages that share a link."""
    if program.closes_pair.any():
        return None
    flat = _flatten(program, wiring, costs, network)
    compiled = settings.iterations * program.num_actions >= COMPILED_FROM and available()
    recorder = Recorder()
    free = [0] * wiring.shape.num_ranks
    sent: list[tuple[IntArray, IntArray]] = []  # when the messages of the last two iterations hold their links
    for number in range(settings.iterations):
        duration = _durations(flat, wiring, costs, number, settings.seed)
        lag = _lags(flat, wiring, network, number, settings.seed)
        start = _course(flat, wiring, lag, duration, free, compiled=compiled)
        if start is None:
            return None
        end = start + duration
        _record(recorder, flat, number, start, end, lag)
        sent = [*sent[-1:], (end, end + flat.carry_ns)]
        if _shares_a_link(flat, network, sent):
            return None
        free = _step(recorder, wiring, costs, settings.seed, number, free)
        if settings.on_iteration is not None:
            settings.on_iteration(number)
    return recorder


def _flatten(program: Program, wiring: Wiring, costs: CostModel, network: Network) -> _Flat:
    count = wiring.shape.num_microbatches
    kind, microbatch = program.kind, program.microbatch
    needs, brings = (np.array(each, dtype=np.int64).reshape(-1) for each in (wiring.needs, wiring.brings))
    pairs, pair_of, carry = _messages(wiring, costs, network)
    return _Flat(
        first=program.first.tolist(),
        stage=program.stage,
        op=program.op,
        microbatch=microbatch,
        cell=kind * count + microbatch,
        need=np.where(needs[kind] >= 0, needs[kind] + microbatch, NONE),
        bring=np.where(brings[kind] >= 0, brings[kind] + microbatch, NONE),
        rank_of=np.array(wiring.target, dtype=np.int64).reshape(-1)[kind],
        carry_ns=carry[kind],
        pair=pair_of[kind],
        pairs=pairs,
    )


def _messages(
    wiring: Wiring, costs: CostModel, network: Network
) -> tuple[tuple[tuple[int, int], ...], IntArray, IntArray]:
    """The pairs of ranks that exchange messages; per kind of action, the pair's index, and the time on the links."""
    pairs: dict[tuple[int, int], int] = {}
    pair_of, carry = [], []
    for stage, owner in enumerate(wiring.shape.rank_of_stage):
        for op in (Op.F, Op.B, Op.I, Op.W):
            if not wiring.sends(stage, op):
                pair_of.append(NONE)
                carry.append(0)
                continue
            pair = (owner, wiring.target[stage][op])
            pair_of.append(pairs.setdefault(pair, len(pairs)))
            carry.append(transfer_ns(network, pair, costs.message_bytes(stage, op)))
    return tuple(pairs), np.array(pair_of, dtype=np.int64), np.array(carry, dtype=np.int64)


def _durations(flat: _Flat, wiring: Wiring, costs: CostModel, number: int, seed: int) -> IntArray:
    drawn = costs.draw(number, wiring.shape.num_microbatches, seed)
    if drawn.strides[-1] == 0:  # the same for every microbatch
        constant: IntArray = to_ns(drawn[..., 0]).reshape(-1)[flat.stage * 4 + flat.op]
        return constant
    duration: IntArray = to_ns(drawn).reshape(-1)[flat.cell]
    return duration


def _lags(flat: _Flat, wiring: Wiring, network: Network, number: int, seed: int) -> IntArray:
    """How long after its end the output of each action is there."""
    delays = np.array(draw_delays(number, wiring, network, seed), dtype=np.int64)
    lag: IntArray = np.where(flat.bring >= 0, delays[flat.bring], 0) + flat.carry_ns
    return lag


def _course(
    flat: _Flat, wiring: Wiring, lag: IntArray, duration: IntArray, free: list[int], *, compiled: bool
) -> IntArray | None:
    """When each action starts, ranks being free at `free`, which then says when they are through; None: a stall."""
    ranks = wiring.shape.num_ranks
    take = _as_arrays if compiled else _as_lists
    constant = take(flat.first, flat.need, flat.bring, flat.rank_of, lag, duration)
    state = take(
        np.array(free), np.full(wiring.num_keys, NONE), np.zeros(len(flat.stage), dtype=np.int64),
        np.array(flat.first[:-1]), np.full(ranks, NONE), np.arange(ranks),
    )  # fmt: skip
    run: Callable[..., None] = follow.fast if compiled else follow
    run(*constant, *state)
    through, _, start, position, _, _ = state
    if list(position) != flat.first[1:]:
        return None
    free[:] = [int(each) for each in through]
    return np.asarray(start, dtype=np.int64)


def _as_arrays(*columns: Sequence[int] | IntArray) -> list[IntArray]:
    return [np.asarray(column, dtype=np.int64) for column in columns]


def _as_lists(*columns: Sequence[int] | IntArray) -> list[list[int]]:
    return [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]


def _record(recorder: Recorder, flat: _Flat, number: int, start: IntArray, end: IntArray, lag: IntArray) -> None:
    """Add the rows of an iteration's actions and messages."""
    codes = codes_of(Stream.COMPUTE, number, flat.stage, flat.op, flat.microbatch)
    recorder.rows(codes, start, end)
    sends = flat.pair >= 0
    codes = codes_of(Stream.MESSAGE, number, flat.stage[sends], flat.op[sends], flat.microbatch[sends])
    recorder.rows(codes, end[sends], end[sends] + lag[sends])


def _step(recorder: Recorder, wiring: Wiring, costs: CostModel, seed: int, number: int, free: list[int]) -> list[int]:
    """The iteration's end, event by event (there are only a few per rank): when each rank starts the next one."""
    ranks, owners = wiring.shape.num_ranks, wiring.shape.rank_of_stage
    loop = Loop(ranks)
    next_start = [0] * ranks

    def go(rank: int) -> None:
        next_start[rank] = loop.now

    def spend(
        together: tuple[int, ...], stream: Stream, of: int, op: Op, length_ns: int, then: Callable[[int], None]
    ) -> None:
        loop.at(loop.now + length_ns, spent, together, stream, of, op, then, loop.now)

    def spent(
        together: tuple[int, ...], stream: Stream, of: int, op: Op, then: Callable[[int], None], start_ns: int
    ) -> None:
        for rank in together:
            recorder.row(stream, of, rank, op, 0, start_ns, loop.now)
        for rank in together:
            then(rank)

    step = IterationEnd(
        costs.step(number, seed), number=number, tied=(owners[0], owners[-1]), num_ranks=ranks, spend=spend, go=go
    )
    for rank, time_ns in enumerate(free):
        loop.at(time_ns, step.finished, rank)
    loop.run()
    return next_start


def _shares_a_link(flat: _Flat, network: Network, sent: list[tuple[IntArray, IntArray]]) -> bool:
    """Whether two messages were on a link of finite bandwidth at the same time."""
    on_link: dict[int, list[int]] = {}
    for index, pair in enumerate(flat.pairs):
        for link in network.routes[pair].links:
            if isfinite(network.links[link].bandwidth):
                on_link.setdefault(link, []).append(index)
    for indices in on_link.values():
        mine = np.isin(flat.pair, indices) & (flat.carry_ns > 0)
        start = np.concatenate([each[0][mine] for each in sent])
        end = np.concatenate([each[1][mine] for each in sent])
        order = np.argsort(start, kind="stable")
        if (start[order][1:] < np.maximum.accumulate(end[order])[:-1]).any():
            return True
    return False
