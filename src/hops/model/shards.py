"""In how many parts a stage's work is divided among the devices of its group."""

from dataclasses import dataclass
from typing import Literal

from hops.errors import UsageError

ContextKind = Literal["ring", "all_gather", "all_to_all", "hierarchical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Sizes of the axes that divide the tensors of a layer; all 1: one device does all of a stage's work.

    Attributes:
        tensor: parts of heads, of the MLP's width and of the vocabulary (Shoeybi et al. 2019, arXiv 1909.08053).
        sequence: whether what tensor parallelism does not divide is divided by tokens instead (Korthikanti et al. 2022,
            arXiv 2205.05198).
        context: parts of the sequence in all layers.
        context_kind: how attention sees the parts that other devices hold.
        expert: groups of devices that hold different experts.
        expert_tensor: parts of one expert's width.
    """

    tensor: int = 1
    sequence: bool = False
    context: int = 1
    context_kind: ContextKind = "ring"
    expert: int = 1
    expert_tensor: int = 1

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "expert", "expert_tensor"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, but got {getattr(self, name)}")


WHOLE = Shards()
