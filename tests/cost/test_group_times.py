"""Seconds of collectives: closed forms where they are known, and measured tables."""

import json
from dataclasses import replace
from statistics import mean

import pytest
from shared_data import FACTS, missing

from hops.cost.group_times import CALL_S, collective_seconds, ring_bytes_per_s, wire_bytes
from hops.hardware.catalog import Catalog
from hops.hardware.devices import GroupRate, Interconnect, Topology
from hops.hardware.span import ALONE, Span

CATALOG = Catalog.load()
MEASURED = FACTS / "measured/collectives.jsonl"
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring")
GB = 1e9


def inside(wire, members):
    """A group in one domain."""
    joined = CATALOG.interconnect(wire) if isinstance(wire, str) else wire
    return Span(members=members, per_domain=members, inside=joined, port_bytes_per_s=joined.bandwidth, per_pod=members)


def across(hosts, each, *, nic=50e9, wire="nvlink3"):
    joined = CATALOG.interconnect(wire)
    return Span(
        members=hosts * each,
        per_domain=each,
        domains=hosts,
        inside=joined if each > 1 else None,
        outside=CATALOG.interconnect("infiniband-ndr"),
        port_bytes_per_s=joined.bandwidth,
        nic_bytes_per_s=nic,
        per_pod=hosts * each,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_of_one_exchanges_nothing(kind):
    assert collective_seconds(kind, 1e9, ALONE) == 0.0
    assert wire_bytes(kind, 1e9, 1) == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("span", [inside("nvlink3", 8), inside("nvlink4", 8), across(4, 8), across(8, 1)])
def test_more_bytes_take_longer_and_nothing_takes_no_time(kind, span):
    times = [collective_seconds(kind, size, span) for size in (0, 1e3, 1e6, 1e8, 1e10)]
    assert times == sorted(times)
    assert times[0] > CALL_S


def test_large_all_reduces_run_at_the_bus_bandwidth_of_their_ring():
    """2 (n - 1) / n x bytes over 0.78 of 300 GB/s; halves of it take half."""
    size, span = 1e12, inside("nvlink3", 8)
    whole = collective_seconds("all_reduce", size, span)
    assert whole == pytest.approx(2 * 7 / 8 * size / (0.78 * 300 * GB), rel=1e-3)
    for half in ("all_gather", "reduce_scatter"):
        assert collective_seconds(half, size, span) == pytest.approx(whole / 2, rel=1e-3)


def test_a_switch_adds_up_where_enough_members_use_it():
    """Bytes once through a port at 0.6 of it, for five members on; a ring of four is as without."""
    size = 1e12
    assert collective_seconds("all_reduce", size, inside("nvlink4", 8)) == pytest.approx(size / (0.6 * 450e9), rel=1e-3)
    plain = replace(CATALOG.interconnect("nvlink4"), in_switch=None)
    four = [collective_seconds("all_reduce", size, inside(wire, 4)) for wire in ("nvlink4", plain)]
    assert four[0] == four[1]
    assert collective_seconds("all_reduce", size, inside(plain, 8)) > 1.2 * size / (0.6 * 450e9)


def test_across_hosts_a_group_uses_the_nics_of_all_its_members():
    """A ring of 32 on 4 hosts: eight NICs of 50 GB/s each, which the domain's port does not hold back."""
    span = across(4, 8, wire="nvlink5")
    assert ring_bytes_per_s(span) == pytest.approx(0.95 * 8 * 50e9)
    assert ring_bytes_per_s(across(4, 8, nic=100e9, wire="nvlink3")) == pytest.approx(0.78 * 300e9)
    measured = 382e9  # ml-engineering, 4 x 8 B200 with 8 x 400 Gbit/s, 16 GiB
    taken = collective_seconds("all_reduce", 2**34, span)
    assert 2 * 31 / 32 * 2**34 / taken == pytest.approx(measured, rel=0.02)


def test_small_messages_take_the_protocol_of_the_lowest_latency():
    """LL on NVLink: 6.6 us and 14 hops of 0.6 us, and the call."""
    assert collective_seconds("all_reduce", 0, inside("nvlink3", 8)) == pytest.approx(CALL_S + 6.6e-6 + 14 * 0.6e-6)
    assert collective_seconds("all_gather", 0, inside("nvlink3", 8)) == pytest.approx(CALL_S + 6.6e-6 + 7 * 0.6e-6)


def test_small_messages_over_many_hosts_take_a_tree():
    many = collective_seconds("all_reduce", 8, across(128, 8))
    assert many < 3 * collective_seconds("all_reduce", 8, across(4, 8))
    assert collective_seconds("all_gather", 8, across(128, 1)) < 200e-6  # parallel trees


def test_all_to_all_sends_what_is_outside_over_ones_own_nic():
    """Of 32 members 24 are on other hosts."""
    size, span = 1e12, across(4, 8)
    assert collective_seconds("all_to_all", size, span) == pytest.approx(24 / 32 * size / (0.95 * 50e9), rel=1e-3)
    within = collective_seconds("all_to_all", size, inside("nvlink3", 8))
    assert within == pytest.approx(7 / 8 * size / (0.75 * 0.78 * 300e9), rel=1e-3)


def test_a_step_of_a_ring_crosses_the_nic_of_the_member_at_the_edge():
    size = 1e12
    assert collective_seconds("ring", size, across(2, 4)) == pytest.approx(size / (0.95 * 50e9), rel=1e-3)
    assert collective_seconds("ring", size, inside("nvlink3", 4)) == pytest.approx(size / (0.78 * 300e9), rel=1e-3)
    shared_nic = collective_seconds("ring", size, across(2, 4, nic=50e9 / 8))
    assert shared_nic == pytest.approx(size / (0.95 * 25e9), rel=1e-3)


def test_what_leads_out_of_a_pod_holds_back_what_crosses_it():
    """Of 32 members 16 are in other pods; a ring of four hosts a pod is held back 7 / 2-fold."""
    span = replace(across(4, 8, wire="nvlink5"), per_pod=16, oversubscription=7.0)
    assert ring_bytes_per_s(span) == pytest.approx(0.95 * 8 * 50e9 / (7 * 8 / 16))
    size = 1e12
    assert collective_seconds("all_to_all", size, span) == pytest.approx(16 / 32 * size * 7 / (0.95 * 50e9), rel=1e-3)


def test_a_measured_table_is_taken_as_it_is():
    rates = tuple(GroupRate(members=n, latency_s=n * 1e-6, bus_bytes_per_s=n * 1e9) for n in (2, 4, 8))
    wire = Interconnect(name="w", topology=Topology.SWITCH, bandwidth=1e12, latency_s=0.0, measured=rates)
    assert collective_seconds("all_reduce", 4e9, inside(wire, 4)) == pytest.approx(4e-6 + 1.5 * 4e9 / 4e9)
    assert collective_seconds("all_gather", 4e9, inside(wire, 4)) == pytest.approx(2e-6 + 0.75 * 4e9 / 4e9)
    assert collective_seconds("all_reduce", 0, inside(wire, 5)) == 4e-6  # the nearest, the smaller of two
    assert collective_seconds("all_reduce", 0, inside(wire, 16)) == 8e-6


@pytest.mark.skipif(not MEASURED.is_file(), reason=missing(MEASURED))
@pytest.mark.parametrize(("gpu", "wire", "most"), [("A100", "nvlink3", 0.10), ("V100", "nvlink2", 0.04)])
def test_measured_all_reduces_are_met(gpu, wire, most):
    """Mean absolute error of all-reduces of 1 MiB to 1 GiB in a host; V100's table is fitted on these."""
    rows = [row for row in map(json.loads, MEASURED.read_text().splitlines()) if row["gpu"] == gpu]
    errors = [
        collective_seconds("all_reduce", row["bytes"], inside(wire, row["n"])) / row["seconds"] - 1 for row in rows
    ]
    assert len(rows) > 80
    assert mean(map(abs, errors)) < most
