"""A training script of a few processes that records itself: `training.py RANK RANKS PORT FOLDER NAME...`."""

import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

from hops.tracing.torch import trace

WIDTH, MICROBATCHES, ITERATIONS = 64, 4, 3
KINDS = {
    "gpipe": (schedules.ScheduleGPipe, "single"),
    "1f1b": (schedules.Schedule1F1B, "single"),
    "looped_bfs": (schedules.ScheduleLoopedBFS, "loop"),
    "interleaved": (schedules.ScheduleInterleaved1F1B, "loop"),
    "interleaved_zb": (schedules.ScheduleInterleavedZeroBubble, "loop"),
    "zbv": (schedules.ScheduleZBVZeroBubble, "v"),
    "dualpipe_v": (schedules.ScheduleDualPipeV, "v"),
}


def stages_of(rank, ranks, placement):
    return {"single": [rank], "loop": [rank, rank + ranks], "v": [rank, 2 * ranks - 1 - rank]}[placement]


def train(rank, ranks, folder, name):
    kind, placement = KINDS[name]
    numbers = stages_of(rank, ranks, placement)
    modules = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)) for _ in numbers]
    total = ranks * len(numbers)
    stages = [PipelineStage(m, n, total, torch.device("cpu")) for m, n in zip(modules, numbers, strict=True)]
    pipeline = kind(stages if placement != "single" else stages[0], MICROBATCHES, loss_fn=torch.nn.MSELoss())
    optimizers = [torch.optim.SGD(module.parameters(), lr=1e-3) for module in modules]
    inputs, targets = torch.randn(MICROBATCHES * 2, WIDTH), torch.randn(MICROBATCHES * 2, WIDTH)
    with trace(Path(folder) / name, schedule=name) as tracer:
        for _ in range(ITERATIONS):
            given = {"target": targets} if total - 1 in numbers else {}
            pipeline.step(*([inputs] if 0 in numbers else []), **given)
            for optimizer in optimizers:
                optimizer.step()
            tracer.step()
    dist.barrier()


def overhead_us():
    """What recording adds to an action, by an action that does nothing."""

    class Idle:
        stage_index, device = 0, torch.device("cpu")

        def forward_one_chunk(self, microbatch):
            return None

    with trace(Path(sys.argv[4]) / f"overhead{sys.argv[1]}") as tracer:
        stage, count = Idle(), 2000
        recorded = tracer._action(Idle.forward_one_chunk, "F")
        times = []
        for call in (recorded, Idle.forward_one_chunk):
            start = time.perf_counter()
            for number in range(count):
                call(stage, number)
            times.append((time.perf_counter() - start) / count)
    return 1e6 * (times[0] - times[1])


def main():
    rank, ranks, port, folder, names = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = dist.TCPStore("127.0.0.1", port, ranks, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=100))
    for name in names:
        train(rank, ranks, folder, name)
    if rank == 0:
        (Path(folder) / "overhead.txt").write_text(str(overhead_us()))
    dist.barrier()
    dist.destroy_process_group()


main()
