"""The end of an iteration: reductions, optimizer step and the host's gap, drawn anew each time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hops.cost.base import StepCosts
from hops.cost.roofline import DeviceRates
from hops.distributions import Constant, Distribution, Empirical, generator
from hops.hardware.network import RareDelay

ZERO = Constant(value=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """Distributions (seconds) of what StepCosts holds; constants where nothing varies.

    Attributes:
        tied_reduce: all-reduce of tied embedding gradients.
        tied_stall: rare extra time of it, such as a TCP retransmission timeout.
        grad_reduce: data-parallel reduction, per rank; () means none.
        optimizer: optimizer step, per rank; () means none.
        host: the host's gap.
        synchronized: as in StepCosts.
    """

    tied_reduce: Distribution = ZERO
    tied_stall: RareDelay | None = None
    grad_reduce: tuple[Distribution, ...] = ()
    optimizer: tuple[Distribution, ...] = ()
    host: Distribution = ZERO
    synchronized: bool = True

    def costs(self, iteration: int, seed: int) -> StepCosts:
        """The draw of one iteration; each part has its own generator, so that none moves another."""
        return StepCosts(
            tied_reduce_s=_one(self.tied_reduce, seed, "tied_reduce", iteration) + self._stall(iteration, seed),
            grad_reduce_s=_each(self.grad_reduce, seed, "grad_reduce", iteration),
            optimizer_s=_each(self.optimizer, seed, "optimizer", iteration),
            host_s=_one(self.host, seed, "host", iteration),
            synchronized=self.synchronized,
        )

    def expected(self) -> "StepModel":
        """The same with every part at its mean; the tied all-reduce's holds its stalls, probability x size."""
        stall = self.tied_stall
        stalls = 0.0 if stall is None else stall.probability * stall.extra.mean
        return self._constant(self.tied_reduce.mean + stalls)

    def typical(self) -> "StepModel":
        """The same with the tied all-reduce at its median over iterations, other parts at their mean.

        Stalls are longer than anything else, so with probability p of one the median of all is the quantile
        0.5 / (1 - p) of those without.
        """
        probability = 0.0 if self.tied_stall is None else self.tied_stall.probability
        if not isinstance(self.tied_reduce, Empirical):
            return self._constant(self.tied_reduce.mean)
        return self._constant(float(np.quantile(self.tied_reduce.samples, min(1.0, 0.5 / (1 - probability)))))

    def _constant(self, tied_reduce_s: float) -> "StepModel":
        return replace(
            self,
            tied_reduce=Constant(value=tied_reduce_s),
            tied_stall=None,
            grad_reduce=tuple(Constant(value=each.mean) for each in self.grad_reduce),
            optimizer=tuple(Constant(value=each.mean) for each in self.optimizer),
            host=Constant(value=self.host.mean),
        )

    def _stall(self, iteration: int, seed: int) -> float:
        if self.tied_stall is None:
            return 0.0
        rng = generator(seed, "tied_stall", iteration)
        stalled = rng.random() < self.tied_stall.probability
        return float(self.tied_stall.extra.sample(rng, 1)[0]) if stalled else 0.0


NO_STEPS = StepModel()


def optimizer_seconds(parameters: float, *, layers: int, bytes_per_parameter: float, rates: DeviceRates) -> float:
    """Optimizer step of a rank: launch + the longer of its bytes over its own memory bandwidth and their dispatch.

    `bytes_per_parameter` is Optimizer.step_bytes, divided by the replicas that share the states.
    """
    moved = parameters * bytes_per_parameter * rates.traffic.optimizer / rates.bytes_per_s
    return rates.optimizer_launch_s + max(moved, layers * rates.step_layer_s)


def optimizer_steps(
    parameters: Sequence[float], layers: Sequence[int], *, bytes_per_parameter: float, rates: Sequence[DeviceRates]
) -> tuple[float, ...]:
    """The step of every rank, from its start to its end: all wait for the gradient norm of the slowest rank.

    The global norm is an all-reduce over all ranks (Megatron-LM `clip_grads.py`), which the rank whose tensors take
    longest to dispatch enters last. Sequences have one value per rank.
    """
    norm = max(count * rate.norm_layer_s for count, rate in zip(layers, rates, strict=True))
    return tuple(
        norm + optimizer_seconds(number, layers=count, bytes_per_parameter=bytes_per_parameter, rates=rate)
        for number, count, rate in zip(parameters, layers, rates, strict=True)
    )


def _one(distribution: Distribution, seed: int, purpose: str, *indices: int) -> float:
    if isinstance(distribution, Constant):  # a generator takes longer to make than all else here
        return distribution.value
    return float(distribution.sample(generator(seed, purpose, *indices), 1)[0])


def _each(distributions: tuple[Distribution, ...], seed: int, purpose: str, iteration: int) -> tuple[float, ...]:
    return tuple(_one(each, seed, purpose, iteration, rank) for rank, each in enumerate(distributions))
