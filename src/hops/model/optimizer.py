"""An optimizer is, for memory and time, the bytes it holds and moves per parameter."""

from dataclasses import dataclass

from hops.errors import UsageError

FP32_BYTES = 4
MOMENTS = {"adam": 2, "sgd_momentum": 1, "sgd": 0}  # fp32 states beside the weights
FOREACH_EXTRA_MOVES = {"adam": 14, "sgd_momentum": 3, "sgd": 0}
"""fp32 moves per parameter of torch.optim's foreach kernels beyond those of one fused kernel.

Adam (torch/optim/adam.py, `_multi_tensor_adam` with decoupled decay): decay 2, lerp 3, mul 2, addcmul 4, sqrt 2, div 2,
add 2, addcdiv 4 = 21, against 7 (gradient read, three states read and written). Momentum (torch/optim/sgd.py): mul 2,
add 3, step 3 = 8, against 5.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes per parameter.

    Attributes:
        state_bytes: states held between steps, a master copy of the weights included.
        gradient_bytes: one gradient, in memory and in reductions.
        master_weights: whether the states hold an fp32 copy from which the weights are written.
        extra_step_bytes: what the step moves beyond one pass over gradients and states.
    """

    state_bytes: float
    gradient_bytes: float = FP32_BYTES
    master_weights: bool
    extra_step_bytes: float = 0.0

    def __post_init__(self) -> None:
        for name in ("state_bytes", "gradient_bytes", "extra_step_bytes"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} of an optimizer must be at least 0, but got {getattr(self, name)}")

    @classmethod
    def named(cls, kind: str, *, element_bytes: int, fused: bool = True) -> "Optimizer":
        """Megatron-LM's `adam`, `sgd_momentum` or `sgd`: fp32 moments, gradients and master weights.

        Adam with 2-byte weights holds 12 bytes of states per parameter, 18 with weights and gradients (Megatron-LM,
        distributed optimizer's documentation). Weights that are fp32 themselves have no other master copy.
        `fused` is one kernel (Apex, Transformer Engine); without these Megatron-LM falls back to torch.optim.
        Raises UsageError for another name.
        """
        if kind not in MOMENTS:
            raise UsageError(f"unknown optimizer {kind!r}: known are {', '.join(MOMENTS)}")
        master = element_bytes < FP32_BYTES
        return cls(
            state_bytes=(MOMENTS[kind] + master) * FP32_BYTES,
            master_weights=master,
            extra_step_bytes=0.0 if fused else FOREACH_EXTRA_MOVES[kind] * FP32_BYTES,
        )

    def step_bytes(self, element_bytes: int) -> float:
        """What the end of an iteration moves per parameter, as Megatron-LM's mixed-precision optimizer does it.

        Gradients: read for the norm, read and written by clipping, read by the step, zeroed (5 moves). States: read and
        written. Weights: the master copy is read and they are written, or they are read and written themselves.
        Adam in mixed precision: 20 + 24 + 6 = 50.
        """
        weights = FP32_BYTES + element_bytes if self.master_weights else 2 * element_bytes
        return 5 * self.gradient_bytes + 2 * self.state_bytes + weights + self.extra_step_bytes
