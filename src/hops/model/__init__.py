"""The model: what one microbatch costs a stage, before any hardware."""

from hops.model.implementation import HostOperations, Implementation, Microbatch, Optimizer, host_operations
from hops.model.kernels import Gemm, Kernel, Pass
from hops.model.memory import StageMemory, stage_memory
from hops.model.partition import Partition, StageSlice
from hops.model.transformer import MODELS, Transformer, get_model
from hops.model.workload import OpWork, StageWork, check_fit, stage_parameters, stage_work

__all__ = [
    "MODELS",
    "Gemm",
    "HostOperations",
    "Implementation",
    "Kernel",
    "Microbatch",
    "OpWork",
    "Optimizer",
    "Partition",
    "Pass",
    "StageMemory",
    "StageSlice",
    "StageWork",
    "Transformer",
    "check_fit",
    "get_model",
    "host_operations",
    "stage_memory",
    "stage_parameters",
    "stage_work",
]
