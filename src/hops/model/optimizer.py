"""An optimizer is, for memory and time, the bytes it holds and moves per parameter."""

from dataclasses import dataclass

from hops.errors import UsageError

FP32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes per parameter of an optimizer with fp32 gradients and states, as in Megatron-LM.

    Attributes:
        name: as a spec names it.
        moments: fp32 states beside the weights (Adam 2, momentum 1).
    """

    name: str
    moments: int

    def state_bytes_per_parameter(self, element_bytes: int) -> int:
        """Moments, and an fp32 master copy of weights that are kept in fewer bytes.

        Adam in mixed precision: 12; with bf16 weights and fp32 gradients 18 in all (Korthikanti et al. 2022).
        """
        master = FP32_BYTES if element_bytes < FP32_BYTES else 0
        return master + self.moments * FP32_BYTES

    def step_bytes_per_parameter(self, element_bytes: int) -> int:
        """What one step moves: read the gradient, read and write every state, write weights held in fewer bytes.

        Without a master copy the weights themselves are read and written. Adam in mixed precision: 4 + 24 + 2 = 30.
        """
        states = (1 + self.moments) * 2 * FP32_BYTES
        weights = element_bytes if element_bytes < FP32_BYTES else 0
        return FP32_BYTES + states + weights


OPTIMIZERS: dict[str, Optimizer] = {
    "adam": Optimizer(name="adam", moments=2),
    "sgd": Optimizer(name="sgd", moments=0),
    "sgd_momentum": Optimizer(name="sgd_momentum", moments=1),
}


def get_optimizer(name: str) -> Optimizer:
    """The optimizer of that name. Raises UsageError if there is none."""
    if name not in OPTIMIZERS:
        raise UsageError(f"unknown optimizer {name!r}: known are {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]
