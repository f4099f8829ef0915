"""The contract of a cost model: seconds per action, bytes per message, memory per stage, end of an iteration."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from hops.distributions import FloatArray
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """What happens once an iteration, after the last backward, in this order. Seconds.

    Attributes:
        tied_reduce_s: all-reduce of tied embedding gradients between the ranks of first and last stage; 0: none.
        grad_reduce_s: data-parallel gradient reduction, per rank; () means none.
        optimizer_s: optimizer step, per rank; () means none.
        host_s: the host's own time before the next iteration starts.
        synchronized: whether ranks wait for each other before the optimizer step (global gradient norm) and before
            the next iteration. If not, each rank goes on alone as soon as its own step is done.
    """

    tied_reduce_s: float = 0.0
    grad_reduce_s: tuple[float, ...] = ()
    optimizer_s: tuple[float, ...] = ()
    host_s: float = 0.0
    synchronized: bool = True


NO_STEP = StepCosts()


def crosses_stages(stage: int, op: Op, num_stages: int) -> bool:
    """Whether the op's result goes to a neighbouring stage: F's to the next one, B's and I's to the one before."""
    if op is Op.F:
        return stage < num_stages - 1
    return op.sends and stage > 0


class CostModel(ABC):
    """Costs of a model whose stages are already placed on devices."""

    @property
    @abstractmethod
    def num_stages(self) -> int: ...

    @abstractmethod
    def seconds(self, stage: int, op: Op) -> float:
        """Expected seconds of one action (op is F, B, I or W) of a microbatch of work 1."""

    @abstractmethod
    def message_bytes(self, stage: int, op: Op) -> int:
        """Bytes that the stage sends on after the op: activations after F, gradients after B or I; 0 after W.

        Of a microbatch of work 1, as the activations of `memory`.
        """

    @abstractmethod
    def memory(self, stage: int) -> StageMemory: ...

    @property
    def device_flop(self) -> float | None:
        """FLOPs that one device of each stage runs for a microbatch, recompute included, in sum; None: not known."""
        return None

    def step(self, iteration: int, seed: int) -> StepCosts:
        """What the end of this iteration costs."""
        return StepCosts()

    def work(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        """How large each microbatch of an iteration is: shape (microbatches,), or (1,) where all are 1.

        `draw` has it in its seconds; bytes of messages and activations are to be multiplied by it.
        """
        return np.ones(1)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        """Seconds of every action of an iteration: shape (stages, 4 ops in the order F B I W, microbatches).

        The draw of an action depends on (seed, iteration, stage, op, microbatch) only, never on the schedule.
        """
        means = [[self.seconds(stage, op) for op in ACTION_OPS] for stage in range(self.num_stages)]
        shape = (self.num_stages, len(ACTION_OPS), num_microbatches)
        return np.broadcast_to(np.asarray(means, dtype=np.float64)[:, :, None], shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedCosts(CostModel):
    """Another model's costs, whose draws a subclass changes."""

    inner: CostModel

    @property
    def num_stages(self) -> int:
        return self.inner.num_stages

    @property
    def device_flop(self) -> float | None:
        return self.inner.device_flop

    def seconds(self, stage: int, op: Op) -> float:
        return self.inner.seconds(stage, op)

    def message_bytes(self, stage: int, op: Op) -> int:
        return self.inner.message_bytes(stage, op)

    def memory(self, stage: int) -> StageMemory:
        return self.inner.memory(stage)

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.inner.step(iteration, seed)

    def work(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.inner.work(iteration, num_microbatches, seed)
