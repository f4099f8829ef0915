"""A stage may have no layers: embedding or head alone, or nothing at all; what it holds and takes is what is left."""

import pytest

from hops.build.figures import workload
from hops.build.run import simulate
from hops.build.setup import build
from hops.cost.analytic import AnalyticCosts
from hops.cost.roofline import DeviceRates
from hops.decode.document import parse
from hops.errors import UsageError
from hops.importers.megatron.launch import launch_from_flags
from hops.importers.megatron.spec import spec_text
from hops.metrics.summarize import summarize
from hops.model.partition import Partition
from hops.planner.planner import plan
from hops.program.action import ACTION_OPS, Op
from hops.spec.load import loads
from hops.spec.open import open_spec

SPEC = """
simulation: {iterations: 1}
pipeline:
  model: {layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_positions: 1024, tied: false}
  schedule: 1f1b
  microbatches: 8
  partition: [0, 4, 4, 0]
hardware:
  nodes: [{devices: [{type: h100, count: 4}]}]
optimizer: {enabled: false}
"""
WORK = workload(loads(SPEC))
RATES = DeviceRates(peak_flop_per_s=300e12, memory_bandwidth=2e12)
CUTS = [(0, 4, 4, 0), (0, 0, 8), (8, 0, 0), (4, 0, 4), (0, 1, 0, 7, 0)]


def costs(*layers):
    return AnalyticCosts.of(WORK, Partition(layers=layers), [RATES] * len(layers))


@pytest.mark.parametrize("layers", CUTS)
def test_stages_add_up_to_the_model_wherever_it_is_cut(layers):
    """Seconds, weights, states and activations of all stages are those of one stage that holds everything."""
    whole, cut = costs(8), costs(*layers)
    stages = range(len(layers))
    for op in ACTION_OPS:
        assert sum(cut.seconds(stage, op) for stage in stages) == pytest.approx(whole.seconds(0, op))
    for name in ("static_bytes", "activation_bytes", "kept_for_weight_bytes"):
        assert sum(getattr(cut.memory(stage), name) for stage in stages) == getattr(whole.memory(0), name)


def test_a_stage_of_nothing_takes_no_time_holds_nothing_and_passes_messages_on():
    cut = costs(4, 0, 4)
    assert [cut.seconds(1, op) for op in ACTION_OPS] == [0.0] * 4
    assert cut.memory(1).static_bytes == cut.memory(1).activation_bytes == 0
    assert cut.message_bytes(1, Op.F) == cut.message_bytes(0, Op.F) == 1024 * 1024 * 2


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_embedding_alone_is_a_stage_before_the_rest(schedule):
    """One microbatch passes all stages there and back: the iteration is the sum of F and B, and six messages."""
    spec = loads(SPEC, overrides=["pipeline.microbatches=1", f"pipeline.schedule={schedule}"])
    setup = build(spec)
    passes = sum(setup.costs.seconds(stage, op) for stage in range(4) for op in (Op.F, Op.B))
    expected = passes + 2 * sum(setup.expected.hop_s)
    run = simulate(spec)
    assert run.trace.end_ns.max() / 1e9 == pytest.approx(expected, abs=1e-7)
    assert summarize(run.trace, run.facts).num_stages == 4


@pytest.mark.parametrize(
    ("schedule", "ranks"),
    [
        ("zb_v", 2),
        ("dualpipe_v", 2),
        ("{name: interleaved_1f1b, chunks: 2}", 2),
        ("zero_bubble", 4),
        ("hops_hetero", 4),
    ],
)
def test_every_kind_of_schedule_runs_them_alike_in_both_engines(schedule, ranks):
    overrides = [f"pipeline.schedule={schedule}", f"hardware.nodes[0].devices[0].count={ranks}"]
    ends = [
        simulate(loads(SPEC, overrides=[*overrides, f"simulation.engine={engine}"])).trace.end_ns.tolist()
        for engine in ("reference", "compiled")
    ]
    assert ends[0] == ends[1]


def test_megatrons_padded_cut_is_a_spec_that_runs():
    """6 layers, 4 ranks with 2 chunks each, embedding and loss counted as layers."""
    flags = (
        "--num-layers 6 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
        "--micro-batch-size 1 --global-batch-size 8 --vocab-size 1000 --pipeline-model-parallel-size 4 "
        "--num-virtual-stages-per-pipeline-rank 2 --account-for-embedding-in-pipeline-split "
        "--account-for-loss-in-pipeline-split"
    )
    spec = loads(spec_text(launch_from_flags(flags, ["h100"] * 4)))
    assert spec.pipeline.partition == (0, 1, 1, 1, 1, 1, 1, 0)
    assert simulate(spec).trace.meta.num_stages == 8


def test_plans_are_made_of_stages_with_layers():
    message = r"got pipeline.partition \[0, 4, 4, 0\], expected at least one layer per stage.* with hops run"
    with pytest.raises(UsageError, match=message):
        plan(open_spec(parse(SPEC, name="spec")))
