"""Runs a program in the compiled engine: prepares arrays, calls the kernel until it is done, returns the trace."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hops.cost.base import CostModel
from hops.engine.fault_windows import FaultWindows
from hops.engine.kernel import ROWS_PER_RANK, run_events
from hops.engine.kernel_faults import await_edge, lose_all
from hops.engine.kernel_actions import wake
from hops.engine.kernel_rows import drop_open, longest_tie, settle
from hops.engine.records import (
    BRING, BYTES_ROW, DOING, END_ROW, ENTERED, FOLLOWING, FREE, FULL, GONE, IN_USE, ITERATION_ROW, MICROBATCH_ROW,
    NEXT_ITERATION, NONE, NUM_ROWS, OP_ROW, PEER_ROW, RANK_ROW, STAGE_ROW, START_ROW, STREAM_ROW, Rows,
)  # fmt: skip
from hops.engine.settings import RunSettings
from hops.engine.tables import Draws, empty_rows, empty_state, make_tables, make_windows
from hops.engine.rows import trace_meta
from hops.hardware.network import Network
from hops.program.program import Program
from hops.trace.trace import Trace

TRANSFERS_PER_RANK = 8  # room for messages under way, to begin with


N = TypeVar("N", bound=np.generic)


class CompiledRun:
    """One simulation of a program; `run` may be called once."""

    def __init__(
        self, program: Program, costs: CostModel, network: Network, settings: RunSettings, windows: FaultWindows, *,
        until_stop: bool = False,
    ) -> None:  # fmt: skip
        self.program, self.network, self.settings = program, network, settings
        self.tables = make_tables(program, costs, network, settings, windows, until_stop=until_stop)
        self.windows = make_windows(windows, len(network.links))
        self.draws = Draws(self.tables, program.shape, costs, network, settings)
        self.drawn = self.draws.draw(0)
        shape = program.shape
        keys = 2 * shape.num_stages * shape.num_microbatches
        self.state = empty_state(self.tables, keys, TRANSFERS_PER_RANK * shape.num_ranks + 8)
        self.rows = empty_rows(self._expected_rows())

    def run(self) -> int:
        """Simulate. Returns what the kernel says: DONE, STALLED, STOPPED or TOO_SHORT."""
        reported, drawn_up_to = 0, 0
        await_edge.ready(self.windows, self.state)
        for rank in range(self.program.shape.num_ranks):
            wake.ready(self.state, rank)
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
        return each * self.settings.iterations + ROWS_PER_RANK * ranks + 8

    def _make_room(self) -> None:
        """Twice as many transfers, or half as many rows more."""
        state, rows = self.state, self.rows
        more = rows.longs.shape[1] // 2 + 64
        if rows.longs.shape[1] - state.clock[NUM_ROWS] < more:
            self.rows = Rows(*(_wider(matrix, more) for matrix in rows))
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
