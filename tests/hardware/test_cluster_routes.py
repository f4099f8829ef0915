"""Routes of a cluster: who shares which link, what is inferred, and what a stated link replaces."""

from dataclasses import replace
from itertools import combinations, permutations
from math import inf
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.distributions import Constant
from hops.errors import UsageError
from hops.hardware.catalog import Catalog
from hops.hardware.cluster import Cluster, Locality
from hops.hardware.devices import Device, Interconnect, LinkOverride, Node, Topology
from hops.hardware.network import CrossedLinks, RareDelay, Route
from hops.hardware.routes import Path

CATALOG = Catalog.load()
UPI = CATALOG.interconnect("upi")
SLOW = Interconnect(name="slow", topology=Topology.NETWORK, bandwidth=1e9, latency_s=50e-6)
FAST = Interconnect(name="fast", topology=Topology.NETWORK, bandwidth=100e9, latency_s=1e-6)


def devices(**kinds_of_node):
    """Devices a0, a1, ... of the kinds of node `a`, and so on."""
    return tuple(
        Device(id=f"{node}{index}", node=node, kind=CATALOG.device(kind))
        for node, kinds in kinds_of_node.items()
        for index, kind in enumerate(kinds)
    )


def names(path):
    return [link.name for link in path.links]


def test_nvlink_is_used_where_both_devices_have_the_same_and_each_has_one_port_per_direction():
    cluster = Cluster(devices=devices(a=["h100", "h100", "h100"]))
    path = cluster.route("a0", "a1")
    assert names(path) == ["a0.nvlink4.out", "a1.nvlink4.in"]
    assert (path.bandwidth, path.latency_s) == (450e9, pytest.approx(3.4e-6))
    assert set(path.links) & set(cluster.route("a0", "a2").links) == {path.links[0]}, "two messages out share the port"
    assert not set(path.links) & set(cluster.route("a1", "a0").links), "directions share nothing"


def test_devices_without_a_common_peer_interconnect_use_their_slots_and_the_slower_one_decides():
    cluster = Cluster(devices=devices(a=["h100", "a100", "l4", "l4"]))
    assert names(cluster.route("a0", "a1")) == ["a0.pcie5.out", "a1.pcie4.in"]
    assert cluster.route("a0", "a1").bandwidth == CATALOG.interconnect("pcie4").bandwidth
    assert names(cluster.route("a2", "a3")) == ["a2.pcie4.out", "a3.pcie4.in"]


def test_a_mesh_has_a_wire_per_ordered_pair_that_nothing_else_uses():
    cluster = Cluster(devices=devices(a=["mi300x"] * 4))
    assert names(cluster.route("a0", "a1")) == ["a.infinity-fabric[a0->a1]"]
    network = cluster.network(["a0", "a1", "a2", "a3"])
    used = [route.links for route in network.routes.values()]
    assert sorted(used) == [(index,) for index in range(12)]


def test_pcie_between_sockets_crosses_the_socket_bus_and_nvlink_does_not():
    node = Node(name="a", sockets=2, socket_bus=UPI)
    cluster = Cluster(devices=devices(a=["l4"] * 4), nodes=(node,))
    assert names(cluster.route("a0", "a1")) == ["a0.pcie4.out", "a1.pcie4.in"]
    assert names(cluster.route("a1", "a2")) == ["a1.pcie4.out", "a.upi[0->1]", "a2.pcie4.in"]
    assert names(cluster.route("a3", "a0")) == ["a3.pcie4.out", "a.upi[1->0]", "a0.pcie4.in"]
    near, far = cluster.route("a0", "a1"), cluster.route("a0", "a3")
    assert far.latency_s == pytest.approx(near.latency_s + UPI.latency_s)
    switched = Cluster(devices=devices(a=["h100"] * 4), nodes=(node,))
    assert names(switched.route("a0", "a3")) == ["a0.nvlink4.out", "a3.nvlink4.in"]


def test_two_messages_between_the_same_sockets_share_the_bus():
    node = Node(name="a", sockets=2, socket_bus=UPI)
    cluster = Cluster(devices=devices(a=["l4"] * 4), nodes=(node,))
    shared = set(cluster.route("a0", "a2").links) & set(cluster.route("a1", "a3").links)
    assert [link.name for link in shared] == ["a.upi[0->1]"]


def test_locality_tells_socket_node_and_cross_node_apart():
    node = Node(name="a", sockets=2, socket_bus=UPI)
    cluster = Cluster(devices=devices(a=["l4"] * 4, b=["l4"]), nodes=(node,))
    assert cluster.locality("a0", "a0") is Locality.SAME_DEVICE
    assert cluster.locality("a0", "a1") is Locality.SAME_SOCKET
    assert cluster.locality("a0", "a2") is Locality.SAME_NODE
    assert cluster.locality("a0", "b0") is Locality.CROSS_NODE


def test_messages_of_one_host_to_other_hosts_share_its_nic():
    cluster = Cluster(devices=devices(a=["h100", "h100"], b=["h100"], c=["h100"]))
    first, second = cluster.route("a0", "b0"), cluster.route("a1", "c0")
    assert names(first) == ["a.nic.out", "b.nic.in"]
    assert names(second) == ["a.nic.out", "c.nic.in"]
    network = cluster.network(["a0", "a1", "b0", "c0"])
    out, into = network.routes[0, 2].links, network.routes[1, 3].links
    assert out[0] == into[0]
    assert network.links[out[0]].bandwidth == 50e9
    back = network.routes[2, 0].links
    assert not set(out) & set(back), "in and out are two links"


def test_several_nics_are_dealt_to_the_devices_in_equal_blocks():
    cluster = Cluster(devices=devices(a=["h100"] * 4, b=["h100"]), nodes=(Node(name="a", nics=2),))
    outs = [names(cluster.route(f"a{index}", "b0"))[0] for index in range(4)]
    assert outs == ["a.nic0.out", "a.nic0.out", "a.nic1.out", "a.nic1.out"]


def test_between_nodes_the_slower_nic_decides_and_each_brings_half_of_its_latency():
    cluster = Cluster(devices=devices(a=["h100"], b=["a10g"]))
    path = cluster.route("a0", "b0")
    assert path.bandwidth == 1.25e9
    assert path.latency_s == pytest.approx((9.6e-6 + 30e-6) / 2)


def test_a_mixed_host_has_the_nic_of_its_best_connected_device():
    cluster = Cluster(devices=devices(a=["a10g", "h100"], b=["h100"]))
    assert cluster.route("a0", "b0").bandwidth == 50e9


def test_the_interconnect_of_the_cluster_decides_nics_that_are_not_stated_and_every_latency():
    given_devices = devices(a=["h100"], b=["a10g"], c=["a10g"])
    stated = (Node(name="a", nic=SLOW),)
    cluster = Cluster(devices=given_devices, nodes=stated, interconnect=FAST)
    assert cluster.route("b0", "c0").bandwidth == 100e9
    assert cluster.route("b0", "c0").latency_s == 1e-6
    assert cluster.route("a0", "b0").bandwidth == 1e9, "a stated NIC stays what it is"
    slow = Cluster(devices=given_devices, nodes=(Node(name="a", nic=FAST),), interconnect=SLOW)
    assert slow.route("a0", "b0").bandwidth == 1e9, "no NIC is faster than what it is plugged into"


def test_a_stated_nic_counts_instead_of_the_typical_one():
    cluster = Cluster(devices=devices(a=["h100"], b=["h100"]), nodes=(Node(name="b", nic=SLOW),))
    path = cluster.route("a0", "b0")
    assert (path.bandwidth, path.latency_s) == (1e9, pytest.approx((9.6e-6 + 50e-6) / 2))


def test_a_stated_interconnect_of_a_node_counts_instead_of_the_inferred_one():
    wire = CATALOG.interconnect("pcie3")
    cluster = Cluster(devices=devices(a=["h100", "h100"]), nodes=(Node(name="a", interconnect=wire),))
    assert names(cluster.route("a0", "a1")) == ["a0.pcie3.out", "a1.pcie3.in"]


def test_a_stated_link_between_nodes_lies_between_the_nics_and_replaces_the_latency():
    link = LinkOverride(source="a", target="b", bandwidth=1e9, latency_s=1e-3)
    cluster = Cluster(devices=devices(a=["h100", "h100"], b=["h100"], c=["h100"]), links=(link,))
    path = cluster.route("a0", "b0")
    assert names(path) == ["a.nic.out", "link[a->b]", "b.nic.in"]
    assert (path.bandwidth, path.latency_s) == (1e9, 1e-3)
    assert names(cluster.route("b0", "a1")) == ["b.nic.out", "link[b->a]", "a.nic.in"]
    assert path.links[1] in cluster.route("a1", "b0").links, "all messages of the pair share it"
    assert names(cluster.route("a0", "c0")) == ["a.nic.out", "c.nic.in"]


def test_a_stated_link_between_devices_inside_a_node_replaces_ports():
    link = LinkOverride(source="a0", target="a1", bandwidth=56e9)
    cluster = Cluster(devices=devices(a=["rtx-3090"] * 3), links=(link,))
    assert names(cluster.route("a0", "a1")) == ["link[a0->a1]"]
    assert names(cluster.route("a0", "a2")) == ["a0.pcie4.out", "a2.pcie4.in"]
    assert cluster.route("a0", "a1").latency_s == cluster.route("a0", "a2").latency_s


def test_a_link_of_two_devices_counts_before_one_of_their_nodes():
    links = (
        LinkOverride(source="a", target="b", bandwidth=1e9),
        LinkOverride(source="a0", target="b0", bandwidth=2e9),
    )
    cluster = Cluster(devices=devices(a=["h100", "h100"], b=["h100"]), links=links)
    assert names(cluster.route("a0", "b0"))[1] == "link[a0->b0]"
    assert names(cluster.route("a1", "b0"))[1] == "link[a->b]"


def test_a_link_of_one_way_leaves_the_other_way_as_inferred():
    link = LinkOverride(source="a", target="b", latency_s=1.0, both_ways=False)
    cluster = Cluster(devices=devices(a=["h100"], b=["h100"]), links=(link,))
    assert cluster.route("a0", "b0").latency_s == 1.0
    assert cluster.route("b0", "a0").latency_s == pytest.approx(9.6e-6)
    assert names(cluster.route("a0", "b0")) == ["a.nic.out", "b.nic.in"], "no bandwidth stated, no link added"


def test_a_nic_that_nobody_stated_is_at_least_as_fast_as_a_stated_link_between_its_node_and_another():
    between = LinkOverride(source="a0", target="b0", bandwidth=5e9)
    cluster = Cluster(devices=devices(a=["a10g"], b=["a10g"]), links=(between,))
    assert cluster.route("a0", "b0").bandwidth == 5e9
    inside = LinkOverride(source="a0", target="a1", bandwidth=5e9)
    cluster = Cluster(devices=devices(a=["a10g", "a10g"], b=["a10g"]), links=(inside,))
    assert cluster.route("a0", "b0").bandwidth == 1.25e9
    stated = tuple(Node(name=name, nic=CATALOG.interconnect("ethernet-10")) for name in "ab")
    cluster = Cluster(devices=devices(a=["a10g"], b=["a10g"]), nodes=stated, links=(between,))
    assert cluster.route("a0", "b0").bandwidth == 1.25e9


def test_jitter_and_stalls_are_of_every_message_between_nodes_or_of_a_stated_link():
    rare = RareDelay(probability=0.1, extra=Constant(value=0.2))
    link = LinkOverride(source="a", target="b", jitter=Constant(value=2.0))
    cluster = Cluster(
        devices=devices(a=["h100", "h100"], b=["h100"], c=["h100"]),
        links=(link,),
        jitter=Constant(value=1.0),
        stall=rare,
    )
    assert (cluster.route("a0", "c0").jitter, cluster.route("a0", "c0").stall) == (Constant(value=1.0), rare)
    assert (cluster.route("a0", "b0").jitter, cluster.route("a0", "b0").stall) == (Constant(value=2.0), rare)
    assert (cluster.route("a0", "a1").jitter, cluster.route("a0", "a1").stall) == (None, None)
    network = cluster.network(["a0", "b0", "c0"])
    assert (network.routes[0, 1].jitter, network.routes[0, 2].jitter) == (Constant(value=2.0), Constant(value=1.0))
    assert network.routes[0, 1].stall == rare


def test_ranks_on_one_device_exchange_over_no_link():
    network = Cluster(devices=devices(a=["h100"], b=["h100"])).network(["a0", "b0", "a0"])
    assert network.routes[0, 2].links == network.routes[2, 0].links == ()
    assert network.routes[0, 2].latency_s == 0
    assert Path().bandwidth == inf
    assert network.routes[0, 1] == network.routes[2, 1]


def test_a_network_holds_the_links_of_the_placement_only():
    cluster = Cluster(devices=devices(a=["h100", "h100"], b=["h100"], c=["h100"]))
    network = cluster.network(["b0", "a1"])
    assert [link.name for link in network.links] == ["b.nic.out", "a.nic.in", "a.nic.out", "b.nic.in"]
    assert set(network.routes) == {(0, 1), (1, 0)}


KINDS = ["h100", "a100", "l4", "mi300x", "v100", "rtx-4090", "cpu"]


@st.composite
def clusters(draw):
    mixed = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)
    alike = st.tuples(st.sampled_from(KINDS), st.integers(1, 4)).map(lambda kind: [kind[0]] * kind[1])
    nodes = draw(st.lists(mixed | alike, min_size=1, max_size=4))
    placed = devices(**{f"n{index}x": kinds for index, kinds in enumerate(nodes)})
    settings_of_nodes = tuple(
        Node(
            name=f"n{index}x",
            nics=draw(st.integers(1, 3)),
            sockets=draw(st.integers(1, 3)),
            socket_bus=UPI,
            nic=draw(st.sampled_from([None, SLOW, FAST])),
        )
        for index in range(len(nodes))
    )
    ids = [device.id for device in placed]
    of_ends = [list(combinations(ends, 2)) for ends in (ids, [f"n{index}x" for index in range(len(nodes))])]
    chosen = [
        pair
        for all_of in of_ends
        if all_of
        for pair in draw(st.lists(st.sampled_from(all_of), max_size=2, unique=True))
    ]
    speeds = st.sampled_from([None, 1e9, 40e9])
    links = tuple(LinkOverride(source=a, target=b, bandwidth=draw(speeds), latency_s=1e-3) for a, b in chosen)
    fabric = draw(st.sampled_from([None, SLOW, FAST]))
    return Cluster(devices=placed, nodes=settings_of_nodes, links=links, interconnect=fabric)


@settings(deadline=None, max_examples=60)
@given(clusters())
def test_there_and_back_are_equal_in_bandwidth_and_latency_and_share_no_link(cluster):
    for a in cluster.devices:
        for b in cluster.devices:
            there, back = cluster.route(a.id, b.id), cluster.route(b.id, a.id)
            assert there.bandwidth == back.bandwidth
            assert there.latency_s == back.latency_s
            assert not set(there.links) & set(back.links)
            assert len({link.name for link in there.links}) == len(there.links)


@settings(deadline=None, max_examples=60)
@given(clusters(), st.randoms(use_true_random=False))
def test_renaming_nodes_and_devices_changes_names_of_links_and_nothing_else(cluster, random):
    nodes = [node.name for node in cluster.nodes]
    ids = [device.id for device in cluster.devices]
    new = dict(zip(nodes + ids, random.sample([f"q{index}" for index in range(99)], len(nodes + ids)), strict=True))
    renamed = replace(
        cluster,
        devices=tuple(replace(device, id=new[device.id], node=new[device.node]) for device in cluster.devices),
        nodes=tuple(replace(node, name=new[node.name]) for node in cluster.nodes),
        links=tuple(replace(link, source=new[link.source], target=new[link.target]) for link in cluster.links),
    )
    before, after = cluster.network(ids), renamed.network([new[device_id] for device_id in ids])
    assert before.routes == after.routes
    assert [link.bandwidth for link in before.links] == [link.bandwidth for link in after.links]


@settings(deadline=None, max_examples=40)
@given(clusters())
def test_a_link_has_one_name_and_every_link_of_a_network_is_used(cluster):
    network = cluster.network([device.id for device in cluster.devices])
    assert len({link.name for link in network.links}) == len(network.links)
    assert {index for route in network.routes.values() for index in route.links} == set(range(len(network.links)))
    ranks = range(len(cluster.devices))
    assert set(network.routes) == {(a, b) for a in ranks for b in ranks if a != b}
    for (a, b), route in network.routes.items():
        path = cluster.route(cluster.devices[a].id, cluster.devices[b].id)
        assert tuple(network.links[index] for index in route.links) == path.links


def all_pairs(cluster, placement):
    """Links and routes as going through every pair finds them: the definition of a network."""
    index_of = {}
    routes = {}
    for pair in permutations(range(len(placement)), 2):
        path = cluster.route(*(placement[rank] for rank in pair))
        links = tuple(index_of.setdefault(link, len(index_of)) for link in path.links)
        routes[pair] = Route(links=links, latency_s=path.latency_s, jitter=path.jitter, stall=path.stall)
    return tuple(index_of), routes


@settings(deadline=None, max_examples=200)
@given(clusters(), st.randoms(use_true_random=False))
def test_links_are_those_of_all_pairs_in_their_order(cluster, random):
    """Also with ranks in any order, several on one device, and devices without a rank."""
    ids = [device.id for device in cluster.devices]
    placement = random.choices(ids, k=random.randint(1, 2 * len(ids)))
    network = cluster.network(placement)
    links, routes = all_pairs(cluster, placement)
    assert network.links == links
    assert network.routes == routes
    assert list(network.routes) == list(routes)
    assert len(network.routes) == len(routes)


def test_a_stated_link_inside_a_node_leaves_ports_for_others_to_find():
    """The first device goes over the stated link, so that it does not enter the second one's port."""
    link = LinkOverride(source="a0", target="a1", bandwidth=1e9, latency_s=None)
    cluster = Cluster(devices=devices(a=["h100"] * 3), links=(link,))
    network = cluster.network(["a0", "a1", "a2"])
    assert network.links == all_pairs(cluster, ["a0", "a1", "a2"])[0]
    assert "a1.nvlink4.out" in [link.name for link in network.links]


def test_every_bus_between_sockets_is_found_by_the_first_device_that_crosses_it():
    cluster = Cluster(devices=devices(a=["l4"] * 3), nodes=(Node(name="a", sockets=3, socket_bus=UPI),))
    network = cluster.network(["a0", "a1", "a2"])
    assert network.links == all_pairs(cluster, ["a0", "a1", "a2"])[0]
    assert {"a.upi[0->1]", "a.upi[1->2]", "a.upi[2->1]"} < {link.name for link in network.links}


def test_a_route_is_that_of_two_different_ranks():
    routes = Cluster(devices=devices(a=["h100"] * 2)).network(["a0", "a1", "a0"]).routes
    assert all(pair not in routes for pair in ((0, 0), (0, 3), (-1, 0), (0, 1, 2), 0))
    assert routes.get((0, 3)) is None
    assert repr(routes) == "RoutesOnDemand(3 ranks)"


def test_crossed_links_are_those_of_the_first_ranks():
    network = Cluster(devices=devices(a=["h100"] * 2, b=["h100"])).network(["a0", "b0", "a1"])
    crossed = CrossedLinks(network, 2)
    assert crossed == {(0, 1): network.routes[0, 1].links, (1, 0): network.routes[1, 0].links}
    assert list(crossed) == [(0, 1), (1, 0)]
    assert (len(crossed), repr(crossed)) == (2, repr(dict(crossed)))
    assert (0, 2) not in crossed
    assert crossed.get((2, 0), ()) == ()


def test_a_thousand_ranks_look_up_few_routes():
    """What a network costs is its links, not its pairs."""
    cluster = Cluster(devices=devices(**{f"n{node}x": ["h100"] * 8 for node in range(64)}))
    with patch.object(Cluster, "route", autospec=True, side_effect=Cluster.route) as route:
        network = cluster.network([device.id for device in cluster.devices])
    assert len(network.links) == 64 * (8 + 1) * 2
    assert route.call_count <= 512 * (7 + 1 + 1) + 64
    assert len(network.routes) == 512 * 511


HERE = devices(a=["h100", "h100"], b=["h100"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"devices": HERE + HERE[:1]}, "device 'a0' is there 2 times: give each device a name of its own"),
        ({"nodes": (Node(name="a"),) * 2}, "node 'a' is there 2 times: give each node a name of its own"),
        ({"nodes": (Node(name="aa"),)}, "node 'aa' has no device: unknown node 'aa': did you mean 'a'? known are a, b"),
        ({"nodes": (Node(name="a", nics=0),)}, "node 'a': got 0 NICs, expected at least 1"),
        ({"nodes": (Node(name="a", sockets=-1),)}, "node 'a': got -1 sockets, expected at least 1"),
        (
            {"nodes": (Node(name="a", sockets=2),)},
            "node 'a' has 2 sockets and no socket bus: state one, such as upi",
        ),
        (
            {"nodes": (Node(name="a", nic=UPI),)},
            "NIC of node 'a': got 'upi' of topology socket, expected topology network",
        ),
        (
            {"nodes": (Node(name="a", interconnect=FAST),)},
            "interconnect of node 'a': got 'fast' of topology network, expected topology switch or mesh or root",
        ),
        (
            {"nodes": (Node(name="a", socket_bus=FAST),)},
            "socket bus of node 'a': got 'fast' of topology network, expected topology socket",
        ),
        (
            {"interconnect": UPI},
            "interconnect of the cluster: got 'upi' of topology socket, expected topology network",
        ),
        (
            {"links": (LinkOverride(source="a", target="a"),)},
            "link from 'a' to itself: expected two different nodes or two different devices",
        ),
        (
            {"links": (LinkOverride(source="a", target="bb"),)},
            "link 'a' to 'bb': unknown node or device 'bb': did you mean 'b'? known are a0, a1, b0, a, b",
        ),
        (
            {"links": (LinkOverride(source="a", target="b0"),)},
            "link 'a' to 'b0': got a node and a device, expected two nodes or two devices",
        ),
        (
            {"links": (LinkOverride(source="a", target="b"), LinkOverride(source="b", target="a"))},
            "link from 'b' to 'a' is stated twice: keep one, or set both_ways: false",
        ),
        (
            {"links": (LinkOverride(source="a", target="b", bandwidth=0.0),)},
            "link 'a' to 'b': got a bandwidth of 0.0 B/s, expected more than 0",
        ),
        (
            {"links": (LinkOverride(source="a", target="b", latency_s=-1.0),)},
            "link 'a' to 'b': got a latency of -1.0 s, expected at least 0",
        ),
        (
            {"devices": (*HERE, replace(HERE[0], id="b"))},
            "'b' is both a node and a device: rename one, or a link to it is ambiguous",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_with_the_fix(change, message):
    with pytest.raises(UsageError) as error:
        replace(Cluster(devices=HERE), **change)
    assert str(error.value) == message


def test_an_unknown_device_gets_the_nearest_id():
    cluster = Cluster(devices=HERE)
    for ask in (
        lambda: cluster.device("b00"),
        lambda: cluster.route("a0", "b00"),
        lambda: cluster.network(["b00", "a"]),
    ):
        with pytest.raises(UsageError, match=r"^unknown device 'b00': did you mean 'b0'\? known are a0, a1, b0$"):
            ask()
    assert cluster.device("a1") is HERE[1]


def test_a_lone_device_may_bear_the_name_of_its_node():
    pair = tuple(Device(id=name, node=name, kind=CATALOG.device("l4")) for name in ("x", "y"))
    cluster = Cluster(devices=pair, links=(LinkOverride(source="x", target="y", bandwidth=1e9),))
    assert names(cluster.route("x", "y")) == ["x.nic.out", "link[x->y]", "y.nic.in"]


def test_a_cluster_can_be_sent_to_another_process():
    import pickle

    cluster = Cluster(devices=HERE, nodes=(Node(name="a", nics=2),))
    copy = pickle.loads(pickle.dumps(cluster))
    assert copy == cluster
    assert copy.network(["a0", "b0"]) == cluster.network(["a0", "b0"])
