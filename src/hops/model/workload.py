"""Work before any hardware: what is trained, and what one microbatch costs a stage: kernels by name, for F, I and W."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from hops.errors import UsageError
from hops.model import ends
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.kernels import Kernels, rename, repeat
from hops.model.kinds import Layer
from hops.model.layer import layer_work
from hops.model.local import Local, check_shards
from hops.model.parameters import local_parameters
from hops.model.partition import Partition, StageSlice
from hops.model.shards import REPLICATED, WHOLE, Shards, StateShards
from hops.model.transformer import Transformer
from hops.model.transient import NO_TRANSIENTS, Transients

AGAIN = "recompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is trained: the model, the size of a microbatch, how both passes are computed, and what steps.

    `shards`: in how many parts devices divide a stage's work; `states`: in how many replicas divide what they hold;
    `transients`: what the framework holds besides.
    """

    model: Transformer
    batch: Microbatch
    how: Implementation
    optimizer: Optimizer
    shards: Shards = WHOLE
    states: StateShards = REPLICATED
    transients: Transients = NO_TRANSIENTS


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
    """What one microbatch costs a stage: one device of its group, all of which do the same.

    Attributes:
        num_layers: transformer layers of the stage.
        embedding, head: whether it also holds the embedding; final norm, LM head and loss.
        forward, input_backward, weight_backward: F, I and W; B is I and W together.
        recompute: what the backward pass computes again before I.
        recomputed_layers: layers whose whole forward is launched again.
        message_bytes: what it sends on after F, or back after B or I: tokens x hidden elements.
        parameters: that the device holds, a tied table on both of its stages.
        expert_parameters: those of them that belong to routed experts, whose gradients are reduced over other devices.
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
    expert_parameters: int = 0

    @property
    def hardware_flop(self) -> int:
        """FLOPs that the device does for one microbatch: F, I, W, what is recomputed; attention as kernels do it.

        Flash attention does half of the pairs, and computes their scores once more in the backward pass.
        """
        ops = (self.forward, self.input_backward, self.weight_backward, self.recompute)
        return sum(op.flop for op in ops)


@lru_cache(maxsize=4096)  # stages alike, and sweeps over schedules and devices, ask for the same work again
def stage_work(
    model: Transformer, part: StageSlice, batch: Microbatch, how: Implementation, shards: Shards = WHOLE
) -> StageWork:
    """The work of one stage. `check_fit` tells whether model, partition, microbatch and shards belong together."""
    runs = model.runs(part.first, part.layers)
    return _stage_work(Local(model=model, batch=batch, how=how, shards=shards), _any_first(part), runs)


@lru_cache(maxsize=1024)  # stages at different places of a model have the same work, too, and one object for it
def _stage_work(here: Local, part: StageSlice, runs: tuple[tuple[Layer, int], ...]) -> StageWork:
    works = [(layer_work(here, layer), count) for layer, count in runs]
    again = here.how.recompute_layers
    held = local_parameters(here, part, runs)
    repeated = [work.recompute for work, count in works for _ in range(count)][:again]

    def of_layers(op: str) -> Kernels:
        return tuple(kernel for work, count in works for kernel in repeat(getattr(work, op), count))

    return StageWork(
        num_layers=part.layers,
        embedding=part.embedding,
        head=part.head,
        forward=OpWork(layers=of_layers("forward"), ends=_end_forward(here, part)),
        input_backward=OpWork(layers=of_layers("input_backward"), ends=_end_input_backward(here, part)),
        weight_backward=OpWork(
            layers=of_layers("weight_backward"), ends=ends.head_weight_backward(here) if part.head else ()
        ),
        recompute=OpWork(
            layers=tuple(
                kernel for same, group in groupby(repeated) for kernel in rename(repeat(same, len(list(group))), AGAIN)
            )
        ),
        recomputed_layers=len(repeated) if here.how.recompute == "full" else 0,
        message_bytes=here.held_tokens * here.model.hidden * here.how.element_bytes,
        parameters=held.total,
        expert_parameters=held.experts,
    )


def _any_first(part: StageSlice) -> StageSlice:
    return replace(part, first=0)


def without_recompute(work: StageWork) -> StageWork:
    """The same work with everything kept that the backward pass would compute again."""
    return replace(work, recompute=OpWork(), recomputed_layers=0)


@lru_cache(maxsize=4096)
def stage_parameters(model: Transformer, part: StageSlice, shards: Shards = WHOLE) -> int:
    """Parameters a device of the stage holds, a tied table on the first and on the last stage; once, if they are one.

    `parameters.local_parameters` tells those of routed experts apart.
    """
    here = Local(model=model, batch=Microbatch(sequence_length=1), how=Implementation(), shards=shards)
    return local_parameters(here, part, model.runs(part.first, part.layers)).total


def check_fit(model: Transformer, partition: Partition, batch: Microbatch, shards: Shards = WHOLE) -> None:
    """Raises UsageError unless the partition holds the model's layers, the model has positions for the sequence, and
    the shards divide it.
    """
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
    check_shards(model, batch, shards)


def _end_forward(here: Local, part: StageSlice) -> Kernels:
    embedding = ends.embedding_forward(here) if part.embedding else ()
    if not part.head:
        return embedding
    head = (*ends.head_forward(here), *ends.cross_entropy_forward(here))
    return (*embedding, *head, *ends.head_exchanges(here))


def _end_input_backward(here: Local, part: StageSlice) -> Kernels:
    embedding = ends.embedding_backward(here) if part.embedding else ()
    if not part.head:
        return embedding
    head = (*ends.cross_entropy_backward(here), *ends.head_input_backward(here))
    return (*head, *embedding, *ends.head_exchanges_backward(here))
