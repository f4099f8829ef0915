"""Points of a sweep: all combinations, samples that fill the ranges, and words for what cannot be."""

import pytest
from sweep_cases import SMALL, SPEC

from hops.errors import UsageError
from hops.sweep.axes import between, choices, together
from hops.sweep.design import grid, grid_size, sampled
from hops.sweep.plan import load_sweep, sweep_from_dict

BANDWIDTH, SCHEDULE = "hardware.interconnect.bandwidth", "pipeline.schedule"


def test_a_grid_is_all_combinations_the_last_axis_fastest():
    axes = [choices("a", [1, 2]), together({"b": ["x", "y"], "c": [3, 4]})]
    assert list(grid(axes)) == [
        {"a": 1, "b": "x", "c": 3},
        {"a": 1, "b": "y", "c": 4},
        {"a": 2, "b": "x", "c": 3},
        {"a": 2, "b": "y", "c": 4},
    ]
    assert grid_size(axes) == 4


def test_lists_inside_a_schedule_are_taken_one_by_one():
    axis = choices(SCHEDULE, ["1f1b", {"name": "interleaved_1f1b", "chunks": [2, 4]}])
    names = [changes[SCHEDULE] for changes in axis.all_values()]
    assert names == ["1f1b", {"name": "interleaved_1f1b", "chunks": 2}, {"name": "interleaved_1f1b", "chunks": 4}]


def test_a_range_keeps_its_ends_and_its_unit():
    linear = between(BANDWIDTH, "10 Gbit/s", "40 Gbit/s", steps=4)
    assert [each[BANDWIDTH] for each in linear.all_values()] == ["10 Gbit/s", "20 Gbit/s", "30 Gbit/s", "40 Gbit/s"]
    factors = between("x", 1.5, 150.0, scale="log", steps=3)
    assert [each["x"] for each in factors.all_values()] == [1.5, 15.0, 150.0]
    whole = between("x", 1, 4, steps=9)
    assert [each["x"] for each in whole.all_values()] == [1, 2, 3, 4]


@pytest.mark.parametrize("sampler", ["random", "lhs", "sobol"])
def test_samples_lie_in_their_ranges_and_repeat(sampler):
    axes = [between("x", 1, 4), between("y", 2.0, 3.0, scale="log"), choices("z", "abc")]
    points = list(sampled(sampler, axes, 48, 7))
    assert points == list(sampled(sampler, axes, 48, 7))
    assert points != list(sampled(sampler, axes, 48, 8))
    assert {point["x"] for point in points} == {1, 2, 3, 4}
    assert {point["z"] for point in points} == set("abc")
    assert all(2 <= point["y"] <= 3 for point in points)


def test_a_latin_hypercube_has_one_point_in_every_row():
    points = list(sampled("lhs", [between("x", 0.0, 1.0), between("y", 0.0, 1.0)], 20, 0))
    for key in "xy":
        assert sorted(int(20 * point[key]) for point in points) == list(range(20))


def test_the_first_sobol_points_of_more_are_the_same():
    axes = [between("x", 0.0, 1.0)]
    assert list(sampled("sobol", axes, 5, 3)) == list(sampled("sobol", axes, 8, 3))[:5]


def test_seeds_begin_at_the_spec_s_own():
    plan = sweep_from_dict({**SMALL, "spec": {**SPEC, "simulation": {"iterations": 1, "seed": 9}}})
    assert [point["simulation.seed"] for point in plan.points()][:4] == [9, 10, 11, 9]
    assert plan.size == 18
    assert plan.keys == (SCHEDULE, BANDWIDTH, "simulation.seed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samplr": "lhs"}, "samplr: unknown key; did you mean sampler?"),
        ({"sampler": "lsh"}, "got sampler lsh, expected one of grid, random, lhs, sobol, tpe, nsga2"),
        ({"sampler": "lhs"}, "got samples 0 with sampler lhs, expected how many points to take"),
        ({"samples": 3}, "got samples 3 with sampler grid, expected none: a grid takes all combinations"),
        ({"seeds": 0}, "got seeds 0, expected at least 1"),
        ({"goals": {"mfu": "max"}}, "got 1 goals with sampler grid, expected none: only tpe and nsga2 have goals"),
        ({"figures": ["mean_ms"]}, "unknown figure 'mean_ms', expected one such as iteration_time.mean_ms"),
        ({"axes": {BANDWIDTH: {"from": "1 Gbit/s", "to": "2 Gbit/s"}}}, "got a range without steps"),
        ({"axes": {BANDWIDTH: {"from": "1 Gbit/s", "to": "2 GB/s", "steps": 3}}}, "expected one unit"),
        ({"axes": {BANDWIDTH: {"from": "2 Gbit/s", "to": "1 Gbit/s", "steps": 3}}}, "expected from below to"),
        ({"axes": {BANDWIDTH: {"from": 0, "to": 1, "steps": 3, "scale": "log"}}}, "expected from above 0"),
        ({"axes": {BANDWIDTH: {"from": 1, "to": 2, "steps": 1}}}, "steps: got 1, expected at least 2"),
        ({"axes": {BANDWIDTH: []}}, "got an empty list, expected at least one value"),
        ({"axes": {BANDWIDTH: 7}}, "expected a list of values, or a range {from: A, to: B}"),
        ({"axes": {}, "seeds": 1}, "nothing varies, expected axes, together or seeds"),
        ({"axes": {"simulation.seed": [1]}}, "simulation.seed varies twice; remove one"),
        ({"axes": {}, "together": [{"a": [1, 2], "b": [1]}]}, "got lists of different lengths (a 2, b 1)"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(UsageError) as caught:
        sweep_from_dict({**SMALL, **change})
    assert message in str(caught.value)


def test_a_file_is_refused_with_line_and_column(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text("spec: spec.yaml\naxes:\n  pipeline.microbatches: []\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_sweep(file)
    assert str(caught.value) == (
        f"{file}:3:26: axes.pipeline.microbatches: got an empty list, expected at least one value"
    )
