"""What a collective takes on a span: the fastest of the algorithms that NCCL has, by its constants and measured rates.

Time = call + latency + bytes / bandwidth. Latencies, and the parts of the bandwidth that protocols keep, are those of
NCCL 2.30 (src/graph/tuning.cc); a ring's hop with the Simple protocol takes what the catalog says of the interconnect,
and the quick protocols LL and LL128 their part of it. What rings reach of a port, and what a switch adds up itself, is
measured and stands in the catalog.
"""

from collections.abc import Iterator
from math import ceil, inf, log2

from hops.hardware.devices import GroupRate, Interconnect, Topology
from hops.hardware.span import Span
from hops.model.kernels import CollectiveKind

CALL_S = 25e-6
"""What a call takes beyond NCCL's own model: 22 to 26 us on B200 (SimuMax's fits), 23 us on H200 (38 us measured at 32
kB, 15 by the constants of its ring; ml-engineering), 25 us on A100 (vTrain's traces, 1 MB)."""
RING_BASE_S = {"ll": 6.6e-6, "ll128": 14e-6, "simple": 8.4e-6}
TREE_BASE_S = {"ll": 6.8e-6, "ll128": 14e-6, "simple": 8.4e-6}
KEPT = {"ll": 0.5, "ll128": 0.92, "simple": 1.0}  # of the bandwidth: flags beside the data
TREE_KEPT = 0.92
HOP = {  # latency of a ring's hop over that with Simple: NVLink .6, 1.9, 3.4; network 2.7, 4, 14
    "inside": {"ll": 0.6 / 3.4, "ll128": 1.9 / 3.4, "simple": 1.0},
    "outside": {"ll": 2.7 / 14, "ll128": 4 / 14, "simple": 1.0},
}
TREE_HOP = {  # the same for trees: NVLink .6, 1.25, 4; network 5, 8.5, 14
    "inside": {"ll": 0.6 / 3.4, "ll128": 1.25 / 3.4, "simple": 4 / 3.4},
    "outside": {"ll": 5 / 14, "ll128": 8.5 / 14, "simple": 1.0},
}
OVER_HOSTS = 1.4  # of a ring's hops between hosts in an all-reduce with the Simple protocol
SWITCH_S, SWITCH_OUTSIDE_S = 25e-6, 20.9e-6  # NVLS, and each level of a tree over hosts
SWITCH_TREE_KEPT = 0.85
PAT_KEPT, PAT_BASE_S = 0.75, 8e-6  # parallel trees of all-gather and reduce-scatter with one rank per host
ALL_TO_ALL_KEPT = 0.75  # of a ring's bandwidth: 230 of 300 GB/s (SimAI's presets), .275 of .418 (SimuMax's fits)
PEERS_AT_ONCE = 32  # channels of send and receive


def collective_seconds(kind: CollectiveKind, num_bytes: float, span: Span) -> float:
    """Seconds of one call among the members of a span; 0 for one member. `num_bytes` as in `Collective.bytes`."""
    if span.members == 1:
        return 0.0
    if kind == "ring":
        return CALL_S + _exchange(num_bytes, span)
    if kind == "all_to_all":
        return CALL_S + _all_to_all(num_bytes, span)
    rate = _measured(span)
    if rate is not None:
        part = 1.0 if kind == "all_reduce" else 0.5
        return part * (rate.latency_s + wire_bytes("all_reduce", num_bytes, span.members) / rate.bus_bytes_per_s)
    return CALL_S + min(_ways(kind, num_bytes, span))


def wire_bytes(kind: CollectiveKind, num_bytes: float, members: int) -> float:
    """Bytes that one member sends: 2 (n - 1) / n of an all-reduce, (n - 1) / n of its halves and of an all-to-all."""
    if kind == "ring":
        return num_bytes if members > 1 else 0.0
    return (2 if kind == "all_reduce" else 1) * (members - 1) / members * num_bytes


def ring_bytes_per_s(span: Span) -> float:
    """Bus bandwidth of rings: the port inside a domain, or between domains the NICs of all members there.

    Of a group's members in a pod, `per_domain` send out of it, and all its NICs share what leads out.
    """
    inside = span.port_bytes_per_s * span.inside.collective_share if span.inside else inf
    blocked = max(1.0, span.oversubscription * span.per_domain / span.per_pod)
    return min(inside, _out(span) * span.per_domain / blocked)


def _out(span: Span) -> float:
    """What each member sends between domains, all members sending."""
    return span.nic_bytes_per_s * span.outside.collective_share if span.outside else inf


def _ways(kind: CollectiveKind, num_bytes: float, span: Span) -> Iterator[float]:
    """Seconds by every algorithm and protocol that could be used."""
    moved, bandwidth = wire_bytes(kind, num_bytes, span.members), ring_bytes_per_s(span)
    for protocol, kept in KEPT.items():
        yield _ring_latency(kind, protocol, span) + moved / (kept * bandwidth)
        if kind == "all_reduce" and span.domains > 1:
            yield _tree_latency(protocol, span) + moved / (TREE_KEPT * kept * bandwidth)
    if kind != "all_reduce" and span.per_domain == 1 and span.outside is not None:
        yield PAT_BASE_S + ceil(log2(span.domains)) * span.outside.latency_s + moved / (PAT_KEPT * bandwidth)
    if kind == "all_reduce" and span.inside is not None and span.inside.in_switch is not None:
        switch = span.inside.in_switch
        if span.per_domain >= switch.members:
            through = num_bytes / (switch.share * span.port_bytes_per_s)
            outside = moved / (SWITCH_TREE_KEPT * _out(span) * span.per_domain) if span.outside else 0.0
            levels = ceil(log2(span.domains))
            yield SWITCH_S + 2 * levels * SWITCH_OUTSIDE_S + max(through, outside)


def _ring_latency(kind: CollectiveKind, protocol: str, span: Span) -> float:
    """Base + a hop for each step: as many cross domains as there are domains, less one."""
    rounds = 2 if kind == "all_reduce" else 1
    across = rounds * (span.domains - 1)
    inside = _hop(span.inside, HOP["inside"][protocol])
    outside = _hop(span.outside, HOP["outside"][protocol])
    if kind == "all_reduce" and protocol == "simple":
        outside *= OVER_HOSTS
    return RING_BASE_S[protocol] + (rounds * (span.members - 1) - across) * inside + across * outside


def _tree_latency(protocol: str, span: Span) -> float:
    """Up and down: a chain inside every domain, a binary tree over domains."""
    inside = _hop(span.inside, TREE_HOP["inside"][protocol])
    outside = _hop(span.outside, TREE_HOP["outside"][protocol])
    return TREE_BASE_S[protocol] + 2 * ((span.per_domain - 1) * inside + log2(span.domains) * outside)


def _hop(wire: Interconnect | None, part: float) -> float:
    return 0.0 if wire is None else wire.latency_s * part


def _all_to_all(num_bytes: float, span: Span) -> float:
    """Sends to all others at once: those inside over the port, those outside over the NIC; the longer one counts."""
    each = num_bytes / span.members
    inside = each * (span.per_domain - 1)
    outside = each * (span.members - span.per_domain)
    port = ALL_TO_ALL_KEPT * span.port_bytes_per_s * span.inside.collective_share if span.inside else inf
    out = max(outside / _out(span), each * (span.members - span.per_pod) * span.oversubscription / _out(span))
    slowest = span.outside or span.inside
    turns = ceil((span.members - 1) / PEERS_AT_ONCE)
    return RING_BASE_S["simple"] + turns * _hop(slowest, 1.0) + max(inside / port, out)


def _exchange(num_bytes: float, span: Span) -> float:
    """Every member to the next one: between domains, the members of a domain leave the NIC to the one at its edge."""
    port = span.port_bytes_per_s * span.inside.collective_share if span.inside else inf
    if span.inside is not None and span.inside.topology is Topology.MESH:
        port = span.inside.bandwidth * span.inside.collective_share  # to one neighbour
    out = inf
    if span.outside is not None:
        out = min(_out(span) * span.per_domain, span.outside.bandwidth * span.outside.collective_share)
    return RING_BASE_S["simple"] + _hop(span.outside or span.inside, 1.0) + num_bytes / min(port, out)


def _measured(span: Span) -> GroupRate | None:
    """The measured rate of so many members in one domain, or of the nearest number that was measured."""
    if span.domains > 1 or span.inside is None or not span.inside.measured:
        return None
    return min(span.inside.measured, key=lambda rate: (abs(rate.members - span.members), rate.members))
