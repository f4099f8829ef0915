"""What every recovery policy has to do: inherit RecoveryConformance in a test class and name the policy."""

from abc import ABC, abstractmethod
from itertools import combinations
from typing import ClassVar

import numpy as np

from hops.build.setup import build
from hops.distributions import generator
from hops.faults.models import FaultModel, Window
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.fleet.fleet import Fleet, FleetPlan
from hops.fleet.iteration_times import IterationTimeTable
from hops.fleet.recovery.base import RECOVERIES, RecoveryPolicy, Situation, Unit
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.simulate import simulate_fleet
from hops.fleet.time_use import TimeUse
from hops.fleet.trajectory import Trajectory
from hops.fleet.variants import Pipelines
from hops.spec.load import loads

S = 1_000_000_000
COPIES, MICROBATCHES, HORIZON_NS = 3, 4, 2000 * S
SPEC = f"""
pipeline: {{stage_times: {{forward: 1 s, backward: 2 s}}, microbatches: {MICROBATCHES}}}
hardware: {{nodes: [{{devices: [l4, l4, l4]}}]}}
optimizer: {{data_parallel: {COPIES}}}
"""
TIMES = RecoveryTimes(
    detection_ns=10 * S,
    restart_ns=20 * S,
    reconfigure_ns=5 * S,
    reload_ns=7 * S,
    copy_ns=3 * S,
    interval_ns=200 * S,
    pause_ns=4 * S,
    write_ns=4 * S,
    spares=2,
)


class RecoveryConformance:
    """The tests that every recovery policy passes. Name the subclass `Test...` so that pytest finds it."""

    policy: ClassVar[str]
    """Its name in the registry."""

    def test_no_faults_cost_nothing_but_checkpoints(self) -> None:
        found = self._train(FleetPlan())
        assert found.spent_ns[TimeUse.PRODUCTIVE] + found.spent_ns[TimeUse.CHECKPOINT] == HORIZON_NS

    def test_time_is_conserved_whatever_stops(self) -> None:
        for seed in range(5):
            found = self._train(self._plan(seed))
            assert sum(found.spent_ns.values()) == HORIZON_NS, f"seed {seed}"
            assert min(found.spent_ns.values()) >= 0, f"seed {seed}"

    def test_the_same_plan_and_seed_give_the_same_result(self) -> None:
        assert self._train(self._plan(3)) == self._train(self._plan(3))

    def test_every_vacant_place_is_filled_or_gone_without(self) -> None:
        """Where a policy is asked at all, phases last, and it leaves out nothing that is there."""
        made, units = self._made(), [Unit(copy, place) for copy in range(COPIES) for place in range(3)]
        for vacant in (frozenset(each) for size in (1, 2) for each in combinations(units, size)):
            if made.awaits_return:
                continue
            back_ns = dict.fromkeys(vacant, 900 * S)
            known = Situation(
                now_ns=100 * S, vacant=vacant, back_ns=back_ns, free=2, repairs_ns=(900 * S,) * len(vacant)
            )
            recovery = made.react(known)
            assert recovery.out <= vacant
            assert all(phase.length_ns >= 0 for phase in recovery.phases)
            assert recovery.out == vacant or any(phase.fills for phase in recovery.phases)
            assert not (recovery.out and made.layout(recovery.out).dropped == frozenset(range(COPIES)))

    def _made(self) -> RecoveryPolicy:
        setup = build(loads(SPEC))
        self._table = IterationTimeTable(Pipelines(setup, split_backward=True).get, samples=1, seed=0)
        self._fleet = Fleet.of(COPIES, setup.spec.hardware.ranks(), microbatches=MICROBATCHES)
        return RECOVERIES.get(self.policy)(TIMES, self._fleet, self._table.seconds)

    def _train(self, plan: FleetPlan) -> Trajectory:
        made = self._made()
        rng = generator(0, "conformance")
        return simulate_fleet(made, self._table, plan, TIMES, self._fleet, horizon_ns=HORIZON_NS, rng=rng)

    def _plan(self, seed: int) -> FleetPlan:
        """Stops at random, often several at once."""
        rng = np.random.default_rng(seed)
        plans = []
        for _ in range(COPIES):
            faults = []
            for device in build(loads(SPEC)).spec.hardware.ranks():
                now = 0.0
                while (now := now + float(rng.exponential(400))) < HORIZON_NS / S:
                    start, now = round(now) * S, now + float(rng.exponential(60)) + 1
                    faults.append(Fault(kind=FaultKind.STOP, target=device, start_ns=start, end_ns=round(now * S)))
            plans.append(FaultPlan.of(faults))
        return FleetPlan.of(plans)


HORIZONS_S = (10.0, 1_000.0, 100_000.0)
SEEDS = range(5)


class FaultModelConformance(ABC):
    """The tests that every fault model passes. Name the subclass `Test...` so that pytest finds it."""

    @abstractmethod
    def make(self) -> FaultModel:
        """A model, whose faults come some times in 100,000 seconds."""

    def test_breaks_before_the_longest_horizon(self) -> None:
        """Or the other tests would say nothing."""
        assert any(self._windows(HORIZONS_S[-1], seed) for seed in SEEDS), f"no fault in {HORIZONS_S[-1]:g} s"

    def test_windows_are_in_order_and_do_not_overlap(self) -> None:
        for seed in SEEDS:
            free_from = 0.0
            for start, end in self._windows(HORIZONS_S[-1], seed):
                assert free_from <= start <= end, f"({start}, {end}) follows a window that ends at {free_from}"
                free_from = end

    def test_windows_start_before_the_horizon(self) -> None:
        for horizon_s in HORIZONS_S:
            late = [start for start, _ in self._windows(horizon_s, 0) if not 0 <= start < horizon_s]
            assert not late, f"windows start at {late}, expected from 0 on and before {horizon_s:g}"

    def test_the_same_generators_give_the_same_windows(self) -> None:
        assert self._windows(HORIZONS_S[-1], 3) == self._windows(HORIZONS_S[-1], 3)

    def test_a_longer_horizon_moves_nothing(self) -> None:
        for seed in SEEDS:
            whole = self._windows(HORIZONS_S[-1], seed)
            for horizon_s in HORIZONS_S[:-1]:
                few = self._windows(horizon_s, seed)
                assert whole[: len(few)] == few, f"windows before {horizon_s:g} s depend on the horizon"
                assert len(few) == sum(start < horizon_s for start, _ in whole), f"windows before {horizon_s:g} s lack"

    def _windows(self, horizon_s: float, seed: int) -> list[Window]:
        def generator_of(purpose: str) -> np.random.Generator:
            return generator(seed, purpose)

        return list(self.make().windows(generator_of, horizon_s))
