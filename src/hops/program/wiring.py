"""Who needs what from whom: the dependencies and messages of a placement, as tables the engine indexes.

A message is known by what it brings: (receiving stage, activation or gradient, microbatch), flattened to one integer.
"""

from dataclasses import dataclass

import numpy as np

from hops.arrays import IntArray
from hops.program.action import ACTION_OPS, Op
from hops.program.shape import Shape

ACTIVATION, GRADIENT = 0, 1


@dataclass(frozen=True, slots=True)
class Wiring:
    """Tables per stage and op. NONE (-1) stands for nothing.

    Attributes:
        needs[stage][op]: key base (add the microbatch) of what the op needs from another stage.
        brings[stage][op]: key base of what the op produces for another stage.
        target[stage][op]: rank of that other stage.
        local[stage][op]: whether that rank is the stage's own, so that nothing is sent.
    """

    shape: Shape
    needs: tuple[tuple[int, ...], ...]
    brings: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    local: tuple[tuple[bool, ...], ...]

    @property
    def num_keys(self) -> int:
        return 2 * self.shape.num_stages * self.shape.num_microbatches

    def sends(self, stage: int, op: Op) -> bool:
        """Whether the op's output goes to another rank."""
        return self.brings[stage][op] >= 0 and not self.local[stage][op]

    def producer(self, stage: int, op: Op) -> int | None:
        """The other stage from which the op needs something, if any."""
        if self.needs[stage][op] < 0:
            return None
        return stage - 1 if op is Op.F else stage + 1

    def key_of(self, key: int) -> tuple[int, int, int]:
        """The receiving stage, ACTIVATION or GRADIENT, and microbatch of a key."""
        line, microbatch = divmod(key, self.shape.num_microbatches)
        return line // 2, line % 2, microbatch


NONE = -1


def wire(shape: Shape) -> Wiring:
    """The wiring of a placement."""
    microbatches = shape.num_microbatches

    def key(stage: int, kind: int) -> int:
        return (2 * stage + kind) * microbatches

    def receiver(stage: int, op: Op) -> int | None:
        return shape.after(stage) if op is Op.F else shape.before(stage) if op.sends else None

    def needed(stage: int, op: Op) -> int:
        if op is Op.F:
            return NONE if shape.before(stage) is None else key(stage, ACTIVATION)
        return NONE if shape.after(stage) is None or not op.sends else key(stage, GRADIENT)

    needs, brings, target, local = [], [], [], []
    for stage, owner in enumerate(shape.rank_of_stage):
        receivers = [receiver(stage, op) for op in ACTION_OPS]
        ranks = [NONE if to is None else shape.rank_of_stage[to] for to in receivers]
        needs.append(tuple(needed(stage, op) for op in ACTION_OPS))
        brings.append(
            tuple(
                NONE if to is None else key(to, ACTIVATION if op is Op.F else GRADIENT)
                for op, to in zip(ACTION_OPS, receivers, strict=True)
            )
        )
        target.append(tuple(ranks))
        local.append(tuple(rank == owner for rank in ranks))
    return Wiring(shape, tuple(needs), tuple(brings), tuple(target), tuple(local))


def neighbours(shape: Shape, stage: IntArray, step: IntArray | int) -> IntArray:
    """The stages so many steps (1 or -1) along the model, or NONE behind the ends of a copy; shape of `stage`.

    What is no stage has no neighbour.
    """
    size = shape.stages_per_copy
    other = stage + step
    inside = (stage >= 0) & (other >= 0) & (other < shape.num_stages) & (other // size == stage // size)
    return np.where(inside, other, NONE)
