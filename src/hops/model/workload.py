"""Work before any hardware: what is trained, and what one microbatch costs a stage: kernels by name, for F, I and W."""

from dataclasses import dataclass, replace
from functools import lru_cache

from hops.errors import UsageError
from hops.model import layer as ends
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.kernels import Kernels, rename, repeat
from hops.model.layer import layer_work
from hops.model.partition import Partition, StageSlice
from hops.model.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is trained: the model, the size of a microbatch, how both passes are computed, and what steps.

    `optimizer_shards`: replicas that share the optimizer's states.
    """

    model: Transformer
    batch: Microbatch
    how: Implementation
    optimizer: Optimizer
    optimizer_shards: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OpWork:
    """Kernels of one op: those of the stage's layers, and those of the model's ends that the stage holds."""

    layers: Kernels = ()
    ends: Kernels = ()

    @property
    def kernels(self) -> Kernels:
        return self.layers + self.ends

    @property
    def flop(self) -> int:
        return sum(kernel.flop for kernel in self.kernels)

    @property
    def bytes(self) -> int:
        return sum(kernel.total_bytes for kernel in self.kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """What one microbatch costs a stage.

    Attributes:
        num_layers: transformer layers of the stage.
        embedding, head: whether it also holds the embedding; final norm, LM head and loss.
        forward, input_backward, weight_backward: F, I and W; B is I and W together.
        recompute: what the backward pass computes again before I.
        recomputed_layers: layers whose whole forward is launched again.
        message_bytes: what it sends on after F, or back after B or I: tokens x hidden elements.
        parameters: that the stage holds, a tied table on both of its stages.
    """

    num_layers: int
    embedding: bool
    head: bool
    forward: OpWork
    input_backward: OpWork
    weight_backward: OpWork
    recompute: OpWork
    recomputed_layers: int
    message_bytes: int
    parameters: int


@lru_cache(maxsize=1024)  # stages alike, and sweeps over schedules and devices, ask for the same work again
def stage_work(model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation) -> StageWork:
    """The work of one stage. `check_fit` tells whether model, partition and microbatch belong together."""
    layer = layer_work(model, batch, how)
    again = {"none": (), "selective": layer.attention_core, "full": layer.forward}[how.recompute]
    return StageWork(
        num_layers=part.layers,
        embedding=part.embedding,
        head=part.head,
        forward=OpWork(layers=repeat(layer.forward, part.layers), ends=_end_forward(model, part, batch, how)),
        input_backward=OpWork(
            layers=repeat(layer.input_backward, part.layers), ends=_end_input_backward(model, part, batch, how)
        ),
        weight_backward=OpWork(
            layers=repeat(layer.weight_backward, part.layers),
            ends=ends.head_weight_backward(model, batch, how) if part.head else (),
        ),
        recompute=OpWork(layers=rename(repeat(again, part.layers), "recompute")),
        recomputed_layers=part.layers if how.recompute == "full" else 0,
        message_bytes=batch.tokens * model.hidden * how.element_bytes,
        parameters=stage_parameters(model, part),
    )


def without_recompute(work: StageWork) -> StageWork:
    """The same work with everything kept that the backward pass would compute again."""
    return replace(work, recompute=OpWork(), recomputed_layers=0)


def stage_parameters(model: Transformer, part: StageSlice) -> int:
    """Parameters a stage holds. A tied table is held by the first and by the last stage; once, if they are the same."""
    count = part.layers * model.layer_parameters
    if part.embedding:
        count += model.table_parameters + model.position_parameters
    if part.head:
        shares_table = model.tied and part.embedding
        count += model.norm_parameters + (0 if shares_table else model.table_parameters)
    return count


def check_fit(model: Transformer, partition: Partition, batch: Microbatch) -> None:
    """Raises UsageError unless the partition holds the model's layers and the model has positions for the sequence."""
    if partition.num_layers != model.layers:
        raise UsageError(
            f"a partition must hold all {model.layers} layers of the model, "
            f"but got {' + '.join(map(str, partition.layers))} = {partition.num_layers}"
        )
    if model.positions == "learned" and batch.sequence_length > model.max_positions:
        raise UsageError(
            f"sequence_length must be at most the model's {model.max_positions} learned positions, "
            f"but got {batch.sequence_length}"
        )


def _end_forward(model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation) -> Kernels:
    embedding = ends.embedding_forward(model, batch, how)
    head = (*ends.head_forward(model, batch, how), *ends.cross_entropy_forward(model, batch, how))
    return (embedding if part.embedding else ()) + (head if part.head else ())


def _end_input_backward(model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation) -> Kernels:
    head = (*ends.cross_entropy_backward(model, batch, how), *ends.head_input_backward(model, batch, how))
    embedding = ends.embedding_backward(model, batch, how)
    return (head if part.head else ()) + (embedding if part.embedding else ())
