"""The build layer: one expected time of a message, figures looked up once, a setup that prints short."""

from unittest.mock import patch

import pytest

from hops.build import figures
from hops.build.expected import expected, message_seconds
from hops.build.setup import build
from hops.cost.table import TableCosts
from hops.distributions import Constant
from hops.hardware.cluster import Cluster
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.program.shape import Shape
from hops.spec.load import loads

TIMED = """
pipeline:
  stage_times: {forward: 1 ms, backward: 2 ms, message: 1 MiB}
  microbatches: 4
hardware:
  nodes: [{count: NODES, devices: [{type: h100, count: 8}]}]
"""
MODEL = """
pipeline: {model: gpt2-medium, microbatches: 4, partition: balanced}
hardware: {nodes: [{devices: [h100, h100]}, {devices: [l4, l4]}], profile: megatron-aws}
optimizer: {data_parallel: 2, reduction_interconnect: ethernet-25}
"""
NODES = "{devices: [h100, h100]}, {devices: [l4, l4]}"
LINKS = (Link(name="fast", bandwidth=4e9), Link(name="slow", bandwidth=1e9))


@pytest.mark.parametrize(
    ("route", "seconds"),
    [
        (Route(), 0.0),
        (Route(latency_s=5e-6), 5e-6),
        (Route(links=(0, 1)), 2.0),
        (Route(links=(0,)), 0.5),
        (Route(links=(1,), latency_s=0.25, jitter=Constant(value=0.5)), 2.75),
        (Route(links=(1,), stall=RareDelay(probability=0.25, extra=Constant(value=2.0))), 2.5),
    ],
)
def test_a_message_takes_latency_bytes_over_the_slowest_link_and_the_mean_of_what_is_drawn(route, seconds):
    assert message_seconds(route, LINKS, 2 * 10**9) == pytest.approx(seconds)


def test_a_hop_is_the_mean_of_both_ways_and_nothing_on_one_rank():
    routes = {(0, 1): Route(latency_s=1.0), (1, 0): Route(latency_s=3.0)}
    shape = Shape(num_microbatches=1, rank_of_stage=(0, 1, 1))
    setup = build(loads(TIMED.replace("NODES", "1"), overrides=["pipeline.p2p=blocking"]))
    devices, network = setup.known.devices[:2], Network(links=(), routes=routes)
    known = expected(shape, TableCosts.uniform(3), network, devices, pipeline=setup.spec.pipeline)
    assert known.hop_s == (2.0, 0.0)
    assert known.blocking


def test_a_spec_is_looked_up_once():
    """The profile is read, and the cluster built, once for all of costs, network and faults."""
    spec = loads(MODEL)
    with (
        patch.object(figures, "read_any_profile", side_effect=figures.read_any_profile) as profile,
        patch.object(figures, "build_cluster", side_effect=figures.build_cluster) as cluster,
    ):
        build(spec)
    assert (profile.call_count, cluster.call_count) == (1, 1)


def test_devices_of_one_entry_share_their_figures():
    known = build(loads(MODEL.replace("profile: megatron-aws", "transport: sockets"))).known
    assert known.rates[0] is known.rates[1]
    assert known.devices[0].kind is known.cluster.device("node0/1").kind
    assert known.rates[0] != known.rates[2]


def test_equal_devices_in_hosts_of_two_kinds_attain_what_their_hosts_allow():
    hosts = "{instance_type: g5.2xlarge, devices: [a10g]}, {instance_type: p5.4xlarge, devices: [a10g]}"
    known = build(loads(MODEL.replace(NODES, hosts))).known
    one, other = known.rates
    assert known.devices[0].kind is known.devices[1].kind
    assert known.host_kinds == {"node0": "g5.2xlarge", "node1": "p5.4xlarge"}
    assert one.forward_layer_floor_s != other.forward_layer_floor_s


def test_ranks_of_one_host_share_its_nic_when_they_reduce():
    """Without latency: bytes over half of the NIC each."""
    alone = "{devices: [h100]}, {devices: [h100]}, {devices: [l4, l4]}"
    spec = MODEL.replace("profile: megatron-aws", "transport: rdma").replace("balanced", "[6, 6, 6, 6]")
    spec = spec.replace("ethernet-25", "{bandwidth: 10 GB/s, latency: 0 s}")
    shared, own = (build(loads(text)).costs.step(0, 0).grad_reduce_s for text in (spec, spec.replace(NODES, alone)))
    assert shared[1] == pytest.approx(2 * own[1])
    assert shared[2:] == own[2:]


def test_a_blocking_message_over_sockets_also_takes_its_hosts_time():
    """Operations of a message x the host's time for one, half at each end; an overlapped one hides it."""
    spec = MODEL.replace("profile: megatron-aws", "transport: sockets")
    blocking = spec.replace("microbatches: 4", "microbatches: 4, p2p: blocking")
    overlapped, known = build(loads(spec)), build(loads(blocking))
    kinds = [device.kind for device in known.known.devices]
    operations = known.known.operations.message
    more = operations * (kinds[1].operation_s + kinds[2].operation_s) / 2
    assert known.network.routes[1, 2].latency_s == pytest.approx(overlapped.network.routes[1, 2].latency_s + more)
    assert known.network.routes[0, 1] == overlapped.network.routes[0, 1], "inside a host no socket is used"


def test_a_setup_prints_in_one_line():
    assert repr(build(loads(MODEL))) == ("Setup(1f1b, 4 microbatches, 4 stages on 4 ranks: 2 h100-sxm, 2 l4)")


def test_building_a_thousand_ranks_looks_up_the_routes_that_messages_take():
    """128 hosts of 8: a million pairs, and few routes."""
    spec = loads(TIMED.replace("NODES", "128"))
    with patch.object(Cluster, "route", autospec=True, side_effect=Cluster.route) as route:
        setup = build(spec)
    assert setup.shape.num_ranks == 1024
    assert route.call_count < 13_000
