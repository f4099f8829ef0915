"""The axes of a spec: which devices they count, and what stands for what."""

import pytest

from hops.decode.document import parse
from hops.errors import UsageError
from hops.planner.planner import plan
from hops.spec.load import loads
from hops.spec.open import open_dict
from hops.spec.text import dump

TEXT = """
pipeline: {model: gpt2-medium, microbatches: 8}
hardware: {nodes: [{count: 2, devices: [{type: h100, count: 8}]}]}
"""


@pytest.mark.parametrize(
    ("written", "sizes"),
    [
        ("", (1, 1, 1, 16)),
        ("parallel: {tensor: 4}", (4, 1, 1, 4)),
        ("parallel: {tensor: 2, context: 2, data: 2}", (2, 2, 2, 2)),
        ("parallel: {tensor: 2}\noptimizer: {data_parallel: 4}", (2, 1, 4, 8)),  # the other three copies elsewhere
        ("parallel: {tensor: 2, pipeline: 8, data: 4}", (2, 1, 4, 8)),
        ("parallel: {tensor: 2, pipeline: 2, data: 4}", (2, 1, 4, 2)),
        ("parallel: {tensor: 2, pipeline: 2}\noptimizer: {data_parallel: 4}", (2, 1, 4, 2)),
        ("parallel: {data: 4}\noptimizer: {data_parallel: 4}", (1, 1, 4, 4)),
    ],
)
def test_devices_are_those_of_the_job_or_of_one_copy(written, sizes):
    spec = loads(TEXT + written)
    mesh = spec.mesh()
    assert (mesh.tensor, mesh.context, mesh.data, mesh.pipeline) == sizes
    assert spec.optimizer.data_parallel == sizes[2]
    assert spec.shape().num_ranks == sizes[3]
    assert loads(dump(spec)) == spec


def test_the_first_device_of_a_group_stands_for_it():
    spec = loads(TEXT + "parallel: {tensor: 4, data: 2}")
    assert spec.ranks() == ("node0/0", "node1/0")
    assert spec.positions()[1] == tuple(f"node1/{number}" for number in range(8))
    another = loads(TEXT + "parallel: {tensor: 4, data: 2, order: tp-cp-ep-pp-dp}")
    assert another.positions()[1] == tuple(f"node{host}/{number}" for host in (0, 1) for number in range(4, 8))
    elsewhere = loads(TEXT + "parallel: {tensor: 4}\noptimizer: {data_parallel: 3}")
    assert elsewhere.ranks() == ("node0/0", "node0/4", "node1/0", "node1/4")


def test_sharding_is_the_optimizer_s_and_more():
    assert not loads(TEXT).optimizer.distributed
    assert loads(TEXT + "parallel: {data: 2, shard: gradients}").optimizer.distributed
    assert loads(TEXT + "optimizer: {distributed: true}").optimizer.distributed


def test_experts_are_cut_as_all_else_unless_stated():
    assert loads(TEXT + "parallel: {tensor: 2, data: 4, expert: 4}").parallel.shards().expert_tensor == 2
    whole = loads(TEXT + "parallel: {tensor: 2, data: 4, expert: 4, expert_tensor: 1}")
    assert whole.mesh().expert_data == 2


def test_plans_say_that_they_arrange_single_devices():
    with pytest.raises(UsageError, match="hops plan: got axes in parallel, expected a pipeline of single devices"):
        plan(open_dict({**parse(TEXT, name="spec").data, "parallel": {"tensor": 4}}))
