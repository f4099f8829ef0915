"""NICs as messages see them: limited by TCP, and with the time that hosts take for a blocking message."""

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace

from hops.build.figures import Figures
from hops.build.groups import nic_sharers
from hops.cost.base import CostModel
from hops.cost.fitted import TCP_CORE_BYTES_PER_S, port_bytes_per_s
from hops.cost.profile import HardwareProfile
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Node
from hops.hardware.network import Network
from hops.program.action import Op
from hops.program.shape import Shape


def build_network(known: Figures, shape: Shape, costs: CostModel) -> Network:
    """Links and routes of the ranks, for the messages of this run."""
    size = max(costs.message_bytes(stage, op) for stage in range(shape.num_stages) for op in (Op.F, Op.B))
    network = network_between(known, known.spec.ranks(), size)
    if known.profile is not None and shape.num_stages == shape.num_ranks > 1:
        network = _with_turn(network, shape.rank_of_stage[-1], shape.rank_of_stage[-2], known.profile.messages.turn_s)
    return network


def network_between(known: Figures, placement: Sequence[str], size: int) -> Network:
    """Links and routes between devices of these ids, for messages of `size` bytes."""
    limited = _catalogued(known) if known.profile is None else _fitted(known, known.profile, size)
    return _shared(known, limited).network(placement)


def _shared(known: Figures, cluster: Cluster) -> Cluster:
    """NICs as one member of a group sees them, where several members of a pipeline position send over one at once."""
    sharers = nic_sharers(known.spec, known.cluster)
    if not sharers:
        return cluster
    nics = {device.node: cluster.nic(device.id) for device in cluster.devices if device.node in sharers}
    nodes = {node.name: node for node in cluster.nodes} | {
        name: Node(name=name) for name in sharers if name not in {node.name for node in cluster.nodes}
    }
    for name, number in sharers.items():
        nodes[name] = replace(nodes[name], nic=replace(nics[name], bandwidth=nics[name].bandwidth / number))
    return replace(cluster, nodes=tuple(nodes.values()))


def _catalogued(known: Figures) -> Cluster:
    spec, cluster = known.spec, known.cluster
    if spec.hardware.transport != "sockets":
        return cluster
    limits = {device.node: TCP_CORE_BYTES_PER_S for device in cluster.devices}
    hosts = dict.fromkeys(limits, 0.0)
    if spec.pipeline.p2p in {"blocking", "blocking_fused"} and known.operations is not None:
        hosts = {each.node: known.operations.message * each.kind.operation_s for each in cluster.devices}
    return _limited(cluster, limits, hosts)


def _fitted(known: Figures, profile: HardwareProfile, size: int) -> Cluster:
    limits, hosts = {}, {}
    for device in known.cluster.devices:
        if device.node in known.host_kinds:
            host, nic = profile.hosts[known.host_kinds[device.node]], known.cluster.nic(device.id)
            limits[device.node] = port_bytes_per_s(host, nic.bandwidth, size, profile.messages)
            hosts[device.node] = host.message_s
    return _limited(known.cluster, limits, hosts, exact=True)


def _limited(cluster: Cluster, limits: dict[str, float], hosts: dict[str, float], *, exact: bool = False) -> Cluster:
    """The same cluster with NICs no faster than `limits`, and with the hosts' seconds per message in their latency.

    `exact`: the limits are what messages reach, and the seconds are all there is. A message takes half of the latency
    of each of its two ends.
    """
    nodes = {node.name: node for node in cluster.nodes}
    for device in cluster.devices:
        name = device.node
        if name in limits:
            node, nic = nodes.get(name, Node(name=name)), cluster.nic(device.id)
            bandwidth = limits[name] if exact else min(nic.bandwidth, limits[name])
            latency_s = hosts[name] if exact else nic.latency_s + hosts[name]
            nodes[name] = replace(node, nic=replace(nic, bandwidth=bandwidth, latency_s=latency_s))
    return replace(cluster, nodes=tuple(nodes.values()))


def _with_turn(network: Network, last: int, before: int, turn_s: float) -> Network:
    """The last rank's pause from F to B, charged to the gradient that B sends.

    The engine knows no pauses between actions of one rank. In 1F1B the last rank has one F to B turn per B, and sends
    after each, so that its own rhythm is right.
    """
    route = network.routes[last, before]
    turned = {(last, before): replace(route, latency_s=route.latency_s + turn_s)}
    return replace(network, routes=ChainMap(turned, network.routes))  # type: ignore[arg-type] # nothing is written to it
