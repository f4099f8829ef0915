"""A recorded run again, with some of its times made shorter: what it would have been without a straggler."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.build.prepared import length_ns
from hops.cost.base import CostModel, StepCosts
from hops.distributions import FloatArray
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import HopsError
from hops.hardware.network import Network, Route
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op
from hops.program.lowering import check
from hops.program.program import Program
from hops.trace.order import program_from_trace
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S

MOST_REPLAYED = 20  # iterations; more of them tell the same


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCosts(CostModel):
    """The times of one recorded iteration: shape (stages, ops, microbatches), seconds."""

    times_s: FloatArray
    end: StepCosts

    @property
    def num_stages(self) -> int:
        return len(self.times_s)

    def seconds(self, stage: int, op: Op) -> float:
        return float(self.times_s[stage, op].mean())

    def message_bytes(self, stage: int, op: Op) -> int:
        return 0

    def memory(self, stage: int) -> StageMemory:
        return StageMemory()

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.end

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.times_s


def replayed_ns(trace: Trace, iteration: int, durations_ns: NDArray[np.int64]) -> int | None:
    """How long an iteration takes in the order in which it ran, if its rows take `durations_ns` (one per row).

    Messages take their recorded times and share nothing; None if its order cannot be replayed (rows are missing).
    """
    chosen = (trace.iteration == iteration) & (trace.stream <= Stream.HOST)
    rows, lengths = trace.where(chosen), durations_ns[chosen]
    try:
        program = program_from_trace(trace, iteration=iteration)
        check(program)
        recorded = run_program(program, _costs(rows, lengths, program), _network(rows, lengths), RunSettings())
    except HopsError:
        return None
    return length_ns(recorded)


def _costs(rows: Trace, lengths: NDArray[np.int64], program: Program) -> RecordedCosts:
    shape = (rows.meta.num_stages, len(ACTION_OPS), program.shape.num_microbatches)
    times = np.zeros(shape)
    actions = (rows.stream == Stream.COMPUTE) & (rows.op <= Op.W)
    place = (rows.stage[actions], rows.op[actions], rows.microbatch[actions])
    times[place] = lengths[actions] / NS_PER_S
    return RecordedCosts(times_s=times, end=_end(rows, lengths))


def _end(rows: Trace, lengths: NDArray[np.int64]) -> StepCosts:
    def per_rank(op: Op) -> tuple[float, ...]:
        found = np.zeros(rows.meta.num_ranks)
        of_op = rows.op == op
        np.maximum.at(found, rows.rank[of_op], lengths[of_op] / NS_PER_S)
        return tuple(found.tolist())

    return StepCosts(
        tied_reduce_s=max(per_rank(Op.TIED_REDUCE)),
        grad_reduce_s=per_rank(Op.GRAD_REDUCE),
        optimizer_s=per_rank(Op.OPTIMIZER),
        host_s=max(per_rank(Op.HOST)),
    )


def _network(rows: Trace, lengths: NDArray[np.int64]) -> Network:
    """Every way takes the median of its messages."""
    owners = rows.meta.rank_of_stage
    times: Mapping[tuple[int, int], list[int]] = {}
    times = {(a, b): [] for a in set(owners) for b in set(owners) if a != b}
    messages = rows.stream == Stream.MESSAGE
    for pair, length in zip(
        zip(rows.rank[messages].tolist(), rows.peer[messages].tolist(), strict=True),
        lengths[messages].tolist(),
        strict=True,
    ):
        times[pair].append(length)
    routes = {
        pair: Route(latency_s=float(np.median(found)) / NS_PER_S if found else 0.0) for pair, found in times.items()
    }
    return Network(links=(), routes=routes)
