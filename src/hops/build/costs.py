"""The pipeline and optimizer sections become a cost model on the devices that the stages are placed on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from hops.build.figures import Figures
from hops.cost.analytic import AnalyticCosts, balanced_partition
from hops.cost.base import CostModel
from hops.cost.collectives import reduced_bytes, reduction_seconds, tied_reduce_seconds
from hops.cost.fitted import TCP_CORE_BYTES_PER_S, End, tied_reduce
from hops.cost.iteration_end import StepModel, optimizer_steps
from hops.cost.jittered import Jittered
from hops.cost.roofline import DeviceRates
from hops.cost.stated import Backward, FusedBackward, MeasuredBackward, SplitBackward, StatedCosts, UnsplitBackward
from hops.cost.uneven import uneven
from hops.distributions import Constant, Distribution
from hops.hardware.devices import Interconnect
from hops.hardware.network import RareDelay
from hops.model.memory import StageMemory
from hops.model.partition import Partition
from hops.model.workload import Workload, stage_parameters
from hops.program.shape import Shape
from hops.spec.distributions import Form
from hops.spec.pipeline import StageTimes, per_stage
from hops.spec.spec import Spec


def build_costs(known: Figures, shape: Shape) -> CostModel:
    """Costs of every stage on the device of its rank, with the spec's jitter."""
    times, jitter = known.spec.pipeline.stage_times, known.spec.pipeline.jitter
    work = known.spec.pipeline.microbatch_work
    costs: CostModel = _analytic(known, shape) if times is None else _stated(known, times, shape)
    costs = costs if jitter is None else Jittered(inner=costs, factors=jitter.build())
    return uneven(costs, work.build() if isinstance(work, Form) else work)


def _stated(known: Figures, times: StageTimes, shape: Shape) -> StatedCosts:
    stages, spec = shape.stages_per_copy, known.spec

    def each(value: int | tuple[int, ...]) -> tuple[int, ...]:
        return per_stage(value, stages) * shape.copies

    backward = list(_backwards(times, stages, spec.pipeline.split_overhead))
    kept_for_weight = list(per_stage(times.kept_for_weight, stages))
    if not spec.pipeline.first_stage_splits:  # W is the whole backward, and needs the whole activation
        backward[0], kept_for_weight[0] = UnsplitBackward(inner=backward[0]), each(times.activation)[0]
    memories = zip(
        each(times.weights),
        each(times.gradients),
        each(times.optimizer_state),
        each(times.activation),
        kept_for_weight * shape.copies,
        strict=True,
    )
    return StatedCosts(
        forward=tuple(form.build() for form in per_stage(times.forward, stages)) * shape.copies,
        backward=tuple(backward) * shape.copies,
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
            grad_reduce=_stated_reduce(known, times, shape),
            optimizer=_stated_update(spec, shape),
            host=Constant(value=host_gap(known, shape.num_ranks) if spec.optimizer.enabled else 0.0),
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


def _stated_reduce(known: Figures, times: StageTimes, shape: Shape) -> tuple[Distribution, ...]:
    """The data-parallel reduction of the stated gradients; none where none are stated."""
    gradients, weights = [0] * shape.num_ranks, [0] * shape.num_ranks
    each = (per_stage(value, shape.stages_per_copy) * shape.copies for value in (times.gradients, times.weights))
    for rank, gradient, weight in zip(shape.rank_of_stage, *each, strict=True):
        gradients[rank] += gradient
        weights[rank] += weight
    if not known.spec.optimizer.enabled or not any(gradients):
        return ()
    return _grad_reduce(known, shape, gradients, weights)


def _stated_update(spec: Spec, shape: Shape) -> tuple[Distribution, ...]:
    update = spec.optimizer.update_time
    if update is None or not spec.optimizer.enabled:
        return ()
    return (update.build(),) * shape.num_ranks


def _analytic(known: Figures, shape: Shape) -> AnalyticCosts:
    work, pipeline = known.work, known.spec.pipeline
    assert work is not None, "a spec without stage times has a model"
    parts = partition(known, shape)
    return AnalyticCosts.of(
        work,
        parts,
        stage_rates(known, shape),
        steps=_steps(known, shape, work, parts),
        split_overhead=pipeline.split_overhead,
        first_stage_splits=pipeline.first_stage_splits,
    )


def stage_rates(known: Figures, shape: Shape) -> list[DeviceRates]:
    """What the device of every stage computes in a second."""
    return [known.rates[rank] for rank in shape.rank_of_stage]


def partition(known: Figures, shape: Shape) -> Partition:
    """The layers of every stage, given its device's rates. The spec has a model."""
    work, stated = known.work, known.spec.pipeline.partition
    assert work is not None, "only a model is divided into stages"
    if isinstance(stated, tuple):
        return Partition(layers=stated, copies=shape.copies)
    if stated == "balanced":
        return balanced_partition(work, stage_rates(known, shape), copies=shape.copies)
    return replace(Partition.even(work.model.layers, shape.stages_per_copy), copies=shape.copies)


def _steps(known: Figures, shape: Shape, work: Workload, partition: Partition) -> StepModel:
    """The end of an iteration: reductions over the network, the optimizer over each device's own memory."""
    section = known.spec.optimizer
    if not section.enabled:
        return StepModel(synchronized=section.synchronized)
    parameters, layers = [0] * shape.num_ranks, [0] * shape.num_ranks
    for stage, rank in enumerate(shape.rank_of_stage):
        part = partition.slice(stage)
        parameters[rank] += stage_parameters(work.model, part)
        layers[rank] += part.layers
    placement = known.spec.hardware.ranks()
    tied, stall = tied_reduction(known, placement[shape.rank_of_stage[0]], placement[shape.rank_of_stage[-1]])
    return StepModel(
        tied_reduce=tied,
        tied_stall=stall,
        grad_reduce=_grad_reduce(
            known,
            shape,
            [count * section.gradient_bytes for count in parameters],
            [count * work.how.element_bytes for count in parameters],
        ),
        optimizer=_updates(known, shape, work, parameters, layers),
        host=Constant(value=host_gap(known, shape.num_ranks)),
        synchronized=section.synchronized,
    )


def host_gap(known: Figures, num_ranks: int) -> float:
    """Seconds between iterations of so many ranks: the stated gap, or the profile's."""
    stated, profile = known.spec.optimizer.host_gap, known.profile
    if stated is not None:
        return stated
    return 0.0 if profile is None else profile.gap.base_s + profile.gap.per_rank_s * (num_ranks - 1)


def _updates(
    known: Figures, shape: Shape, work: Workload, parameters: Sequence[int], layers: Sequence[int]
) -> tuple[Distribution, ...]:
    """The optimizer step of every rank."""
    if known.spec.optimizer.update_time is not None:
        return _stated_update(known.spec, shape)
    step_bytes = work.optimizer.step_bytes(work.how.element_bytes) / work.states.optimizer
    steps = optimizer_steps(parameters, layers, bytes_per_parameter=step_bytes, rates=known.rates)
    return tuple(Constant(value=each) for each in steps)


def tied_reduction(known: Figures, first: str, last: str) -> tuple[Distribution, RareDelay | None]:
    """The tied-embedding all-reduce between devices of these ids, and its stalls.

    0 without tied embeddings, or with both ends on one device.
    """
    section, profile = known.spec.optimizer, known.profile
    if not section.tied_embeddings or first == last:
        return Constant(value=0.0), None
    assert known.work is not None, "only a model has embeddings"
    parameters = known.work.model.table_parameters
    ends = _ends(known, first, last)
    if profile is not None and ends is not None:
        return tied_reduce(profile, *ends, parameters * section.gradient_bytes)
    path = known.cluster.route(first, last)
    limit = TCP_CORE_BYTES_PER_S / 2 if known.spec.hardware.transport == "sockets" else inf
    seconds = tied_reduce_seconds(
        parameters,
        gradient_bytes=section.gradient_bytes,
        bandwidth=min(path.bandwidth, limit),
        latency_s=path.latency_s,
    )
    return Constant(value=seconds), None


def _ends(known: Figures, first: str, last: str) -> tuple[End, End] | None:
    """Both ends of an all-reduce over the network between hosts that the profile knows; None if it is none of those."""
    kinds = known.host_kinds
    nodes = [known.cluster.device(each).node for each in (first, last)]
    if nodes[0] == nodes[1] or not all(node in kinds for node in nodes):
        return None
    one, other = (
        End(host=node, kind=kinds[node], nic_bytes_per_s=known.cluster.nic(device).bandwidth)
        for node, device in zip(nodes, (first, last), strict=True)
    )
    return one, other


def _grad_reduce(
    known: Figures, shape: Shape, gradients: Sequence[float], parameters: Sequence[float]
) -> tuple[Distribution, ...]:
    """The reduction of every rank's bytes: over data-parallel copies, and over the copies that a pipeline has of it.

    Data-parallel copies use each rank's share of its host's NIC. A distributed optimizer's all-gather of parameters is
    counted here, too, before the step that it follows. The copies of the pipeline are alike, and the copies of one rank
    are on different hosts, so all ranks of a host reduce at once over the NIC they share. Without them, the two ranks
    of a bidirectional pipeline that hold the same stages reduce over the way between them.
    """
    section, copies = known.spec.optimizer, shape.copies
    members = section.data_parallel * copies
    if members == 1:
        return ()
    seconds = []
    for (bandwidth, latency_s), *held in zip(_reduction_ways(known, shape), gradients, parameters, strict=True):
        seconds.append(
            reduction_seconds(
                section.gradient_reduction,
                reduced_bytes(*held, distributed=section.distributed and section.data_parallel > 1),
                members,
                bandwidth=bandwidth,
                latency_s=latency_s,
            )
        )
    return tuple(Constant(value=each) for each in seconds)


def _reduction_ways(known: Figures, shape: Shape) -> list[tuple[float, float]]:
    """Bandwidth (bytes/s) and latency (s) that each rank's reduction gets."""
    if known.spec.optimizer.data_parallel > 1 or known.reduction_nic is not None:
        sharing = Counter(device.node for device in known.devices)
        nics = [reduction_nic(known, device.id) for device in known.devices]
        nodes = [device.node for device in known.devices]
        return [(nic.bandwidth / sharing[node], nic.latency_s) for nic, node in zip(nics, nodes, strict=True)]
    of_stage, size = shape.rank_of_stage, shape.stages_per_copy
    mirror = {of_stage[stage]: of_stage[(stage + size) % shape.num_stages] for stage in range(shape.num_stages)}
    pairs = [(device, known.devices[mirror[rank]]) for rank, device in enumerate(known.devices)]
    leaving = Counter(one.node for one, other in pairs if one.node != other.node)
    paths = [known.cluster.route(one.id, other.id) for one, other in pairs]
    return [
        (path.bandwidth / (leaving[one.node] if one.node != other.node else 1), path.latency_s)
        for path, (one, other) in zip(paths, pairs, strict=True)
    ]


def reduction_nic(known: Figures, device_id: str) -> Interconnect:
    """What a device's gradients are reduced over: stated for all, or its own NIC."""
    return known.cluster.nic(device_id) if known.reduction_nic is None else known.reduction_nic
