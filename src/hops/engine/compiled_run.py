"""Runs a program in the compiled engine: prepares arrays, calls the kernel until it is done, returns the trace."""

import sys
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hops.engine.draws import draw_durations
from hops.engine.fault_windows import FaultWindows, with_fault_rows
from hops.engine.kernel import ROWS_PER_RANK, run_events
from hops.engine.kernel_faults import await_edge, lose_all
from hops.engine.kernel_rows import drop_open, longest_tie, settle
from hops.engine.records import (
    ACTION_OF,
    BRING,
    BY_STOP,
    BYTES_ROW,
    CAUSE,
    CAUSE_LINK,
    CAUSE_TIMER,
    DOING,
    DONE,
    EDGE,
    END_ROW,
    ENTERED,
    FIRST_TRANSFER,
    FOLLOWING,
    FREE,
    FULL,
    GONE,
    IN_USE,
    ITERATION_ROW,
    KIND,
    MICROBATCH_ROW,
    NEXT_ITERATION,
    NONE,
    NOW,
    NUM_ROWS,
    OP_ROW,
    OWNER,
    PEER_ROW,
    RANK_ROW,
    STAGE_ROW,
    START_ROW,
    STOPPED,
    STREAM_ROW,
    TARGET,
    TASK,
    TOO_SHORT,
    Rows,
)  # fmt: skip
from hops.engine.rows import trace_meta
from hops.engine.settings import Faults
from hops.engine.stopped_run import (
    Interruption,
    StoppedRun,
    stopped_by_faults,
    timed_out,
    words_of_message,
    words_of_work,
)
from hops.engine.tables import Draws, Inputs, empty_rows, empty_state, make_tables, make_windows
from hops.faults.plan import FOREVER
from hops.hardware.network import Network
from hops.program.action import Op
from hops.recent import Recent
from hops.trace.trace import Trace
from hops.units import NS_PER_S

TRANSFERS_PER_RANK = 8  # room for messages under way, to begin with


N = TypeVar("N", bound=np.generic)


class CompiledRun:
    """One simulation of a program; `run` may be called once."""

    def __init__(self, inputs: Inputs, windows: FaultWindows, *, until_stop: bool = False) -> None:
        self.program, self.network, self.settings = inputs.program, inputs.network, inputs.settings
        self.known = windows
        self.tables = make_tables(inputs, windows, until_stop=until_stop)
        self.windows = make_windows(windows, len(inputs.network.links))
        self.draws = Draws(self.tables, inputs)
        self.drawn = self.draws.draw(0)
        room = TRANSFERS_PER_RANK * inputs.program.num_ranks + 8
        self.state = empty_state(self.tables, inputs.num_messages, room)
        self.rows = empty_rows(self._expected_rows())

    def run(self, reported: int = 0) -> int:
        """Simulate. Returns what the kernel says: DONE, STALLED, STOPPED or TOO_SHORT.

        Args:
            reported: iterations whose end was reported before, by a run that was too short.
        """
        drawn_up_to = 0
        await_edge.ready(self.windows, self.state)
        clock = self.state.clock
        while True:
            code = run_events.fast(self.tables, self.drawn, self.windows, self.state, self.rows)
            while reported < clock[GONE]:
                if self.settings.on_iteration is not None:
                    self.settings.on_iteration(reported)
                reported += 1
            if code == NEXT_ITERATION:
                if drawn_up_to < clock[ENTERED]:
                    drawn_up_to += 1
                    self.drawn = self.draws.draw(drawn_up_to)
            elif code == FULL:
                self._make_room()
            else:
                return code

    def interruption(self) -> Interruption:
        """What stopped the run."""
        clock = self.state.clock
        now, completed, timer = int(clock[NOW]), int(clock[GONE]), int(clock[CAUSE_TIMER])
        if clock[CAUSE] == BY_STOP:
            _, change = self.known.changes[int(clock[EDGE]) - 1]
            return stopped_by_faults(self.known, now, tuple(change.ranks_down), completed)
        shape, link = self.program.shape, int(clock[CAUSE_LINK])
        if timer >= shape.num_ranks:
            number = int(self.state.transfers[timer - shape.num_ranks - FIRST_TRANSFER, ACTION_OF])
            action = self.program.action(number)
            source, target = self.tables.kinds[self.tables.actions[KIND, number], [OWNER, TARGET]].tolist()
            return timed_out(
                self.known, now, words_of_message(action, (source, target)), (source, target), link, completed
            )
        task = Op(int(self.state.ranks[timer, TASK]))
        other = self.tables.tied_first + self.tables.tied_last - timer
        ranks = (timer, other) if task is Op.TIED_REDUCE else (timer,)
        return timed_out(self.known, now, words_of_work(NONE, task, NONE, ranks), ranks, link, completed)

    def lose_everything(self) -> None:
        """A fault has ended the job: all that is under way is lost."""
        lose_all.fast(self.tables, self.state, self.rows, True)

    def trace(self) -> Trace:
        """What has happened."""
        rows = self.rows
        count = drop_open.fast(rows, int(self.state.clock[NUM_ROWS]))
        scratch = np.empty((2, longest_tie.fast(rows, count)), dtype=np.int64)
        settle.fast(rows, count, scratch[0], scratch[1])
        shorts, flags, longs = (matrix[:, :count] for matrix in rows)
        return Trace(
            iteration=shorts[ITERATION_ROW],
            rank=shorts[RANK_ROW],
            stream=flags[STREAM_ROW],
            stage=shorts[STAGE_ROW],
            op=flags[OP_ROW],
            microbatch=shorts[MICROBATCH_ROW],
            peer=shorts[PEER_ROW],
            start_ns=longs[START_ROW],
            end_ns=longs[END_ROW],
            bytes=longs[BYTES_ROW],
            meta=trace_meta(self.program.shape, self.network, self.settings),
        )

    def _expected_rows(self) -> int:
        """How many rows there are if nothing breaks, and room for the next event."""
        actions, ranks = self.tables.actions, self.program.shape.num_ranks
        messages = int(np.count_nonzero(actions[BRING] != NONE))
        each = actions.shape[1] + messages + ROWS_PER_RANK * ranks
        return int(each) * self.settings.iterations + ROWS_PER_RANK * ranks + 8

    def _make_room(self) -> None:
        """Twice as many transfers, or half as many rows more."""
        state, rows = self.state, self.rows
        more = rows.longs.shape[1] // 2 + 64
        if rows.longs.shape[1] - state.clock[NUM_ROWS] < more:
            self.rows = Rows(_wider(rows.shorts, more), _wider(rows.flags, more), _wider(rows.longs, more))
        had = len(state.transfers)
        if state.clock[IN_USE] < had // 2:
            return
        transfers = _longer(state.transfers)
        free = np.flatnonzero(transfers[:, DOING] == NONE)
        transfers[free[:-1], FOLLOWING] = free[1:]
        state.clock[FREE] = free[0]
        self.state = state._replace(
            transfers=transfers,
            moving=_longer(state.moving),
            hops=_longer(state.hops),
            timers=np.vstack([state.timers, np.full((had, state.timers.shape[1]), NONE)]),
        )


def _wider(matrix: NDArray[N], more: int) -> NDArray[N]:
    """A matrix with room for more columns."""
    wider = np.empty((len(matrix), matrix.shape[1] + more), dtype=matrix.dtype)
    wider[:, : matrix.shape[1]] = matrix
    return wider


def _longer(matrix: NDArray[N]) -> NDArray[N]:
    """A matrix with twice as many rows, the new ones filled with NONE."""
    return np.vstack([matrix, np.full_like(matrix, NONE)])


def run_compiled(inputs: Inputs, *, until_stop: bool) -> StoppedRun | None:
    """Simulate a program to its end or (`until_stop`) to the first stop.

    None: it stalls, or a transport gives up that must not; the reference has words for that.
    """
    if not run_events.is_cached:
        print("hops: compiling the engine, which takes some seconds, once per installation", file=sys.stderr)
    faults, ranks = inputs.settings.faults, inputs.program.num_ranks
    until_ns, reported = _first_horizon(inputs), 0
    while True:
        windows = _windows(faults, ranks, inputs.network, until_ns)
        run = CompiledRun(inputs, windows, until_stop=until_stop)
        code = run.run(reported)
        if code == TOO_SHORT:  # it goes on for longer than was thought, and faults later on hit it
            reported, until_ns = max(reported, int(run.state.clock[GONE])), 8 * until_ns
        elif code == DONE:
            return StoppedRun(trace=with_fault_rows(run.trace(), windows))
        elif code == STOPPED and until_stop:
            interruption = run.interruption()
            run.lose_everything()
            return StoppedRun(trace=with_fault_rows(run.trace(), windows), interruption=interruption)
        else:
            return None


_CALM: Recent[FaultWindows] = Recent(64)


def _windows(faults: Faults, ranks: int, network: Network, until_ns: int) -> FaultWindows:
    """Faults as windows; runs in which nothing breaks share theirs."""

    def compiled() -> FaultWindows:
        return FaultWindows.compile(faults, ranks, [link.name for link in network.links], until_ns=until_ns)

    return compiled() if faults.plan else _CALM.of((faults, network), compiled, key=ranks)


FEW_FAULTS = 100  # are compiled all at once


def _first_horizon(inputs: Inputs) -> int:
    """Until when faults are looked at, at first: twice as long as all actions would take one after the other."""
    program, settings = inputs.program, inputs.settings
    if len(settings.faults.plan) <= FEW_FAULTS:
        return FOREVER
    durations = draw_durations(0, program.shape, inputs.costs, settings.seed)
    one_by_one = int(durations.mean(axis=1)[program.kind].sum())
    return 2 * settings.iterations * one_by_one + NS_PER_S
