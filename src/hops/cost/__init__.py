"""Costs: seconds and bytes of every action, on the devices that the stages are placed on."""

from hops.cost.base import CostModel, StepCosts
from hops.cost.fixed import FixedCosts

__all__ = ["CostModel", "FixedCosts", "StepCosts"]
