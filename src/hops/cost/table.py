"""Costs stated outright: one number per stage and op."""

from dataclasses import dataclass

from hops.cost.base import NO_STEP, CostModel, StepCosts, crosses_stages
from hops.model.memory import StageMemory
from hops.program.action import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCosts(CostModel):
    """Constant seconds per stage for F, I and W; B defaults to I + W. All tuples have one value per stage."""

    forward_s: tuple[float, ...]
    input_backward_s: tuple[float, ...]
    weight_backward_s: tuple[float, ...]
    fused_backward_s: tuple[float, ...] = ()
    bytes_per_message: int = 0
    stage_memory: tuple[StageMemory, ...] = ()
    step_costs: StepCosts = NO_STEP

    @classmethod
    def uniform(
        cls, num_stages: int, *, f: float = 1.0, i: float = 1.0, w: float = 1.0, bytes_per_message: int = 0
    ) -> "FixedCosts":
        """The same times (seconds) on every stage."""
        return cls(
            forward_s=(f,) * num_stages,
            input_backward_s=(i,) * num_stages,
            weight_backward_s=(w,) * num_stages,
            bytes_per_message=bytes_per_message,
        )

    @property
    def num_stages(self) -> int:
        return len(self.forward_s)

    def seconds(self, stage: int, op: Op) -> float:
        if op is Op.F:
            return self.forward_s[stage]
        if op is Op.I:
            return self.input_backward_s[stage]
        if op is Op.W:
            return self.weight_backward_s[stage]
        assert op is Op.B, f"{op!r} is no action"
        if self.fused_backward_s:
            return self.fused_backward_s[stage]
        return self.input_backward_s[stage] + self.weight_backward_s[stage]

    def message_bytes(self, stage: int, op: Op) -> int:
        return self.bytes_per_message if crosses_stages(stage, op, self.num_stages) else 0

    def memory(self, stage: int) -> StageMemory:
        return self.stage_memory[stage] if self.stage_memory else StageMemory()

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.step_costs
