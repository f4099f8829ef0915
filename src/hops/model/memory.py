"""What a stage keeps in its device's memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.layer import FP32_BYTES, scores_elements
from hops.model.partition import StageSlice
from hops.model.transformer import Transformer
from hops.model.workload import stage_parameters


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


def stage_memory(
    model: Transformer,
    part: StageSlice,
    batch: Microbatch,
    how: Implementation,
    optimizer: Optimizer,
    *,
    optimizer_shards: int = 1,
) -> StageMemory:
    """Memory of one stage: weights, gradients, optimizer states, activations.

    `optimizer_shards` data-parallel replicas share the optimizer states (ZeRO-1, Megatron's distributed optimizer);
    1 means every replica holds all of them.
    """
    if optimizer_shards < 1:
        raise UsageError(f"optimizer_shards must be at least 1, but got {optimizer_shards}")
    parameters = stage_parameters(model, part)
    states = parameters * optimizer.state_bytes / optimizer_shards
    return StageMemory(
        weights_bytes=parameters * how.element_bytes,
        gradients_bytes=ceil(parameters * optimizer.gradient_bytes),
        optimizer_bytes=ceil(states),
        workspace_bytes=remade_layer_bytes(model, batch, how) if part.layers > 0 else 0,
        activation_bytes=part.layers * kept_layer_bytes(model, batch, how)
        + _end_activation_bytes(model, part, batch, how),
        kept_for_weight_bytes=part.layers * layer_kept_for_weight_bytes(model, batch, how)
        + _end_kept_for_weight_bytes(model, part, batch, how),
    )


def kept_layer_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """Activation bytes that one layer keeps from F to its backward under the recompute option.

    Selective recompute drops the attention core (scores), full recompute all but the layer's input.
    Korthikanti et al. 2022 (arXiv 2205.05198), table 2.
    """
    if how.recompute == "full":
        return batch.tokens * model.hidden * how.element_bytes
    scores = 0 if how.recompute == "selective" else _score_bytes(model, batch, how)
    return _linear_activation_bytes(model, batch, how) + scores


def remade_layer_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """What the backward pass of one layer makes again and F did not keep: nothing, the scores, all but the input."""
    if how.recompute == "none":
        return 0
    return layer_activation_bytes(model, batch, how) - kept_layer_bytes(model, batch, how)


def layer_activation_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """Activation bytes of one layer with nothing recomputed: sbh(34 + 5as/h) for the classic shape at 16 bits.

    Korthikanti et al. 2022 (arXiv 2205.05198), equation 1. Flash attention has no score terms (its log-sum-exp,
    4/head_dim bytes per element of hidden, is left out).
    """
    return _linear_activation_bytes(model, batch, how) + _score_bytes(model, batch, how)


def _linear_activation_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """Per token: inputs of two norms 2h, of four linear layers, of attention (qkv), of the activation; two masks."""
    h = model.hidden
    elements = 2 * h + h + model.qkv_width + model.query_width + h + model.up_width + model.ffn_hidden
    masks = 2 * h if how.dropout else 0
    return batch.tokens * (elements * how.element_bytes + masks)


def _score_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """Softmax output, and with dropout its mask and output."""
    if how.attention == "flash":
        return 0
    per_element = how.element_bytes + (1 + how.element_bytes if how.dropout else 0)
    return per_element * scores_elements(model, batch)


def layer_kept_for_weight_bytes(model: Transformer, batch: Microbatch, how: Implementation) -> int:
    """What W needs: input and output gradient of every linear layer; 32sbh for the classic shape at 16 bits.

    Qi et al. 2023 (arXiv 2401.10241), section 2.1.
    """
    inputs = model.hidden + model.query_width + model.hidden + model.ffn_hidden
    gradients = model.qkv_width + model.hidden + model.up_width + model.hidden
    return batch.tokens * (inputs + gradients) * how.element_bytes


def _end_activation_bytes(model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation) -> int:
    """Embedding dropout mask sbh on the first stage; inputs of final norm and head and fp32 logits, 4sbh(1 + v/h).

    Korthikanti et al. 2022 (arXiv 2205.05198), section 4.3.
    """
    total = 0
    if part.embedding and how.dropout:
        total += batch.tokens * model.hidden
    if part.head:
        total += batch.tokens * (2 * model.hidden * how.element_bytes + model.vocab * FP32_BYTES)
    return total


def _end_kept_for_weight_bytes(model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation) -> int:
    """Input of the head and the gradient of its logits."""
    if not part.head:
        return 0
    return batch.tokens * (model.hidden + model.vocab) * how.element_bytes
