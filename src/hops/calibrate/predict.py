"""Predictions: a run's inputs become the figures it will come to. Nothing here, or imported here, reads a trace.

A prediction goes through the ordinary api: the launch's spec, with or without a profile, is built and simulated. What
is drawn (the tied all-reduce and its stalls) takes part with its expectation for the mean iteration, and with its
median for the median iteration: it is a part of every iteration that nothing overlaps, so that both are exact.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hops.build.run import simulate_setup
from hops.build.setup import LinkBenchmark, RunInputs, Setup, build
from hops.calibrate.score import RunFigures, simulated_outcome
from hops.cost.analytic import AnalyticCosts
from hops.cost.profile import BenchmarkFit, HardwareProfile
from hops.program.action import Op
from hops.spec.hardware import LinkEntry
from hops.spec.spec import Spec
from hops.units import TIME

VARIANTS = {
    "catalog": "vendor numbers only, nothing fitted: datasheet peaks, counted operations and bytes, nominal host time",
    "calibrated": "a profile fitted on other runs; of the run itself its launch arguments only",
    "link_calibrated": "as calibrated, and messages as much slower or faster as this run's own link benchmark says",
}


def predict(inputs: RunInputs, variant: str, profile: Path) -> RunFigures:
    """What the run will come to, by one of VARIANTS; `profile` is not read for `catalog`."""
    spec = inputs.spec if variant == "catalog" else with_profile(inputs.spec, profile)
    if variant == "link_calibrated":
        spec = with_benchmarks(spec, inputs.benchmarks)
    return expected_outcome(build(spec))


def with_profile(spec: Spec, profile: Path) -> Spec:
    """The spec with a hardware profile."""
    return spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"profile": str(profile)})})


def expected_outcome(setup: Setup) -> RunFigures:
    """Figures of the mean iteration, and the time of the median one."""
    costs = setup.costs
    assert isinstance(costs, AnalyticCosts), "launches describe a model"
    settings = replace(setup.settings, iterations=2)
    mean, median = (
        simulated_outcome(simulate_setup(replace(setup, settings=settings, costs=replace(costs, steps=steps))).trace)
        for steps in (costs.steps.expected(), costs.steps.typical())
    )
    return replace(mean, p50_iteration_s=median.mean_iteration_s)


def with_benchmarks(spec: Spec, benchmarks: tuple[LinkBenchmark, ...]) -> Spec:
    """The spec with links as its run's own benchmarks found them.

    A message takes as much more (or less) as the benchmark of its size took more than the benchmarks that the profile
    was fitted with. The benchmark itself is no message of Megatron's: hosts take longer for these.
    """
    setup = build(spec)
    profile = setup.known.profile
    assert profile is not None, "benchmarks are compared with those of a profile"
    links = tuple(link for each in benchmarks for link in _link(setup, profile, each))
    hardware = spec.hardware.model_copy(update={"links": (*spec.hardware.links, *links)})
    return spec.model_copy(update={"hardware": hardware})


def _link(setup: Setup, profile: HardwareProfile, benchmark: LinkBenchmark) -> list[LinkEntry]:
    ends = [setup.known.devices[rank].node for rank in benchmark.ranks]
    kinds = setup.known.host_kinds
    usual = _usual(profile, tuple(kinds[end] for end in ends if end in kinds))
    if usual is None or ends[0] == ends[1]:
        return []
    size = max(setup.costs.message_bytes(stage, op) for stage in range(setup.costs.num_stages) for op in (Op.F, Op.B))
    longer = np.interp(size, benchmark.sizes_bytes, benchmark.seconds) - np.interp(
        size, usual.sizes_bytes, usual.seconds
    )
    one, other = benchmark.ranks
    latency_s = min(setup.network.routes[way].latency_s for way in ((one, other), (other, one)))  # without a turn
    latency = TIME.exact(max(0.0, latency_s + float(longer)))
    return [LinkEntry.model_validate({"between": (ends[0], ends[1]), "latency": latency})]


def _usual(profile: HardwareProfile, kinds: tuple[str, ...]) -> BenchmarkFit | None:
    for each in profile.benchmarks:
        if sorted(each.hosts) == sorted(kinds):
            return each
    return None
