"""The model: what one microbatch costs a stage, before any hardware."""

from hops.model.dispatch import HostOperations, host_operations
from hops.model.implementation import Implementation, Microbatch
from hops.model.kernels import Gemm, Kernel, Pass
from hops.model.memory import StageMemory, stage_memory
from hops.model.optimizer import Optimizer
from hops.model.partition import Partition, StageSlice
from hops.model.transformer import Transformer
from hops.model.work import OpWork, StageWork, check_fit, stage_parameters, stage_work
from hops.model.zoo import MODELS, get_model

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
