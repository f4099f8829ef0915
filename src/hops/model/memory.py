"""What a stage keeps in its device's memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """Bytes one stage holds. F allocates `activation_bytes` per microbatch; I keeps what W still needs; B or W frees.

    Attributes:
        weights_bytes, gradients_bytes, optimizer_bytes: held all the time.
        activation_bytes: per microbatch in flight, from the start of its F.
        kept_for_weight_bytes: the part of it that stays between the end of I and the end of W.
    """

    weights_bytes: int = 0
    gradients_bytes: int = 0
    optimizer_bytes: int = 0
    activation_bytes: int = 0
    kept_for_weight_bytes: int = 0

    @property
    def static_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes
