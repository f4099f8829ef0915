"""Sections: what the written forms mean."""

import pytest

from hops.distributions import Constant, Empirical, Exponential, LogNormal, Normal, Pareto, Poisson, Weibull
from hops.errors import SpecError
from hops.schedules.base import SCHEDULERS, Scheduler
from hops.spec.load import loads
from hops.spec.pipeline import per_stage

SPEC = """\
pipeline: {{microbatches: 8, stage_times: {{forward: {time}, backward: 2 ms}}}}
hardware: {{nodes: [{{devices: [{{type: h100, count: 2}}]}}]}}
"""


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("10 ms", Constant(value=0.01)),
        ("{distribution: constant, value: 10 ms}", Constant(value=0.01)),
        ("{distribution: normal, mean: 10 ms, std: 1 ms}", Normal(mean=0.01, std=0.001)),
        ("{distribution: lognormal, mean: 10 ms, std: 1 ms}", LogNormal(mean=0.01, std=0.001)),
        ("{distribution: pareto, mean: 10 ms, alpha: 2.5}", Pareto(mean=0.01, alpha=2.5)),
        ("{distribution: poisson, mean: 10 ms, unit: 1 ms}", Poisson(mean=0.01, unit=0.001)),
        ("{distribution: exponential, mean: 10 ms}", Exponential(mean=0.01)),
        ("{distribution: weibull, mean: 10 ms, shape: 2}", Weibull(mean=0.01, shape=2.0)),
        ("{distribution: empirical, samples: [9 ms, 11 ms]}", Empirical(samples=(0.009, 0.011))),
    ],
)
def test_a_written_time_is_the_distribution_it_names(written, drawn):
    assert loads(SPEC.format(time=written)).pipeline.stage_times.forward.build() == drawn


def test_a_factor_is_a_plain_number():
    spec = loads(SPEC.format(time="1 ms"), overrides=["pipeline.jitter={distribution: normal, mean: 1, std: 0.1}"])
    assert spec.pipeline.jitter.build() == Normal(mean=1.0, std=0.1)
    assert loads(SPEC.format(time="1 ms"), overrides=["pipeline.jitter=1.1"]).pipeline.jitter.build() == Constant(
        value=1.1
    )


def test_factors_are_read_from_a_file_of_plain_numbers(tmp_path):
    (tmp_path / "factors.txt").write_text("0.9\n1.1\n", encoding="utf-8")
    override = "pipeline.jitter={distribution: empirical, file: factors.txt}"
    spec = loads(SPEC.format(time="1 ms"), overrides=[override], folder=tmp_path)
    assert spec.pipeline.jitter.build() == Empirical(samples=(0.9, 1.1))


def test_one_value_holds_for_all_stages_and_a_list_has_one_for_each():
    assert per_stage("x", 3) == ("x", "x", "x")
    assert per_stage(("x", "y"), 2) == ("x", "y")


def test_stage_times_of_a_schedule_with_chunks_count_stages_and_not_ranks():
    four = SPEC.format(time="[1 ms, 2 ms, 3 ms, 4 ms]").replace("microbatches: 8", "microbatches: 8, schedule: zb_v")
    spec = loads(four)
    assert spec.shape().num_ranks == 2
    assert len(spec.pipeline.stage_times.forward) == spec.shape().num_stages == 4


class FromFile(Scheduler):
    """A schedule of an outsider that reads a file."""

    def __init__(self, *, file: str) -> None:
        self.file = file

    def configure(self, profile):
        """Nothing to prepare."""

    def next_actions(self, view):
        return []


def test_a_file_that_a_schedule_reads_lies_beside_the_spec(monkeypatch, tmp_path):
    monkeypatch.setitem(SCHEDULERS._members, "from_file", FromFile)
    override = "pipeline.schedule={name: from_file, file: order.txt}"
    spec = loads(SPEC.format(time="1 ms"), overrides=[override], folder=tmp_path)
    assert spec.pipeline.schedule.make().file == str(tmp_path / "order.txt")


def test_a_schedule_that_needs_a_parameter_says_so(monkeypatch):
    monkeypatch.setitem(SCHEDULERS._members, "from_file", FromFile)
    with pytest.raises(SpecError) as caught:
        loads(SPEC.format(time="1 ms"), name="s", overrides=["pipeline.schedule=from_file"])
    what = "pipeline.schedule: missing, the schedule from_file needs file; add it"
    assert str(caught.value) == f"--set pipeline.schedule=from_file: {what}"


def test_a_link_may_be_named_or_stated_and_has_both_ways_by_default():
    links = "[{between: [node0/0, node0/1], name: pcie4, latency: {distribution: exponential, mean: 1 us}}]"
    (link,) = loads(SPEC.format(time="1 ms"), overrides=[f"hardware.links={links}"]).hardware.links
    assert (link.name, link.bandwidth, link.both_ways) == ("pcie4", None, True)
    assert link.latency.build() == Exponential(mean=1e-6)


def test_names_of_the_catalog_may_be_aliases_and_a_spec_may_bring_its_own_catalog(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "interconnect: my-link\ntitle: mine\ntopology: network\nbandwidth: 1 GB/s\nlatency: 1 us\n", encoding="utf-8"
    )
    overrides = ["hardware.catalog=[mine.yaml]", "hardware.interconnect=my-link"]
    spec = loads(SPEC.format(time="1 ms"), overrides=overrides, folder=tmp_path)
    assert spec.hardware.interconnect.name == "my-link"
    assert spec.hardware.catalog == (str(tmp_path / "mine.yaml"),)
