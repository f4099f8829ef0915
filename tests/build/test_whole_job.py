"""A whole job in the engine: axes of size 1 change nothing, groups and copies exchange what they must."""

import numpy as np
import pytest

from hops.axes import Axis
from hops.build.exchanged import exposed_by_axis, exposed_text, job_lines
from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.model.kernels import Collective
from hops.program.action import Op
from hops.spec.load import loads
from hops.trace.trace import COLUMNS

JOB = """
simulation: {iterations: 2}
pipeline:
  model: {layers: 8, hidden: 4096, heads: 32, vocab: 32000, max_positions: 4096, tied: false}
  microbatches: 4
  sequence_length: 4096
parallel: {tensor: 4, sequence: true, context: 2, data: 2}
hardware:
  nodes: [{count: 4, devices: [{type: h100, count: 8}], nics: 8}]
"""
PLAIN = """
simulation: {iterations: 2}
pipeline:
  model: {layers: 8, hidden: 1024, heads: 16, vocab: 4096, max_positions: 512}
  schedule: SCHEDULE
  microbatches: 8
  sequence_length: 512
hardware:
  nodes: [{devices: [{type: h100, count: 2}]}, {devices: [{type: l4, count: 2}]}]
"""
COPIES = """
simulation: {iterations: 1}
pipeline:
  model: {layers: 24, hidden: 2048, heads: 16, vocab: 51200, max_positions: 2048, tied: false}
  microbatches: 1
hardware: {nodes: [{devices: [{type: a100-sxm-80, count: 8}]}]}
"""


def columns(spec):
    trace = simulate(spec).trace
    return {name: getattr(trace, name) for name in COLUMNS}


def collectives(work):
    ops = (work.forward, work.input_backward, work.weight_backward, work.recompute)
    return [[kernel for kernel in op.kernels if isinstance(kernel, Collective)] for op in ops]


@pytest.mark.parametrize("schedule", ["1f1b", "{name: interleaved_1f1b, chunks: 2}", "zb_h1", "zero_bubble"])
def test_axes_of_size_one_are_the_run_without_them(schedule):
    plain = loads(PLAIN.replace("SCHEDULE", schedule))
    axes = "{tensor: 1, context: 1, expert: 1, data: 1, pipeline: 4, overlap: [tensor, gradients], shard: parameters}"
    stated = loads(PLAIN.replace("SCHEDULE", schedule) + f"parallel: {axes}")
    for name, column in columns(plain).items():
        assert np.array_equal(column, columns(stated)[name]), name
    assert summarize(simulate(stated)).to_dict() == summarize(simulate(plain)).to_dict()


@pytest.mark.parametrize("order", ["cp-tp-ep-dp-pp", "dp-cp-tp-ep-pp", "tp-dp-cp-ep-pp"])
def test_on_a_flat_network_the_order_changes_nothing(order):
    flat = ["hardware.nodes=[{count: 32, devices: [h100]}]"]
    usual, another = (loads(JOB, overrides=[*flat, f"parallel.order={each}"]) for each in ("tp-cp-ep-dp-pp", order))
    for name, column in columns(usual).items():
        assert np.array_equal(column, columns(another)[name]), name


def test_a_tensor_group_that_leaves_its_host_is_slower():
    times = [
        summarize(simulate(loads(JOB, overrides=[f"parallel.order={order}"]))).iteration_time.mean_ms
        for order in ("tp-cp-ep-dp-pp", "cp-dp-tp-ep-pp")
    ]
    assert times[1] > 1.03 * times[0]


def test_w_does_not_communicate():
    """So a schedule that splits the backward pass has its gaps filled with computing alone."""
    costs = build(loads(JOB)).costs
    plain = build(loads(JOB, overrides=["parallel.sequence=false"])).costs
    for stage in range(costs.num_stages):
        forward, inputs, weights, _ = collectives(costs.works[stage])
        assert forward
        assert inputs
        assert not weights
        assert costs.seconds(stage, Op.W) == pytest.approx(plain.seconds(stage, Op.W), rel=0.05)
        together = costs.seconds(stage, Op.I) + costs.seconds(stage, Op.W)
        assert together >= costs.seconds(stage, Op.B)  # what hides under W in B is exposed in I


def test_a_position_s_time_has_its_exposed_collectives():
    """F = computing alone + every call over the span of its group: nothing of it hides but the ring."""
    costs = build(loads(JOB, overrides=["parallel.context_kind=all_gather"])).costs
    work, rates = costs.works[0], costs.rates[0]
    terms = costs.terms(0, Op.F)
    exchanged = sum(rates.exchange.seconds(each) for each in collectives(work)[0])
    assert terms["tensor"] + terms["context"] == pytest.approx(exchanged)
    alone = build(loads(JOB, overrides=["hardware.nodes[0].nics=1"])).costs
    assert alone.seconds(0, Op.F) == pytest.approx(build(loads(JOB)).costs.seconds(0, Op.F))  # inside of hosts


def test_eight_copies_in_one_host_use_its_own_links():
    """1.31 billion parameters of 4 bytes, 2 x 7/8 of them over 300 GB/s; NCCL reaches 0.78 of that."""
    inside = loads(COPIES + "parallel: {data: 8}\noptimizer: {gradient_reduction: ring}")
    costs = build(inside).costs
    parameters = costs.works[0].parameters
    assert parameters == pytest.approx(1.42e9, rel=0.01)
    (ring,) = costs.step(0, 0).grad_reduce_s
    assert ring == pytest.approx(2 * 7 / 8 * 4 * parameters / 300e9, rel=2e-3)
    (chosen,) = build(loads(COPIES + "parallel: {data: 8}")).costs.step(0, 0).grad_reduce_s
    assert chosen == pytest.approx(ring / 0.78, rel=2e-3)
    apart = COPIES.replace("devices: [{type: a100-sxm-80, count: 8}]", "count: 8, devices: [a100-sxm-80]")
    (over_nics,) = build(loads(apart + "parallel: {data: 8}")).costs.step(0, 0).grad_reduce_s
    assert over_nics == pytest.approx(2 * 7 / 8 * 4 * parameters / (0.95 * 25e9), rel=2e-3)
    assert over_nics > 9 * chosen


def test_copies_across_hosts_use_all_nics():
    """Eight ranks of a host with one NIC or eight, each rank's copies on other hosts."""
    seconds = []
    for nics in (1, 8):
        spec = loads(COPIES, overrides=["optimizer.data_parallel=4", f"hardware.nodes[0].nics={nics}"])
        seconds.append(build(spec).costs.step(0, 0).grad_reduce_s[0])
    assert seconds[0] == pytest.approx(8 * seconds[1], rel=1e-2)


@pytest.mark.parametrize(
    ("shard", "in_ops", "at_end"),
    [
        ("none", [[], [], []], "all_reduce"),
        ("optimizer", [[], [], []], "reduce_scatter all_gather"),
        ("gradients", [[], [], ["reduce_scatter"]], "all_gather"),
        ("parameters", [["all_gather"], ["all_gather"], ["reduce_scatter"]], ""),
    ],
)
def test_every_stage_of_zero_exchanges_when_it_must(shard, in_ops, at_end):
    from hops.build.reductions import sharing_of
    from hops.cost.data_parallel import Held
    from hops.cost.data_parallel import at_end as left

    spec = loads(COPIES + f"parallel: {{data: 8, shard: {shard}, overlap: []}}")
    work = build(spec).costs.works[0]
    forward, inputs, weights, _ = collectives(work)
    assert [sorted({each.kind for each in op}) for op in (forward, inputs, weights)] == in_ops
    for op in (forward, inputs):
        gathered = sum(each.total_bytes for each in op)
        assert not op or gathered == pytest.approx(2 * work.parameters, rel=1e-6)
    assert not weights or sum(each.total_bytes for each in weights) == pytest.approx(4 * work.parameters, rel=1e-6)
    end = left(Held(gradients=4e9, parameters=2e9), sharing_of(spec))
    assert " ".join(each.kind for each in (*end.reduce, *end.gather)) == at_end
    assert bool(build(spec).costs.step(0, 0).grad_reduce_s[0]) == bool(at_end)


def test_what_pipelines_shard_is_gathered_once_an_iteration():
    text = COPIES + "parallel: {data: 4, shard: parameters, overlap: []}"
    costs = build(loads(text)).costs
    assert not any(collectives(costs.works[0])[op] for op in range(3))
    same = build(loads(text.replace("parameters", "optimizer"))).costs
    assert costs.step(0, 0).grad_reduce_s == same.step(0, 0).grad_reduce_s


def test_overlapped_reductions_leave_their_last_bucket_and_what_computing_loses():
    text = COPIES + "parallel: {data: 8, overlap: OVERLAP}"
    exposed = [
        build(loads(text.replace("OVERLAP", each))).costs.step(0, 0).grad_reduce_s[0] for each in ("[]", "[gradients]")
    ]
    layers = 24
    assert exposed[1] == pytest.approx(exposed[0] / layers + 0.15 * exposed[0] * (1 - 1 / layers))
    gathered = COPIES + "parallel: {data: 8, shard: parameters}"
    hidden, waited = (build(loads(gathered, overrides=each)).costs for each in ([], ["parallel.overlap=[]"]))
    assert hidden.seconds(0, Op.F) < waited.seconds(0, Op.F)


def test_hybrid_sharding_adds_up_over_groups():
    """Scattered and gathered in a host at 0.78 of 300 GB/s; an eighth is summed over four hosts at 0.95 of 25 GB/s."""
    hosts = COPIES.replace(
        "[{devices: [{type: a100-sxm-80, count: 8}]", "[{count: 4, nics: 8, devices: [{type: a100-sxm-80, count: 8}]"
    )
    spec = loads(hosts + "parallel: {data: 32, shard: optimizer, shard_group: 8}")
    costs = build(spec).costs
    parameters = costs.works[0].parameters
    inside = 7 / 8 * (4 + 2) * parameters / (0.78 * 300e9)
    across = 2 * 3 / 4 * 4 * parameters / 8 / (0.95 * 25e9)
    assert costs.step(0, 0).grad_reduce_s[0] == pytest.approx(inside + across, rel=0.01)
    assert costs.memory(0).optimizer_bytes == pytest.approx(12 * parameters / 8, rel=1e-6)


def test_a_mixed_group_runs_at_its_slowest_member():
    mixed = JOB.replace("{type: h100, count: 8}", "{type: h100, count: 7}, l40s")
    setup = build(loads(mixed))
    slow = build(loads(JOB.replace("type: h100", "type: l40s")))
    assert setup.known.devices[0].kind.name == "l40s"
    assert setup.facts.memory_bytes == slow.facts.memory_bytes
    assert setup.costs.rates[0].peak_flop_per_s == slow.costs.rates[0].peak_flop_per_s


def test_messages_of_a_group_share_nics_and_sequence_parts():
    """With sequence parallelism each device sends its own tokens; on one NIC all members' messages share it."""
    setup = build(loads(JOB))
    tokens = 4096 // 2 // 4
    assert setup.costs.message_bytes(0, Op.F) == tokens * 4096 * 2
    assert {link.bandwidth for link in setup.network.links} == {50e9}
    one = build(loads(JOB, overrides=["hardware.nodes[0].nics=1"]))
    assert {link.bandwidth for link in one.network.links} == {50e9 / 8}


def test_figures_of_the_whole_job_count_all_devices():
    """Half as many copies do half; MFU is per device."""
    summary = summarize(simulate(loads(JOB)))
    assert summary.num_ranks == 2
    facts = build(loads(JOB)).facts
    assert facts.devices_per_rank == 8
    rate = facts.flop_per_microbatch * summary.throughput.microbatches_per_s
    assert summary.mfu == pytest.approx(rate / (32 * 989.4e12))
    assert summary.throughput.tokens_per_s == pytest.approx(4096 * summary.throughput.microbatches_per_s)


def test_experts_are_reduced_over_their_own_copies():
    text = JOB.replace("tied: false", "tied: false, experts: {count: 8, top_k: 2, hidden: 4096}")
    spec = loads(text.replace("context: 2, data: 2", "data: 4, expert: 4, expert_tensor: 1"))
    costs = build(spec).costs
    exchange = costs.rates[0].exchange
    assert exchange.span(Axis.EXPERT).members == 4
    assert exchange.span(Axis.EXPERT_DATA).members == 4
    assert exchange.span(Axis.DATA).members == 4
    assert exchange.span(Axis.EXPERT_TENSOR).members == 1
    assert 0 < costs.works[0].expert_parameters < costs.works[0].parameters


def test_a_job_is_told_by_its_mesh_its_groups_and_its_collectives():
    lines = job_lines(build(loads(JOB)))
    assert lines[0] == "mesh: 32 devices = tensor 4 x context 2 x data 2 x pipeline 2, order tp-cp-ep-dp-pp"
    assert lines[1] == "tensor: 4 in one domain: ranks 0, 1, 2, 3 and likewise"
    assert lines[2] == "context: 2 in one domain: ranks 0, 4 and likewise"
    assert lines[3] == "data x context: 4 over 2 domains, up to 2 in each"
    assert lines[4] == "stage 1 exchanges, per microbatch (F, I, W; R: computed again) and per iteration:"
    assert any(line.startswith("  F    tensor: all_gather of ") for line in lines)
    assert any(line.startswith("  end  data: all_reduce of ") for line in lines)
    assert not any("  W " in line for line in lines)
    assert lines[-1].startswith("exposed per rank and iteration: ")
    assert job_lines(build(loads(PLAIN.replace("SCHEDULE", "1f1b")))) == ()


def test_exposed_collectives_are_what_an_iteration_would_be_without_them():
    """On one rank nothing fills gaps: with free collectives of an axis it is shorter by just what is said of it."""
    text = COPIES.replace("microbatches: 1", "microbatches: 4") + "parallel: {tensor: 4, sequence: true, data: 2}"
    setup = build(loads(text))
    shares = exposed_by_axis(setup)
    assert set(shares) == {"tensor", "data"}
    whole = summarize(simulate(loads(text))).iteration_time.mean_ms / 1e3
    computing = sum(4 * sum(work_s for name, work_s in setup.costs.terms(0, op).items()) for op in (Op.F, Op.B))
    step = setup.costs.step(0, 0)
    assert whole == pytest.approx(computing + shares["data"] + step.optimizer_s[0], rel=1e-6)
    assert 0 < shares["tensor"] < computing
    assert exposed_text({"a": 1.0, "b": 2.0}) == "b 2 s, a 1 s"
