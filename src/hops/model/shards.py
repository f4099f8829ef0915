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
        context_kind: how attention sees what other devices hold: keys and values pass round a ring (Liu et al. 2023,
            arXiv 2310.01889; with halves dealt so that causal work is equal), all are gathered, or heads are exchanged
            for parts (all-to-all: Jacobs et al. 2023, arXiv 2309.14509); hierarchical: heads in inner groups, and a
            ring among these.
        context_inner: members of an inner group of the hierarchical kind; 1 for others.
        expert: groups of devices that hold different experts.
        expert_tensor: parts of one expert's width.
    """

    tensor: int = 1
    sequence: bool = False
    context: int = 1
    context_kind: ContextKind = "ring"
    context_inner: int = 1
    expert: int = 1
    expert_tensor: int = 1

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "context_inner", "expert", "expert_tensor"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, but got {getattr(self, name)}")
        hierarchical = self.context_kind == "hierarchical"
        if self.context % self.context_inner or (self.context_inner > 1 and not hierarchical):
            raise UsageError(
                f"context_inner must divide context, and be 1 unless context_kind is hierarchical, "
                f"but got {self.context_inner} with context {self.context} and {self.context_kind}"
            )

    @property
    def head_exchange(self) -> int:
        """Members that exchange heads for parts of the sequence, and so hold all of the sequence together."""
        if self.context_kind == "all_to_all":
            return self.context
        return self.context_inner

    @property
    def ring(self) -> int:
        """Members among which keys and values pass round or are gathered."""
        return self.context // self.head_exchange


WHOLE = Shards()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateShards:
    """In how many parts replicas divide what they would all hold; all 1: every replica holds all of it.

    ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054): stage 1 divides the optimizer's states, stage 2 gradients as well,
    stage 3 (and FSDP) weights as well. Weights of routed experts have fewer replicas, hence parts of their own.

    Attributes:
        optimizer, gradients, weights: of all but routed experts.
        expert_optimizer, expert_gradients, expert_weights: of routed experts.
    """

    optimizer: int = 1
    gradients: int = 1
    weights: int = 1
    expert_optimizer: int = 1
    expert_gradients: int = 1
    expert_weights: int = 1

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise UsageError(f"{name}_shards must be at least 1, but got {getattr(self, name)}")

    @classmethod
    def zero(cls, stage: int, replicas: int, expert_replicas: int | None = None) -> "StateShards":
        """ZeRO's stage 0 to 3 over so many replicas. Raises UsageError for another stage."""
        if stage not in (0, 1, 2, 3):
            raise UsageError(f"the stage of ZeRO must be 0, 1, 2 or 3, but got {stage}")
        experts = replicas if expert_replicas is None else expert_replicas
        return cls(
            optimizer=replicas if stage >= 1 else 1,
            gradients=replicas if stage >= 2 else 1,
            weights=replicas if stage >= 3 else 1,
            expert_optimizer=experts if stage >= 1 else 1,
            expert_gradients=experts if stage >= 2 else 1,
            expert_weights=experts if stage >= 3 else 1,
        )


REPLICATED = StateShards()
