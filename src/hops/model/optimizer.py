"""An optimizer is, for memory and time, the bytes it holds and moves per parameter."""

from dataclasses import dataclass

from hops.errors import UsageError

FP32_BYTES = 4
MOMENTS = {"adam": 2, "sgd_momentum": 1, "sgd": 0}  # fp32 states beside the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes per parameter.

    Attributes:
        state_bytes: states held between steps, a master copy of the weights included.
        gradient_bytes: one gradient, in memory and in reductions.
        master_weights: whether the states hold an fp32 copy from which the weights are written.
    """

    state_bytes: float
    gradient_bytes: float = FP32_BYTES
    master_weights: bool

    def __post_init__(self) -> None:
        for name in ("state_bytes", "gradient_bytes"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} of an optimizer must be at least 0, but got {getattr(self, name)}")

    @classmethod
    def named(cls, kind: str, *, element_bytes: int) -> "Optimizer":
        """Megatron-LM's `adam`, `sgd_momentum` or `sgd`: fp32 moments, gradients and master weights.

        Adam with 2-byte weights holds 12 bytes of states per parameter, 18 with weights and gradients (Megatron-LM,
        distributed optimizer's documentation). Weights that are fp32 themselves have no other master copy.
        Raises UsageError for another name.
        """
        if kind not in MOMENTS:
            raise UsageError(f"unknown optimizer {kind!r}: known are {', '.join(MOMENTS)}")
        master = element_bytes < FP32_BYTES
        return cls(state_bytes=(MOMENTS[kind] + master) * FP32_BYTES, master_weights=master)

    def step_bytes(self, element_bytes: int) -> float:
        """What one step moves per parameter: read the gradient, read and write the states, write the weights.

        Without a master copy the weights are read as well. Adam in mixed precision: 4 + 24 + 2 = 30.
        """
        weights = element_bytes if self.master_weights else 2 * element_bytes
        return self.gradient_bytes + 2 * self.state_bytes + weights
