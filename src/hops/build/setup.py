"""Setup: a spec as everything the engine needs: figures, costs, network, scheduler, settings, facts."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hops.build.costs import build_costs
from hops.build.expected import expected
from hops.build.faults import build_faults
from hops.build.figures import Figures, resolve
from hops.build.length import check_length
from hops.build.network import build_network
from hops.build.remarks import reduction_warnings, scope_warnings
from hops.cost.base import CostModel
from hops.engine.settings import P2P, Engine, RunSettings
from hops.hardware.cluster import Cluster
from hops.hardware.network import Network
from hops.metrics.summary import RunFacts
from hops.program.shape import Shape
from hops.recent import Recent
from hops.schedules.base import SCHEDULERS, Scheduler
from hops.spec.distributions import ConstantForm
from hops.spec.spec import Spec
from hops.timing.stage_costs import StageCosts
from hops.units import to_ns


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Setup:
    """A run that is ready to start. Everything in it is what the spec describes, nothing of it is drawn yet.

    Attributes:
        expected: what a scheduler may know.
    """

    known: Figures
    shape: Shape
    costs: CostModel
    network: Network
    expected: StageCosts
    settings: RunSettings
    facts: RunFacts

    @property
    def spec(self) -> Spec:
        return self.known.spec

    @property
    def cluster(self) -> Cluster:
        return self.known.cluster

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the spec is far outside of what its profile was fitted on, or silent about what it would reduce."""
        return (*reduction_warnings(self.spec, self.shape), *scope_warnings(self.known, self.shape))

    def scheduler(self) -> Scheduler:
        """A new scheduler, not configured yet."""
        return self.spec.pipeline.schedule.make()

    def __repr__(self) -> str:
        """One line, such as `Setup(1f1b, 64 microbatches, 8 stages on 8 ranks: 4 h100-sxm, 4 l4)`."""
        kinds = Counter(device.kind.name for device in self.known.devices)
        on = ", ".join(f"{count} {name}" for name, count in kinds.items())
        shape = self.shape
        return (
            f"Setup({self.settings.schedule}, {shape.num_microbatches} microbatches, {shape.num_stages} stages on "
            f"{shape.num_ranks} ranks: {on})"
        )


SHARED_RANKS = 1024  # setups of more are not kept for other specs
_SETUPS: Recent[Setup] = Recent(64)
_OF_THE_RUN = ("simulation", "output")  # sections that say how a setup runs, and not what it is


def build(spec: Spec) -> Setup:
    """Build a spec: look up its figures, then costs, network and what a scheduler may know.

    Specs that have the same sections (`Spec.with_` changes none but those that it names) share what is built of them.
    Raises HopsError where the parts do not fit each other.
    """
    sections = tuple(getattr(spec, name) for name in Spec.model_fields if name not in _OF_THE_RUN)
    maker = SCHEDULERS.get(spec.pipeline.schedule.name)
    setup = _SETUPS.of((maker, *sections), lambda: _built(spec), key=_files(spec), keep=_is_shared)
    check_length(spec, setup.expected)
    if setup.spec is spec:
        return setup
    simulation = spec.simulation
    return replace(
        setup,
        known=replace(setup.known, spec=spec),
        settings=replace(
            setup.settings,
            iterations=simulation.iterations,
            seed=simulation.seed,
            engine=Engine(simulation.engine),
        ),
        facts=replace(
            setup.facts,
            warmup_iterations=simulation.warmup_iterations,
            microbatch_work=_work(
                spec, setup.costs, setup.shape.num_microbatches
            ),  # drawn by the seed, for each iteration
        ),
    )


def _is_shared(setup: Setup) -> bool:
    return setup.shape.num_ranks <= SHARED_RANKS and "file" not in setup.spec.pipeline.schedule.parameters


def _files(spec: Spec) -> tuple[tuple[int, int], ...]:
    """When the files that hardware names were written, and their sizes."""
    hardware = spec.hardware
    names = hardware.catalog if hardware.profile is None else (*hardware.catalog, hardware.profile)
    stats = [Path(name).stat() for name in names if Path(name).is_file()]
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def _built(spec: Spec) -> Setup:
    shape = spec.shape()
    known = resolve(spec)
    costs = build_costs(known, shape)
    network = build_network(known, shape, costs)
    profile = expected(shape, costs, network, known.devices, pipeline=spec.pipeline)
    return Setup(
        known=known,
        shape=shape,
        costs=costs,
        network=network,
        expected=profile,
        settings=RunSettings(
            iterations=spec.simulation.iterations,
            seed=spec.simulation.seed,
            p2p=P2P(spec.pipeline.p2p),
            host_per_action_ns=int(to_ns(np.array(spec.pipeline.host_per_action))),
            pair_factor=spec.pipeline.pair_factor,
            engine=Engine(spec.simulation.engine),
            schedule=spec.pipeline.schedule.name,
            devices=tuple(f"{device.kind.name} {device.id}" for device in known.devices),
            hosts=tuple(device.node for device in known.devices),
            faults=build_faults(known),
        ),
        facts=_facts(known, shape, costs),
    )


def _facts(known: Figures, shape: Shape, costs: CostModel) -> RunFacts:
    spec, work = known.spec, known.work
    length = spec.pipeline.sequence_length
    return RunFacts(
        warmup_iterations=spec.simulation.warmup_iterations,
        samples_per_microbatch=spec.pipeline.microbatch_size,
        tokens_per_microbatch=None if length is None else length * spec.pipeline.microbatch_size,
        data_parallel=spec.optimizer.data_parallel,
        flop_per_microbatch=None
        if work is None
        else work.model.model_flop(sequence_length=work.batch.sequence_length, samples=work.batch.samples),
        devices_per_rank=spec.parallel.copy_devices,
        hardware_flop_per_microbatch=None
        if costs.device_flop is None
        else costs.device_flop * spec.parallel.copy_devices / shape.copies,
        peak_flop_per_s=tuple(rates.peak_flop_per_s for rates in known.rates),
        stage_memory=tuple(costs.memory(stage) for stage in range(shape.num_stages)),
        microbatch_work=_work(spec, costs, shape.num_microbatches),
        host_per_action_ns=int(to_ns(np.array(spec.pipeline.host_per_action))),
        memory_bytes=tuple(device.kind.memory_bytes for device in known.devices),
    )


def _work(spec: Spec, costs: CostModel, count: int) -> tuple[tuple[float, ...], ...]:
    """The work of every microbatch: a row per iteration, one row for all, or () where all are 1."""
    stated, simulation = spec.pipeline.microbatch_work, spec.simulation
    if stated is None:
        return ()
    rows = 1 if isinstance(stated, tuple | ConstantForm) else simulation.iterations
    return tuple(tuple(costs.work(number, count, simulation.seed).tolist()) for number in range(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBenchmark:
    """A point-to-point benchmark between the hosts of two ranks: median seconds by message size, in rising sizes."""

    ranks: tuple[int, int]
    sizes_bytes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """A run before it runs. Everything that predicts takes this and nothing else of a run.

    Attributes:
        name: for reports only.
        spec: of the launch, without a hardware profile.
        benchmarks: of neighbouring ranks' hosts; () if there is none.
    """

    name: str
    spec: Spec
    benchmarks: tuple[LinkBenchmark, ...] = ()
