"""Chooses under uncertainty, by common random numbers: the plan as it is, the plan as priorities, or an incumbent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hops.arrays import IntArray
from hops.distributions import generator
from hops.errors import UsageError
from hops.program.lowering import lower
from hops.program.program import Program
from hops.search.search import Incumbent
from hops.timing.list_schedule import LOOK_AHEAD, list_schedule_by_priority, priorities_of
from hops.timing.longest_path import ActionTimes, longest_path
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
        mean_ns: expected makespan per candidate: `plan`, `plan+2` (look-ahead 2) ..., and the incumbent's name.
    """

    program: Program
    look_ahead: int
    mean_ns: dict[str, float]


def choose(
    costs: StageCosts,
    plan: Program,
    incumbent: Incumbent | None,
    noise: Noise,
    *,
    seed: int,
    look_aheads: Sequence[int] = LOOK_AHEADS,
) -> RobustChoice:
    """The candidate with the shortest mean makespan over DRAWS draws, the same for all; the first of equals.

    Candidates are the plan with each look-ahead (0: as it stands), and the incumbent as it stands.
    """
    arrays = cost_arrays(costs)
    draws = [*noisy_durations(arrays, noise, seed)]
    candidates = {("plan" if ahead == 0 else f"plan+{ahead}"): (plan, ahead) for ahead in look_aheads}
    if incumbent is not None:
        candidates[incumbent.name] = (incumbent.program, 0)
    means = {
        name: mean_ns(arrays, program, draws, look_ahead=ahead, pair_factor=costs.pair_factor)
        for name, (program, ahead) in candidates.items()
    }
    program, look_ahead = candidates[min(means, key=means.__getitem__)]
    return RobustChoice(program=program, look_ahead=look_ahead, mean_ns=means)


def expected_ns(costs: StageCosts, program: Program, noise: Noise, *, seed: int, look_ahead: int = 0) -> float:
    """The mean makespan of one program over DRAWS draws; the same seed gives the same noise to any program."""
    arrays = cost_arrays(costs)
    draws = [*noisy_durations(arrays, noise, seed)]
    return mean_ns(arrays, program, draws, look_ahead=look_ahead, pair_factor=costs.pair_factor)


def noisy_durations(costs: CostArrays, noise: Noise, seed: int) -> Iterator[IntArray]:
    """DRAWS draws of whole nanoseconds, shape (stages, 4, microbatches)."""
    shape = (*costs.times.shape, costs.size)
    for number in range(DRAWS):
        rng = generator(seed, "hops_hetero", number)
        constant = noise.profile_error * rng.standard_normal((*shape[:2], 1))
        factors = np.maximum(SHORTEST, 1 + constant + noise.jitter * rng.standard_normal(shape))
        yield np.rint(costs.each * factors).astype(np.int64)


def mean_ns(
    costs: CostArrays, program: Program, draws: Sequence[IntArray], *, look_ahead: int = 0, pair_factor: float = 1.0
) -> float:
    """The mean makespan of a program over durations of shape (stages, 4, microbatches).

    With a look-ahead its order stands for priorities, and pairs count as two actions; without, ranks run it as it is.
    """
    if look_ahead:
        order = priorities_of(program)
        return float(np.mean([list_schedule_by_priority.fast(costs, draw, order, look_ahead) for draw in draws]))
    low, kind = lower(program), program.kind
    hops = np.broadcast_to(costs.each_hop[:-1], (costs.num_stages - 1, costs.size))
    times = ActionTimes.of_kinds(program, costs.times.reshape(-1), hops, blocking=False)._replace(gap=costs.gap)
    makespans = []
    for draw in draws:
        duration = draw.reshape(-1, costs.size)[kind, program.microbatch]
        if pair_factor != 1:
            duration = np.where(program.in_pair, np.rint(duration * pair_factor).astype(np.int64), duration)
        free, start = np.zeros(program.num_ranks, dtype=np.int64), np.zeros(len(kind), dtype=np.int64)
        makespans.append(longest_path.on(len(kind), low, times._replace(duration=duration), free, start))
    return float(np.mean(makespans))
