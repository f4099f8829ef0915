"""A spec simulated many times, once per seed: what its fleet delivers on average, and how much that varies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from hops.build.prepared import is_steady
from hops.build.setup import Setup
from hops.distributions import generator
from hops.errors import DoesNotFitError, UsageError
from hops.faults.plan import FaultKind
from hops.fleet.fleet import Fleet, FleetPlan, draw_fleet
from hops.fleet.iteration_times import IterationTimeTable
from hops.fleet.recovery.base import RECOVERIES, RecoveryPolicy, Variant
from hops.fleet.recovery_times import RecoveryTimes, recovery_times
from hops.fleet.simulate import simulate_fleet
from hops.fleet.trajectory import Trajectory
from hops.fleet.variants import Pipelines, Replanner, rebalanced
from hops.processes import on_cores_sharing
from hops.registry import made
from hops.spec.failure import PolicyChoice, RecoverySection
from hops.units import NS_PER_S, format_time, to_ns

SAMPLES = 64  # iterations simulated per condition, where anything is drawn
Drawer = Callable[[Setup, int, int], FleetPlan]  # run, seed, horizon in ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What all seeds share: the fleet, what recovery costs, how long iterations take, the plan of every seed.

    Attributes:
        mtbf_s: mean time between stops of anything in use, over all plans; infinite if nothing stops.
    """

    setup: Setup
    fleet: Fleet
    times: RecoveryTimes
    policy: PolicyChoice
    table: IterationTimeTable
    plans: tuple[FleetPlan, ...]
    seeds: tuple[int, ...]
    horizon_ns: int
    mtbf_s: float

    def trajectories(self, on_end: Callable[[int], None] | None = None, *, jobs: int = 1) -> tuple[Trajectory, ...]:
        """One training run per seed, by so many processes. `on_end` is called with how many had ended before."""
        if jobs > 1:
            self.table.spread()  # once, and not in every process
        return tuple(on_cores_sharing(self, Study.trajectory, range(len(self.seeds)), jobs, on_done=on_end))

    def trajectory(self, number: int) -> Trajectory:
        """The training run of one seed, by its place."""
        return simulate_fleet(
            self.recovery(),
            self.table,
            self.plans[number],
            self.times,
            self.fleet,
            horizon_ns=self.horizon_ns,
            rng=generator(self.seeds[number], "goodput"),
        )

    def recovery(self) -> RecoveryPolicy:
        """The policy, made anew. Raises UsageError for a name or parameters that there are not."""
        given = (self.times, self.fleet, self.table.seconds)
        return made(RECOVERIES, self.policy.name, given, self.policy.parameters)

    def every(self, interval_ns: int) -> "Study":
        """The same with another checkpoint interval."""
        return replace(self, times=self.times.every(interval_ns))

    def under(self, policy: str) -> "Study":
        """The same under another recovery policy, with its defaults. Raises UsageError for an unknown one."""
        if policy == self.policy.name:
            return self
        RECOVERIES.get(policy)
        return replace(self, policy=PolicyChoice(name=policy))


def prepare(
    setup: Setup,
    recovery: RecoverySection,
    *,
    days: float,
    seeds: int,
    draw: Drawer = draw_fleet,
    samples: int = SAMPLES,
    replan: Replanner = rebalanced,
) -> Study:
    """Draw the plans and work out everything that does not depend on a seed.

    Args:
        setup: the run.
        recovery: section of the spec.
        days: how long each seed trains.
        seeds: how many; the first is the spec's own.
        draw: gives the plan of a seed.
        samples: iterations simulated per condition, if anything in the spec is drawn (one otherwise).
        replan: the spec for a pipeline on fewer devices, for the policy `replan`.

    Raises UsageError for numbers that make no sense, or an unknown policy; DoesNotFitError as `hops run` does.
    """
    _check_numbers(days, seeds, samples)
    _check_peers(setup, recovery)
    RECOVERIES.get(recovery.policy.name)
    horizon_ns = to_ns(days * 86_400)
    fleet = fleet_of(setup)
    first = setup.spec.simulation.seed
    numbers = tuple(range(first, first + seeds))
    plans = tuple(draw(setup, seed, horizon_ns).concerning(fleet) for seed in numbers)
    mtbf_s = _mtbf_s(plans, horizon_ns)
    times = recovery_times(setup, recovery, mtbf_s=mtbf_s)
    if times.interval_ns is not None and times.interval_ns > horizon_ns and recovery.checkpoint.interval not in _RULES:
        raise UsageError(
            f"failure.recovery.checkpoint.interval: got {format_time(times.interval_ns / NS_PER_S)}, longer than the "
            f"run of {format_time(horizon_ns / NS_PER_S)}: no checkpoint would ever be taken; shorten it, raise "
            "--days, or write null for none"
        )
    pipelines = Pipelines(setup, split_backward=times.split_backward, replan=replan)
    if pipelines.get(Variant()) is None:
        raise DoesNotFitError("the plan does not fit into memory; `hops run` says where")
    steady = is_steady(setup.spec)
    study = Study(
        setup=setup,
        fleet=fleet,
        times=times,
        policy=recovery.policy,
        table=IterationTimeTable(pipelines.get, samples=1 if steady else samples, seed=first),
        plans=plans,
        seeds=numbers,
        horizon_ns=horizon_ns,
        mtbf_s=mtbf_s,
    )
    study.recovery()
    return study


_RULES = ("young", "daly")


def fleet_of(setup: Setup) -> Fleet:
    """The copies of a run's pipeline, and the links that their messages and reductions cross."""
    reductions = (name for names in setup.settings.faults.reduction_links for name in names)
    return Fleet.of(
        setup.spec.optimizer.data_parallel,
        setup.spec.hardware.ranks(),
        microbatches=setup.shape.num_microbatches,
        links=(*(link.name for link in setup.network.links), *reductions),
    )


def _check_numbers(days: float, seeds: int, samples: int) -> None:
    if not 0 < days <= 3650:
        raise UsageError(f"--days: got {days:g}, expected more than 0 and at most 3650")
    if seeds < 1:
        raise UsageError(f"--seeds: got {seeds}, expected at least 1")
    if samples < 2:
        raise UsageError(f"--samples: got {samples}, expected at least 2, so that a spread can be seen")


def _check_peers(setup: Setup, recovery: RecoverySection) -> None:
    """With ZeRO-1 every copy holds a part of the optimizer's states that no peer has."""
    if recovery.policy.name == "spare" and recovery.state_from == "peer" and setup.spec.optimizer.distributed:
        raise UsageError(
            "failure.recovery.state_from: got peer, but with optimizer.distributed the optimizer's states are spread "
            "over the copies, so that no peer has those of another; write checkpoint"
        )


def _mtbf_s(plans: Sequence[FleetPlan], horizon_ns: int) -> float:
    """Time over stops; those that begin at one moment in one copy are one."""
    count = sum(
        len({(each.replica, each.fault.start_ns) for each in plan if each.fault.kind is FaultKind.STOP})
        for plan in plans
    )
    return horizon_ns * len(plans) / NS_PER_S / count if count else inf
