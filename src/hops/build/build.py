"""From a spec to everything the engine needs: cluster, costs, network, scheduler, settings, facts."""

from dataclasses import dataclass

from hops.build.cluster import build_cluster
from hops.build.costs import build_costs
from hops.build.expected import build_profile
from hops.build.faults import build_faults
from hops.build.figures import scope_warnings
from hops.build.length import check_length
from hops.build.network import build_network
from hops.cost.base import CostModel
from hops.engine.settings import P2P, RunSettings
from hops.hardware.cluster import Cluster
from hops.hardware.network import Network
from hops.metrics.summary import RunFacts
from hops.program.shape import Shape
from hops.schedules.base import Scheduler
from hops.spec.spec import Spec
from hops.timing.stage_costs import StageCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A run that is ready to start. Everything in it is what the spec describes, nothing of it is drawn yet."""

    spec: Spec
    shape: Shape
    cluster: Cluster
    costs: CostModel
    network: Network
    profile: StageCosts
    settings: RunSettings
    facts: RunFacts

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the spec is far outside of what its profile was fitted on."""
        return scope_warnings(self.spec, self.cluster)

    def __repr__(self) -> str:
        return f"<Setup of {self.spec!r}: {self.shape.num_stages} stages on {self.shape.num_ranks} ranks>"

    def scheduler(self) -> Scheduler:
        """A new scheduler, not configured yet."""
        return self.spec.pipeline.schedule.make()


def build(spec: Spec) -> Setup:
    """Build a spec. Raises HopsError where the parts do not fit each other."""
    shape = spec.shape()
    cluster = build_cluster(spec)
    placement = spec.hardware.ranks()
    costs = build_costs(spec, shape, cluster)
    network = build_network(spec, shape, cluster, costs)
    p2p = P2P(spec.pipeline.p2p)
    devices = [cluster.device(each) for each in placement]
    profile = build_profile(shape, costs, network, devices, blocking=p2p is not P2P.OVERLAPPED)
    check_length(spec, profile)
    return Setup(
        spec=spec,
        shape=shape,
        cluster=cluster,
        costs=costs,
        network=network,
        profile=profile,
        settings=RunSettings(
            iterations=spec.simulation.iterations,
            seed=spec.simulation.seed,
            p2p=p2p,
            schedule=spec.pipeline.schedule.name,
            devices=tuple(f"{device.kind.name} {device.id}" for device in devices),
            hosts=tuple(device.node for device in devices),
            faults=build_faults(spec, cluster),
        ),
        facts=RunFacts(
            warmup_iterations=spec.simulation.warmup_iterations,
            samples_per_microbatch=spec.pipeline.microbatch_size,
            tokens_per_microbatch=_tokens(spec),
            data_parallel=spec.optimizer.data_parallel,
            flop_per_microbatch=_model_flop(spec),
            peak_flop_per_s=tuple(device.kind.rate(spec.pipeline.precision) for device in devices)
            if spec.pipeline.model is not None
            else (),
            stage_memory=tuple(costs.memory(stage) for stage in range(shape.num_stages)),
            memory_bytes=tuple(device.kind.memory_bytes for device in devices),
        ),
    )


def _tokens(spec: Spec) -> int | None:
    length = spec.pipeline.sequence_length
    return None if length is None else length * spec.pipeline.microbatch_size


def _model_flop(spec: Spec) -> float | None:
    pipeline = spec.pipeline
    if pipeline.model is None or pipeline.sequence_length is None:
        return None
    model = pipeline.model.transformer(pipeline.sequence_length)
    return model.model_flop(sequence_length=pipeline.sequence_length, samples=pipeline.microbatch_size)


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
