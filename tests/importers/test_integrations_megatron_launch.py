"""Launch arguments of Megatron-LM become the spec that a person would have written."""

from pathlib import Path

import pytest

from hops.errors import UsageError
from hops.importers.megatron.launch import launch_from_flags, read_launch
from hops.importers.megatron.spec import spec_text
from hops.spec.load import loads

SCRIPT = """
#!/bin/bash
# a launch as people write it
LAYERS=24
export HIDDEN=2048   # width
torchrun --nproc_per_node 8 pretrain_gpt.py \\
    --num-layers $LAYERS --hidden-size ${HIDDEN} \\
    --num-attention-heads 16 --seq-length 2048 \\
    --micro-batch-size=2 --global-batch-size 64 --vocab-size 50257 \\
    --bf16 --swiglu --group-query-attention --num-query-groups 4 \\
    --position-embedding-type rope --normalization RMSNorm --disable-bias-linear \\
    --untie-embeddings-and-output-weights --pipeline-model-parallel-size 4 \\
    --recompute-granularity selective --lr 1.0e-4 --save "a folder"
"""
BASE = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 "
    "--global-batch-size 8 --vocab-size 1000 --pipeline-model-parallel-size 2 "
)


def spec_of(flags, devices):
    return loads(spec_text(launch_from_flags(flags, devices)))


def test_a_launch_script_is_read_with_its_variables_comments_and_continuations():
    launch = launch_from_flags(SCRIPT, ["h100"])
    assert "--num-layers 24" in launch.arguments.applied
    assert "--hidden-size 2048" in launch.arguments.applied
    assert "--micro-batch-size 2" in launch.arguments.applied
    assert "--bf16" in launch.arguments.applied
    assert launch.arguments.nothing == ("--lr 1.0e-4", "--save a folder")


def test_every_flag_that_matters_arrives_in_the_spec():
    spec = spec_of(SCRIPT, ["h100"] * 8)
    pipeline, model = spec.pipeline, spec.pipeline.model
    assert (model.layers, model.hidden, model.heads, model.kv_heads) == (24, 2048, 16, 4)
    assert (model.ffn_hidden, model.gated, model.positions, model.norm) == (5440, True, "rotary", "rms")
    assert (model.biases, model.tied, model.vocab) == (False, False, 50304)
    assert (pipeline.sequence_length, pipeline.microbatch_size) == (2048, 2)
    assert pipeline.microbatches == 64 // (2 * 2)
    assert (pipeline.precision, pipeline.recompute, pipeline.attention) == ("bf16", "selective", "flash")
    assert (pipeline.p2p, pipeline.schedule.name) == ("blocking_fused", "1f1b")
    assert spec.optimizer.data_parallel == 2
    assert len(spec.hardware.ranks()) == 4


@pytest.mark.parametrize(
    ("flag", "read", "value"),
    [
        ("--fp16", lambda spec: spec.pipeline.precision, "fp16"),
        ("--transformer-impl local", lambda spec: spec.pipeline.attention, "unfused"),
        ("--transformer-impl local --use-flash-attn", lambda spec: spec.pipeline.attention, "flash"),
        ("--cross-entropy-loss-fusion", lambda spec: spec.pipeline.cross_entropy, "fused"),
        ("--attention-dropout 0.0 --hidden-dropout 0.0", lambda spec: spec.pipeline.dropout, False),
        ("--no-gradient-accumulation-fusion", lambda spec: spec.pipeline.fused_gradient_accumulation, False),
        ("--recompute-granularity full", lambda spec: spec.pipeline.recompute, "full"),
        ("--recompute-activations", lambda spec: spec.pipeline.recompute, "selective"),
        ("--optimizer sgd", lambda spec: spec.optimizer.kind, "sgd_momentum"),
        ("--use-distributed-optimizer", lambda spec: spec.optimizer.distributed, True),
        ("--ffn-hidden-size 1024", lambda spec: spec.pipeline.model.ffn_hidden, 1024),
        ("--decoder-first-pipeline-num-layers 3", lambda spec: spec.pipeline.partition, (3, 5)),
        ("--decoder-last-pipeline-num-layers 2", lambda spec: spec.pipeline.partition, (6, 2)),
        ("--make-vocab-size-divisible-by 1", lambda spec: spec.pipeline.model.vocab, 1000),
        (
            "--num-layers-per-virtual-pipeline-stage 2",
            lambda spec: (spec.pipeline.schedule.name, spec.pipeline.schedule.parameters["chunks"], spec.pipeline.p2p),
            ("interleaved_1f1b", 2, "overlapped"),
        ),
        (
            "--num-virtual-stages-per-pipeline-rank 4 --no-overlap-p2p-communication",
            lambda spec: (spec.pipeline.schedule.parameters["chunks"], spec.pipeline.p2p),
            (4, "blocking_fused"),
        ),
    ],
)
def test_a_flag_changes_what_it_should(flag, read, value):
    assert read(spec_of(BASE + flag, ["h100", "l4"])) == value


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("nothing here", "no Megatron-LM flag found, expected some such as --num-layers 24"),
        (BASE + "--num-layers x", "--num-layers: got 'x', expected a whole number >= 1"),
        (BASE + "--num-layers -3", "--num-layers: got '-3', expected a whole number >= 1"),
        (BASE.replace("--hidden-size 512 ", ""), "--hidden-size is missing; add it, such as --hidden-size 8"),
        (BASE + "--tensor-model-parallel-size 2", "x tensor 2 x context 1 = 4, expected a multiple of it"),
        (BASE + "--pipeline-model-parallel-size 3", "got 2 devices for --pipeline-model-parallel-size 3"),
        (BASE + "--global-batch-size 8 --micro-batch-size 3", "--global-batch-size 8 is no multiple of"),
        (BASE + "--decoder-first-pipeline-num-layers 9", "8 layers cannot be cut evenly over 2 stages"),
        (BASE + "--optimizer lion", "--optimizer: got 'lion', expected one of adam, sgd"),
        (BASE + "--attention-dropout some", "--attention-dropout: got 'some', expected a number >= 0"),
        (BASE + "--num-layers-per-virtual-pipeline-stage 3", "--num-layers 8 is not a multiple of 2 ranks"),
        ("--num-layers '8", 'command line:1:13: cannot be read as a shell script near "\'8"; close quotes, braces'),
    ],
)
def test_a_launch_that_cannot_be_read_says_why(flags, message):
    with pytest.raises(UsageError) as error:
        launch_from_flags(flags, ["h100", "l4"])
    assert message in str(error.value)


def test_flags_without_devices_are_refused():
    with pytest.raises(UsageError, match="add a device per rank: --devices h100,l4"):
        launch_from_flags(BASE, [])


RUN = """
name: a run
arguments: {pipeline-model-parallel-size: 2, num-layers: 4, hidden-size: 256, num-attention-heads: 4, seq-length: 128,
  micro-batch-size: 1, global-batch-size: 4, vocab-size: 1024, bf16: true}
stages:
- {stage: 0, device_id: a, gpu: H100, instance_type: p5.4xlarge, host: n0, layers: 2}
- {stage: 1, device_id: b, gpu: L4, instance_type: g6.4xlarge, host: n1, layers: 2}
network: {transport: tcp-sockets}
"""


def test_a_run_folder_is_read(tmp_path):
    (tmp_path / "run.yaml").write_text(RUN)
    spec = loads(spec_text(read_launch(tmp_path)))
    assert spec.hardware.ranks() == ("a", "b")
    assert [host.devices[0].type for host in spec.hardware.hosts()] == ["h100", "l4"]
    assert spec.hardware.nodes[0].nic.bandwidth == 100e9 / 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stage: 1,", "stage: 2,", "run.yaml:7:11: stages[1].stage: got stage 2, expected 1; list stages in order"),
        ("host: n1, ", "", "run.yaml:7:3: stages[1].host: missing; add it"),
        ("host: n1, layers: 2", "host: n1, layers: two", "stages[1].layers: got 'two', expected a whole number"),
        ("host: n1, layers: 2", "host: n1, layers: 3", "stages have [2, 3] layers, but the arguments give [2, 2]"),
        ("name: a run", "name: [", "not YAML"),
        ("bf16: true", "bf16: [1]", "run.yaml:4:70: arguments.bf16: got a list, expected text, a number"),
        ("transport: tcp-sockets", "transport: {a: 1}", "run.yaml:8:22: network.transport: got a mapping, exp"),
        ("arguments:", "argument:", "arguments: missing; add it"),
        (RUN, "- 1", "got a list, expected a mapping of keys to values"),
    ],
)
def test_a_run_yaml_that_is_wrong_says_where(tmp_path, old, new, message):
    (tmp_path / "run.yaml").write_text(RUN.replace(old, new))
    with pytest.raises(UsageError) as error:
        read_launch(tmp_path)
    assert message in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_missing_run_says_what_was_expected():
    with pytest.raises(UsageError, match=r"expected a run folder, a run\.yaml, a launch script, or a file"):
        read_launch(Path("nowhere"))
