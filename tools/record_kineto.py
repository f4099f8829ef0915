"""Records the PyTorch profiles in tests/importers/kineto_runs: small pipelines on CPU processes that talk over gloo.

    python tools/record_kineto.py FOLDER        (needs torch, which HOPS itself does not; recorded with torch 2.13.0)

A folder per run, a gzipped profile per rank, as torch.profiler writes them. Host names and process numbers are
replaced, since they say where the recording was made and nothing about it; operators inside others, flows and arguments
are left out to keep the files small.
"""

import gzip
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.profiler import ProfilerActivity, profile
from torch.profiler import schedule as profiler_schedule

WIDTH, ROWS, DEPTH, ACTIVE = 256, 64, 3, 3
# name: schedule, ranks, microbatches, chunks per rank, whether chunks lie in a V
RUNS: dict[str, tuple[Any, int, int, int, bool]] = {
    "gpipe-2": (ScheduleGPipe, 2, 4, 1, False),
    "1f1b-2": (Schedule1F1B, 2, 4, 1, False),
    "interleaved-2": (ScheduleInterleaved1F1B, 2, 4, 2, False),
    "interleaved-4": (ScheduleInterleaved1F1B, 4, 4, 2, False),
    "looped-bfs-2": (ScheduleLoopedBFS, 2, 4, 2, False),
    "interleaved-zb-2": (ScheduleInterleavedZeroBubble, 2, 4, 2, False),
    "zbv-2": (ScheduleZBVZeroBubble, 2, 4, 2, True),
    "dualpipev-2": (ScheduleDualPipeV, 2, 4, 2, True),
}
_KEPT = {"user_annotation", "cpu_op"}


def stages_of(rank: int, ranks: int, chunks: int, *, vee: bool) -> list[int]:
    """The stages of a rank: looped, or in a V of two chunks."""
    if vee:
        return [rank, 2 * ranks - 1 - rank]
    return [rank + chunk * ranks for chunk in range(chunks)]


def run(rank: int, name: str, folder: str, port: int) -> None:
    """One process: a few iterations, of which the last ones are recorded."""
    kind, ranks, microbatches, chunks, vee = RUNS[name]
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, ranks, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    torch.manual_seed(0)
    numbers = stages_of(rank, ranks, chunks, vee=vee)
    modules = [torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))) for _ in numbers]
    stages = [
        PipelineStage(module, number, ranks * chunks, torch.device("cpu"))
        for module, number in zip(modules, numbers, strict=True)
    ]
    loss = torch.nn.MSELoss()
    pipeline: PipelineScheduleSingle | PipelineScheduleMulti = kind(
        stages if chunks > 1 else stages[0], microbatches, loss_fn=loss
    )
    optimizers = [torch.optim.SGD(module.parameters(), lr=1e-3) for module in modules]
    inputs, targets = torch.randn(microbatches * ROWS, WIDTH), torch.randn(microbatches * ROWS, WIDTH)
    last = ranks * chunks - 1
    steps = profiler_schedule(wait=1, warmup=1, active=ACTIVE, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=steps) as profiler:
        for _ in range(2 + ACTIVE):
            for optimizer in optimizers:
                optimizer.zero_grad()
            given = {"target": targets} if last in numbers else {}
            pipeline.step(*([inputs] if 0 in numbers else []), **given)
            for optimizer in optimizers:
                optimizer.step()
            profiler.step()
    path = Path(folder) / f"{name}.{rank}.json"
    profiler.export_chrome_trace(str(path))
    dist.barrier()
    dist.destroy_process_group()


def tidied(text: str) -> str:
    """The profile without the machine's name, process numbers, and operators inside other operators."""
    found = json.loads(text)
    found["traceEvents"] = [_event(each) for each in _outermost(found["traceEvents"])]
    found["host_name"] = "host0"
    del found["traceName"]
    return json.dumps(found, separators=(",", ":"))


def _outermost(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Annotations, and the operators that no other operator of their thread calls."""
    kept, until = [], {}
    for event in sorted((each for each in events if each.get("cat") in _KEPT), key=lambda each: each["ts"]):
        if event["cat"] == "cpu_op":
            if event["ts"] < until.get(event["tid"], 0.0):
                continue
            until[event["tid"]] = event["ts"] + event["dur"]
        kept.append(event)
    return kept


def _event(event: dict[str, Any]) -> dict[str, Any]:
    kept = {key: event[key] for key in ("ph", "cat", "name", "ts", "dur")}
    return kept | {"pid": 1, "tid": event["tid"] - event["pid"] + 1}


def main() -> None:
    """Record every run, or those named after the folder."""
    target = Path(sys.argv[1])
    for place, name in enumerate(sys.argv[2:] or RUNS):
        ranks = RUNS[name][1]
        (target / name).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(run, args=(name, folder, 29_600 + place), nprocs=ranks)
            for rank in range(ranks):
                text = tidied((Path(folder) / f"{name}.{rank}.json").read_text())
                packed = gzip.compress(text.encode(), mtime=0)
                (target / name / f"rank{rank}.pt.trace.json.gz").write_bytes(packed)
        print(name, sum(each.stat().st_size for each in (target / name).iterdir()), "bytes")


if __name__ == "__main__":
    main()
