"""Hardware profiles: files round trip, wrong ones say where, and what is fitted replaces what is counted."""

from dataclasses import replace

import pytest

from hops.cost.fitted import (
    TCP_CORE_BYTES_PER_S,
    End,
    catalog_rates,
    fitted_rates,
    pair_of,
    port_bytes_per_s,
    shapes_traffic,
    tied_reduce,
)
from hops.cost.profile import (
    CodeFit,
    DeviceFit,
    HostFit,
    MessageFit,
    OperationFactors,
    PairFit,
    PathFit,
    ReduceFit,
    StallPrior,
    read_profile,
    shipped_profile,
    shipped_profiles,
    write_profile,
)
from hops.cost.roofline import Traffic
from hops.errors import CatalogError, UsageError
from hops.hardware.catalog import Catalog
from hops.model.implementation import Implementation, host_operations

SHIPPED = read_profile(shipped_profile("megatron-aws"))
LOCAL = host_operations(
    Implementation(attention="unfused", dropout=False, fused_gradient_accumulation=False), fused_optimizer=False
)
PLAIN = CodeFit(cache_speedup=2.0, dispatch_lag=0.0, operations=OperationFactors(), traffic=Traffic())


def test_a_profile_comes_with_hops_and_its_shares_are_within_the_vendors_peaks():
    assert "megatron-aws" in shipped_profiles()
    for device in SHIPPED.devices.values():
        assert 0 < device.gemm_efficiency <= 1
        assert 0 < device.memory_efficiency <= 1
    for host in SHIPPED.hosts.values():
        assert host.socket_bytes_per_s <= TCP_CORE_BYTES_PER_S


def test_a_profile_written_and_read_is_the_same(tmp_path):
    write_profile(SHIPPED, tmp_path / "one.yaml")
    again = read_profile(tmp_path / "one.yaml")
    assert again == SHIPPED
    assert again.report == SHIPPED.report
    write_profile(again, tmp_path / "two.yaml")
    assert (tmp_path / "two.yaml").read_bytes() == (tmp_path / "one.yaml").read_bytes()


def damaged(old, new):
    return shipped_profile("megatron-aws").read_text().replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "1:2: not YAML: "),
        ("hello", "1:1: got 'hello', expected a mapping of keys to values"),
        (damaged("format: 1", "format: 7"), "3:9: format: got 7, expected 1"),
        (damaged("turn_s:", "pause_s:"), "51:67: messages.pause_s: unknown key, expected one of nic_efficiency"),
        (damaged("gap:", "gup:"), "122:1: gup: unknown key; did you mean gap?"),
        (damaged("base_s: ", "base_s: x"), "122:15: gap.base_s: got 'x0.001992475', expected a number"),
        (damaged("dispatch_lag: 0.2551368", "dispatch_lag: []"), "46:17: code.dispatch_lag: got a list, exp"),
        (damaged("hidden: [768, 2048]", "hidden: [2048, 768]"), "5:3: scope: hidden of a profile's scope must rise"),
        (damaged("hosts: [g5.2xlarge]", "hosts: []"), "26:12: devices.a10g.hosts: got 0 entries, expected at least 1"),
        (damaged("gemm_efficiency: 0.8660066", "gemm_efficiency: 0"), "devices.a10g.gemm_efficiency: got 0, exp"),
        (damaged("message_s: 0.0009027197", "message_s: -1"), "hosts.g5.2xlarge.message_s: got -1, expected"),
        (damaged("message_s: 0.0009027197", "message_s: .inf"), ": got .inf, expected a finite number"),
    ],
)
def test_a_wrong_profile_says_file_and_key(tmp_path, text, message):
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(CatalogError) as error:
        read_profile(file)
    assert str(error.value).startswith(f"{file}:")
    assert message in str(error.value)


def test_a_missing_profile_and_an_unknown_name_are_said(tmp_path):
    with pytest.raises(CatalogError, match="cannot be read"):
        read_profile(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="no profile 'mine' comes with HOPS: there are megatron-aws"):
        shipped_profile("mine")


def test_operations_counted_in_the_docstring_are_the_ones_used():
    """86 and 149 with unfused attention and additions to main_grad of their own; flash and fusion save what is said."""
    assert (LOCAL.layer_forward, LOCAL.layer_backward) == (86, 149)
    modern = host_operations(Implementation(), fused_optimizer=True)
    assert (modern.layer_forward, modern.layer_backward) == (86 - 23, 149 - 43 - 8)
    assert (modern.norm_layer, modern.step_layer) == (12, 0)
    fused = host_operations(Implementation(cross_entropy="fused"), fused_optimizer=True)
    assert (modern.last_forward - fused.last_forward, modern.last_backward - fused.last_backward) == (21, 8)


def test_a_device_by_the_catalog_has_counted_operations_at_the_nominal_time():
    kind = Catalog.load().device("l4")
    rates = catalog_rates(kind, "bf16", LOCAL)
    assert rates.forward_layer_floor_s == pytest.approx(86 * 10e-6)
    assert rates.backward_layer_floor_s == pytest.approx(149 * 10e-6)
    assert rates.cache_bytes == 48 * 2**20
    stated = catalog_rates(kind.with_overrides(layer_s=1e-3), "bf16", LOCAL)
    assert (stated.forward_layer_floor_s, stated.backward_layer_floor_s) == (1e-3, 1e-3)


def test_a_fitted_device_has_counted_operations_at_its_hosts_time_and_the_codes_factors():
    kind = Catalog.load().device("l4")
    device = DeviceFit(gemm_efficiency=0.5, memory_efficiency=0.9, gemm_ramp_s=1e-6, hosts=("x",))
    host = HostFit(
        operation_s=20e-6, first_fetch_s=1e-3, refill_s=2e-3, message_s=0.0, socket_bytes_per_s=1.0, nic_bytes_per_s=1.0
    )
    code = replace(PLAIN, operations=OperationFactors(layer_backward=0.5, last_forward=2.0, norm_layer=3.0))
    rates = fitted_rates(kind, "bf16", LOCAL, device, host, code)
    assert rates.forward_layer_floor_s == pytest.approx(86 * 20e-6)
    assert rates.backward_layer_floor_s == pytest.approx(149 * 20e-6 * 0.5)
    assert rates.last_forward_s == pytest.approx(LOCAL.last_forward * 20e-6 * 2)
    assert rates.norm_layer_s == pytest.approx(24 * 20e-6 * 3)
    assert (rates.first_fetch_s, rates.refill_s) == (1e-3, 2e-3)
    assert rates.flop_per_s == pytest.approx(121e12 * 0.5)


def test_a_token_bucket_lets_short_messages_through_at_the_sockets_rate():
    """Longer ones take (size - burst) / rate: the mean rate falls to the NIC's."""
    host = replace(SHIPPED.hosts["g5.2xlarge"], socket_bytes_per_s=2.7e9)
    fit = MessageFit(nic_efficiency=1.0, nic_burst_bytes=1e6, turn_s=0.0)
    assert port_bytes_per_s(host, 1.25e9, 0.5e6, fit) == 2.7e9
    assert 8e6 / port_bytes_per_s(host, 1.25e9, 8e6, fit) == pytest.approx(7e6 / 1.25e9)
    assert port_bytes_per_s(host, 1.25e9, 1e12, fit) == pytest.approx(1.25e9, rel=1e-5)
    assert port_bytes_per_s(host, 100e9, 8e6, fit) == 2.7e9


# The tied all-reduce

SLOW = End(host="s", kind="slow", nic_bytes_per_s=1e9)
FAST = End(host="f", kind="fast", nic_bytes_per_s=12e9)
OTHER = End(host="o", kind="other", nic_bytes_per_s=3e9)


def reduced(*pairs, paths=()):
    fit = ReduceFit(
        pairs=pairs, paths=paths, free=StallPrior(alpha=1.0, beta=9.0), shaped=StallPrior(alpha=0.0, beta=1.0)
    )
    return replace(SHIPPED, reduce=fit)


def pair(hosts, *values):
    return PairFit(hosts=hosts, seconds_per_byte=values, stall_s=0.2)


def test_a_nic_slower_than_tcp_sets_the_rate_whatever_the_other_end():
    assert shapes_traffic(1.25e9)
    assert not shapes_traffic(3.125e9)
    assert pair_of(SLOW, FAST) == pair_of(OTHER, SLOW) == ("slow",)
    assert pair_of(OTHER, FAST) == ("fast", "other")


def test_a_reduction_is_its_pairs_seconds_per_byte_times_bytes():
    distribution, stall = tied_reduce(reduced(pair(("fast", "other"), 1e-9, 3e-9)), FAST, OTHER, 1e6)
    assert distribution.mean == pytest.approx(2e-3)
    assert (stall.probability, stall.extra.mean) == (pytest.approx(0.1), 0.2)


def test_a_slow_nic_never_stalls_if_none_was_seen_to():
    _, stall = tied_reduce(reduced(pair(("slow",), 1e-9)), FAST, SLOW, 1e6)
    assert stall is None


def test_a_path_that_was_seen_has_a_probability_between_its_own_and_the_prior():
    profile = reduced(pair(("fast", "other"), 1e-9), paths=(PathFit(between=("f", "o"), stalls=40, reductions=90),))
    assert tied_reduce(profile, OTHER, FAST, 1e6)[1].probability == pytest.approx(41 / 100)
    elsewhere = replace(OTHER, host="another")
    assert tied_reduce(profile, elsewhere, FAST, 1e6)[1].probability == pytest.approx(0.1)


def test_a_pair_never_seen_is_as_slow_as_its_slower_host_at_its_best():
    profile = reduced(pair(("fast", "fast"), 1e-9), pair(("other", "other"), 3e-9), pair(("third", "other"), 5e-9))
    assert tied_reduce(profile, FAST, OTHER, 1e6)[0].mean == pytest.approx(3e-3)
