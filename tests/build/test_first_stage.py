"""A first stage that does not split has nothing in I, B in W and no overhead, with stated times as with a model."""

import numpy as np
import pytest

from hops.build.setup import build
from hops.planner.block_costs import block_costs
from hops.planner.problem import Pool
from hops.program.action import Op
from hops.spec.load import loads

TIMES = """
pipeline:
  stage_times: {STATED, activation: 8 MiB, kept_for_weight: 3 MiB}
  schedule: zb_h1
  microbatches: 6
  split_overhead: 1.25
  first_stage_splits: false
hardware: {nodes: [{devices: [h100, h100, h100]}]}
"""
SPLIT = "forward: 2 ms, input_backward: 3 ms, weight_backward: 2 ms"


@pytest.mark.parametrize(
    ("stated", "whole_ms", "halves_ms"),
    [
        (SPLIT, 4.0, (3.0, 2.0)),
        ("forward: 2 ms, backward: 4 ms", 4.0, (2.5, 2.5)),
        (f"{SPLIT}, backward: 4.5 ms", 4.5, (3.0, 2.0)),
    ],
)
def test_stated_times_are_not_split_on_the_first_stage(stated, whole_ms, halves_ms):
    costs = build(loads(TIMES.replace("STATED", stated))).costs
    assert [costs.seconds(0, op) * 1e3 for op in (Op.I, Op.W, Op.B)] == pytest.approx([0.0, whole_ms, whole_ms])
    for stage in (1, 2):
        assert [costs.seconds(stage, op) * 1e3 for op in (Op.I, Op.W)] == pytest.approx(halves_ms)
    assert [costs.memory(stage).kept_for_weight_bytes >> 20 for stage in range(3)] == [8, 3, 3]
    drawn = costs.draw(0, 6, 0)
    assert (drawn[0, Op.I] == 0).all()
    assert (drawn[0, Op.W] == drawn[0, Op.B]).all()


def test_random_times_stay_what_b_would_have_been():
    noise = "{distribution: normal, mean: 3 ms, std: 1 ms}"
    text = TIMES.replace("STATED", f"forward: 2 ms, input_backward: {noise}, weight_backward: 2 ms")
    whole, split = (
        build(loads(text, overrides=[f"pipeline.first_stage_splits={value}"])).costs.draw(1, 6, 5)
        for value in ("false", "true")
    )
    assert np.array_equal(whole[0, Op.W], split[0, Op.B])
    assert np.array_equal(whole[1:], split[1:])


def test_plans_reckon_with_the_same_first_stage():
    text = """
pipeline:
  model: gpt2-medium
  partition: [12, 12]
  schedule: zb_h1
  microbatches: 4
  split_overhead: 1.25
  first_stage_splits: false
hardware: {nodes: [{devices: [h100, h100]}]}
"""
    spec = loads(text)
    costs, blocks = build(spec).costs, block_costs(spec, Pool.of(spec))
    for table, op in ((blocks.inputs, Op.I), (blocks.weights, Op.W), (blocks.fused, Op.B)):
        assert [table[0, 0, 12], table[0, 12, 24]] == pytest.approx([costs.seconds(stage, op) for stage in range(2)])
