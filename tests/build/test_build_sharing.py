"""Specs that share sections share what is built of them, and run as they would alone."""

from pathlib import Path

import pytest

from hops.build.prepared import arranged
from hops.build.run import simulate, simulate_setup
from hops.build.setup import build
from hops.cost.profile import shipped_profile
from hops.errors import DoesNotFitError
from hops.schedules.base import SCHEDULERS
from hops.spec.load import from_dict, loads
from hops.spec.text import dump

DATA = {
    "simulation": {"iterations": 2, "warmup_iterations": 0, "engine": "compiled"},
    "pipeline": {
        "model": "gpt2-medium",
        "microbatches": 8,
        "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.05},
    },
    "hardware": {"nodes": [{"count": 2, "devices": ["h100", "l4"]}], "interconnect": "ethernet-100"},
}
CHANGES = [
    {"simulation.seed": 5},
    {"simulation.iterations": 3, "simulation.warmup_iterations": 1},
    {"pipeline.schedule": "zb_h1", "simulation.seed": 5},
    {"hardware.interconnect": "ethernet-10", "simulation.seed": 5},
    {"pipeline.p2p": "blocking_fused"},
    {"simulation.engine": "reference"},
    {"failure": {"enabled": True, "models": [{"kind": "slow", "factor": 2, "on": "devices", "between": "1 s",
                                              "repair": "200 ms"}], "horizon": "20 s"}},
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_a_run_that_shares_is_the_run_alone(changes):
    base = from_dict(DATA)
    simulate(base)
    shared = simulate(base.with_(changes))
    alone = simulate(loads(dump(base.with_(changes))))  # nothing of it is the very same as anything
    assert shared.trace == alone.trace
    assert shared.facts == alone.facts
    assert shared.setup.settings == alone.setup.settings


def test_seeds_share_costs_network_and_program():
    base = from_dict(DATA)
    one, other = (build(base.with_({"simulation.seed": seed})) for seed in (1, 2))
    assert one.costs is other.costs
    assert one.network is other.network
    assert arranged(one) is arranged(other)
    assert (one.spec.simulation.seed, other.spec.simulation.seed) == (1, 2)
    assert simulate_setup(one).trace != simulate_setup(other).trace


def test_a_schedule_that_is_registered_anew_arranges_anew(monkeypatch):
    base = from_dict(DATA)
    before = arranged(build(base))
    monkeypatch.setitem(SCHEDULERS._members, "1f1b", SCHEDULERS.get("gpipe"))
    assert arranged(build(base)) == arranged(build(base.with_({"pipeline.schedule": "gpipe"})))
    assert arranged(build(base)) != before


def test_what_does_not_fit_is_said_every_time():
    base = from_dict({**DATA, "pipeline": {"model": "llama2-70b", "microbatches": 8}})
    for _ in range(2):
        with pytest.raises(DoesNotFitError, match="needs"):
            simulate(base)


def test_a_profile_that_was_written_again_is_read_again(tmp_path):
    text = Path(shipped_profile("megatron-aws")).read_text(encoding="utf-8")
    file = tmp_path / "profile.yaml"
    file.write_text(text, encoding="utf-8")
    spec = from_dict({
        "pipeline": {"model": "gpt2-medium", "microbatches": 8},
        "hardware": {"profile": str(file), "nodes": [{"count": 2, "devices": ["l4"]}], "interconnect": "ethernet-25"},
    })  # fmt: skip
    before = build(spec).known.profile
    assert before is build(spec).known.profile
    file.write_text(text + "\n# touched\n", encoding="utf-8")
    assert build(spec).known.profile is not before
