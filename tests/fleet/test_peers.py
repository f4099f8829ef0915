"""Who can be compared with whom: kinds from names, at least three of a kind, and a word about everybody else."""

from dataclasses import replace

import pytest
from goodput_fleets import slow
from rich.console import Console
from test_goodput_stragglers import run

from hops.build.setup import build
from hops.diagnose.peers import device_kinds
from hops.diagnose.stragglers import find_stragglers
from hops.report.diagnosis import render_stragglers
from hops.spec.load import loads


def said(findings):
    """What is printed, on one line each."""
    console = Console(width=400, record=True, file=None, quiet=False)
    with console.capture() as text:
        console.print(render_stragglers("run", findings))
    return text.get().splitlines()


def named(trace, names):
    """The same trace as if it had been measured on devices of these names."""
    return replace(trace, meta=replace(trace.meta, source="measured", devices=tuple(names)))


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["l4 node0/0", "l4 node1/0", "a10g node2/0"], ["l4", "l4", "a10g"]),
        (["NVIDIA L4", "NVIDIA L4", "NVIDIA A10G"], ["NVIDIA L4", "NVIDIA L4", "NVIDIA A10G"]),
        (["rank 0", "rank 1", "rank 2"], ["rank"] * 3),
        (["cuda:0", "cuda:1", "cuda:2"], ["cuda:"] * 3),
        (["unknown device"] * 3, ["unknown device"] * 3),
        (["L4", "H100"], ["L", "H"]),
    ],
)
def test_kinds_are_read_off_names(names, kinds):
    assert list(device_kinds(names)) == kinds


def test_without_device_names_equal_stages_are_comparable():
    """As with names: the slow rank is found by its peers alone."""
    trace = run(slow("node2/0", 0, 1e6, 1.2), noise=0.01)
    by_name = find_stragglers(trace)
    for names in ([f"rank {rank}" for rank in range(5)], [f"L4 {rank}" for rank in range(5)], ["L4"] * 5):
        found = find_stragglers(named(trace, names))
        assert [(each.ranks, each.against) for each in found.stragglers] == [((2,), "peers")]
        assert found.stragglers[0].factor == by_name.stragglers[0].factor
        assert found.compared == by_name.compared == (1, 2, 3)


def test_the_first_and_the_last_stage_need_a_spec():
    found = find_stragglers(run())
    assert [(each.ranks, each.needed) for each in found.uncompared] == [
        ((0, 4), "--spec, which says what their stages should take")
    ]
    text = "simulation: {iterations: 1}\npipeline: {stage_times: {forward: 10 ms, backward: 20 ms}, microbatches: 8}\n"
    expected = build(loads(f"{text}hardware: {{nodes: [{{count: 5, devices: [l4]}}]}}\n")).expected
    known = find_stragglers(run(), expected=expected)
    assert known.compared == (0, 1, 2, 3, 4)
    assert known.uncompared == ()
    assert said(known)[1:] == ["nothing is slower than it was at other times, or than others of equal work"]


def test_two_of_a_kind_are_not_compared_and_that_is_said():
    mixed = named(run(), ["NVIDIA L4", "NVIDIA L4", "NVIDIA L4", "NVIDIA A10G", "NVIDIA A10G"])
    found = find_stragglers(mixed)
    assert found.compared == ()
    longer = (
        "--spec, which makes the first and the last stage comparable, too, or a longer run, in which a rank that gets"
    )
    few = "and at least 3 are needed; needed: "
    assert said(found) == [
        "run: 0 stragglers",
        "nothing is slower than it was at other times; no rank could be compared with others of equal work",
        f"{NOT} ranks 0, 4: they hold the first or the last stage, with embedding or head; needed: {SPEC}",
        f"{NOT} ranks 1, 2: there are only 2 ranks of kind NVIDIA L4, {few}{longer} slow is compared with itself",
        f"{NOT} rank 3: there is only one rank of kind NVIDIA A10G, {few}{longer} slow is compared with itself",
    ]


NOT, SPEC = "not compared with others:", "--spec, which says what their stages should take"


def test_a_short_run_compares_nothing_with_itself():
    short = find_stragglers(run(iterations=1))
    assert short.over_time == ()
    assert said(short)[1] == (
        "nothing is slower than others of equal work; the run is too short to compare a rank with itself"
    )
    two = named(run(iterations=1), ["L4", "L4", "H100", "A10G", "A10G"])
    assert said(find_stragglers(two))[1] == (
        "nothing could be compared: no rank with others of equal work, and the run is too short for itself"
    )


def test_a_rank_without_actions_is_named():
    trace = run()
    found = find_stragglers(trace.where(trace.rank != 2))
    assert found.uncompared[0].ranks == (2,)
    assert found.uncompared[0].why == "no action of theirs is recorded"
