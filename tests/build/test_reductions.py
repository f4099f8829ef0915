"""Data-parallel copies reduce what a spec states or a model holds, in the types that cross the wire."""

import pytest

from hops.build.run import simulate
from hops.build.setup import build
from hops.program.action import Op
from hops.spec.load import loads

LAYERS, HIDDEN = 8, 4096
MODEL = f"""
simulation: {{iterations: 2}}
pipeline:
  model: {{layers: {LAYERS}, hidden: {HIDDEN}, heads: 32, vocab: 1024, max_positions: 128, tied: false}}
  microbatches: 1
  sequence_length: 128
hardware: {{nodes: [{{devices: [h200]}}, {{devices: [h200]}}]}}
optimizer:
  data_parallel: 4
  reduction_interconnect: {{bandwidth: 10 GB/s, latency: 0 us}}
"""
TIMES = """
simulation: {iterations: 2}
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms, weights: 1 GB, gradients: [2 GB, 4 GB]}
  microbatches: 4
hardware: {nodes: [{devices: [h100]}, {devices: [h100]}]}
optimizer: {data_parallel: 4, reduction_interconnect: {bandwidth: 10 GB/s, latency: 1 us}}
"""


def reductions_s(spec):
    """Seconds of the reductions of the first iteration, by rank."""
    trace = simulate(spec).trace
    rows = trace.where((trace.op == Op.GRAD_REDUCE) & (trace.iteration == 0))
    return [float(each) / 1e9 for each in rows.duration_ns[rows.rank.argsort()]]


@pytest.mark.parametrize(("distributed", "milliseconds"), [("false", 485.7), ("true", 364.3)])
def test_a_distributed_optimizer_moves_gradients_and_parameters_once_in_their_own_types(distributed, milliseconds):
    """Half of 8 layers x 4096 and 1024 words are 809.5 million parameters: 3/4 of 4 + 4 bytes each, or of 4 + 2."""
    spec = loads(MODEL, overrides=[f"optimizer.distributed={distributed}"])
    taken = reductions_s(spec)
    assert taken[0] == pytest.approx(milliseconds / 1e3, rel=1e-3)
    gathered = 2 if distributed == "true" else 4
    parameters = [build(spec).costs.memory(stage).weights_bytes / 2 for stage in range(2)]
    assert taken == pytest.approx([3 / 4 * (4 + gathered) * count / 10e9 for count in parameters], rel=1e-8)


def test_stated_gradients_are_reduced_by_the_rank_that_holds_them():
    """A ring of 4: 2 x 3/4 of the bytes, and 6 latencies."""
    assert reductions_s(loads(TIMES)) == pytest.approx([0.3 + 6e-6, 0.6 + 6e-6])
    sharded = loads(TIMES, overrides=["optimizer.distributed=true"])
    assert reductions_s(sharded) == pytest.approx([3 / 4 * 0.3 + 6e-6, 3 / 4 * 0.5 + 6e-6])


@pytest.mark.parametrize(
    "change",
    ["optimizer.data_parallel=1", "optimizer.enabled=false", "pipeline.stage_times.gradients=0 B"],
)
def test_nothing_is_reduced_where_there_is_nothing_to_reduce(change):
    setup = build(loads(TIMES, overrides=[change]))
    assert setup.costs.step(0, 0).grad_reduce_s == ()
    assert setup.warnings == ()


def test_copies_whose_gradients_are_not_stated_are_warned_of():
    text = TIMES.replace(", gradients: [2 GB, 4 GB]", "")
    (warning,) = build(loads(text)).warnings
    assert warning == (
        "optimizer.data_parallel: 4 copies reduce nothing, since pipeline.stage_times state no gradients; "
        "state their bytes per stage, or gradients: 0 B"
    )
    assert build(loads(text, overrides=["optimizer.gradient_reduction=none"])).warnings == ()
    assert build(loads(text, overrides=["optimizer.data_parallel=1"])).warnings == ()
