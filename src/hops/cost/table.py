"""Costs by table: seconds of every action and bytes of every message as numbers, stated or taken from a trace."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.cost.base import NO_STEP, CostModel, StepCosts, crosses_stages
from hops.errors import UsageError
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableCosts(CostModel):
    """The same numbers in every iteration; nothing is drawn.

    Attributes:
        times_s: shape (stages, 4 ops in the order F B I W, microbatches), or one column that stands for all of them.
        sent_bytes: shape (stages, 4 ops), what goes on to a neighbouring stage after the op.
        memories: what each stage holds; () is nothing.
        step_costs: the end of every iteration.
    """

    times_s: FloatArray
    sent_bytes: IntArray
    memories: tuple[StageMemory, ...] = ()
    step_costs: StepCosts = NO_STEP

    def __post_init__(self) -> None:
        stages = len(self.times_s)
        if self.times_s.ndim != 3 or self.times_s.shape[1] != len(ACTION_OPS) or not stages:
            raise UsageError(f"times_s must have the shape (stages, 4, microbatches), but got {self.times_s.shape}")
        if self.sent_bytes.shape != (stages, len(ACTION_OPS)):
            raise UsageError(f"sent_bytes must have the shape ({stages}, 4), but got {self.sent_bytes.shape}")
        if self.memories and len(self.memories) != stages:
            raise UsageError(f"memories must have one value per stage ({stages}), but got {len(self.memories)}")

    @classmethod
    def of(
        cls,
        *,
        forward_s: Sequence[float],
        input_backward_s: Sequence[float],
        weight_backward_s: Sequence[float],
        fused_backward_s: Sequence[float] = (),
        bytes_per_message: int = 0,
        memories: tuple[StageMemory, ...] = (),
        step_costs: StepCosts = NO_STEP,
    ) -> "TableCosts":
        """Seconds of F, I, W and B per stage; B defaults to I + W."""
        fused = fused_backward_s or [i + w for i, w in zip(input_backward_s, weight_backward_s, strict=True)]
        columns = (forward_s, fused, input_backward_s, weight_backward_s)
        times = np.array(list(zip(*columns, strict=True)), dtype=np.float64)
        sent = [
            [bytes_per_message * crosses_stages(stage, op, len(times)) for op in ACTION_OPS]
            for stage in range(len(times))
        ]
        return cls(times_s=times[..., None], sent_bytes=np.array(sent), memories=memories, step_costs=step_costs)

    @classmethod
    def uniform(
        cls, num_stages: int, *, f: float = 1.0, i: float = 1.0, w: float = 1.0, bytes_per_message: int = 0
    ) -> "TableCosts":
        """The same times (seconds) on every stage."""
        return cls.of(
            forward_s=(f,) * num_stages,
            input_backward_s=(i,) * num_stages,
            weight_backward_s=(w,) * num_stages,
            bytes_per_message=bytes_per_message,
        )

    @classmethod
    def from_trace(cls, rows: Trace, durations_ns: IntArray | None = None) -> "TableCosts":
        """What one iteration of a trace took: the rows of its actions, reductions, optimizer steps and host gaps.

        Messages have no bytes and stages no memory: a trace says how long messages took, which is their network's part.
        `durations_ns` (one per row) stand for the recorded ones. An action without a row takes no time.
        """
        lengths = rows.duration_ns if durations_ns is None else durations_ns
        times = np.zeros((rows.meta.num_stages, len(ACTION_OPS), rows.meta.num_microbatches))
        actions = (rows.stream == Stream.COMPUTE) & (rows.op <= Op.W)
        times[rows.stage[actions], rows.op[actions], rows.microbatch[actions]] = lengths[actions] / NS_PER_S

        def per_rank(op: Op) -> tuple[float, ...]:
            found = np.zeros(rows.meta.num_ranks)
            np.maximum.at(found, rows.rank[rows.op == op], lengths[rows.op == op] / NS_PER_S)
            return tuple(found.tolist())

        step_costs = StepCosts(
            tied_reduce_s=max(per_rank(Op.TIED_REDUCE)),
            grad_reduce_s=per_rank(Op.GRAD_REDUCE),
            optimizer_s=per_rank(Op.OPTIMIZER),
            host_s=max(per_rank(Op.HOST)),
        )
        return cls(times_s=times, sent_bytes=np.zeros(times.shape[:2], dtype=np.int64), step_costs=step_costs)

    @classmethod
    def timed(cls, costs: CostModel, times_s: FloatArray, step_costs: StepCosts) -> "TableCosts":
        """Another model's messages and memory with these seconds."""
        stages = range(costs.num_stages)
        sent = [[costs.message_bytes(stage, op) for op in ACTION_OPS] for stage in stages]
        memories = tuple(costs.memory(stage) for stage in stages)
        return cls(times_s=times_s, sent_bytes=np.array(sent), memories=memories, step_costs=step_costs)

    @property
    def num_stages(self) -> int:
        return len(self.times_s)

    def seconds(self, stage: int, op: Op) -> float:
        return float(self.times_s[stage, op].mean())

    def message_bytes(self, stage: int, op: Op) -> int:
        return int(self.sent_bytes[stage, op])

    def memory(self, stage: int) -> StageMemory:
        return self.memories[stage] if self.memories else StageMemory()

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.step_costs

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return np.broadcast_to(self.times_s, (*self.times_s.shape[:2], num_microbatches))
