"""Costs: seconds and bytes of every action, on the devices that the stages are placed on."""

from hops.cost.analytic import AnalyticCosts
from hops.cost.balance import balanced_partition
from hops.cost.base import CostModel, StepCosts
from hops.cost.distribution import Backward, DistributionCosts, FusedBackward, MeasuredBackward, SplitBackward
from hops.cost.fixed import FixedCosts
from hops.cost.jitter import Jittered
from hops.cost.rates import DeviceRates
from hops.cost.reductions import reduction_seconds, ring_seconds, tied_reduce_seconds, tree_seconds
from hops.cost.steps import StepModel, optimizer_seconds

__all__ = [
    "AnalyticCosts",
    "Backward",
    "CostModel",
    "DeviceRates",
    "DistributionCosts",
    "FixedCosts",
    "FusedBackward",
    "Jittered",
    "MeasuredBackward",
    "SplitBackward",
    "StepCosts",
    "StepModel",
    "balanced_partition",
    "optimizer_seconds",
    "reduction_seconds",
    "ring_seconds",
    "tied_reduce_seconds",
    "tree_seconds",
]
