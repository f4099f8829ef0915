"""Defaults that depend on other sections are filled in, so that a loaded spec shows every value it runs with."""

from dataclasses import asdict

from hops import model
from hops.config.optimizer import Optimizer
from hops.config.pipeline import ELEMENT_BYTES, Pipeline
from hops.config.spec import Spec


def resolve(spec: Spec) -> Spec:
    """The same spec with the defaults of schedule, model, sequence length and optimizer filled in."""
    pipeline = _pipeline(spec.pipeline)
    optimizer = _optimizer(spec.optimizer, pipeline)
    return spec.model_copy(update={"pipeline": pipeline, "optimizer": optimizer})


def _pipeline(pipeline: Pipeline) -> Pipeline:
    schedule = pipeline.schedule
    parameters = {**schedule.defaults(), **schedule.parameters}
    pipeline = pipeline.model_copy(update={"schedule": schedule.model_copy(update={"parameters": parameters})})
    if pipeline.model is None:
        return pipeline
    transformer = pipeline.model.transformer(pipeline.sequence_length)
    shape = pipeline.model.model_copy(update=asdict(transformer))
    length = transformer.max_positions if pipeline.sequence_length is None else pipeline.sequence_length
    return pipeline.model_copy(update={"model": shape, "sequence_length": length})


def _optimizer(optimizer: Optimizer, pipeline: Pipeline) -> Optimizer:
    changes: dict[str, object] = {}
    if optimizer.state_bytes is None:
        named = model.Optimizer.named(optimizer.kind, element_bytes=ELEMENT_BYTES[pipeline.precision])
        changes["state_bytes"] = named.state_bytes
    if optimizer.tied_embeddings is None:
        changes["tied_embeddings"] = bool(pipeline.model is not None and pipeline.model.tied)
    return optimizer.model_copy(update=changes)
