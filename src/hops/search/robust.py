"""Chooses under uncertainty: the plan as it stands, the plan as priorities, or a built-in, by common random numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hops.distributions import FloatArray, generator
from hops.errors import UsageError
from hops.program.program import Program
from hops.schedules.builtins import Contender
from hops.search.anneal import order_of
from hops.timing.replay import LOOK_AHEAD, replay
from hops.timing.stage_costs import CostArrays, StageCosts, cost_arrays

DRAWS = 32
SHORTEST = 0.1  # of the expected time: where the normal noise is cut off
LOOK_AHEADS = (0, 2, LOOK_AHEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How far durations stray from the profile, as standard deviations of normal factors around 1.

    Attributes:
        jitter: anew for every action.
        profile_error: once per stage and op, for the whole run.
    """

    jitter: float = 0.0
    profile_error: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("jitter", self.jitter), ("profile_error", self.profile_error)):
            if not 0 <= value <= 1:
                raise UsageError(f"{name} must be a fraction from 0 to 1, such as 0.1 for 10%, but got {value!r}")

    @property
    def is_none(self) -> bool:
        return self.jitter == 0 and self.profile_error == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustChoice:
    """What to run, and what was expected of everything tried.

    Attributes:
        program: the order, or the priorities if `look_ahead` > 0.
        look_ahead: places past the first open action in which an idle rank may pick one that is ready; 0: none.
        mean_ns: expected makespan per candidate: `plan`, `plan+2` (look-ahead 2) ..., and the built-in's name.
    """

    program: Program
    look_ahead: int
    mean_ns: dict[str, float]


def choose(
    profile: StageCosts,
    plan: Program,
    builtin: Contender | None,
    noise: Noise,
    *,
    seed: int,
    look_aheads: Sequence[int] = LOOK_AHEADS,
) -> RobustChoice:
    """The candidate with the shortest mean makespan over DRAWS draws, the same for all; the first of equals.

    Candidates are the plan with each look-ahead (0: as it stands), and the built-in.
    """
    instance = cost_arrays(profile)
    draws = [*_draws(instance, noise, seed)]
    candidates = {("plan" if ahead == 0 else f"plan+{ahead}"): (plan, ahead) for ahead in look_aheads}
    if builtin is not None:
        candidates[builtin.name] = (builtin.program, 0)
    means = {name: _mean(instance, program, ahead, draws) for name, (program, ahead) in candidates.items()}
    program, look_ahead = candidates[min(means, key=means.__getitem__)]
    return RobustChoice(program=program, look_ahead=look_ahead, mean_ns=means)


def expected_ns(profile: StageCosts, program: Program, noise: Noise, *, seed: int, look_ahead: int = 0) -> float:
    """The mean makespan of one program over DRAWS draws; the same seed gives the same noise to any program."""
    instance = cost_arrays(profile)
    return _mean(instance, program, look_ahead, [*_draws(instance, noise, seed)])


def _draws(instance: CostArrays, noise: Noise, seed: int) -> Iterator[FloatArray]:
    """Durations in ns, shape (stages, 4, microbatches)."""
    shape = (*instance.times.shape, instance.size)
    for number in range(DRAWS):
        rng = generator(seed, "hops_hetero", number)
        constant = noise.profile_error * rng.standard_normal((*shape[:2], 1))
        factors = np.maximum(SHORTEST, 1 + constant + noise.jitter * rng.standard_normal(shape))
        durations: FloatArray = instance.times[:, :, None].astype(np.float64) * factors
        yield durations


def _mean(instance: CostArrays, program: Program, look_ahead: int, draws: list[FloatArray]) -> float:
    kinds = np.zeros((instance.num_ranks, instance.longest_rank), dtype=np.int64)
    length = np.zeros(instance.num_ranks, dtype=np.int64)
    order_of(program, kinds, length)
    rest = instance[2:]
    return float(np.mean([replay.fast(instance.size, draw, *rest, kinds, length, look_ahead) for draw in draws]))
