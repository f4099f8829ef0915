"""Every field of the spec does something: changing it changes the run, or is the only way to say what it says."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parent))

from axes_knobs import AXES_KNOBS
from failure_knobs import FAILURE_ELSEWHERE, FAILURE_KNOBS

from hops.build.run import simulate, summarize
from hops.errors import HopsError
from hops.spec.load import loads
from hops.spec.spec import Spec
from hops.trace.trace import COLUMNS

MODEL = """
simulation: {iterations: 3, warmup_iterations: 1, seed: 7}
pipeline:
  model: {layers: 16, hidden: 512, heads: 8, vocab: 4096, max_positions: 512}
  schedule: {name: interleaved_1f1b, chunks: 2}
  microbatches: 8
  sequence_length: 512
hardware:
  nodes:
    - {name: a, devices: [{type: h100, count: 2}], nic: {bandwidth: 10 Gbit/s, latency: 20 us}}
    - {name: b, devices: [{type: a10g, count: 2}]}
optimizer: {data_parallel: 2}
"""

LONG = MODEL.replace("max_positions: 512", "max_positions: 8192").replace(
    "sequence_length: 512", "sequence_length: 8192"
)

TIMES = """
simulation: {iterations: 2, seed: 7}
pipeline:
  stage_times:
    forward: 2 ms
    input_backward: 2 ms
    weight_backward: 1 ms
    message: 1 MiB
    activation: 1 MiB
    kept_for_weight: 512 KiB
  schedule: zb_h1
  microbatches: 6
hardware:
  nodes: [{name: a, devices: [l4, l4]}, {name: b, devices: [l4]}]
"""

DRAWN_LATENCY = "{distribution: exponential, mean: 5 ms}"
STALL = "{probability: 0.5, extra: 20 ms}"
SOCKETS = ["hardware.nodes[1].sockets=2", "hardware.nodes[1].socket_bus=upi"]

EXPERTS = "pipeline.model.experts={count: 64, top_k: 4, hidden: 256, shared_hidden: 512, dense_layers: [0]}"
NEW = LONG.replace("type: h100", "type: b200, layer_overhead: 0 s").replace("type: a10g", "type: b200")
QUANTIZED = "pipeline.quantization={format: fp8, scaling: current}"
SELECTIVE, FULL = "pipeline.recompute=selective", "pipeline.recompute=full"
LATENT = "pipeline.model.latent={query_rank: 128, kv_rank: 64, nope_dim: 32, rope_dim: 16, value_dim: 32}"


def inside(whole, key, value):
    """A knob of a section: the whole of it before, the whole with one key changed after."""
    section = whole.partition("=")[0]
    return (MODEL, [whole], [whole, f"{section}.{key}={value}"])


KNOBS = {  # field: (base spec, overrides before, overrides after)
    "simulation.iterations": (MODEL, [], ["simulation.iterations=4"]),
    "simulation.warmup_iterations": (MODEL, [], ["simulation.warmup_iterations=0"]),
    "simulation.seed": (
        MODEL,
        ["pipeline.jitter={distribution: lognormal, mean: 1, std: 0.1}"],
        ["pipeline.jitter={distribution: lognormal, mean: 1, std: 0.1}", "simulation.seed=8"],
    ),
    "pipeline.model.name": (MODEL, [], ["pipeline.model=gpt2-medium"]),
    "pipeline.model.layers": (MODEL, [], ["pipeline.model.layers=24"]),
    "pipeline.model.hidden": (MODEL, [], ["pipeline.model.hidden=1024"]),
    "pipeline.model.heads": (
        MODEL,
        ["pipeline.attention=unfused"],
        ["pipeline.attention=unfused", "pipeline.model.heads=16"],
    ),
    "pipeline.model.vocab": (MODEL, [], ["pipeline.model.vocab=8192"]),
    "pipeline.model.ffn_hidden": (MODEL, [], ["pipeline.model.ffn_hidden=4096"]),
    "pipeline.model.kv_heads": (MODEL, [], ["pipeline.model.kv_heads=2"]),
    "pipeline.model.head_dim": (MODEL, [], ["pipeline.model.head_dim=128"]),
    "pipeline.model.max_positions": (MODEL, [], ["pipeline.model.max_positions=4096"]),
    "pipeline.model.gated": (MODEL, [], ["pipeline.model.gated=true"]),
    "pipeline.model.positions": (MODEL, [], ["pipeline.model.positions=rotary"]),
    "pipeline.model.norm": (MODEL, [], ["pipeline.model.norm=rms"]),
    "pipeline.model.biases": (MODEL, [], ["pipeline.model.biases=false"]),
    "pipeline.model.qkv_biases": (
        MODEL,
        ["pipeline.model.biases=false"],
        ["pipeline.model.biases=false", "pipeline.model.qkv_biases=true"],
    ),
    "pipeline.model.head_norms": (MODEL, [], ["pipeline.model.head_norms=true"]),
    "pipeline.model.norms": (MODEL, [], ["pipeline.model.norms=4"]),
    "pipeline.model.embedding_norm": (MODEL, [], ["pipeline.model.embedding_norm=true"]),
    "pipeline.model.sinks": (MODEL, [], ["pipeline.model.sinks=true"]),
    "pipeline.model.windows": (LONG, [], ["pipeline.model.windows=[64, 0]"]),
    "pipeline.model.mtp_layers": (MODEL, [], ["pipeline.model.mtp_layers=1"]),
    "pipeline.quantization.format": (NEW, *inside(QUANTIZED, "format", "fp4")[1:]),
    "pipeline.quantization.scaling": (NEW, *inside(QUANTIZED, "scaling", "delayed")[1:]),
    "pipeline.quantization.quantized_weights": (NEW, *inside(QUANTIZED, "quantized_weights", "true")[1:]),
    "pipeline.recompute_modules": (MODEL, [SELECTIVE], [SELECTIVE, "pipeline.recompute_modules=[mlp]"]),
    "pipeline.recompute_layers": (MODEL, [FULL], [FULL, "pipeline.recompute_layers=1"]),
    "pipeline.recompute_unit": (MODEL, [FULL], [FULL, "pipeline.recompute_unit=2"]),
    "pipeline.expert_capacity": (MODEL, [EXPERTS], [EXPERTS, "pipeline.expert_capacity=1.5"]),
    "pipeline.expert_imbalance": (MODEL, [EXPERTS], [EXPERTS, "pipeline.expert_imbalance=1.5"]),
    "pipeline.model.experts.count": inside(EXPERTS, "count", 128),
    "pipeline.model.experts.top_k": inside(EXPERTS, "top_k", 8),
    "pipeline.model.experts.hidden": inside(EXPERTS, "hidden", 512),
    "pipeline.model.experts.shared_hidden": inside(EXPERTS, "shared_hidden", 0),
    "pipeline.model.experts.shared_gate": inside(EXPERTS, "shared_gate", "true"),
    "pipeline.model.experts.router_bias": inside(EXPERTS, "router_bias", "true"),
    "pipeline.model.experts.dense_layers": inside(EXPERTS, "dense_layers", "[]"),
    "pipeline.model.latent.query_rank": inside(LATENT, "query_rank", 0),
    "pipeline.model.latent.kv_rank": inside(LATENT, "kv_rank", 128),
    "pipeline.model.latent.nope_dim": inside(LATENT, "nope_dim", 64),
    "pipeline.model.latent.rope_dim": inside(LATENT, "rope_dim", 32),
    "pipeline.model.latent.value_dim": inside(LATENT, "value_dim", 64),
    "pipeline.model.tied": (MODEL, [], ["pipeline.model.tied=false"]),
    "pipeline.schedule.name": (MODEL, [], ["pipeline.schedule={name: zb_v}"]),
    "pipeline.schedule.parameters": (MODEL, [], ["pipeline.schedule.chunks=4"]),
    "pipeline.microbatches": (MODEL, [], ["pipeline.microbatches=16"]),
    "pipeline.microbatch_size": (MODEL, [], ["pipeline.microbatch_size=4"]),
    "pipeline.sequence_length": (MODEL, [], ["pipeline.sequence_length=256"]),
    "pipeline.partition": (MODEL, [], ["pipeline.partition=[3, 2, 2, 2, 2, 2, 2, 1]"]),
    "pipeline.precision": (MODEL, [], ["pipeline.precision=fp32"]),
    "pipeline.attention": (MODEL, [], ["pipeline.attention=unfused"]),
    "pipeline.cross_entropy": (MODEL, [], ["pipeline.cross_entropy=fused"]),
    "pipeline.dropout": (MODEL, [], ["pipeline.dropout=false"]),
    "pipeline.fused_gradient_accumulation": (MODEL, [], ["pipeline.fused_gradient_accumulation=false"]),
    "pipeline.recompute": (MODEL, [], ["pipeline.recompute=full"]),
    "pipeline.split_overhead": (TIMES, [], ["pipeline.split_overhead=1.2", "pipeline.schedule=1f1b"]),
    "pipeline.first_stage_splits": (
        MODEL,
        ["pipeline.schedule={name: zb_h1}"],
        ["pipeline.schedule={name: zb_h1}", "pipeline.first_stage_splits=false"],
    ),
    "pipeline.pair_factor": (
        TIMES,
        ["pipeline.schedule=dualpipe_v"],
        ["pipeline.schedule=dualpipe_v", "pipeline.pair_factor=0.9"],
    ),
    "pipeline.p2p": (TIMES, ["pipeline.schedule=1f1b"], ["pipeline.schedule=1f1b", "pipeline.p2p=blocking_fused"]),
    "pipeline.host_per_action": (TIMES, [], ["pipeline.host_per_action=50 us"]),
    "pipeline.microbatch_work": (TIMES, [], ["pipeline.microbatch_work=[1, 1, 2, 1, 1, 1]"]),
    "pipeline.jitter": (MODEL, [], ["pipeline.jitter={distribution: normal, mean: 1, std: 0.1}"]),
    "pipeline.stage_times.forward": (TIMES, [], ["pipeline.stage_times.forward=3 ms"]),
    "pipeline.stage_times.backward": (
        TIMES,
        ["pipeline.schedule=1f1b"],
        ["pipeline.schedule=1f1b", "pipeline.stage_times.backward=2 ms"],
    ),
    "pipeline.stage_times.input_backward": (TIMES, [], ["pipeline.stage_times.input_backward=3 ms"]),
    "pipeline.stage_times.weight_backward": (TIMES, [], ["pipeline.stage_times.weight_backward=2 ms"]),
    "pipeline.stage_times.message": (TIMES, [], ["pipeline.stage_times.message=4 MiB"]),
    "pipeline.stage_times.activation": (TIMES, [], ["pipeline.stage_times.activation=2 MiB"]),
    "pipeline.stage_times.kept_for_weight": (TIMES, [], ["pipeline.stage_times.kept_for_weight=1 MiB"]),
    "pipeline.stage_times.weights": (TIMES, [], ["pipeline.stage_times.weights=1 GiB"]),
    "pipeline.stage_times.gradients": (TIMES, [], ["pipeline.stage_times.gradients=1 GiB"]),
    "pipeline.stage_times.optimizer_state": (TIMES, [], ["pipeline.stage_times.optimizer_state=1 GiB"]),
    "hardware.nodes.name": (MODEL, [], ["hardware.nodes[0].name=other"]),
    "hardware.nodes.count": (
        MODEL,
        ["pipeline.schedule={name: 1f1b}"],
        ["hardware.nodes[0].count=2", "pipeline.schedule={name: 1f1b}"],
    ),
    "hardware.nodes.devices.type": (MODEL, [], ["hardware.nodes[0].devices[0].type=a100"]),
    "hardware.nodes.devices.count": (
        MODEL,
        [],
        ["hardware.nodes[0].devices[0].count=1", "hardware.nodes[1].devices[0].count=1"],
    ),
    "hardware.nodes.devices.id": (MODEL, [], ["hardware.nodes[0].devices[0].id=mine"]),
    "hardware.nodes.devices.memory": (MODEL, [], ["hardware.nodes[0].devices[0].memory=40 GiB"]),
    "hardware.nodes.devices.memory_bandwidth": (MODEL, [], ["hardware.nodes[0].devices[0].memory_bandwidth=1 TB/s"]),
    "hardware.nodes.devices.peak": (MODEL, [], ["hardware.nodes[0].devices[0].peak=50 TFLOP/s"]),
    "hardware.nodes.devices.launch_overhead": (MODEL, [], ["hardware.nodes[0].devices[0].launch_overhead=1 ms"]),
    "hardware.nodes.devices.layer_overhead": (MODEL, [], ["hardware.nodes[0].devices[0].layer_overhead=5 ms"]),
    "hardware.nodes.nic.bandwidth": (MODEL, [], ["hardware.nodes[0].nic.bandwidth=1 Gbit/s"]),
    "hardware.nodes.nic.latency": (MODEL, [], ["hardware.nodes[0].nic.latency=1 ms"]),
    "hardware.nodes.nic.name": (MODEL, [], ["hardware.nodes[0].nic=infiniband-ndr"]),
    "hardware.transport": (
        MODEL,
        ["hardware.nodes[0].nic=infiniband-ndr"],
        ["hardware.nodes[0].nic=infiniband-ndr", "hardware.transport=sockets"],
    ),
    "hardware.nodes.nics": (MODEL, [], ["hardware.nodes[0].nics=2"]),
    "hardware.nodes.sockets": (MODEL, [], SOCKETS),
    "hardware.nodes.socket_bus.name": (MODEL, SOCKETS, [*SOCKETS, "hardware.nodes[1].socket_bus.bandwidth=1 GB/s"]),
    "hardware.nodes.socket_bus.bandwidth": (
        MODEL,
        SOCKETS,
        [*SOCKETS, "hardware.nodes[1].socket_bus={bandwidth: 1 GB/s}"],
    ),
    "hardware.nodes.socket_bus.latency": (
        MODEL,
        SOCKETS,
        [*SOCKETS, "hardware.nodes[1].socket_bus={name: upi, latency: 3 ms}"],
    ),
    "hardware.nodes.interconnect.name": (MODEL, [], ["hardware.nodes[0].interconnect=pcie4"]),
    "hardware.nodes.interconnect.bandwidth": (MODEL, [], ["hardware.nodes[0].interconnect={bandwidth: 1 GB/s}"]),
    "hardware.nodes.interconnect.latency": (
        MODEL,
        [],
        ["hardware.nodes[0].interconnect={name: nvlink4, latency: 1 ms}"],
    ),
    "hardware.interconnect.name": (MODEL, [], ["hardware.interconnect=ethernet-10"]),
    "hardware.interconnect.bandwidth": (MODEL, [], ["hardware.interconnect={bandwidth: 1 Gbit/s}"]),
    "hardware.interconnect.latency": (
        MODEL,
        [],
        [f"hardware.interconnect={{name: ethernet-10, latency: {DRAWN_LATENCY}}}"],
    ),
    "hardware.interconnect.stall.probability": (
        MODEL,
        [f"hardware.interconnect={{name: ethernet-10, stall: {STALL}}}"],
        [f"hardware.interconnect={{name: ethernet-10, stall: {STALL}}}", "hardware.interconnect.stall.probability=1.0"],
    ),
    "hardware.interconnect.stall.extra": (
        MODEL,
        [f"hardware.interconnect={{name: ethernet-10, stall: {STALL}}}"],
        [f"hardware.interconnect={{name: ethernet-10, stall: {STALL}}}", "hardware.interconnect.stall.extra=40 ms"],
    ),
    "hardware.links.between": (
        TIMES,
        ["hardware.links=[{between: [a/0, a/1], bandwidth: 1 GB/s}]"],
        ["hardware.links=[{between: [a, b], bandwidth: 1 GB/s}]"],
    ),
    "hardware.links.both_ways": (
        TIMES,
        ["hardware.links=[{between: [a, b], latency: 2 ms}]"],
        ["hardware.links=[{between: [a, b], latency: 2 ms, both_ways: false}]"],
    ),
    "hardware.links.name": (TIMES, [], ["hardware.links=[{between: [a, b], name: ethernet-10}]"]),
    "hardware.links.bandwidth": (TIMES, [], ["hardware.links=[{between: [a, b], bandwidth: 1 GB/s}]"]),
    "hardware.links.latency": (TIMES, [], ["hardware.links=[{between: [a, b], latency: 2 ms}]"]),
    "hardware.links.stall.probability": (
        TIMES,
        [],
        ["hardware.links=[{between: [a, b], stall: {probability: 0.5, extra: 9 ms}}]"],
    ),
    "hardware.links.stall.extra": (
        TIMES,
        ["hardware.links=[{between: [a, b], stall: {probability: 0.5, extra: 9 ms}}]"],
        ["hardware.links=[{between: [a, b], stall: {probability: 0.5, extra: 5 ms}}]"],
    ),
    "hardware.placement": (MODEL, [], ["hardware.placement=[b/0, b/1, a/0, a/1]"]),
    "optimizer.enabled": (MODEL, [], ["optimizer.enabled=false"]),
    "optimizer.kind": (MODEL, [], ["optimizer.kind=sgd"]),
    "optimizer.state_bytes": (MODEL, [], ["optimizer.state_bytes=4.0"]),
    "optimizer.fused": (MODEL, [], ["optimizer.fused=false"]),
    "optimizer.distributed": (MODEL, [], ["optimizer.distributed=true"]),
    "optimizer.gradient_bytes": (MODEL, [], ["optimizer.gradient_bytes=2.0"]),
    "optimizer.tied_embeddings": (MODEL, [], ["optimizer.tied_embeddings=false"]),
    "optimizer.data_parallel": (MODEL, [], ["optimizer.data_parallel=8"]),
    "optimizer.gradient_reduction": (MODEL, [], ["optimizer.gradient_reduction=tree"]),
    "optimizer.reduction_interconnect.name": (MODEL, [], ["optimizer.reduction_interconnect=ethernet-25"]),
    "optimizer.reduction_interconnect.bandwidth": (MODEL, [], ["optimizer.reduction_interconnect={bandwidth: 1 GB/s}"]),
    "optimizer.reduction_interconnect.latency": (
        MODEL,
        ["optimizer.reduction_interconnect=ethernet-25"],
        ["optimizer.reduction_interconnect={name: ethernet-25, latency: 1 ms}"],
    ),
    "optimizer.synchronized": (MODEL, [], ["optimizer.synchronized=false"]),
    "optimizer.update_time": (MODEL, [], ["optimizer.update_time=50 ms"]),
    "optimizer.host_gap": (MODEL, [], ["optimizer.host_gap=10 ms"]),
    **FAILURE_KNOBS,
    **AXES_KNOBS,
}
ELSEWHERE = {
    "simulation.engine": "tests/engine/test_engine_differential.py: it changes nothing",
    "hardware.catalog": "test_a_catalog_of_ones_own_is_used",
    "hardware.profile": "test_api_fitted.py",
    "pipeline.model.hf": "tests/spec/test_spec_hugging_face.py",
    "hardware.nodes.instance_type": "test_api_fitted.py",
    "hardware.nodes.devices.price_per_hour": "part 3: cost per token",
    **FAILURE_ELSEWHERE,
    "output.summary": "tests/cli",
    "output.events": "tests/cli",
    "output.trace": "tests/cli",
    "output.timeline": "tests/cli",
    "output.dashboard": "tests/cli",
}
NOT_DRAWN = {"nic", "socket_bus", "interconnect", "reduction_interconnect"}


def fields_of(kind, path=""):
    """Dotted names of all leaves of a section; distributions and lists are leaves or looked through."""
    for name, field in kind.model_fields.items():
        here = f"{path}{name}"
        sections = [each for each in sections_in(field.annotation) if "distribution" not in each.model_fields]
        if not sections:
            yield here
        for section in sections:
            yield from fields_of(section, f"{here}.")


def sections_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in get_args(annotation) for found in sections_in(each)]


@cache
def outcome(text, overrides):
    """All that a run says, as text: events and summary; or the error."""
    try:
        run = simulate(loads(text, overrides=overrides))
    except HopsError as error:
        return str(error)
    rows = {name: getattr(run.trace, name).tolist() for name in COLUMNS}
    return json.dumps([rows, run.trace.meta.devices, run.trace.meta.hosts, summarize(run).to_dict()])


@pytest.mark.parametrize("field", KNOBS)
def test_changing_the_field_changes_the_run(field):
    text, before, after = KNOBS[field]
    first, second = outcome(text, tuple(before)), outcome(text, tuple(after))
    assert first.startswith("[")
    assert second.startswith("["), second
    assert first != second


def test_every_field_of_the_spec_is_tested():
    missing = []
    for field in dict.fromkeys(fields_of(Spec)):
        parts = field.split(".")
        drawn_elsewhere = (
            "stall" in parts and bool(NOT_DRAWN & set(parts)) and not field.startswith("hardware.interconnect")
        )
        if field not in KNOBS and field not in ELSEWHERE and not drawn_elsewhere:
            missing.append(field)
    assert not missing


def test_a_catalog_of_ones_own_is_used(tmp_path):
    from importlib.resources import files

    shipped = files("hops.hardware").joinpath("data/devices/l4.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(shipped.replace("device: l4", "device: my-l4", 1))
    spec = loads(
        TIMES.replace("[l4, l4]", "[my-l4, my-l4]"), folder=tmp_path, overrides=["hardware.catalog=[mine.yaml]"]
    )
    assert simulate(spec).trace.meta.devices[0].startswith("my-l4")
