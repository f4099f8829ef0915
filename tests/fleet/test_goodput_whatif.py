"""What a change costs is the difference of two runs; names and numbers that cannot be are refused."""

import pytest

from hops.diagnose.what_if import parse_changes, what_if
from hops.errors import HopsError
from hops.spec.load import loads

SPEC = """
simulation: {iterations: 4}
pipeline:
  stage_times: {forward: 10 ms, backward: 20 ms, message: 8 MiB}
  microbatches: 8
hardware:
  nodes: [{count: 4, devices: [l4]}]
  interconnect: ethernet-25
"""


def compared(*, slow=(), slow_link=(), down=(), schedules=("1f1b",)):
    return what_if(loads(SPEC), parse_changes(slow, slow_link, down), schedules)


def test_a_device_twice_as_slow_costs_its_own_work_again():
    """GPipe without messages in the way: the slow stage works 240 ms longer, and the others are faster than it."""
    found, _ = compared(slow=["node2/0=2"], schedules=["gpipe"])
    extra = found["gpipe"].changed_iteration_ms - found["gpipe"].iteration_ms
    assert extra == pytest.approx(240, abs=15)
    assert found["gpipe"].longer == pytest.approx(extra / found["gpipe"].iteration_ms)


def test_a_host_stands_for_its_devices_and_a_nic_for_its_links():
    assert compared(slow=["node2=1.5"]) == compared(slow=["node2/0=1.5"])
    both = compared(slow_link=["node2.nic.in=0.5", "node2.nic.out=0.5"])
    assert compared(slow_link=["node2.nic=0.5"]) == both


def test_a_link_down_costs_about_its_time_once():
    found, _ = compared(down=["node1.nic.in=2s"])
    extra = found["1f1b"].changed_run_ms - found["1f1b"].run_ms
    assert 1950 < extra <= 2000
    default, _ = compared(down=["node1.nic.in"])
    assert default["1f1b"].changed_run_ms == pytest.approx(found["1f1b"].changed_run_ms - 1000)


def test_schedules_differ_in_what_they_absorb_and_those_that_cannot_run_are_named():
    found, refused = compared(slow=["node0/0=1.3"], schedules=["1f1b", "zb_h1", "interleaved_1f1b", "nonsense"])
    assert list(found) == ["1f1b", "zb_h1", "interleaved_1f1b"]
    assert found["1f1b"].longer != found["zb_h1"].longer
    assert "unknown schedule 'nonsense'" in refused["nonsense"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slow": ["node9/0=1.1"]}, "--slow: unknown target 'node9/0': did you mean node"),
        ({"slow": ["node1/0"]}, "--slow: got 'node1/0', expected a name and a number, such as node0/0=1.1"),
        ({"slow": ["node1/0=1"]}, "--slow node1/0: got '1', expected how many times longer everything takes, more"),
        ({"slow": ["node1/0=-2"]}, "--slow node1/0: got '-2', expected how many times longer"),
        ({"slow": ["node1/0=fast"]}, "--slow node1/0: got 'fast', expected how many times longer"),
        ({"slow": ["node1/0=nan"]}, "--slow node1/0: got 'nan', expected how many times longer"),
        ({"slow_link": ["node1.nic=2"]}, "--slow-link node1.nic: got '2', expected the part of the bandwidth"),
        ({"slow_link": ["node1/0=0.5"]}, "--slow-link: device node1/0 has no link"),
        ({"down": ["node1.nic=2"]}, "--down node1.nic: got '2', expected a time, such as 1.5 ms or 15 us: the unit is"),
        ({"down": ["node1.nics"]}, "--down: unknown target 'node1.nics': did you mean node1.nic?"),
        ({}, "nothing is changed: add --slow DEVICE=1.1, --slow-link LINK=0.5 or --down LINK=2s"),
    ],
)
def test_wrong_changes_get_a_pointed_message(changes, message):
    with pytest.raises(HopsError) as caught:
        compared(**changes)
    assert message in str(caught.value)


def test_no_schedule_that_can_run_is_an_error():
    with pytest.raises(HopsError, match="none of the schedules can run"):
        compared(slow=["node1/0=2"], schedules=["nonsense"])
