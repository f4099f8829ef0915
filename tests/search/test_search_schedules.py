"""hops_hetero and zb_or_1f1b as schedules of a spec."""

import dataclasses
import json

import numpy as np
import pytest
from search_cases import hetero16
from shared_data import FACTS, missing

from hops.cost.table import TableCosts
from hops.engine.simulate import run_policy
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.program.shape import Shape
from hops.schedules import hops_hetero
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import builtin_programs, search_from_builtins
from hops.schedules.zb_or_1f1b import wait_s
from hops.search.robust import Noise, choose, expected_ns
from hops.search.search import Incumbent, judge
from hops.timing.list_schedule import LOOK_AHEAD
from hops.timing.longest_path import evaluate
from hops.timing.memory_peaks import fits_budget
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace


def uneven(shape):
    profile = StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3)
    forward = tuple(1e-3 + 1e-4 * stage for stage in range(shape.num_stages))
    return dataclasses.replace(profile, forward_s=forward)


def configured(**parameters):
    scheduler = SCHEDULERS.get("hops_hetero")(**parameters)
    profile = uneven(scheduler.shape(4, 8))
    scheduler.configure(profile)
    return scheduler, profile


def test_it_runs_the_searched_program():
    scheduler, profile = configured(iterations=500, seed=1)
    assert (
        scheduler.program == search_from_builtins(profile, iterations=500, seed=1).program == scheduler.result.program
    )


def test_a_budget_stands_for_iterations():
    short, _ = configured(budget_ms=1)
    long, _ = configured(budget_ms=100)
    assert long.result.certificate.makespan_ns <= short.result.certificate.makespan_ns


@pytest.mark.parametrize(
    ("parameters", "ranks"),
    [
        ({}, (0, 1, 2, 3)),
        ({"chunks": 2}, (0, 1, 2, 3, 0, 1, 2, 3)),
        ({"chunks": 2, "placement": "v"}, (0, 1, 2, 3, 3, 2, 1, 0)),
        ({"chunks": 3}, (0, 1, 2, 3) * 3),
    ],
)
def test_chunks_and_placement_give_the_shape(parameters, ranks):
    scheduler, profile = configured(iterations=200, **parameters)
    assert profile.shape.rank_of_stage == ranks
    assert scheduler.result.certificate.gap >= 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget_ms": 0}, "budget_ms must be a time above 0, but got 0"),
        ({"iterations": -1}, "iterations must be an integer of at least 0, but got -1"),
        ({"seed": -1}, "seed must be an integer of at least 0, but got -1"),
        ({"chunks": 0}, "chunks must be an integer of at least 1, but got 0"),
        ({"placement": "w"}, "placement must be one of loop, v, but got 'w'"),
        ({"placement": "v"}, "placement v has 2 chunks, but got chunks: 1"),
        ({"jitter": 1.5}, "jitter must be a fraction from 0 to 1, such as 0.1 for 10%, but got 1.5"),
        ({"profile_error": -0.1}, "profile_error must be a fraction from 0 to 1, such as 0.1 for 10%, but got -0.1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(UsageError) as error:
        SCHEDULERS.get("hops_hetero")(**parameters)
    assert str(error.value) == message


def test_under_noise_it_runs_the_better_of_plan_and_built_in_on_average():
    scheduler, profile = configured(iterations=500, jitter=0.3)
    _, builtin = judge(profile, builtin_programs(profile))
    noise = Noise(jitter=0.3)
    choice = choose(profile, scheduler.result.program, builtin, noise, seed=0, look_aheads=(0,))
    assert set(choice.mean_ns) == {"plan", builtin.name}
    assert scheduler.program == choice.program


def test_adaptively_it_runs_the_best_of_plan_priorities_and_built_in_on_average():
    scheduler = SCHEDULERS.get("hops_hetero_adaptive")(iterations=500, jitter=0.3)
    profile = uneven(scheduler.shape(4, 8))
    scheduler.configure(profile)
    _, builtin = judge(profile, builtin_programs(profile))
    assert set(scheduler.choice.mean_ns) == {"plan", "plan+2", f"plan+{LOOK_AHEAD}", builtin.name}
    chosen = min(scheduler.choice.mean_ns.values())
    noise = Noise(jitter=0.3)
    look_ahead = scheduler.choice.look_ahead
    assert chosen == expected_ns(profile, scheduler.choice.program, noise, seed=0, look_ahead=look_ahead)


def test_without_noise_the_plan_costs_what_was_planned_and_is_chosen():
    profile = uneven(Shape.loop(4, num_microbatches=8))
    result = search_from_builtins(profile, iterations=500)
    _, builtin = judge(profile, builtin_programs(profile))
    choice = choose(profile, result.program, builtin, Noise(), seed=0)
    assert choice.mean_ns["plan"] == result.certificate.makespan_ns
    assert choice.mean_ns[builtin.name] == builtin.makespan_ns
    assert (choice.program, choice.look_ahead) == (result.program, 0)


def test_a_choice_times_pairs_as_pairs():
    """What a pair gives goes when both its actions are done: the same order without pairs is up to 7% shorter."""
    shape = Shape.v(4, num_microbatches=12)
    profile = StageCosts.uniform(shape, f=1e-3, i=1.2e-3, w=0.9e-3)
    program = SCHEDULERS.get("dualpipe_v")().build(profile)
    builtin = Incumbent(name="dualpipe_v", program=program, makespan_ns=evaluate(program, profile).makespan_ns)
    alone = dataclasses.replace(program, step=np.arange(program.num_actions))
    choice = choose(profile, alone, builtin, Noise(), seed=0, look_aheads=(0,))
    assert choice.mean_ns == {
        "plan": evaluate(alone, profile).makespan_ns,
        "dualpipe_v": evaluate(program, profile).makespan_ns,
    }
    assert choice.mean_ns["plan"] < choice.mean_ns["dualpipe_v"]


def test_a_policy_is_timed_as_it_runs_pairs_as_two_actions(monkeypatch):
    scheduler = SCHEDULERS.get("hops_hetero_adaptive")(iterations=0, jitter=0.2, chunks=2, placement="v")
    profile = StageCosts.uniform(scheduler.shape(4, 12), f=1e-3, i=1.2e-3, w=0.9e-3)
    paired = SCHEDULERS.get("dualpipe_v")().build(profile)
    monkeypatch.setattr(hops_hetero, "builtin_programs", lambda profile: {"dualpipe_v": paired})
    scheduler.configure(profile)
    alone = dataclasses.replace(paired, step=np.arange(paired.num_actions))
    assert scheduler.choice.mean_ns["dualpipe_v"] == expected_ns(profile, alone, Noise(jitter=0.2), seed=0)


def test_where_w_needs_more_than_f_keeps_a_policy_keeps_to_its_plan():
    scheduler = SCHEDULERS.get("hops_hetero_adaptive")(iterations=200, jitter=0.3)
    profile = uneven(scheduler.shape(4, 8))
    profile = dataclasses.replace(profile, kept_for_weight_bytes=(3,) * 4, budget_bytes=(9, 8, 7, 6))
    scheduler.configure(profile)
    assert "plan" in scheduler.choice.mean_ns
    assert not any(name.startswith("plan+") for name in scheduler.choice.mean_ns)


def test_the_same_seed_gives_the_same_choice_and_another_seed_other_draws():
    profile = uneven(Shape.loop(4, num_microbatches=8))
    plan = search_from_builtins(profile, iterations=100).program
    means = [choose(profile, plan, None, Noise(jitter=0.1), seed=seed).mean_ns for seed in (1, 1, 2)]
    assert means[0] == means[1] != means[2]


def test_errors_of_the_profile_are_not_averaged_away():
    """Per action, noise of 10% cancels over many microbatches; per stage it does not, and costs more."""
    profile = uneven(Shape.loop(4, num_microbatches=60))
    plan = search_from_builtins(profile, iterations=100).program
    jitter = choose(profile, plan, None, Noise(jitter=0.1), seed=1).mean_ns["plan"]
    error = choose(profile, plan, None, Noise(profile_error=0.1), seed=1).mean_ns["plan"]
    assert evaluate(plan, profile).makespan_ns < jitter < error


@pytest.mark.parametrize("placement", ["loop", "v"])
@pytest.mark.parametrize("look_ahead", [0, 2, LOOK_AHEAD])
def test_the_engine_runs_priorities_as_the_simulation_behind_the_choice_does(placement, look_ahead):
    """Within memory, and to the nanosecond while no two messages arrive at once."""
    scheduler = SCHEDULERS.get("hops_hetero_adaptive")(iterations=300, chunks=2, placement=placement, seed=4)
    profile = uneven(scheduler.shape(4, 8))
    profile = dataclasses.replace(profile, budget_bytes=(16, 15, 14, 13))
    scheduler.configure(profile)
    scheduler._choice = dataclasses.replace(scheduler.choice, look_ahead=look_ahead)
    scheduler.configure = lambda profile: None  # keep this look-ahead
    costs = TableCosts.of(
        forward_s=profile.forward_s,
        input_backward_s=profile.input_backward_s,
        weight_backward_s=profile.weight_backward_s,
    )
    trace = run_policy(scheduler.placed(profile), costs, Network.uniform(4))
    ran = program_from_trace(trace)
    assert fits_budget(ran, profile)
    expected = expected_ns(profile, scheduler.choice.program, Noise(), seed=0, look_ahead=look_ahead)
    assert trace.end_ns.max() == pytest.approx(expected, rel=0.02)


@pytest.mark.skipif(not FACTS.exists(), reason=missing(FACTS))
def test_the_rule_chooses_what_the_original_chose_on_its_16_pipelines():
    values = json.loads((FACTS / "hetero16.json").read_text(encoding="utf-8"))["pipelines"]
    for named in hetero16():
        published = values[named.name]["original_makespan_ms"]
        chose_zero_bubble = published["hops_hetero"] == published["zero_bubble"]
        assert (wait_s(named.profile) > 0) is chose_zero_bubble, named.name


@pytest.mark.parametrize(("slowest", "chosen"), [(0, "zero_bubble_paper"), (2, "zero_bubble_paper"), (3, "1f1b")])
def test_the_rule_is_1f1b_when_the_last_stage_is_the_slowest(slowest, chosen):
    forward = tuple(2e-3 if stage == slowest else 1e-3 for stage in range(4))
    profile = dataclasses.replace(uneven(Shape.loop(4, num_microbatches=8)), forward_s=forward)
    rule, other = (SCHEDULERS.get(name)() for name in ("zb_or_1f1b", chosen))
    rule.configure(profile)
    other.configure(profile)
    assert rule.program == other.program


def test_the_first_of_equally_slow_stages_counts():
    assert wait_s(StageCosts.uniform(Shape.loop(4, num_microbatches=8), f=1.0, i=1.0, w=1.0)) == 9.0
