"""What recovery costs, from the spec: the slowest rank decides, a checkpoint is written before it counts."""

import pytest

from hops.build.setup import build
from hops.errors import UsageError
from hops.fleet.recovery.base import RECOVERIES, Phase, Reaction, RecoveryPolicy
from hops.fleet.recovery_times import recovery_times
from hops.fleet.result import summarize_study
from hops.fleet.study import prepare
from hops.fleet.time_use import TimeUse
from hops.spec.load import loads

S = 1_000_000_000
SPEC = """
simulation: {seed: 3}
pipeline:
  stage_times:
    forward: 100 ms
    backward: 200 ms
    weights: [10 GB, 20 GB, 5 GB]
    optimizer_state: [0 GB, 0 GB, 3 GB]
  microbatches: 4
hardware:
  nodes:
    - count: 3
      devices: [{type: h100-sxm, memory: 80 GB}]
      nic: {bandwidth: 10 GB/s}
optimizer: {data_parallel: 2}
"""


def times_of(*overrides):
    spec = loads(SPEC, overrides=overrides)
    return recovery_times(build(spec), spec.failure.recovery)


CHECKPOINT = "failure.recovery.checkpoint"


def test_state_moves_at_the_bandwidth_of_all_hosts_and_is_copied_by_the_slowest_rank():
    times = times_of()
    assert times.reload_ns == round(38 / 30 * S)
    assert times.copy_ns == 2 * S
    assert (times.pause_ns, times.write_ns) == (times.reload_ns, times.reload_ns)


def test_an_asynchronous_checkpoint_pauses_for_the_slowest_rank_and_counts_when_it_is_written():
    times = times_of(f"{CHECKPOINT}.asynchronous=true")
    bus = build(loads(SPEC)).cluster.device("node0/0").kind.bus.bandwidth
    assert times.pause_ns == pytest.approx(20e9 / bus * S, rel=1e-6)
    assert times.write_ns == round(38 / 30 * S)


def test_no_checkpoint_is_written_before_its_pause_is_over():
    times = times_of(f"{CHECKPOINT}.asynchronous=true", f"{CHECKPOINT}.pause=9 s", f"{CHECKPOINT}.write=4 s")
    assert (times.pause_ns, times.write_ns) == (9 * S, 9 * S)


def test_distributed_states_are_held_in_parts_by_the_copies():
    """What a rank is stated to hold of the optimizer's states is then one of two parts."""
    parts = times_of("optimizer.distributed=true", "failure.recovery.state_from=checkpoint")
    assert parts.reload_ns == round((35 + 2 * 3) / 30 * S)


def study(*overrides, days=0.05):
    spec = loads(SPEC, overrides=overrides)
    return prepare(build(spec), spec.failure.recovery, days=days, seeds=1)


def test_an_iteration_of_the_fleet_is_that_of_its_slowest_copy():
    """With varied times 64 copies wait for the slowest: its mean lies over two standard deviations higher."""
    noise = "pipeline.jitter={distribution: lognormal, mean: 1, std: 0.2}"
    one, many = (study(noise, f"optimizer.data_parallel={copies}") for copies in (1, 64))
    figures = [summarize_study(each, each.trajectories()) for each in (one, many)]
    samples = one.table.spread()
    deviation_ms = (samples.quantiles_ns[-1] - samples.mean_ns) / 1e6 / 8
    assert figures[0].iteration_ms == pytest.approx(samples.mean_ns / 1e6, rel=0.01)
    assert figures[1].iteration_ms > figures[0].iteration_ms + 2 * deviation_ms
    measured_ms = [each.wall_s * 1e3 / each.iterations for each in figures]
    assert [each.iteration_ms for each in figures] == pytest.approx(measured_ms, rel=0.02)


class Patient(RecoveryPolicy):
    """Waits so many seconds, then trains on."""

    def __init__(self, times, fleet, seconds, *, patience: int = 5) -> None:
        super().__init__(times, fleet, seconds)
        if patience < 0:
            raise UsageError(f"patience: got {patience}, expected at least 0 s")
        self.patience = patience

    def react(self, situation):
        return Reaction(phases=(Phase(cause=TimeUse.WAITING, length_ns=self.patience * S, fills=True),), rollback=False)


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setitem(RECOVERIES._members, "patient", Patient)


FAILS = (
    "failure.enabled=true",
    "failure.models=[{kind: stop, on: node0/0, at: [100 s], repair: 1 h}]",
    f"{CHECKPOINT}.interval=null",
)


@pytest.mark.usefixtures("patient")
def test_a_policy_takes_parameters_beside_its_name():
    for stated, waited in (("patient", 5), ("{name: patient}", 5), ("{name: patient, patience: 70}", 70)):
        one = study(*FAILS, f"failure.recovery.policy={stated}")
        (found,) = one.trajectories()
        assert found.spent_ns[TimeUse.WAITING] == waited * S
        assert summarize_study(one, [found]).policy == "patient"
        assert one.under("patient") is one


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            "{name: patient, patients: 3}",
            "unknown parameter patients of the recovery policy patient, it takes patience; did",
        ),
        ("{name: stall, patience: 3}", "unknown parameter patience of the recovery policy stall, it takes none"),
        ("{name: patient, patience: -1}", "patience: got -1, expected at least 0 s"),
        ("{name: patient, patience: [1]}", "the recovery policy patient cannot be made: TypeError: '<' not supported"),
        ("{name: patent}", "unknown recovery policy 'patent': did you mean 'patient'?"),
    ],
)
def test_wrong_parameters_are_told_before_anything_is_simulated(stated, message):
    with pytest.raises(UsageError) as caught:
        study(*FAILS, f"failure.recovery.policy={stated}")
    assert message in str(caught.value)


def test_a_policy_with_parameters_is_shown_and_read_back():
    from hops.spec.text import dump

    spec = loads(SPEC, overrides=["failure.recovery.policy={name: mine, patience: 3}"])
    assert loads(dump(spec)).failure.recovery.policy == spec.failure.recovery.policy
    assert spec.failure.recovery.policy.parameters == {"patience": 3}
