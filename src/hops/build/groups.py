"""The groups of a whole job on its devices: how those of each pipeline position lie, and which device stands for it."""

from collections import Counter
from dataclasses import replace

from hops.axes import Axis
from hops.cost.exchange import DeviceGroups
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Device, Interconnect
from hops.hardware.span import FLAT, Fabric, Placement, Span
from hops.model.kernels import GroupPart
from hops.spec.spec import Spec


def standing_devices(spec: Spec, cluster: Cluster) -> tuple[Device, ...]:
    """The device of every pipeline position: where its first member is, as slow and as small as its slowest.

    Slowest at the run's precision, then in memory bandwidth. Positions of one device are that device.
    """
    precision, found = spec.pipeline.precision, []
    for group in spec.positions():
        members = [cluster.device(each) for each in group]
        if len({id(each.kind) for each in members}) == 1:
            found.append(members[0])
            continue
        slowest = min(members, key=lambda each: (each.kind.rates.get(precision, 0.0), each.kind.memory_bandwidth))
        memory = min(each.kind.memory_bytes for each in members)
        kind = slowest.kind if memory == slowest.kind.memory_bytes else replace(slowest.kind, memory_bytes=memory)
        found.append(replace(members[0], kind=kind))
    return tuple(found)


def place(spec: Spec, cluster: Cluster, between: Interconnect | None) -> Placement:
    """Where all ranks of the job are. `between`: what copies reduce over, where it is stated."""
    fabric = spec.hardware.fabric
    return Placement.of(
        spec.mesh(),
        cluster,
        spec.hardware.ranks(),
        fabric=FLAT if fabric is None else Fabric(pod_hosts=fabric.pod, oversubscription=fabric.oversubscription),
        between=between,
    )


def exchanges(spec: Spec, cluster: Cluster, between: Interconnect | None) -> tuple[DeviceGroups, ...]:
    """How the device of every pipeline position exchanges along every axis; gradients also over context's parts."""
    mesh, parallel = spec.mesh(), spec.parallel
    if mesh.stage_ranks == 1:
        return (DeviceGroups(),) * mesh.pipeline
    wires, gradients = place(spec, cluster, None), place(spec, cluster, between)
    spans: list[tuple[Axis, GroupPart, tuple[Span, ...]]] = [
        (axis, "whole", wires.spans(axis))
        for axis in (Axis.TENSOR, Axis.CONTEXT, Axis.EXPERT, Axis.EXPERT_TENSOR)
        if mesh.size(axis) > 1
    ]
    if parallel.context_inner > 1:
        spans.append((Axis.CONTEXT, "inner", wires.spans(Axis.CONTEXT, inner=parallel.context_inner)))
        outer = mesh.context // parallel.context_inner
        spans.append((Axis.CONTEXT, "outer", wires.spans(Axis.CONTEXT, outer=outer)))
    reduced = (Axis.DATA, Axis.CONTEXT)
    spans.append((Axis.DATA, "whole", gradients.spans(*reduced)))
    spans.append((Axis.EXPERT_DATA, "whole", gradients.spans(Axis.EXPERT_DATA)))
    if parallel.shard_group is not None:
        outer = mesh.data // parallel.shard_group
        spans.append((Axis.DATA, "inner", gradients.spans(*reduced, inner=mesh.size(*reduced) // outer)))
        spans.append((Axis.DATA, "outer", gradients.spans(*reduced, outer=outer)))
    alike: dict[tuple[tuple[Axis, GroupPart, Span], ...], DeviceGroups] = {}
    found = []
    for position in range(mesh.pipeline):
        own = tuple((axis, part, of[position]) for axis, part, of in spans if of[position].members > 1)
        found.append(alike.setdefault(own, DeviceGroups(spans=own)))
    return tuple(found)


def nic_sharers(spec: Spec, cluster: Cluster) -> dict[str, int]:
    """By host: how many devices of one position share a NIC there, and so send their messages at the same time."""
    sharing: Counter[tuple[str, str, int]] = Counter()
    for position, group in enumerate(spec.positions()):
        if len(group) > 1:
            for device in group:
                sharing[cluster.device(device).node, cluster.nic_links(device)[0], position] += 1
    found: dict[str, int] = {}
    for (node, _, _), number in sharing.items():
        found[node] = max(number, *(found[each] for each in (node,) if each in found), 1)
    return {node: number for node, number in found.items() if number > 1}
