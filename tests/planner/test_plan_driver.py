"""Plans: equal to the exhaustive best, repeatable, round trips, pointed refusals, and what must change them."""

from itertools import pairwise

import numpy as np
import pytest
from plan_cases import SMALL, close, every_layout, opened

from hops.build.run import simulate, summarize
from hops.errors import DoesNotFitError, HopsError, SpecError, UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.throughput import iteration_times_ns
from hops.planner.planner import _Planner, _silent, plan
from hops.planner.problem import Objective, Pool
from hops.planner.trial import trial_of
from hops.spec.load import loads
from hops.spec.open import load_open
from hops.spec.text import dump

ENOUGH = 3.0
LITTLE = 0.3
NODES = "hardware.nodes"
EXHAUSTIVE = {
    "mixed": (),
    "few_microbatches": ("pipeline.microbatches=2",),
    "slow_network": ("hardware.interconnect={bandwidth: 300 Mbit/s, latency: 1 ms}",),
    "one_host": (f"{NODES}=[{{name: a, devices: [h100, l4, l4]}}]",),
    "equal": (f"{NODES}=[{{name: a, devices: [l4, l4]}}, {{name: b, devices: [l4]}}]",),
    "three_kinds": (f"{NODES}=[{{devices: [h100]}}, {{devices: [a100]}}, {{devices: [a10g]}}]",),
    "large_head": ("pipeline.model.vocab=131072",),
    "untied": ("pipeline.model.tied=false",),
    "tight_memory": (f"{NODES}=[{{devices: [{{type: h100, memory: 600 MiB}}]}}, {{devices: [l4, l4]}}]",),
    "blocking": ("pipeline.p2p=blocking_fused",),
    "replicated": ("optimizer.data_parallel=4",),
    "gpipe": ("pipeline.schedule=gpipe",),
}  # fmt: skip


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_the_best_plan_of_a_small_problem_is_the_best_of_all(name):
    """Every sequence of devices with every partition is simulated; the planner's best equals the best of these."""
    spec = opened(SMALL, "pipeline.model.layers=4", *EXHAUSTIVE[name])
    pool = Pool.of(spec.base)
    schedule = spec.base.pipeline.schedule.name
    best_ms = np.inf
    for layout in every_layout(3, 4):
        try:
            run = simulate(close(spec, layout, pool.ids, schedule))
        except DoesNotFitError:
            continue
        (took_ns,) = iteration_times_ns(Iterations.of(run.trace, run.facts))
        best_ms = min(best_ms, took_ns / 1e6)
    report = plan(spec, budget_s=ENOUGH, top=1)
    assert 1e3 * report.plans[0].seconds == pytest.approx(best_ms, rel=1e-12)
    assert report.effort.exhaustive
    assert report.bound_ms <= best_ms * (1 + 1e-9)


def trials_of_every_layout(spec):
    """A planner that has not begun, and a trial of each layout that it may choose, by floor."""
    planner = _Planner(spec, Objective.ITERATION_TIME, 1e3, 1, _silent)
    pool = Pool.of(spec.base)
    (search,) = planner._searches(pool)
    candidates = search.candidates(10**6, seed=0)
    return planner, pool, [trial_of(candidate, candidate.group.schedules[0]) for candidate in candidates]


def test_no_trial_is_pruned_that_could_be_better():
    """After one that takes nearly twice as long, the trial of the least floor still runs."""
    planner, pool, trials = trials_of_every_layout(opened(SMALL, "pipeline.model.layers=4"))
    slow = max(
        (trial for trial in trials if trial.candidate.floor < 1.9 * trials[0].candidate.floor),
        key=lambda trial: trial.candidate.floor,
    )
    planner._simulate([slow, trials[0]], pool)
    assert [each.trial for each in planner.simulated] == [slow, trials[0]]


def test_trials_that_cannot_be_better_are_pruned():
    planner, pool, trials = trials_of_every_layout(opened(SMALL, "pipeline.model.layers=4"))
    planner._simulate(trials, pool)
    best = min(each.value for each in planner.simulated)
    assert [each.trial for each in planner.simulated] == [each for each in trials if each.candidate.floor < best]
    assert len(planner.simulated) < len(trials)


@pytest.mark.parametrize(("schedule", "proved"), [("interleaved_1f1b", True), ("v_half", False), ("zb_v", False)])
def test_nothing_is_called_proved_where_memory_is_an_estimate(schedule, proved):
    """All layouts are valued and simulated alike; what V schedules keep in flight is not known before they are made."""
    spec = opened(SMALL, "pipeline.model.layers=4", f"pipeline.schedule={schedule}", "pipeline.microbatches=6")
    report = plan(spec, budget_s=ENOUGH, top=1)
    assert report.effort.exhaustive is proved


def test_a_written_plan_runs_to_the_figure_in_the_table():
    """With jitter and several iterations: `hops run` makes of the spec what the plan says, to the last digit."""
    report = plan(
        opened(SMALL, "pipeline.jitter={distribution: lognormal, mean: 1, std: 0.05}", "simulation.iterations=3"),
        budget_s=LITTLE,
    )
    for each in report.plans:
        spec = loads(dump(each.spec))
        assert spec == each.spec
        assert summarize(simulate(spec)).to_dict() == each.summary.to_dict()


def test_the_same_budget_gives_the_same_plans():
    spec = opened(SMALL, "pipeline.model.layers=24", f"{NODES}=[{{devices: [h100, a100, l4, l4, l40s, a10g]}}]")
    first, second = (plan(spec, budget_s=LITTLE).to_dict() for _ in range(2))
    assert first == second
    assert not first["effort"]["exhaustive"]


def test_another_device_never_makes_the_best_plan_worse():
    """Subsets are allowed, so that even a useless device does no harm."""
    few = plan(opened(SMALL), budget_s=ENOUGH)
    more = plan(
        opened(SMALL, f"{NODES}=[{{name: a, devices: [h100]}}, {{name: b, devices: [l4, l4, a10g]}}]"), budget_s=ENOUGH
    )
    assert more.plans[0].seconds <= few.plans[0].seconds


def test_which_of_equal_devices_is_listed_first_does_not_matter():
    one = plan(
        opened(SMALL, f"{NODES}=[{{name: a, devices: [h100]}}, {{name: b, devices: [l4, l4]}}]"), budget_s=ENOUGH
    )
    other = plan(
        opened(SMALL, f"{NODES}=[{{name: b, devices: [l4, l4]}}, {{name: a, devices: [h100]}}]"), budget_s=ENOUGH
    )
    assert one.plans[0].seconds == other.plans[0].seconds
    assert one.bound == other.bound


def test_devices_of_a_node_stay_together_where_messages_are_dear():
    """Two hosts of two equal devices, and nothing for the first and last stage to share: one message crosses."""
    spec = opened(
        SMALL,
        f"{NODES}=[{{name: a, devices: [a100, a100]}}, {{name: b, devices: [a100, a100]}}]",
        "hardware.interconnect=ethernet-10",
        "pipeline.model={layers: 8, hidden: 512, heads: 8, vocab: 8192, tied: false}",
        "pipeline.microbatches=32",
    )
    ranks = plan(spec, budget_s=ENOUGH).plans[0].spec.hardware.ranks()
    hosts = [each.split("/")[0] for each in ranks]
    assert sum(a != b for a, b in pairwise(hosts)) <= 1


def test_a_price_decides_which_devices_are_worth_it():
    """By cost per token a free device is used alone; by throughput all that help are."""
    devices = f"{NODES}=[{{devices: [h100, h100, {{type: a100, price_per_hour: 0.01}}]}}]"
    spec = opened(SMALL, devices, "pipeline.model.hidden=2048", "pipeline.microbatches=32")
    cheap = plan(spec, objective=Objective.COST_PER_TOKEN, budget_s=ENOUGH).plans[0]
    fast = plan(spec, objective=Objective.THROUGHPUT, budget_s=ENOUGH).plans[0]
    assert cheap.spec.hardware.ranks() == ("node0/2",)
    assert fast.price_per_hour > cheap.price_per_hour
    assert fast.seconds < cheap.seconds
    hours = fast.seconds / 3600
    tokens = 32 * 512
    assert fast.cost_per_million == pytest.approx(hours * fast.price_per_hour / tokens * 1e6)


def test_pareto_keeps_plans_that_no_other_beats():
    devices = f"{NODES}=[{{devices: [h100, h100, {{type: a100, price_per_hour: 0.5}}]}}]"
    report = plan(opened(SMALL, devices), objective=Objective.PARETO, budget_s=LITTLE)
    figures = [(each.value, each.fullness, each.cost_per_million) for each in report.plans]
    for one in figures:
        assert not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in figures)


def test_open_schedules_recompute_and_batches_are_all_tried():
    """The best of an open spec is the best of the closed ones that it stands for."""
    changes = ("pipeline.schedule=[1f1b, gpipe]", "pipeline.recompute=[none, full]", "pipeline.microbatches=auto")
    spec = opened(SMALL, *changes, "pipeline.microbatch_size=auto", "pipeline.model.layers=3", batch=4)
    assert set(spec.batches) == {(4, 1), (2, 2), (1, 4)}
    best = plan(spec, budget_s=ENOUGH, top=1).plans[0]
    singles = []
    for schedule in ("1f1b", "gpipe"):
        for recompute in ("none", "full"):
            for count, size in spec.batches:
                stated = (f"pipeline.schedule={schedule}", f"pipeline.recompute={recompute}")
                counts = (f"pipeline.microbatches={count}", f"pipeline.microbatch_size={size}")
                single = opened(SMALL, *stated, *counts, "pipeline.model.layers=3")
                singles.append(plan(single, budget_s=ENOUGH, top=1).plans[0].value)
    assert best.value == pytest.approx(min(singles))


def test_what_the_spec_states_is_kept():
    """A stated placement and a stated partition are not touched."""
    placed = plan(opened(SMALL, "hardware.placement=[b/1, a/0]"), budget_s=LITTLE)
    assert {each.spec.hardware.placement for each in placed.plans} == {("b/1", "a/0")}
    parted = plan(opened(SMALL, "pipeline.partition=[1, 5]"), budget_s=LITTLE)
    assert {each.spec.pipeline.partition for each in parted.plans} == {(1, 5)}
    assert parted.plans[0].spec.hardware.ranks()[1] == "a/0"  # five layers go to the fast device
    even = plan(opened(SMALL, "pipeline.partition=even"), budget_s=LITTLE)
    assert all(max(each.spec.pipeline.partition) - min(each.spec.pipeline.partition) <= 1 for each in even.plans)


def test_every_schedule_is_tried_when_none_is_stated():
    spec = opened(SMALL.replace("  schedule: 1f1b\n", ""))
    report = plan(spec, budget_s=ENOUGH)
    tried = {each.spec.pipeline.schedule.name for each in (*report.plans, *report.others)}
    assert len(tried) > 1
    alone = plan(opened(SMALL), budget_s=ENOUGH)
    assert report.plans[0].seconds <= alone.plans[0].seconds * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            (f"{NODES}=[{{devices: [{{type: l4, memory: 100 MiB, count: 3}}]}}]",),
            "weights, gradients and optimizer states alone need 0.39 GiB of 0.29 on 3 devices",
        ),
        (
            ("pipeline.microbatch_size=40000",),
            "one layer with one microbatch needs",
        ),
        (
            (f"{NODES}=[{{devices: [{{type: l4, memory: 180 MiB, count: 3}}]}}]",),
            "all devices together hold at most",
        ),
    ],
)
def test_what_cannot_fit_is_proved_and_explained(changes, said):
    with pytest.raises(DoesNotFitError) as refused:
        plan(opened(SMALL, *changes), budget_s=LITTLE)
    assert str(refused.value).startswith("no placement fits: ")
    assert said in str(refused.value)
    assert refused.value.exit_code == 1


def test_interrupting_returns_the_best_so_far():
    def stop(what, done, total):
        if what == "simulating" and done == 2:
            raise KeyboardInterrupt

    report = plan(opened(SMALL), budget_s=ENOUGH, progress=stop)
    assert report.effort.interrupted
    assert not report.effort.exhaustive
    assert 1 <= report.effort.simulated <= 2


@pytest.mark.parametrize(
    ("what", "number"), [("searching", 1), ("rehearsing", 0), ("rehearsing", 2), ("simulating", 0)]
)
def test_interrupting_before_anything_was_simulated_simulates_the_best_that_is_known(what, number):
    def stop(doing, done, total):
        if (doing, done) == (what, number):
            raise KeyboardInterrupt

    report = plan(opened(SMALL, "pipeline.schedule=auto"), budget_s=LITTLE, progress=stop)
    assert report.effort.interrupted
    assert not report.effort.exhaustive
    assert report.effort.simulated == 1
    (best,) = report.plans
    assert summarize(simulate(best.spec)).iteration_time.mean_ms == 1e3 * best.seconds
    assert report.bound_ms <= 1e3 * best.seconds


def test_interrupting_inside_the_first_search_simulates_the_best_valued_so_far(monkeypatch):
    from hops.planner import candidates

    real, calls = candidates.layout_bound, []

    def interrupted(problem, layout):
        calls.append((real(problem, layout), layout))
        if len(calls) == 40:
            raise KeyboardInterrupt
        return calls[-1][0]

    monkeypatch.setattr(candidates, "layout_bound", interrupted)
    report = plan(opened(SMALL), budget_s=LITTLE)
    _, best = min(calls[:-1], key=lambda call: call[0])
    assert report.plans[0].spec.pipeline.partition == best.layers


def test_interrupting_before_a_layout_is_known_is_an_interrupt():
    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(opened(SMALL), budget_s=ENOUGH, progress=stop)


BAD = [
    ("pipeline.recompute=[none, ful]", "--set pipeline.recompute=[none, ful]: pipeline.recompute: got 'ful'"),
    ("pipeline.schedule=[1f1b, gpie]", "unknown schedule 'gpie': did you mean 'gpipe'?"),
    ("pipeline.microbatches=auto", "got auto, and nothing says what pipeline.microbatches may be"),
    ("pipeline.schedule={name: interleaved_1f1b, chunks: [2, x]}", "pipeline.schedule.chunks: got 'x'"),
    ("hardware.placement=[a/0, nowhere]", "unknown device id"),
]


@pytest.mark.parametrize(("change", "said"), BAD)
def test_a_bad_choice_is_pointed_at(change, said):
    with pytest.raises(SpecError) as refused:
        opened(SMALL, change)
    assert said in str(refused.value)


def test_a_batch_that_nothing_makes_is_refused():
    with pytest.raises(UsageError, match="no microbatches x microbatch_size makes 12, got 8 x 1"):
        opened(SMALL, batch=12)


def test_stated_times_cannot_be_planned():
    pipeline = "pipeline: {stage_times: {forward: 1 ms, backward: 2 ms}, microbatches: 4}\n"
    text = pipeline + "hardware: {nodes: [{devices: [h100]}]}\n"
    with pytest.raises(UsageError, match=r"hops plan needs pipeline\.model"):
        plan(opened(text))


def test_a_run_refuses_what_is_left_open():
    with pytest.raises(HopsError, match="`hops plan` chooses it"):
        loads(SMALL, overrides=["pipeline.partition=auto"])


def test_the_example_is_open(request):
    spec = load_open(request.config.rootpath / "examples/plan.yaml")
    assert spec.partition
    assert spec.placement
    assert spec.schedules is None
    assert spec.recomputes == ("none", "selective", "full")
