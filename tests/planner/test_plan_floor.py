"""Floors: never above the engine, equal to it where 1F1B meets no shared link; tables as the simulated costs."""

import numpy as np
import pytest
from plan_cases import close, opened, problem_of

from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.planner.block_costs import block_costs
from hops.planner.layout import Layout
from hops.planner.layout_bound import flight_of_chunks, layout_bound
from hops.planner.problem import Pool, ScheduleFamily
from hops.program.action import Op
from hops.program.shape import Shape

MIXED = """\
simulation: {iterations: 2, warmup_iterations: 1}
pipeline: {model: {layers: 12, hidden: 1024, heads: 16, vocab: 32000}, sequence_length: 1024, microbatches: 12}
hardware:
  nodes:
    - {name: a, devices: [h100, h100]}
    - {name: b, devices: [a100, l4]}
    - {name: c, devices: [l4, a10g]}
  interconnect: ethernet-100
"""
FAMILIES = {
    "1f1b": ScheduleFamily.ONE_F_ONE_B,
    "gpipe": ScheduleFamily.GPIPE,
    "zero_bubble": ScheduleFamily.ANY,
    "zb_h1": ScheduleFamily.ANY,
    "hops_hetero": ScheduleFamily.ANY,
}


def random_layout(rng, devices, layers, chunks=1):
    ranks = int(rng.integers(1, min(devices, layers // chunks) + 1))
    cuts = np.sort(rng.choice(np.arange(1, layers), ranks * chunks - 1, replace=False))
    lengths = np.diff(np.concatenate([[0], cuts, [layers]]))
    return Layout(devices=tuple(map(int, rng.permutation(devices)[:ranks])), layers=tuple(map(int, lengths)))


@pytest.mark.parametrize(
    ("name", "p2p"),
    [*((name, "overlapped") for name in FAMILIES), *((name, "blocking_fused") for name in ("1f1b", "gpipe", "zb_h1"))],
)
def test_no_run_beats_the_floor_of_its_layout(name, p2p):
    spec = opened(MIXED, f"pipeline.p2p={p2p}", "optimizer.data_parallel=2")
    problem = problem_of(spec.base, FAMILIES[name])
    rng = np.random.default_rng(5)
    for _ in range(6):
        layout = random_layout(rng, 6, 12)
        took_ms = summarize(simulate(close(spec, layout, problem.pool.ids, name))).iteration_time.mean_ms
        assert layout_bound(problem, layout) * 1e3 <= took_ms * (1 + 1e-6)


@pytest.mark.parametrize(("name", "v_shaped"), [("interleaved_1f1b", False), ("zb_v", True)])
def test_no_run_with_chunks_beats_the_floor_of_its_layout(name, v_shaped):
    spec = opened(MIXED)
    family = ScheduleFamily.ANY if v_shaped else ScheduleFamily.FUSED
    problem = problem_of(spec.base, family, chunks=2, v_shaped=v_shaped)
    rng = np.random.default_rng(6)
    for _ in range(6):
        layout = random_layout(rng, 6, 12, chunks=2)
        if len(layout.devices) in (1, 5):
            continue  # one rank is no pipeline; 12 microbatches do not divide by 5
        took_ms = summarize(simulate(close(spec, layout, problem.pool.ids, name))).iteration_time.mean_ms
        assert layout_bound(problem, layout) * 1e3 <= took_ms * (1 + 1e-6)


def test_the_floor_of_1f1b_is_what_the_engine_takes():
    """On random layouts without shared links the closed form is exact to a thousandth."""
    spec = opened(MIXED)
    problem = problem_of(spec.base, ScheduleFamily.ONE_F_ONE_B)
    rng = np.random.default_rng(7)
    for _ in range(8):
        layout = random_layout(rng, 6, 12)
        took_ms = summarize(simulate(close(spec, layout, problem.pool.ids))).iteration_time.mean_ms
        assert layout_bound(problem, layout) * 1e3 == pytest.approx(took_ms, rel=1e-2)


UNLIKE = "pipeline.model.experts={count: 8, top_k: 2, hidden: 256, dense_layers: [0, 1, 6]}"
CHANGES = [
    ["hardware.profile=null"],
    ["hardware.profile=megatron-aws"],
    [UNLIKE, "pipeline.model.windows=[128, 0, 0]", "pipeline.model.mtp_layers=1"],
]


@pytest.mark.parametrize("changes", CHANGES, ids=["catalog", "profile", "unlike layers"])
def test_blocks_cost_what_the_cost_model_simulates(changes):
    spec = opened(MIXED, *changes)
    pool = Pool.of(spec.base)
    blocks = block_costs(spec.base, pool)
    layout = Layout(devices=(3, 0, 2, 5), layers=(2, 5, 4, 1))
    setup = build(close(spec, layout, pool.ids))
    starts = np.cumsum((0, *layout.layers[:-1]))
    for stage, (device, start, length) in enumerate(zip(layout.devices, starts, layout.layers, strict=True)):
        block = (pool.kind_of[device], start, start + length)
        by_op = {Op.F: blocks.forward, Op.B: blocks.fused, Op.I: blocks.inputs, Op.W: blocks.weights}
        for op, table in by_op.items():
            assert table[block] == pytest.approx(setup.costs.seconds(stage, op))
        memory = setup.costs.memory(stage)
        assert blocks.static[block[1:]] == memory.static_bytes
        assert blocks.activation[block[1:]] == memory.activation_bytes
        assert setup.costs.message_bytes(0, Op.F) == blocks.message_bytes


def test_a_layout_that_does_not_fit_has_no_floor():
    spec = opened(MIXED.replace("[a100, l4]", "[a100, {type: l4, memory: 1 GiB}]"))
    problem = problem_of(spec.base, ScheduleFamily.ONE_F_ONE_B)
    assert layout_bound(problem, Layout(devices=(3, 0), layers=(6, 6))) == float("inf")
    assert np.isfinite(layout_bound(problem, Layout(devices=(2, 0), layers=(6, 6))))


def test_interleaved_1f1b_needs_what_its_program_holds():
    """The microbatches in flight that the floor counts are those that the schedule's own order reaches."""
    from hops.schedules.interleaved_1f1b import Interleaved1F1B
    from hops.timing.stage_costs import StageCosts

    spec = opened(MIXED)
    problem = problem_of(spec.base, ScheduleFamily.FUSED, chunks=2)
    scheduler = Interleaved1F1B(chunks=2)
    profile = StageCosts.uniform(scheduler.shape(4, 12))
    scheduler.configure(profile)
    counted = flight_of_chunks(problem, 4)
    for rank in range(scheduler.program.num_ranks):
        actions = scheduler.program.actions(rank)
        first_backward = next(place for place, action in enumerate(actions) if action.op is Op.B)
        for stage in Shape.loop(4, num_microbatches=12, chunks=2).stages_of(rank):
            assert counted[stage] == sum(action.stage == stage for action in actions[:first_backward])


FULL = "[{type: l4, memory: 2 GiB}, {type: l4, memory: 3 GiB}]"
FAR = "hardware.interconnect={bandwidth: 100 Gbit/s, latency: 30 ms}"
STRONG = {  # sums of the floors, in milliseconds, of 30 layouts each
    "plain": ((), (8741.922177, 8856.907819, 8704.211124, 8544.657451)),
    "few": (("pipeline.microbatches=3",), (2927.919011, 2992.012269, 2893.247868, 2756.721666)),
    "blocking": (("pipeline.p2p=blocking_fused",), (8777.172685, 8856.907819, 8741.789696, 8582.236023)),
    "slow": (
        ("hardware.interconnect={bandwidth: 200 Mbit/s, latency: 1 ms}",),
        (97665.169412, 87630.333728, 87297.176373, 90207.010648),
    ),
    "far": ((FAR,), (15944.373899, 11973.787819, 11424.165957, 11839.682409)),
    "full": (
        (FAR, "pipeline.microbatch_size=4", f"hardware.nodes=[{{count: 3, devices: {FULL}}}]"),
        (0.0, 0.0, 7140.689369, 6930.441805),
    ),
}


def floors_ms(changes, family):
    """The sum over random layouts that fit."""
    problem = problem_of(opened(MIXED, *changes).base, family)
    rng = np.random.default_rng(9)
    floors = np.array([layout_bound(problem, random_layout(rng, 6, 12)) for _ in range(30)])
    return 1e3 * float(floors[np.isfinite(floors)].sum())


@pytest.mark.parametrize("name", STRONG)
def test_floors_are_as_strong_as_they_were(name):
    """Without any one of its terms the closed form would still be a floor; together they come to these sums."""
    changes, golden = STRONG[name]
    for family, sum_ms in zip(ScheduleFamily, golden, strict=True):
        assert floors_ms(changes, family) == pytest.approx(sum_ms, rel=1e-9)
