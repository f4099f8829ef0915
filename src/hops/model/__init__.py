"""The model: what one microbatch costs a stage, before any hardware."""

from hops.model.implementation import Implementation, Microbatch
from hops.model.kernels import Gemm, Kernel, Pass
from hops.model.memory import StageMemory, stage_memory
from hops.model.optimizer import OPTIMIZERS, Optimizer, get_optimizer
from hops.model.partition import Partition
from hops.model.transformer import Transformer
from hops.model.work import OpWork, StageWork, stage_parameters, stage_work
from hops.model.zoo import MODELS, get_model

__all__ = [
    "MODELS",
    "OPTIMIZERS",
    "Gemm",
    "Implementation",
    "Kernel",
    "Microbatch",
    "OpWork",
    "Optimizer",
    "Partition",
    "Pass",
    "StageMemory",
    "StageWork",
    "Transformer",
    "get_model",
    "get_optimizer",
    "stage_memory",
    "stage_parameters",
    "stage_work",
]
