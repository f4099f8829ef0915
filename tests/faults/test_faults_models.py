"""Fault models against theory: availability, Poisson counts, and draws that other things do not move."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.distributions import Constant, Empirical, Exponential, LogNormal, Weibull, generator
from hops.errors import UsageError
from hops.faults.draw import FaultSource, draw_plan
from hops.faults.inventory import Inventory, TargetKind
from hops.faults.models import FAULT_MODELS, FaultModel, Fixed, Renewal, Share
from hops.faults.plan import FOREVER, FaultKind
from hops.faults.presets import DAY_S, PRESETS, model_of

S = 1_000_000_000


def hosts(number, *, each=1):
    """`number` hosts h0, h1, ... with a NIC and some devices."""
    devices = {f"h{host}/{device}": f"h{host}" for host in range(number) for device in range(each)}
    nics = {f"h{host}.nic": (f"h{host}.nic.out", f"h{host}.nic.in") for host in range(number)}
    return Inventory(
        kind_of={device: "h100" if device.endswith("/0") else "l4" for device in devices},
        host_of=devices,
        nics=nics,
        nics_of={f"h{host}": (f"h{host}.nic",) for host in range(number)},
        links=tuple(link for links in nics.values() for link in links),
    )


def stops(model, inventory, *, name="stops", family=TargetKind.DEVICES, kind=FaultKind.STOP, factor=None, **more):
    return FaultSource(name=name, kind=kind, sites=inventory.sites(family, **more), model=model, factor=factor)


def windows(model, horizon_s, *, seed=0, target=0):
    def generator_of(purpose):
        return generator(seed, purpose, target)

    return list(model.windows(generator_of, horizon_s))


@pytest.mark.parametrize(
    ("between", "repair"),
    [
        (Exponential(mean=50.0), Exponential(mean=10.0)),
        (Weibull(mean=50.0, shape=0.7), LogNormal(mean=10.0, std=20.0)),
        (LogNormal(mean=50.0, std=30.0), Constant(value=10.0)),
        (Empirical(samples=(20.0, 80.0)), Empirical(samples=(1.0, 19.0))),
    ],
    ids=["exponential", "Weibull", "lognormal", "empirical"],
)
def test_availability_of_a_device_is_mtbf_over_mtbf_plus_mttr(between, repair):
    """Over 20,000 cycles; three standard errors of such a ratio are below 0.01."""
    horizon = 20_000 * 60.0
    down = sum(min(end, horizon) - start for start, end in windows(Renewal(between=between, repair=repair), horizon))
    assert 1 - down / horizon == pytest.approx(50 / 60, abs=0.01)


def test_failures_at_a_constant_rate_are_poisson():
    """Counts of 2,000 targets over a window with 5 expected: mean and variance are 5, and counts are independent."""
    model = Renewal(between=Exponential(mean=20.0), repair=Constant(value=0.0))
    counts = np.array([len(windows(model, 100.0, target=target)) for target in range(2_000)])
    assert counts.mean() == pytest.approx(5, abs=3 * np.sqrt(5 / 2_000))
    assert counts.var() == pytest.approx(5, rel=0.1)
    assert abs(np.corrcoef(counts[:-1], counts[1:])[0, 1]) < 0.07
    zero = np.exp(-5) * 2_000
    assert (counts == 0).sum() == pytest.approx(zero, abs=4 * np.sqrt(zero))


@given(
    seed=st.integers(0, 100),
    short=st.floats(1, 500),
    more=st.floats(0, 5_000),
    shape=st.sampled_from([Exponential(mean=20.0), Weibull(mean=20.0, shape=0.5), Constant(value=7.0)]),
)
@settings(deadline=None, max_examples=60)
def test_a_longer_horizon_adds_faults_and_moves_none(seed, short, more, shape):
    model = Renewal(between=shape, repair=Exponential(mean=3.0))
    few, many = windows(model, short, seed=seed), windows(model, short + more, seed=seed)
    assert many[: len(few)] == few
    assert all(start >= short for start, _ in many[len(few) :])


def test_windows_of_a_renewal_alternate():
    found = windows(Renewal(between=Exponential(mean=5.0), repair=Exponential(mean=5.0)), 1_000.0)
    times = [time for window in found for time in window]
    assert times == sorted(times)


def test_what_is_never_repaired_breaks_once():
    model = Renewal(between=Constant(value=5.0))
    plan = draw_plan([stops(model, hosts(2))], seed=0, horizon_s=100.0)
    assert [(fault.start_ns, fault.end_ns) for fault in plan] == [(5 * S, FOREVER)] * 2
    assert len(draw_plan([stops(model, hosts(2))], seed=0, horizon_s=5.0)) == 0


def test_fixed_times_are_those_and_a_fault_during_a_repair_is_part_of_it():
    model = Fixed(at=(1.0, 2.0, 8.0, 200.0), repair=Constant(value=5.0))
    assert windows(model, 100.0) == [(1.0, 6.0), (8.0, 13.0)]
    assert windows(Fixed(at=(3.0,)), 100.0) == [(3.0, float("inf"))]


def test_a_share_is_broken_from_the_start_for_good():
    hit = [bool(windows(Share(probability=0.3), 1.0, target=target)) for target in range(3_000)]
    assert np.mean(hit) == pytest.approx(0.3, abs=0.03)
    assert windows(Share(probability=1.0), 1.0) == [(0.0, float("inf"))]
    assert windows(Share(probability=0.0), 1.0) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Renewal(between=Constant(value=0.0)), "mean time between failures must be more than 0, but got 0 s"),
        (lambda: Fixed(at=(2.0, 1.0)), r"times of faults must rise from 0 on, but got \[2.0, 1.0\]; put them in order"),
        (lambda: Fixed(at=(-1.0,)), r"must rise from 0 on, but got \[-1.0\]"),
        (lambda: Share(probability=1.5), "must be between 0 and 1, but got 1.5"),
    ],
)
def test_impossible_models_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_models_have_names():
    assert FAULT_MODELS.names() == ["fixed", "renewal", "share"]
    with pytest.raises(UsageError, match="unknown fault model 'renewl': did you mean 'renewal'"):
        FAULT_MODELS.get("renewl")


# Draws


BOTH = Renewal(between=Exponential(mean=40.0), repair=Exponential(mean=4.0))


def test_the_same_seed_draws_the_same_plan_and_another_another():
    sources = [stops(BOTH, hosts(4))]
    assert draw_plan(sources, 3, 1e3) == draw_plan(sources, 3, 1e3)
    assert draw_plan(sources, 3, 1e3) != draw_plan(sources, 4, 1e3)


def test_other_sources_and_more_targets_move_no_fault():
    base = draw_plan([stops(BOTH, hosts(3))], 3, 1e3)
    other = stops(BOTH, hosts(3), name="other", family=TargetKind.HOSTS)
    both = draw_plan([other, stops(BOTH, hosts(3))], 3, 1e3)
    assert set(base.faults) <= set(both.faults)
    assert set(base.faults) < set(draw_plan([stops(BOTH, hosts(5))], 3, 1e3).faults)


def test_the_factor_is_drawn_apart_from_the_times():
    def times(factor):
        kind = FaultKind.SLOW
        plan = draw_plan([stops(BOTH, hosts(3), kind=kind, factor=factor)], 3, 1e3)
        return [(fault.target, fault.start_ns, fault.end_ns) for fault in plan]

    assert times(Constant(value=2.0)) == times(Constant(value=3.0))
    some = times(LogNormal(mean=1.2, std=0.5))  # draws of at most 1 slow nothing down
    assert set(some) < set(times(Constant(value=2.0)))


def test_a_host_takes_all_its_devices_at_once_and_its_nics_links():
    inventory = hosts(2, each=3)
    plan = draw_plan([stops(Fixed(at=(1.0,)), inventory, family=TargetKind.HOSTS)], 0, 10.0)
    assert [fault.target for fault in plan] == [f"h{host}/{device}" for host in range(2) for device in range(3)]
    assert {fault.cause for fault in plan} == {"host h0", "host h1"}
    down = draw_plan([stops(Fixed(at=(1.0,)), inventory, family=TargetKind.HOSTS, kind=FaultKind.LINK_DOWN)], 0, 10.0)
    assert [fault.target for fault in down] == ["h0.nic.in", "h0.nic.out", "h1.nic.in", "h1.nic.out"]


def test_groups_break_together():
    inventory = hosts(3, each=2)
    groups = {"rack": ("h0", "h2/1", "h1.nic")}
    inventory = replace(inventory, groups=groups)
    (rack,) = inventory.sites(TargetKind.GROUPS)
    assert rack.devices == ("h0/0", "h0/1", "h2/1")
    assert rack.links == ("h0.nic.out", "h0.nic.in", "h1.nic.out", "h1.nic.in")
    assert inventory.named(["rack", "h1"])[1].devices == ("h1/0", "h1/1")
    plan = draw_plan([stops(BOTH, inventory, family=TargetKind.GROUPS)], 1, 1e3)
    assert {(f.start_ns, f.end_ns) for f in plan if f.target == "h0/0"} == {
        (f.start_ns, f.end_ns) for f in plan if f.target == "h2/1"
    }


def test_hazards_can_differ_by_kind_of_device():
    inventory = hosts(2, each=2)
    assert [site.name for site in inventory.sites(TargetKind.DEVICES, kinds=("l4",))] == ["h0/1", "h1/1"]
    assert len(inventory.sites(TargetKind.HOSTS, kinds=("l4",))) == 2
    assert len(inventory.sites(TargetKind.NICS, kinds=("l4",))) == 0


def test_unknown_targets_are_named_with_the_nearest():
    with pytest.raises(UsageError, match="unknown target 'h0/7': did you mean h0/1"):
        hosts(1, each=2).named(["h0/7"])


@pytest.mark.parametrize(
    ("family", "kind", "message"),
    [
        (
            TargetKind.NICS,
            FaultKind.STOP,
            "nic h0.nic has no device for a fault of kind stop; use link-down or link-slow",
        ),
        (
            TargetKind.DEVICES,
            FaultKind.LINK_DOWN,
            "device h0/0 has no link for a fault of kind link-down; use stop or slow",
        ),
    ],
)
def test_kinds_that_a_target_cannot_suffer_are_refused(family, kind, message):
    with pytest.raises(UsageError, match=message):
        draw_plan([stops(Fixed(at=(1.0,)), hosts(1), family=family, kind=kind)], 0, 10.0)


def test_a_rate_that_would_never_end_is_refused(monkeypatch):
    monkeypatch.setattr("hops.faults.draw.MOST_FAULTS", 1_000)
    model = Renewal(between=Constant(value=1e-9), repair=Constant(value=0.0))
    with pytest.raises(
        UsageError, match=r"more than 1,000 faults in 11.6 d \(stops\); raise the time between failures"
    ):
        draw_plan([stops(model, hosts(1))], 0, 1e6)


# Presets


def test_llama3_has_419_interruptions_in_54_days_on_16384_gpus():
    """Its rates times its size give its count again: 58.7% by GPUs."""
    members = {TargetKind.DEVICES: 16_384, TargetKind.HOSTS: 2_048, TargetKind.NICS: 16_384}
    expected = {part.what: 54 * DAY_S * members[part.family] / part.mean_s for part in PRESETS["llama3"].parts}
    assert sum(expected.values()) == pytest.approx(419)
    assert expected["gpu"] / 419 == pytest.approx(0.587)


def test_bloom_has_three_gpu_failures_in_two_weeks_on_384_gpus():
    (part,) = PRESETS["bloom"].parts
    model, factor = model_of(part, Constant(value=3_600.0))
    assert factor is None
    counts = [len(windows(model, 140 * DAY_S, target=target)) for target in range(384)]
    assert sum(counts) == pytest.approx(30, abs=3 * np.sqrt(30))


def test_stragglers_of_megascale_are_slow_for_good():
    (part,) = PRESETS["megascale-stragglers"].parts
    model, factor = model_of(part, None)
    source = stops(model, hosts(4_000), family=TargetKind.HOSTS, kind=part.kind, factor=factor)
    plan = draw_plan([source], 0, 1.0)
    assert len(plan) == pytest.approx(20, abs=3 * np.sqrt(20))
    assert {(fault.start_ns, fault.end_ns, fault.factor) for fault in plan} == {(0, FOREVER, 1.1)}


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_names_its_paper(preset):
    assert "arXiv 2" in preset.source
    assert preset.title


def test_the_page_about_faults_names_every_preset_and_its_paper():
    page = (Path(__file__).parents[2] / "docs/explanation/faults.md").read_text(encoding="utf-8")
    for name, preset in PRESETS.items():
        (paper,) = re.findall(r"arXiv (\d{4}\.\d{5})", preset.source)
        assert any(f"`{name}`" in line and paper in line for line in page.splitlines())


def test_the_spec_on_the_page_about_faults_loads(tmp_path):
    from hops.spec.load import loads

    page = (Path(__file__).parents[2] / "docs/explanation/faults.md").read_text(encoding="utf-8")
    section = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "spot.csv").write_text("time,event,node\n3600,remove,node0\n7200,add,node0\n")
    spec = f"pipeline: {{model: gpt2, microbatches: 8}}\nhardware: {{nodes: [{{count: 2, devices: [l4]}}]}}\n{section}"
    assert len(loads(spec, folder=tmp_path).failure.models) == 9


class Failing(FaultModel):
    """A plug-in's model that does what it is told."""

    def __init__(self, answer):
        self.answer = answer

    def windows(self, generator_of, horizon_s):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ZeroDivisionError("division by zero"), " (stops) failed: ZeroDivisionError: division by zero"),
        (None, " (stops) failed: TypeError: 'NoneType' object is not iterable"),
        ([(3.0, 1.0)], " (stops) gave the windows [(3.0, 1.0)], expected pairs of seconds in order, not overlapping"),
        ([(1.0, 3.0), (2.0, 4.0)], " (stops) gave the windows [(1.0, 3.0), (2.0, 4.0)], expected pairs"),
        ([(100.0, 101.0)], "that start from 0 on and before 10 s"),
        ([(1.0,)], " (stops) failed: ValueError: not enough values to unpack"),
    ],
)
def test_a_model_that_fails_is_named(answer, message):
    with pytest.raises(UsageError) as caught:
        draw_plan([stops(Failing(answer), hosts(2))], 0, 10.0)
    assert str(caught.value).startswith("fault model test_faults_models.Failing")
    assert message in str(caught.value)


def test_outsiders_need_only_what_the_packages_export():
    import hops.faults
    import hops.testing

    assert {"FaultModel", "Window", "Generators"} <= set(hops.faults.__all__)
    assert set(hops.testing.__all__) == {"FaultModelConformance", "RecoveryConformance", "SchedulerConformance"}
