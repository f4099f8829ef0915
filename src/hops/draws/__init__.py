"""Random draws: named distributions, each fed by a generator that belongs to one purpose."""

from hops.draws.base import Distribution, FloatArray, generator
from hops.draws.distributions import (
    Constant,
    Empirical,
    Exponential,
    LogNormal,
    Normal,
    Pareto,
    Poisson,
    Weibull,
)

__all__ = [
    "Constant",
    "Distribution",
    "Empirical",
    "Exponential",
    "FloatArray",
    "LogNormal",
    "Normal",
    "Pareto",
    "Poisson",
    "Weibull",
    "generator",
]
