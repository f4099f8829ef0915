"""The optimizer section: what happens once an iteration, after the last backward."""

from typing import Literal

from pydantic import Field

from hops.config.distributions import Time
from hops.config.fields import Count, Flag, Number, Seconds, Section
from hops.config.hardware import ConnectionField

Kind = Literal["adam", "sgd_momentum", "sgd"]
Reduction = Literal["ring", "tree", "none"]


class Optimizer(Section):
    """Reductions, optimizer step and the gap before the next iteration."""

    enabled: Flag = Field(default=True, description="false: iterations consist of the pipeline alone")
    kind: Kind = Field(default="adam", description="decides the default of state_bytes")
    state_bytes: Number | None = Field(
        default=None, description="states per parameter, master weights included; default: by kind and precision"
    )
    fused: Flag = Field(default=True, description="one kernel for the step; false: torch.optim's foreach kernels")
    distributed: Flag = Field(default=False, description="data-parallel copies share the states (ZeRO-1)")
    gradient_bytes: Number = Field(default=4, description="size of one gradient, in memory and in reductions")
    tied_embeddings: Flag | None = Field(
        default=None,
        description="first and last stage share the embedding and reduce its gradients; default: the model's",
    )
    data_parallel: Count = Field(default=1, description="copies of the pipeline")
    gradient_reduction: Reduction = Field(default="ring", description="algorithm of the data-parallel reduction")
    reduction_interconnect: ConnectionField | None = Field(
        default=None, description="between the copies; default: as between nodes"
    )
    synchronized: Flag = Field(
        default=True, description="all ranks wait before the step (global gradient norm); false: each goes on alone"
    )
    update_time: Time | None = Field(
        default=None, description="time of the step; default: its bytes over memory bandwidth"
    )
    host_gap: Seconds | None = Field(
        default=None, description="host time before the next iteration starts; default: the profile's, or none"
    )
