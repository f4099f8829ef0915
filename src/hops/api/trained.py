"""What a spec trains and how, before any device: model, microbatch, implementation, optimizer."""

from dataclasses import dataclass, replace

from hops.config import Spec
from hops.config.pipeline import ELEMENT_BYTES
from hops.model import Implementation, Microbatch, Optimizer, Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The work of a spec with a model. `optimizer_shards`: replicas that share the optimizer's states."""

    model: Transformer
    batch: Microbatch
    how: Implementation
    optimizer: Optimizer
    optimizer_shards: int


def trained(spec: Spec) -> Trained:
    """The work of a spec that has a model."""
    pipeline = spec.pipeline
    assert pipeline.model is not None
    assert pipeline.sequence_length is not None, "loading a spec fills it in"
    how = Implementation(
        element_bytes=ELEMENT_BYTES[pipeline.precision],
        attention=pipeline.attention,
        cross_entropy=pipeline.cross_entropy,
        recompute=pipeline.recompute,
        dropout=pipeline.dropout,
        fused_gradient_accumulation=pipeline.fused_gradient_accumulation,
    )
    return Trained(
        model=pipeline.model.transformer(pipeline.sequence_length),
        batch=Microbatch(sequence_length=pipeline.sequence_length, samples=pipeline.microbatch_size),
        how=how,
        optimizer=_optimizer(spec, how),
        optimizer_shards=spec.optimizer.data_parallel if spec.optimizer.distributed else 1,
    )


def _optimizer(spec: Spec, how: Implementation) -> Optimizer:
    section = spec.optimizer
    assert section.state_bytes is not None, "loading a spec fills it in"
    named = Optimizer.named(section.kind, element_bytes=how.element_bytes, fused=section.fused)
    return replace(named, state_bytes=section.state_bytes, gradient_bytes=section.gradient_bytes)
