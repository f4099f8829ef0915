"""Reductions at the end of an iteration: gradients over copies, tied embeddings between first and last stage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from hops.axes import Axis
from hops.build.figures import Figures
from hops.build.groups import nic_sharers
from hops.cost.base import CostModel
from hops.cost.collectives import reduced_bytes, reduction_seconds, tied_reduce_seconds
from hops.cost.data_parallel import Held, Sharing, at_end, overlapped_s, seconds
from hops.cost.exchange import DeviceGroups
from hops.cost.fitted import TCP_CORE_BYTES_PER_S, End, tied_reduce
from hops.distributions import Constant, Distribution
from hops.hardware.devices import Interconnect
from hops.hardware.network import RareDelay
from hops.hardware.span import Span
from hops.program.action import Op
from hops.program.shape import Shape
from hops.spec.spec import Spec


def sharing_of(spec: Spec) -> Sharing:
    """How the copies of a spec divide what they hold."""
    parallel, copies = spec.parallel, spec.optimizer.data_parallel
    groups = 1 if parallel.shard_group is None else copies // parallel.shard_group
    return Sharing(
        zero=parallel.zero(distributed=spec.optimizer.distributed) if copies > 1 else 0,
        groups=groups,
        each_microbatch=spec.mesh().pipeline == 1,
        overlapped=frozenset(parallel.overlapped),
    )


def shard_parts(spec: Spec) -> int:
    """Members that hold all parts between them, with the parts of context."""
    copies = spec.parallel.shard_group or spec.optimizer.data_parallel
    return copies * spec.parallel.context


def grad_reduce(
    known: Figures, shape: Shape, held: Sequence[Held], costs: CostModel | None
) -> tuple[Distribution, ...]:
    """What every rank's copies exchange at the end of an iteration: of data-parallel copies, and of a pipeline's own.

    A distributed optimizer's all-gather of parameters is counted here, too, before the step that it follows. `costs`:
    of the stages, where some of it goes on beside their computing. Without data-parallel copies, the two ranks of a
    bidirectional pipeline that hold the same stages reduce over the way between them.
    """
    section, copies = known.spec.optimizer, shape.copies
    exchanges, sharing = known.exchanges, sharing_of(known.spec)
    alone = all(exchange.span(axis).members == 1 for exchange in exchanges for axis in (Axis.DATA, Axis.EXPERT_DATA))
    if (alone and copies == 1) or section.gradient_reduction == "none":
        return ()
    if alone:
        ways = _mirror_ways(known, shape)
        algorithm = "ring" if section.gradient_reduction == "auto" else str(section.gradient_reduction)
        each = [
            reduction_seconds(algorithm, rank.gradients, copies, bandwidth=bandwidth, latency_s=latency_s)
            for rank, (bandwidth, latency_s) in zip(held, ways, strict=True)
        ]
    elif section.gradient_reduction == "auto":
        each = [
            _chosen(known, shape, rank, held[rank], sharing, _twice(exchange, copies), costs)
            for rank, exchange in enumerate(exchanges)
        ]
    else:
        assert section.gradient_reduction is not None, "loading a spec fills it in"
        each = [
            _stated(section.gradient_reduction, rank, sharing, exchange, copies)
            for rank, exchange in zip(held, exchanges, strict=True)
        ]
    return tuple(Constant(value=value) for value in each)


def _stated(algorithm: str, held: Held, sharing: Sharing, exchange: DeviceGroups, copies: int) -> float:
    """By a stated algorithm at the bandwidth of the wires: a reduce-scatter and an all-gather are half of it each."""
    total = 0.0
    for axis, gradients, parameters in (
        (Axis.DATA, held.gradients, held.parameters),
        (Axis.EXPERT_DATA, held.expert_gradients, held.expert_parameters),
    ):
        span = exchange.span(axis)
        if span.members * copies > 1 and gradients:
            bandwidth, latency_s = _wires(span)
            left = (0.0 if sharing.each_microbatch and sharing.zero >= stage else 1.0 for stage in (2, 3))
            reduced, gathered = (part * size for part, size in zip(left, (gradients, parameters), strict=True))
            size = reduced_bytes(reduced, gathered, distributed=sharing.zero > 0)
            members = span.members * copies
            total += reduction_seconds(algorithm, size, members, bandwidth=bandwidth, latency_s=latency_s)
    return total


def _wires(span: Span) -> tuple[float, float]:
    """Bandwidth (bytes/s) of a ring over a span, and latency (s) of its slowest hop."""
    bandwidth = min(span.port_bytes_per_s, span.nic_bytes_per_s * span.per_domain)
    slowest = span.outside or span.inside
    return bandwidth, 0.0 if slowest is None else slowest.latency_s


def _chosen(
    known: Figures,
    shape: Shape,
    rank: int,
    held: Held,
    sharing: Sharing,
    exchange: DeviceGroups,
    costs: CostModel | None,
) -> float:
    """By the fastest algorithm; of what goes on beside computing only the exposed rest."""
    end, inner = at_end(held, sharing), shard_parts(known.spec)
    reduce_s, gather_s = (seconds(each, exchange, inner=inner) for each in (end.reduce, end.gather))
    if costs is None:
        return reduce_s + gather_s
    stages = shape.stages_of(rank)
    buckets = max(1, _layers(known, shape) * len(stages))
    turns = min(shape.num_ranks, shape.num_microbatches)
    if "gradients" in sharing.overlapped:  # the first stage of a rank is the last one whose backward ends
        window = costs.seconds(stages[0], Op.B) + turns * sum(costs.seconds(each, Op.B) for each in stages[1:])
        reduce_s = overlapped_s(reduce_s, buckets, window, exchange)
    if "parameters" in sharing.overlapped:  # a stage waits for those before it first
        window = sum(costs.seconds(stage, Op.F) for stage in range(stages[0] + 1))
        window += turns * sum(costs.seconds(each, Op.F) for each in stages[1:])
        gather_s = overlapped_s(gather_s, buckets, window, exchange)
    return reduce_s + gather_s


def _layers(known: Figures, shape: Shape) -> int:
    """Layers of a stage, about; a stage of stated times is one."""
    return 1 if known.work is None else -(-known.work.model.layers // shape.stages_per_copy)


def _twice(exchange: DeviceGroups, copies: int) -> DeviceGroups:
    """The groups of gradients with the other copies that a bidirectional pipeline has of each stage."""
    if copies == 1:
        return exchange
    spans = tuple(
        (axis, part, _widened(span, copies) if axis in (Axis.DATA, Axis.EXPERT_DATA) else span)
        for axis, part, span in exchange.spans
    )
    return DeviceGroups(spans=spans, overlap_slowdown=exchange.overlap_slowdown)


def _widened(span: Span, copies: int) -> Span:
    domains = span.domains * copies if span.outside is not None else span.domains
    per_domain = span.per_domain if span.outside is not None else span.per_domain * copies
    return replace(span, members=span.members * copies, domains=domains, per_domain=per_domain)


def _mirror_ways(known: Figures, shape: Shape) -> list[tuple[float, float]]:
    """Bandwidth (bytes/s) and latency (s) between each rank and the one that holds the same stages."""
    if known.reduction_nic is not None:
        sharing = Counter(device.node for device in known.devices)
        nic = known.reduction_nic
        return [(nic.bandwidth / sharing[device.node], nic.latency_s) for device in known.devices]
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
    """What a device's gradients are reduced over: stated for all, or the NICs of its host as one."""
    return known.cluster.nics(device_id) if known.reduction_nic is None else known.reduction_nic


def tied_reduction(known: Figures, first: str, last: str) -> tuple[Distribution, RareDelay | None]:
    """The tied-embedding all-reduce between devices of these ids, and its stalls.

    0 without tied embeddings, or with both ends on one device. Devices of a tensor group hold a part of the table each,
    and all devices of a position reduce at once over the NICs that they share.
    """
    section, profile, spec = known.spec.optimizer, known.profile, known.spec
    if not section.tied_embeddings or first == last:
        return Constant(value=0.0), None
    assert known.work is not None, "only a model has embeddings"
    parameters = -(-known.work.model.table_parameters // spec.parallel.tensor)
    ends = _ends(known, first, last)
    if profile is not None and ends is not None:
        return tied_reduce(profile, *ends, parameters * section.gradient_bytes)
    path = known.cluster.route(first, last)
    limit = TCP_CORE_BYTES_PER_S / 2 if spec.hardware.transport == "sockets" else inf
    nodes = [known.cluster.device(each).node for each in (first, last)]
    sharers = nic_sharers(spec, known.cluster) if nodes[0] != nodes[1] else {}
    busiest = max((sharers[node] for node in nodes if node in sharers), default=1)
    taken = tied_reduce_seconds(
        parameters,
        gradient_bytes=section.gradient_bytes,
        bandwidth=min(path.bandwidth / busiest, limit),
        latency_s=path.latency_s,
    )
    return Constant(value=taken), None


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
