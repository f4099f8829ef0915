"""Megatron-LM run folders as files, made from simulated runs, for tests of the readers."""

import json

import pytest
from shared_data import FIXTURES, missing

from hops.build.run import simulate
from hops.program.action import Op
from hops.spec.load import loads
from hops.trace.trace import Stream

CLOCK_NS = 1_776_571_700_000_000_000
PHASES = {Op.F: "FORWARD", Op.B: "BACKWARD", Op.OPTIMIZER: "OPTIMIZER"}
SPEC = """
simulation: {{iterations: {iterations}}}
pipeline:
  stage_times: {{forward: 2 ms, backward: 4 ms, message: 1 MiB}}
  microbatches: {microbatches}
  schedule: {schedule}
hardware:
  nodes: [{{count: {ranks}, devices: [l4]}}]
optimizer: {{update_time: 3 ms, host_gap: 1 ms}}
"""
RUNS = """name: made
labelled_schedule: {label}
arguments:
  pipeline-model-parallel-size: {ranks}
  num-layers: {ranks}
  hidden-size: 64
  num-attention-heads: 4
  seq-length: 128
  micro-batch-size: 1
  global-batch-size: {microbatches}
  vocab-size: 1000
  transformer-impl: local
stages:
"""


def simulated(ranks=3, microbatches=4, iterations=3, schedule="1f1b"):
    text = SPEC.format(ranks=ranks, microbatches=microbatches, iterations=iterations, schedule=schedule)
    return simulate(loads(text)).trace


def device(rank):
    return f"l4_node{rank}_gpu0"


def lines_of(trace):
    """Per rank its lines as dicts, in the order in which Megatron writes them: a transfer before its computation."""
    files = [[] for _ in range(trace.meta.num_ranks)]
    columns = (trace.iteration, trace.rank, trace.stream, trace.op, trace.microbatch, trace.start_ns, trace.end_ns)
    for iteration, rank, stream, op, microbatch, start, end in zip(*(c.tolist() for c in columns), strict=True):
        if stream != Stream.COMPUTE:
            continue
        last = trace.meta.num_microbatches - 1
        line = {
            "rank": rank, "stage": rank, "iteration": iteration + 3,
            "microbatch": last if microbatch < 0 else microbatch,
            "event_type": "compute", "phase": PHASES[op], "start_wall_ns": CLOCK_NS + start,
            "end_wall_ns": CLOCK_NS + end, "duration_ms": (end - start) / 1e6, "device_id": device(rank),
            "hostname": f"host-{rank}",
        }  # fmt: skip
        target = rank + (1 if op == Op.F else -1)
        if op <= Op.B and 0 <= target < trace.meta.num_ranks:
            sent = {"event_type": "transfer", "start_wall_ns": CLOCK_NS + end, "end_wall_ns": CLOCK_NS + end + 150_000}
            ends = {"duration_ms": 0.15, "src_device": device(rank), "dst_device": device(target)}
            files[rank].append({**line, **sent, **ends})
        files[rank].append(line)
    return files


def write_traces(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for rank, lines in enumerate(files):
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        (folder / f"rank{rank}.jsonl").write_text(text)
    return folder


def write_run(folder, files, label="1f1b", microbatches=4):
    write_traces(folder / "megatron_trace", files)
    text = RUNS.format(label=label, ranks=len(files), microbatches=microbatches)
    for rank in range(len(files)):
        text += f"- {{stage: {rank}, device_id: {device(rank)}, gpu: L4, host: node{rank}, layers: 1}}\n"
    (folder / "run.yaml").write_text(text)
    return folder


def recorded_runs():
    """All recorded runs; the test is skipped where there are none."""
    runs = sorted(file.parent for file in FIXTURES.glob("*/*/run.yaml"))
    if not runs:
        pytest.skip(missing(FIXTURES))
    return runs
