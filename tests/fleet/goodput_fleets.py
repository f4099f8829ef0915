"""Small fleets and plans for the tests of goodput."""

from dataclasses import replace

import numpy as np

from hops.build.setup import build
from hops.distributions import generator
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.fleet.fleet import Fleet, FleetPlan
from hops.fleet.iteration_times import IterationTimeTable
from hops.fleet.recovery.base import RECOVERIES
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.simulate import simulate_fleet
from hops.fleet.variants import Pipelines
from hops.spec.load import loads

S = 1_000_000_000
SPEC = """
pipeline:
  schedule: {schedule}
  stage_times: {{forward: 100 ms, backward: 200 ms, message: 1 MiB}}
  microbatches: 4
  {more}
hardware:
  nodes: [{{count: 3, devices: [l4]}}]
  interconnect: ethernet-25
optimizer: {{data_parallel: {copies}, update_time: 50 ms}}
"""
TIMES = RecoveryTimes(
    detection_ns=30 * S,
    restart_ns=60 * S,
    reconfigure_ns=10 * S,
    reload_ns=20 * S,
    copy_ns=5 * S,
    interval_ns=600 * S,
    pause_ns=10 * S,
    write_ns=10 * S,
    spares=1,
)
FREE = RecoveryTimes()


class World:
    """A fleet whose pipeline is simulated once and trained many times."""

    def __init__(self, *, copies=1, schedule="1f1b", more="", samples=1, setup=None):
        self.setup = setup or build(loads(SPEC.format(schedule=schedule, more=more, copies=copies)))
        copies = self.setup.spec.optimizer.data_parallel
        links = [link.name for link in self.setup.network.links]
        self.fleet = Fleet.of(copies, self.setup.spec.hardware.ranks(), microbatches=4, links=links)
        self.pipelines = Pipelines(self.setup, split_backward=True)
        self.table = IterationTimeTable(self.pipelines.get, samples=samples, seed=0)
        self.iteration_ns = round(self.table.spread().mean_ns)

    @classmethod
    def of(cls, setup):
        """The world of a run that is built already."""
        return cls(setup=setup)

    @staticmethod
    def plan_of(plan):
        """Of the first copy alone."""
        return FleetPlan.of([plan])

    def train(self, policy, plan, *, days=0.0, horizon_ns=0, times=TIMES, seed=0):
        """Trained under a policy; `plan` is a FleetPlan, or faults of the first copy."""
        plan = plan if isinstance(plan, FleetPlan) else FleetPlan.of([FaultPlan(faults=tuple(plan))])
        made = RECOVERIES.get(policy)(times, self.fleet, self.table.seconds)
        return simulate_fleet(
            made,
            self.table,
            plan,
            times,
            self.fleet,
            horizon_ns=horizon_ns or round(days * 86400 * S),
            rng=generator(seed, "life"),
        )


def stop(device, start_s, end_s, cause=""):
    return Fault(kind=FaultKind.STOP, target=device, start_ns=round(start_s * S), end_ns=round(end_s * S), cause=cause)


def slow(device, start_s, end_s, factor):
    return replace(stop(device, start_s, end_s), kind=FaultKind.SLOW, factor=factor)


def link(name, start_s, end_s, factor=1.0):
    """Down with a factor of 1, slow with less."""
    kind = FaultKind.LINK_DOWN if factor == 1.0 else FaultKind.LINK_SLOW
    return replace(stop(name, start_s, end_s), kind=kind, factor=factor)


def random_plan(fleet, seed, *, span_s, mtbf_s, mttr_s, slow_factor=None, down_links=False):
    """Stops of every device at a constant rate; devices that get slow and links that go down, if wanted."""
    plans = []
    for copy in range(fleet.replicas):
        faults = []
        for number, device in enumerate(fleet.devices):
            rng = np.random.default_rng((seed, copy, number))
            faults += [stop(device, *window) for window in _windows(rng, span_s, mtbf_s, mttr_s)]
            if slow_factor is not None:
                faults += [slow(device, *window, slow_factor) for window in _windows(rng, span_s, mtbf_s, mttr_s)]
        if down_links:
            rng = np.random.default_rng((seed, copy, 1000))
            names = sorted(fleet.links)
            faults += [
                link(names[number % len(names)], *window)
                for number, window in enumerate(_windows(rng, span_s, mtbf_s, mttr_s / 10))
            ]
        plans.append(FaultPlan(faults=tuple(sorted(faults, key=lambda fault: fault.start_ns))))
    return FleetPlan.of(plans)


def _windows(rng, span_s, mtbf_s, mttr_s):
    time = 0.0
    while True:
        start = time + rng.exponential(mtbf_s)
        if start >= span_s:
            return
        time = start + max(1e-6, rng.exponential(mttr_s))
        yield start, time
