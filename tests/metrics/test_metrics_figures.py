"""Figures by name are those of the summary, whichever are asked for."""

from dataclasses import asdict, fields

import pytest

import hops
from hops.errors import UsageError
from hops.metrics.figures import figure_names, figures
from hops.metrics.summarize import SECTIONS, summarize
from hops.metrics.summary import Summary

SPEC = hops.from_dict({
    "simulation": {"iterations": 3},
    "pipeline": {
        "model": "gpt2-medium",
        "microbatches": 8,
        "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.1},
    },
    "hardware": {"nodes": [{"count": 2, "devices": ["h100", "l4"]}], "interconnect": "ethernet-100"},
})  # fmt: skip


@pytest.fixture(scope="module")
def run():
    return hops.simulate(SPEC)


def test_each_figure_alone_is_that_of_the_summary(run):
    summary = asdict(summarize(run.trace, run.facts))
    for name in figure_names():
        (value,) = figures(run.trace, run.facts, [name]).values()
        if not name.startswith("peak_memory."):
            expected = summary
            for part in name.split("."):
                expected = expected[part]
            assert value == expected, name


def test_sections_are_the_fields_of_a_summary():
    assert list(SECTIONS) == [field.name for field in fields(Summary)]


def test_the_fullest_device_is_the_greatest_of_all_ranks(run):
    memories = [rank.memory for rank in summarize(run.trace, run.facts).ranks]
    found = figures(run.trace, run.facts, ["peak_memory.bytes", "peak_memory.share"])
    assert found["peak_memory.bytes"] == max(each.peak_bytes for each in memories)
    assert found["peak_memory.share"] == max(each.peak_bytes / each.capacity_bytes for each in memories)


def test_figures_come_in_the_order_in_which_they_were_asked_for(run):
    names = ["mfu", "iteration_time.mean_ms", "phases"]
    assert list(hops.summarize(run, only=names)) == names
    assert hops.summarize(run, only=["phases"])["phases"] == hops.summarize(run).phases


def test_an_unknown_figure_is_refused_with_the_nearest(run):
    with pytest.raises(UsageError) as caught:
        figures(run.trace, run.facts, ["iteration_time.mean"])
    assert str(caught.value) == (
        "unknown figure 'iteration_time.mean', expected one such as iteration_time.mean_ms; "
        "did you mean iteration_time.mean_ms?"
    )


def test_what_is_not_known_is_none():
    spec = hops.from_dict({
        "pipeline": {"stage_times": {"forward": "1 ms", "backward": "2 ms"}, "microbatches": 4},
        "hardware": {"nodes": [{"devices": ["h100", "h100"]}]},
    })  # fmt: skip
    names = ["mfu", "peak_memory.bytes", "peak_memory.share", "throughput.tokens_per_s"]
    assert set(hops.summarize(hops.simulate(spec), only=names).values()) == {None}
