"""The pipeline and optimizer sections become a cost model on the devices that the stages are placed on."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from hops.build.cluster import interconnect
from hops.build.figures import Trained, device_rates, fitted, host_kinds, trained
from hops.cost.analytic import AnalyticCosts, balanced_partition
from hops.cost.base import CostModel
from hops.cost.collectives import reduction_seconds, tied_reduce_seconds
from hops.cost.fitted import TCP_CORE_BYTES_PER_S, End, tied_reduce
from hops.cost.iteration_end import StepModel, optimizer_steps
from hops.cost.profile import HardwareProfile
from hops.cost.roofline import DeviceRates
from hops.cost.stated import Backward, DistributionCosts, FusedBackward, Jittered, MeasuredBackward, SplitBackward
from hops.distributions import Constant, Distribution
from hops.hardware.catalog import Catalog
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Topology
from hops.hardware.network import RareDelay
from hops.model.memory import StageMemory
from hops.model.partition import Partition
from hops.model.transformer import Transformer
from hops.model.workload import stage_parameters
from hops.program.shape import Shape
from hops.spec.pipeline import StageTimes, per_stage
from hops.spec.spec import Spec


def build_costs(spec: Spec, shape: Shape, cluster: Cluster) -> CostModel:
    """Costs of every stage on the device of its rank, with the spec's jitter."""
    if spec.pipeline.stage_times is not None:
        costs: CostModel = _stated(spec, spec.pipeline.stage_times, shape)
    else:
        costs = _analytic(spec, shape, cluster)
    jitter = spec.pipeline.jitter
    return costs if jitter is None else Jittered(inner=costs, factors=jitter.build())


def _stated(spec: Spec, times: StageTimes, shape: Shape) -> DistributionCosts:
    stages = shape.num_stages

    def each(value: int | tuple[int, ...]) -> tuple[int, ...]:
        return per_stage(value, stages)

    memories = zip(
        each(times.weights),
        each(times.gradients),
        each(times.optimizer_state),
        each(times.activation),
        each(times.kept_for_weight),
        strict=True,
    )
    return DistributionCosts(
        forward=tuple(form.build() for form in per_stage(times.forward, stages)),
        backward=_backwards(times, stages, spec.pipeline.split_overhead),
        bytes_per_message=each(times.message),
        memories=tuple(
            StageMemory(
                weights_bytes=weights,
                gradients_bytes=gradients,
                optimizer_bytes=states,
                activation_bytes=activation,
                kept_for_weight_bytes=kept,
            )
            for weights, gradients, states, activation, kept in memories
        ),
        steps=StepModel(
            optimizer=_stated_update(spec, shape),
            host=Constant(value=host_gap(spec, shape) if spec.optimizer.enabled else 0.0),
            synchronized=spec.optimizer.synchronized,
        ),
    )


def _backwards(times: StageTimes, stages: int, split_overhead: float) -> tuple[Backward, ...]:
    whole, inputs, weights = (
        None if form is None else [each.build() for each in per_stage(form, stages)]
        for form in (times.backward, times.input_backward, times.weight_backward)
    )
    if inputs is None or weights is None:
        assert whole is not None, "the spec's validation asks for one of them"
        return tuple(FusedBackward(whole=each, split_overhead=split_overhead) for each in whole)
    if whole is None:
        halves = zip(inputs, weights, strict=True)
        return tuple(SplitBackward(inputs=i, weights=w, split_overhead=split_overhead) for i, w in halves)
    together = zip(whole, inputs, weights, strict=True)
    return tuple(MeasuredBackward(whole=b, inputs=i, weights=w) for b, i, w in together)


def _stated_update(spec: Spec, shape: Shape) -> tuple[Distribution, ...]:
    update = spec.optimizer.update_time
    if update is None or not spec.optimizer.enabled:
        return ()
    return (update.build(),) * shape.num_ranks


def _analytic(spec: Spec, shape: Shape, cluster: Cluster) -> AnalyticCosts:
    work = trained(spec)
    rates = stage_rates(spec, shape, cluster)
    parts = partition(spec, work, rates)
    steps = _steps(spec, shape, cluster, work, parts, rates)
    return AnalyticCosts.of(
        work.model,
        parts,
        work.batch,
        work.how,
        work.optimizer,
        rates,
        optimizer_shards=work.optimizer_shards,
        steps=steps,
        split_overhead=spec.pipeline.split_overhead,
        first_stage_splits=spec.pipeline.first_stage_splits,
    )


def stage_rates(spec: Spec, shape: Shape, cluster: Cluster) -> list[DeviceRates]:
    """What the device of every stage computes in a second."""
    of_rank = [device_rates(spec, cluster.device(each)) for each in spec.hardware.ranks()]
    return [of_rank[rank] for rank in shape.rank_of_stage]


def partition(spec: Spec, work: Trained, rates: Sequence[DeviceRates]) -> Partition:
    """The layers of every stage, given its device's rates."""
    stated = spec.pipeline.partition
    if isinstance(stated, tuple):
        return Partition(layers=stated)
    if stated == "balanced":
        return balanced_partition(work.model, work.batch, work.how, rates)
    return Partition.even(work.model.layers, len(rates))


def _steps(
    spec: Spec,
    shape: Shape,
    cluster: Cluster,
    work: Trained,
    partition: Partition,
    rates: Sequence[DeviceRates],
) -> StepModel:
    """The end of an iteration: reductions over the network, the optimizer over each device's own memory."""
    section = spec.optimizer
    if not section.enabled:
        return StepModel(synchronized=section.synchronized)
    parameters, layers = [0] * shape.num_ranks, [0] * shape.num_ranks
    for stage, rank in enumerate(shape.rank_of_stage):
        part = partition.slice(stage)
        parameters[rank] += stage_parameters(work.model, part)
        layers[rank] += part.layers
    tied, stall = tied_reduction(spec, shape, cluster, work.model)
    return StepModel(
        tied_reduce=tied,
        tied_stall=stall,
        grad_reduce=_grad_reduce(spec, cluster, parameters),
        optimizer=_updates(spec, shape, work, parameters, layers, rates),
        host=Constant(value=host_gap(spec, shape)),
        synchronized=section.synchronized,
    )


def host_gap(spec: Spec, shape: Shape) -> float:
    """The stated gap, or the profile's."""
    stated, profile = spec.optimizer.host_gap, fitted(spec)
    if stated is not None:
        return stated
    return 0.0 if profile is None else profile.gap.base_s + profile.gap.per_rank_s * (shape.num_ranks - 1)


def _updates(
    spec: Spec,
    shape: Shape,
    work: Trained,
    parameters: Sequence[int],
    layers: Sequence[int],
    rates: Sequence[DeviceRates],
) -> tuple[Distribution, ...]:
    """The optimizer step of every rank."""
    if spec.optimizer.update_time is not None:
        return _stated_update(spec, shape)
    step_bytes = work.optimizer.step_bytes(work.how.element_bytes) / work.optimizer_shards
    rates_of_rank = [rates[shape.stages_of(rank)[0]] for rank in range(shape.num_ranks)]
    steps = optimizer_steps(parameters, layers, bytes_per_parameter=step_bytes, rates=rates_of_rank)
    return tuple(Constant(value=each) for each in steps)


def tied_reduction(
    spec: Spec, shape: Shape, cluster: Cluster, model: Transformer
) -> tuple[Distribution, RareDelay | None]:
    """The tied-embedding all-reduce; 0 without tied embeddings, or with both ends on one device."""
    placement = spec.hardware.ranks()
    first, last = placement[shape.rank_of_stage[0]], placement[shape.rank_of_stage[-1]]
    if not spec.optimizer.tied_embeddings or first == last:
        return Constant(value=0.0), None
    profile = fitted(spec)
    ends = None if profile is None else _ends(spec, cluster, profile, first, last)
    if profile is not None and ends is not None:
        return tied_reduce(profile, *ends, model.table_parameters * spec.optimizer.gradient_bytes)
    path = cluster.route(first, last)
    limit = TCP_CORE_BYTES_PER_S / 2 if spec.hardware.transport == "sockets" else inf
    seconds = tied_reduce_seconds(
        model.table_parameters,
        gradient_bytes=spec.optimizer.gradient_bytes,
        bandwidth=min(path.bandwidth, limit),
        latency_s=path.latency_s,
    )
    return Constant(value=seconds), None


def _ends(spec: Spec, cluster: Cluster, profile: HardwareProfile, first: str, last: str) -> tuple[End, End] | None:
    """Both ends of an all-reduce over the network between hosts that the profile knows; None if it is none of those."""
    kinds = host_kinds(spec, cluster, profile)
    nodes = [cluster.device(each).node for each in (first, last)]
    if nodes[0] == nodes[1] or not all(node in kinds for node in nodes):
        return None
    one, other = (
        End(host=node, kind=kinds[node], nic_bytes_per_s=cluster.nic(device).bandwidth)
        for node, device in zip(nodes, (first, last), strict=True)
    )
    return one, other


def _grad_reduce(spec: Spec, cluster: Cluster, parameters: Sequence[int]) -> tuple[Distribution, ...]:
    """The data-parallel reduction of every rank, each over its share of its host's NIC.

    The copies of the pipeline are alike, and the copies of one rank are on different hosts, so all ranks of a host
    reduce at once over the NIC they share.
    """
    section = spec.optimizer
    if section.data_parallel == 1:
        return ()
    stated = section.reduction_interconnect
    catalog = Catalog.load([Path(name) for name in spec.hardware.catalog])
    between = None if stated is None else interconnect(stated, catalog, Topology.NETWORK)
    devices = [cluster.device(each) for each in spec.hardware.ranks()]
    seconds = []
    for device, count in zip(devices, parameters, strict=True):
        nic = between or cluster.nic(device.id)
        sharing = sum(other.node == device.node for other in devices)
        seconds.append(
            reduction_seconds(
                section.gradient_reduction,
                count * section.gradient_bytes,
                section.data_parallel,
                bandwidth=nic.bandwidth / sharing,
                latency_s=nic.latency_s,
            )
        )
    return tuple(Constant(value=each) for each in seconds)
