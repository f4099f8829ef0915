"""The failure section: written out it loads back, and its entries build the models they say."""

import pytest

from hops.distributions import Constant, Exponential
from hops.faults.models import Fixed, Renewal, Share
from hops.spec.failure_targets import inventory_of, name_of, sites_of
from hops.spec.load import loads
from hops.spec.text import dump

SPEC = """
pipeline: {stage_times: {forward: 2 ms, backward: 4 ms}, microbatches: 8}
hardware:
  nodes: [{name: a, count: 2, nics: 2, devices: [{type: h100, count: 2}]}, {name: b, devices: [l4]}]
failure:
  enabled: true
  horizon: 2 h
  link_timeout: 30 s
  groups: [{name: rack, members: [a0, a1]}]
  models:
    - {kind: stop, on: devices, only: l4, between: {distribution: exponential, mean: 5 h}, repair: 2 h}
    - {kind: slow, on: [a0/1, rack], at: [1 s, 2 s], factor: {distribution: normal, mean: 1.5, std: 0.1}}
    - {name: stragglers, kind: slow, on: hosts, share: 0.1, factor: 1.2}
    - {kind: link-down, on: nics, model: {name: share, probability: 0.5}}
    - {preset: llama3, repair: {distribution: lognormal, mean: 2 h, std: 1 h}}
"""


def test_a_failure_section_loads_back_as_it_is_written_out():
    spec = loads(SPEC)
    assert loads(dump(spec)) == spec


def test_entries_build_the_models_they_say():
    stop, slow, stragglers, plugged, _ = loads(SPEC).failure.models
    assert stop.fault_model() == Renewal(between=Exponential(mean=18_000.0), repair=Constant(value=7_200.0))
    assert slow.fault_model() == Fixed(at=(1.0, 2.0))
    assert stragglers.fault_model() == Share(probability=0.1)
    assert plugged.fault_model() == Share(probability=0.5)


def test_entries_mean_the_targets_they_name():
    spec = loads(SPEC)
    inventory = inventory_of(spec.hardware, spec.failure)
    stop, slow, stragglers, plugged, _ = spec.failure.models
    assert [site.name for site in sites_of(stop, inventory)] == ["b/0"]
    assert [site.devices for site in sites_of(slow, inventory)] == [("a0/1",), ("a0/0", "a0/1", "a1/0", "a1/1")]
    assert [site.name for site in sites_of(stragglers, inventory)] == ["a0", "a1", "b"]
    assert [site.name for site in sites_of(plugged, inventory)] == ["a0.nic0", "a0.nic1", "a1.nic0", "a1.nic1", "b.nic"]


@pytest.mark.parametrize(
    ("index", "name"), [(0, "stop devices l4"), (1, "slow a0/1 rack"), (2, "stragglers"), (4, "llama3")]
)
def test_draws_depend_on_a_name_that_says_what_the_entry_is(index, name):
    """And not on its place in the list."""
    assert name_of(loads(SPEC).failure.models[index]) == name
