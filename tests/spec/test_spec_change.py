"""`with_` changes only sections that it names: the same spec as by writing it out and reading it again."""

from itertools import product

import pytest

from hops.errors import SpecError
from hops.schedules.base import SCHEDULERS
from hops.spec import change
from hops.spec.load import from_dict
from hops.spec.spec import FILLED, Spec

BASES = {
    "model": {
        "pipeline": {"model": "gpt2-medium", "microbatches": 8, "schedule": {"name": "interleaved_1f1b"}},
        "hardware": {"nodes": [{"devices": [{"type": "h100", "count": 4}]}], "interconnect": "ethernet-100"},
    },
    "stated": {
        "simulation": {"iterations": 4, "seed": 3},
        "pipeline": {
            "stage_times": {"forward": "10 ms", "backward": "20 ms", "message": "8 MiB"},
            "microbatches": 8,
            "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.05},
        },
        "hardware": {"nodes": [{"devices": ["h100", "h100", "l4", "l4"]}]},
        "optimizer": {"update_time": "20 ms"},
        "failure": {"models": [{"kind": "stop", "on": "devices", "between": "2 d", "repair": "1 h"}]},
        "output": {"summary": "s.json"},
    },
}
CHANGES = [
    {},
    {"simulation.seed": 7},
    {"pipeline.microbatches": 16, "simulation.iterations": 5},
    {"pipeline.schedule": "zb_h1"},
    {"pipeline.schedule": {"name": "interleaved_1f1b", "chunks": 3}},
    {"hardware.interconnect": {"bandwidth": "25 Gbit/s", "latency": "10 us"}},
    {"hardware.nodes[0].devices": ["l4"] * 4, "optimizer.host_gap": "3 ms"},
    {"pipeline.precision": "fp16"},
    {"failure": {"enabled": True}},
    {"optimizer": None},
    {"output.summary": "other.json"},
]


@pytest.mark.parametrize(("base", "changes"), list(product(BASES, CHANGES)))
def test_section_by_section_is_as_reading_it_anew(base, changes):
    spec = from_dict(BASES[base])
    quick, slow = change.changed(spec, changes), change._anew(spec, changes, ".")
    assert quick == slow
    assert quick.model_dump(exclude_unset=True) == slow.model_dump(exclude_unset=True)
    again = {"pipeline.p2p": "blocking"}
    assert change.changed(quick, again) == change._anew(slow, again, ".")


@pytest.mark.parametrize(
    "changes",
    [
        {"pipeline.microbatches": 0},
        {"pipeline.microbatch": 3},
        {"nowhere.at_all": 3},
        {"pipeline.schedule": "1f2b"},
        {"pipeline..x": 3},
        {"hardware.nodes[4].count": 3},
        {"pipeline.schedule": ["1f1b", "gpipe"]},
        {"simulation.warmup_iterations": 9},
        {"pipeline.partition": [1, 2]},
    ],
)
@pytest.mark.parametrize("base", BASES)
def test_what_is_wrong_is_said_as_of_a_file(base, changes):
    spec = from_dict(BASES[base])
    messages = []
    for change_it in (change.changed, lambda *given: change._anew(*given, ".")):
        with pytest.raises(SpecError) as caught:
            change_it(spec, changes)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_sections_that_are_not_named_stay_the_very_same():
    spec = from_dict(BASES["stated"])
    other = spec.with_({"simulation.seed": 9})
    kept = [name for name in Spec.model_fields if name not in (*FILLED, "simulation")]
    assert kept
    assert all(getattr(other, name) is getattr(spec, name) for name in kept)


def test_equal_changes_give_the_very_same_section():
    spec = from_dict(BASES["model"])
    one, other = (spec.with_({"pipeline.schedule": "gpipe", "simulation.seed": seed}) for seed in (1, 2))
    assert one.pipeline is other.pipeline
    assert one.optimizer is other.optimizer
    assert one != other


def test_a_schedule_that_is_registered_anew_is_asked_anew(monkeypatch):
    spec = from_dict(BASES["stated"])
    assert spec.with_({"pipeline.schedule": "gpipe"}).pipeline.schedule.parameters == {}

    class Other(SCHEDULERS.get("gpipe")):
        def __init__(self, *, depth: int = 2) -> None:
            self.depth = depth

    monkeypatch.setitem(SCHEDULERS._members, "gpipe", Other)
    assert spec.with_({"pipeline.schedule": "gpipe"}).pipeline.schedule.parameters == {"depth": 2}
