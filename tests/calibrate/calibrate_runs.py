"""Runs with known truth: simulated with a profile of our own, written as Megatron-LM run folders."""

import json
from dataclasses import replace

import numpy as np
import pytest
from shared_data import FIXTURES, missing

from hops.build.run import simulate_setup
from hops.build.setup import build
from hops.calibrate.predict import with_profile
from hops.calibrate.validate import Readers
from hops.cost.profile import (
    BenchmarkFit,
    CodeFit,
    DeviceFit,
    GapFit,
    HardwareProfile,
    HostFit,
    MessageFit,
    OperationFactors,
    PairFit,
    PathFit,
    ReduceFit,
    Scope,
    StallPrior,
    write_profile,
)
from hops.cost.roofline import Traffic
from hops.importers.megatron.run_folder import read_inputs
from hops.importers.megatron.trace import read_run
from hops.program.action import Op
from hops.trace.trace import Stream

CLOCK_NS = 1_776_571_700_000_000_000
PHASES = {Op.F: "FORWARD", Op.B: "BACKWARD", Op.OPTIMIZER: "OPTIMIZER"}
KINDS = {"a10g": "g5.2xlarge", "l4": "g6.4xlarge"}
HOSTS = {"a": "a10g", "b": "a10g", "c": "l4", "d": "l4"}
ARGUMENTS = """\
name: {name}
labelled_schedule: 1f1b
arguments:
  pipeline-model-parallel-size: {ranks}
  num-layers: {layers}
  hidden-size: {hidden}
  num-attention-heads: {heads}
  seq-length: {length}
  micro-batch-size: 1
  global-batch-size: {microbatches}
  vocab-size: 50304
  bf16: true
  transformer-impl: local
  no-gradient-accumulation-fusion: true
  attention-dropout: 0.0
  hidden-dropout: 0.0
network: {{transport: tcp-sockets}}
stages:
"""

TRUTH = HardwareProfile(
    scope=Scope(
        runs=1, scenarios=1, hidden=(512, 2048), sequence_length=(256, 4096), layers_per_stage=(1, 8),
        microbatch_size=(1, 1), vocab=(50304, 50304), head_dim=(64, 128), stages=(2, 4), attention=("unfused",),
        precision=("bf16",), transport=("sockets",),
    ),
    devices={
        "a10g": DeviceFit(gemm_efficiency=0.7, memory_efficiency=0.85, gemm_ramp_s=40e-6, hosts=("g5.2xlarge",)),
        "l4": DeviceFit(gemm_efficiency=0.55, memory_efficiency=0.8, gemm_ramp_s=20e-6, hosts=("g6.4xlarge",)),
    },
    hosts={
        "g5.2xlarge": HostFit(
            operation_s=20e-6, first_fetch_s=0.8e-3, refill_s=0.3e-3, message_s=0.9e-3, socket_bytes_per_s=2.6e9,
            nic_bytes_per_s=1.25e9,
        ),
        "g6.4xlarge": HostFit(
            operation_s=12e-6, first_fetch_s=0.4e-3, refill_s=0.5e-3, message_s=0.5e-3, socket_bytes_per_s=3.0e9,
            nic_bytes_per_s=3.125e9,
        ),
    },
    code=CodeFit(
        cache_speedup=2.5,
        dispatch_lag=0.2,
        operations=OperationFactors(
            layer_backward=0.8, first_forward=2.0, first_backward=1.2, last_forward=1.5, last_backward=1.3,
            norm_layer=1.2, step_layer=0.6, step=1.5,
        ),
        traffic=Traffic(
            scores_forward=1.3, scores_backward=1.5, elementwise_forward=1.2, elementwise_backward=1.1,
            logits_forward=1.1, logits_backward=0.9, optimizer=1.05,
        ),
    ),
    messages=MessageFit(nic_efficiency=0.95, nic_burst_bytes=1.5e6, turn_s=0.0),
    reduce=ReduceFit(
        pairs=(
            PairFit(hosts=("g5.2xlarge",), seconds_per_byte=(0.85e-9, 0.87e-9, 0.89e-9), stall_s=0.15),
            PairFit(hosts=("g6.4xlarge", "g6.4xlarge"), seconds_per_byte=(0.40e-9, 0.41e-9, 0.43e-9), stall_s=0.18),
        ),
        paths=(PathFit(between=("c", "d"), stalls=20, reductions=100),),
        free=StallPrior(alpha=0.01, beta=0.09),
        shaped=StallPrior(alpha=0.0, beta=1.0),
    ),
    gap=GapFit(base_s=1.5e-3, per_rank_s=0.3e-3),
    benchmarks=(
        BenchmarkFit(
            hosts=("g5.2xlarge", "g6.4xlarge"), sizes_bytes=(2.0**20, 2.0**24), seconds=(0.4e-3, 14e-3)
        ),
    ),
)  # fmt: skip

LAUNCHES = {  # name: hosts in rank order, layers per stage, hidden, sequence length, microbatches
    "deep": ("acdb", (2, 3, 3, 2), 1024, 1024, 8),
    "long": ("acdb", (2, 2, 2, 2), 1024, 2048, 6),
    "wide": ("bdca", (2, 2, 2, 2), 2048, 1024, 6),
    "small": ("cabd", (2, 1, 1, 2), 512, 256, 6),
    "pair": ("ab", (4, 3), 1024, 512, 4),
    "other": ("cd", (3, 4), 1024, 1024, 5),
    "again": ("cd", (5, 2), 1536, 512, 5),
    "three": ("dac", (4, 2, 3), 1024, 1024, 7),
    "longest": ("dab", (1, 1, 1), 1024, 4096, 4),
}
HELD_OUT = ("bcd", (3, 3, 2), 1536, 768, 6)


def write_launch(folder, hosts, layers, hidden, length, microbatches, *, slower=1.0):
    """run.yaml and link_bench of a run folder; benchmarks take `slower` times what is usual."""
    folder.mkdir(parents=True)
    text = ARGUMENTS.format(
        name=folder.name, ranks=len(hosts), layers=sum(layers), hidden=hidden, heads=hidden // 128, length=length,
        microbatches=microbatches,
    )  # fmt: skip
    for stage, (host, count) in enumerate(zip(hosts, layers, strict=True)):
        device = HOSTS[host]
        text += (
            f"- {{stage: {stage}, device_id: {host}0, gpu: {device.upper()}, instance_type: {KINDS[device]}, "
            f"host: {host}, layers: {count}}}\n"
        )
    if len(set(layers)) > 1:  # Megatron's flags for uneven ends; the middle is even
        ends = f"  decoder-first-pipeline-num-layers: {layers[0]}\n  decoder-last-pipeline-num-layers: {layers[-1]}\n"
        text = text.replace("  hidden-size", f"{ends}  hidden-size")
    (folder / "run.yaml").write_text(text)
    bench = folder / "link_bench"
    bench.mkdir()
    for rank in range(len(hosts) - 1):
        lines = ["NCCL version 2.28"]
        for size, seconds in zip((1, 16), (0.4, 14.0), strict=True):
            lines += [json.dumps({"size_mb": size, "p50_ms": seconds * slower, "rank": end}) for end in (0, 1)]
        (bench / f"pair_{rank}_{rank + 1}.jsonl").write_text("\n".join(lines))
    return folder


def write_trace(folder, profile, *, iterations=12, seed=1):
    """megatron_trace of a run folder: what the profile simulates, drawn with a seed."""
    inputs = read_inputs(folder)
    setup = build(with_profile(inputs.spec, profile))
    settings = replace(setup.settings, iterations=iterations, seed=seed)
    trace = simulate_setup(replace(setup, settings=settings)).trace
    (folder / "megatron_trace").mkdir()
    for rank, device in enumerate(inputs.spec.hardware.ranks()):
        rows = np.flatnonzero((trace.rank == rank) & (trace.stream == Stream.COMPUTE))
        with (folder / "megatron_trace" / f"rank{rank}.jsonl").open("w") as out:
            for row in rows:
                start, end, op = int(trace.start_ns[row]), int(trace.end_ns[row]), Op(trace.op[row])
                last = trace.meta.num_microbatches - 1
                line = {
                    "rank": rank, "stage": rank, "iteration": int(trace.iteration[row]) + 3,
                    "microbatch": int(trace.microbatch[row]) if op.is_action else last, "event_type": "compute",
                    "phase": PHASES[op], "start_wall_ns": CLOCK_NS + start, "end_wall_ns": CLOCK_NS + end,
                    "duration_ms": (end - start) / 1e6, "device_id": device, "hostname": device,
                }  # fmt: skip
                out.write(json.dumps(line) + "\n")


def write_truth(path):
    write_profile(TRUTH, path)
    return path


def _read_trace(folder):
    return read_run(folder).trace


READERS = Readers(inputs=read_inputs, trace=_read_trace)


def recorded(*numbers):
    """Train runs by the number in their name; the test is skipped where there are none."""
    found = [next(iter(sorted((FIXTURES / "train").glob(f"exp2_{number}_*"))), None) for number in numbers]
    if None in found:
        pytest.skip(missing(FIXTURES))
    return found
