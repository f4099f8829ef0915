"""Costs: seconds and bytes of every action, on the devices that the stages are placed on."""

from hops.cost.analytic import AnalyticCosts, balanced_partition
from hops.cost.base import CostModel, StepCosts
from hops.cost.collectives import reduced_bytes, reduction_seconds, ring_seconds, tied_reduce_seconds, tree_seconds
from hops.cost.fitted import (
    TCP_CORE_BYTES_PER_S,
    End,
    catalog_rates,
    fitted_rates,
    pair_of,
    port_bytes_per_s,
    shapes_traffic,
    tied_reduce,
)
from hops.cost.iteration_end import StepModel, optimizer_seconds, optimizer_steps
from hops.cost.jittered import Jittered
from hops.cost.paired import Paired, paired
from hops.cost.profile import (
    BenchmarkFit,
    CodeFit,
    DeviceFit,
    GapFit,
    HardwareProfile,
    HostFit,
    MessageFit,
    OperationFactors,
    PairFit,
    PathFit,
    ReduceFit,
    Scope,
    StallPrior,
)
from hops.cost.roofline import DeviceRates, Traffic
from hops.cost.stated import Backward, FusedBackward, MeasuredBackward, SplitBackward, StatedCosts, UnsplitBackward
from hops.cost.table import TableCosts

__all__ = [
    "TCP_CORE_BYTES_PER_S",
    "AnalyticCosts",
    "Backward",
    "BenchmarkFit",
    "CodeFit",
    "CostModel",
    "DeviceFit",
    "DeviceRates",
    "End",
    "FusedBackward",
    "GapFit",
    "HardwareProfile",
    "HostFit",
    "Jittered",
    "MeasuredBackward",
    "MessageFit",
    "OperationFactors",
    "PairFit",
    "Paired",
    "PathFit",
    "ReduceFit",
    "Scope",
    "SplitBackward",
    "StallPrior",
    "StatedCosts",
    "StepCosts",
    "StepModel",
    "TableCosts",
    "Traffic",
    "UnsplitBackward",
    "balanced_partition",
    "catalog_rates",
    "fitted_rates",
    "optimizer_seconds",
    "optimizer_steps",
    "pair_of",
    "paired",
    "port_bytes_per_s",
    "reduced_bytes",
    "reduction_seconds",
    "ring_seconds",
    "shapes_traffic",
    "tied_reduce",
    "tied_reduce_seconds",
    "tree_seconds",
]
