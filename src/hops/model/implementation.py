"""How the framework runs a model: precision, kernels, recompute; and the microbatch it runs it on."""

from dataclasses import dataclass
from typing import Literal

from hops.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Microbatch:
    """The unit of scheduling: `samples` sequences of `sequence_length` tokens."""

    sequence_length: int
    samples: int = 1

    def __post_init__(self) -> None:
        for name in ("sequence_length", "samples"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a microbatch must be at least 1, but got {getattr(self, name)}")

    @property
    def tokens(self) -> int:
        return self.sequence_length * self.samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """What of the run's time and memory is the framework's choice and not the model's. Tensor parallelism is 1.

    Attributes:
        element_bytes: bytes of a weight or activation: 2 for bf16 and fp16, 4 for fp32.
        attention: `unfused` moves the heads x sequence^2 scores through memory; `flash` never writes them, skips the
            masked half and computes the scores again in the backward pass.
        cross_entropy: `unfused` makes several fp32 passes over sequence x vocab logits; `fused` one.
        recompute: `none` keeps all activations; `selective` computes the attention core again in the backward pass;
            `full` keeps the input of each layer only.
        dropout: whether masks are written and kept (probability above 0).
        fused_gradient_accumulation: whether weight-gradient GEMMs add to the fp32 gradients themselves.
    """

    element_bytes: int = 2
    attention: Literal["unfused", "flash"] = "flash"
    cross_entropy: Literal["unfused", "fused"] = "unfused"
    recompute: Literal["none", "selective", "full"] = "none"
    dropout: bool = True
    fused_gradient_accumulation: bool = True

    def __post_init__(self) -> None:
        if self.element_bytes not in (1, 2, 4):
            raise UsageError(f"element_bytes must be 1, 2 or 4, but got {self.element_bytes}")
