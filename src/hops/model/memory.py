"""What a stage keeps in its device's memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from hops.model.activations import kept_bytes, kept_for_weight_bytes
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.local import Local
from hops.model.parameters import local_parameters, quantized_bytes
from hops.model.partition import StageSlice
from hops.model.shards import REPLICATED, WHOLE, Shards, StateShards
from hops.model.transformer import Transformer
from hops.model.transient import NO_TRANSIENTS, Transients, transient_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """Bytes one stage holds. F allocates `activation_bytes` per microbatch; I keeps what W still needs; B or W frees.

    Attributes:
        weights_bytes, gradients_bytes, optimizer_bytes: held all the time.
        workspace_bytes: largest transient need of one op, counted as held all the time; stages of one rank share it,
            since a rank runs one action at a time.
        activation_bytes: per microbatch in flight, from the start of its F.
        kept_for_weight_bytes: what stays between the end of I and the end of W. With full recompute it is more than
            `activation_bytes`: I makes again what F did not keep, and W needs it.
    """

    weights_bytes: int = 0
    gradients_bytes: int = 0
    optimizer_bytes: int = 0
    workspace_bytes: int = 0
    activation_bytes: int = 0
    kept_for_weight_bytes: int = 0

    @property
    def static_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.workspace_bytes


def rank_workspace_bytes(stages: Iterable[StageMemory]) -> int:
    """The transient need of a rank that holds these stages: the largest of theirs."""
    return max((stage.workspace_bytes for stage in stages), default=0)


def rank_static_bytes(stages: Sequence[StageMemory]) -> int:
    """What a rank that holds these stages holds all the time."""
    own = sum(stage.static_bytes - stage.workspace_bytes for stage in stages)
    return own + rank_workspace_bytes(stages)


@lru_cache(maxsize=4096)
def stage_memory(
    model: Transformer,
    part: StageSlice,
    batch: Microbatch,
    how: Implementation,
    optimizer: Optimizer,
    *,
    shards: Shards = WHOLE,
    states: StateShards = REPLICATED,
    transients: Transients = NO_TRANSIENTS,
) -> StageMemory:
    """Memory of one device of a stage: weights, gradients, optimizer states, activations, and what is transient."""
    here, runs = Local(model=model, batch=batch, how=how, shards=shards), model.runs(part.first, part.layers)
    held = local_parameters(here, part, runs)

    def divided(dense_shards: int, expert_shards: int, per_parameter: float) -> int:
        return ceil(held.dense * per_parameter / dense_shards + held.experts * per_parameter / expert_shards)

    return StageMemory(
        weights_bytes=divided(states.weights, states.expert_weights, how.element_bytes)
        + (quantized_bytes(here, runs) if states.weights == 1 else 0),
        gradients_bytes=divided(states.gradients, states.expert_gradients, optimizer.gradient_bytes),
        optimizer_bytes=divided(states.optimizer, states.expert_optimizer, optimizer.state_bytes),
        workspace_bytes=transient_bytes(here, part, runs, states, transients),
        activation_bytes=kept_bytes(here, part, runs),
        kept_for_weight_bytes=kept_for_weight_bytes(here, part, runs),
    )
