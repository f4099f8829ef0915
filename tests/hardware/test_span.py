"""Spans: how groups lie on hosts, domains and pods."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.axes import Axis
from hops.errors import UsageError
from hops.hardware.catalog import Catalog
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Device, Node
from hops.hardware.mesh import Mesh
from hops.hardware.span import ALONE, Fabric, Placement, Span

CATALOG = Catalog.load()
H100 = CATALOG.device("h100-sxm")


def cluster(hosts, each, *, nics=1, kind=H100, per_domain=1):
    """Hosts of so many devices; `per_domain` of them make a fast domain."""
    nodes = tuple(
        Node(name=f"n{host}", nics=nics, domain=f"d{host // per_domain}" if per_domain > 1 else "")
        for host in range(hosts)
    )
    devices = tuple(Device(id=f"n{host}/{n}", node=f"n{host}", kind=kind) for host in range(hosts) for n in range(each))
    return Cluster(devices=devices, nodes=nodes)


def placed(mesh, machine, **options):
    return Placement.of(mesh, machine, [device.id for device in machine.devices], **options)


def test_a_tensor_group_fills_a_host_and_copies_lie_across():
    places = placed(Mesh(tensor=8, data=2, pipeline=2), cluster(4, 8, nics=8))
    tensor, data = places.spans(Axis.TENSOR), places.spans(Axis.DATA)
    assert tensor == (tensor[0],) * 2
    assert (tensor[0].members, tensor[0].per_domain, tensor[0].domains) == (8, 8, 1)
    assert tensor[0].port_bytes_per_s == 450e9
    assert (data[0].members, data[0].per_domain, data[0].domains) == (2, 1, 2)
    assert data[0].nic_bytes_per_s == 50e9  # eight NICs of 400 Gbit/s for eight devices
    assert str(tensor[0]) == "8 in one domain"
    assert str(data[0]) == "2 over 2 domains, up to 1 in each"


def test_devices_of_a_host_share_its_nics():
    shares = [placed(Mesh(data=16), cluster(2, 8, nics=nics)).spans(Axis.DATA)[0] for nics in (1, 4)]
    assert [span.nic_bytes_per_s for span in shares] == [50e9 / 8, 50e9 / 2]


def test_copies_that_are_elsewhere_are_on_hosts_of_their_own():
    machine = cluster(2, 4)
    here = Placement.of(Mesh(data=3, pipeline=8), machine, [device.id for device in machine.devices])
    span = here.spans(Axis.DATA)[5]
    assert (span.members, span.per_domain, span.domains) == (3, 1, 3)
    assert span.nic_bytes_per_s == 50e9 / 4
    assert sorted(set(here.host.tolist())) == list(range(6))


def test_a_domain_may_be_larger_than_a_host():
    machine = cluster(18, 4, per_domain=18)
    span = placed(Mesh(expert=72, data=72), machine).spans(Axis.EXPERT)[0]
    assert (span.per_domain, span.domains, span.outside) == (72, 1, None)
    assert machine.route("n0/0", "n17/3").bandwidth == 450e9
    assert machine.route("n0/0", "n17/3") == machine.route("n0/0", "n17/3")
    assert "nvlink4" in machine.route("n0/0", "n17/3").links[0].name
    network = machine.network(["n0/0", "n17/3"])
    assert [link.bandwidth for link in network.links] == [450e9] * 4  # out and in, both ways


def test_a_domain_needs_one_wire_that_joins_its_devices():
    with pytest.raises(UsageError, match="nothing joins l4 across hosts: state the interconnect of the domain"):
        cluster(2, 2, kind=CATALOG.device("l4"), per_domain=2)
    devices = (Device(id="a", node="x", kind=H100), Device(id="b", node="y", kind=CATALOG.device("a100-sxm-80")))
    nodes = (Node(name="x", domain="d"), Node(name="y", domain="d"))
    with pytest.raises(UsageError, match=r"domain 'd': got nvlink4 \(x\) and nvlink3 \(y\), expected one interconnect"):
        Cluster(devices=devices, nodes=nodes)


def test_the_slowest_wires_of_a_position_count():
    devices = tuple(
        Device(id=f"{name}/{n}", node=name, kind=CATALOG.device(kind))
        for name, kind in (("a", "h100-sxm"), ("b", "a100-sxm-80"))
        for n in range(2)
    )
    machine = Cluster(devices=devices, nodes=(Node(name="a"), Node(name="b")))
    span = placed(Mesh(tensor=2, data=2), machine).spans(Axis.TENSOR)[0]
    assert span.inside is not None
    assert span.inside.name == "nvlink3"


def test_parts_of_groups_are_consecutive_or_one_of_each():
    places = placed(Mesh(data=8), cluster(4, 2))
    inner, outer = places.spans(Axis.DATA, inner=2)[0], places.spans(Axis.DATA, outer=4)[0]
    assert (inner.members, inner.domains) == (2, 1)
    assert (outer.members, outer.per_domain, outer.domains) == (4, 1, 4)
    assert places.spans(Axis.DATA, inner=1) == (ALONE,)


def test_pods_count_where_a_group_leaves_its_own():
    machine = cluster(8, 2)
    wide = placed(Mesh(data=16), machine, fabric=Fabric(pod_hosts=2, oversubscription=7.0)).spans(Axis.DATA)[0]
    assert (wide.per_pod, wide.oversubscription) == (4, 7.0)
    near = placed(Mesh(data=2, pipeline=8), machine, fabric=Fabric(pod_hosts=2, oversubscription=7.0))
    assert near.spans(Axis.DATA)[0].oversubscription == 1.0


@settings(deadline=None, max_examples=25)
@given(st.permutations(["tp", "cp", "ep", "dp"]), st.sampled_from([Axis.TENSOR, Axis.CONTEXT, Axis.DATA]))
def test_on_a_flat_network_the_order_of_the_axes_changes_nothing(order, axis):
    """Every device is a host of its own: all groups of a size lie alike."""
    machine = cluster(16, 1)
    usual = Mesh(tensor=2, context=2, data=2, pipeline=2, expert_tensor=2)
    another = Mesh(tensor=2, context=2, data=2, pipeline=2, expert_tensor=2, order="-".join([*order, "pp"]))
    assert placed(another, machine).spans(axis) == placed(usual, machine).spans(axis)
    assert placed(usual, machine).spans(axis)[0] == Span(
        members=2,
        domains=2,
        outside=placed(usual, machine).outside[0],
        nic_bytes_per_s=50e9,
        per_pod=2,
    )
