"""The end of an iteration: reductions, optimizer step and the host's gap, drawn anew each time."""

from dataclasses import dataclass

from hops.cluster import Stall
from hops.cost.base import StepCosts
from hops.cost.rates import DeviceRates
from hops.draws import Constant, Distribution, generator

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
    tied_stall: Stall | None = None
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

    def _stall(self, iteration: int, seed: int) -> float:
        if self.tied_stall is None:
            return 0.0
        rng = generator(seed, "tied_stall", iteration)
        stalled = rng.random() < self.tied_stall.probability
        return float(self.tied_stall.extra.sample(rng, 1)[0]) if stalled else 0.0


NO_STEPS = StepModel()


def optimizer_seconds(parameters: int, *, bytes_per_parameter: float, rates: DeviceRates) -> float:
    """Optimizer step of the parameters that a rank holds: bytes over its own memory bandwidth, plus dispatch.

    `bytes_per_parameter` is Optimizer.step_bytes, divided by the replicas that share the states.
    """
    return parameters * bytes_per_parameter / rates.bytes_per_s + rates.optimizer_launch_s


def _one(distribution: Distribution, seed: int, purpose: str, *indices: int) -> float:
    return float(distribution.sample(generator(seed, purpose, *indices), 1)[0])


def _each(distributions: tuple[Distribution, ...], seed: int, purpose: str, iteration: int) -> tuple[float, ...]:
    return tuple(_one(each, seed, purpose, iteration, rank) for rank, each in enumerate(distributions))
