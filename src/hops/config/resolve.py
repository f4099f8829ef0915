"""Defaults that depend on other sections are filled in, so that a loaded spec shows every value it runs with."""

from dataclasses import asdict

from hops.config.optimizer import Optimizer
from hops.config.pipeline import Pipeline
from hops.config.spec import Spec

# Bytes of optimizer states per parameter. Mixed precision keeps an fp32 copy of the weights (4) beside the states;
# Adam has two fp32 states, momentum has one (Rajbhandari et al. 2020, ZeRO, section 3.1: K = 12 for Adam).
MASTER_BYTES = 4.0
STATE_BYTES = {"adam": 8.0, "sgd_momentum": 4.0, "sgd": 0.0}


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
    model = pipeline.model.model_copy(update=asdict(transformer))
    length = transformer.max_positions if pipeline.sequence_length is None else pipeline.sequence_length
    return pipeline.model_copy(update={"model": model, "sequence_length": length})


def _optimizer(optimizer: Optimizer, pipeline: Pipeline) -> Optimizer:
    changes: dict[str, object] = {}
    if optimizer.state_bytes is None:
        master = 0.0 if pipeline.precision == "fp32" else MASTER_BYTES
        changes["state_bytes"] = STATE_BYTES[optimizer.kind] + master
    if optimizer.tied_embeddings is None:
        changes["tied_embeddings"] = bool(pipeline.model is not None and pipeline.model.tied)
    return optimizer.model_copy(update=changes)
