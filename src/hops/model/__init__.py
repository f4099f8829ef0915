"""The model: what one microbatch costs a stage, before any hardware."""

from hops.model.implementation import (
    HostOperations,
    Implementation,
    Microbatch,
    Optimizer,
    Quantization,
    host_operations,
)
from hops.model.kernels import Collective, Gemm, Kernel, Pass, collectives
from hops.model.kinds import Experts, LatentAttention, Layer
from hops.model.memory import StageMemory, stage_memory
from hops.model.partition import Partition, StageSlice
from hops.model.shards import REPLICATED, WHOLE, Shards, StateShards
from hops.model.transformer import MODELS, Transformer, get_model
from hops.model.workload import OpWork, StageWork, check_fit, stage_parameters, stage_work

__all__ = [
    "MODELS",
    "REPLICATED",
    "WHOLE",
    "Collective",
    "Experts",
    "Gemm",
    "HostOperations",
    "Implementation",
    "Kernel",
    "LatentAttention",
    "Layer",
    "Microbatch",
    "OpWork",
    "Optimizer",
    "Partition",
    "Pass",
    "Quantization",
    "Shards",
    "StageMemory",
    "StageSlice",
    "StageWork",
    "StateShards",
    "Transformer",
    "check_fit",
    "collectives",
    "get_model",
    "host_operations",
    "stage_memory",
    "stage_parameters",
    "stage_work",
]
