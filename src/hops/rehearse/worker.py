"""One rank of rehearsals, as a process of its own: `python -m hops.rehearse.worker RANK JOB...`.

It runs iterations until enough of them were clean, in PyTorch's own pipeline runtime over gloo, and writes its trace.
All ranks agree after each iteration whether it was clean and whether there is a next one; what that takes is cut out of
the trace, in which each iteration begins where the one before it ended.
"""

import gc
import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from hops.rehearse.emulated import WIDTH, EmulatedDevice, EmulatedStage
from hops.rehearse.job import Job, RankIteration, save_attempts
from hops.tracing.recorder import RankRecorder

LEAD_NS = 20_000_000  # from the agreement on a start to the start
_PATIENCE_S = 600  # the parent ends what hangs, long before


def main() -> None:
    """Run the rank that the command line names, in all jobs one after the other."""
    rank, jobs = int(sys.argv[1]), [Job.load(Path(path)) for path in sys.argv[2:]]
    job = jobs[0]
    _end_with(job.parent)
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", job.port, job.num_ranks, rank == 0, timeout=timedelta(seconds=_PATIENCE_S))
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=job.num_ranks, timeout=timedelta(seconds=_PATIENCE_S)
    )
    gc.disable()
    for each in jobs:
        _run(each, rank)
    dist.barrier()
    dist.destroy_process_group()


def _run(job: Job, rank: int) -> None:
    """Iterations of one job until enough were clean."""
    iteration = -1
    state = job.state(rank).open("w", encoding="utf-8")

    def tell(done: int, what: str) -> None:
        state.seek(0)
        state.write(f"{iteration} {done} {what}            \n")
        state.flush()

    tell(0, "starts")
    device = EmulatedDevice(job, rank, tell)
    stages = [EmulatedStage(device, stage) for stage, owner in enumerate(job.rank_of_stage) if owner == rank]
    runtime = _PipelineScheduleRuntime(list(stages), job.num_microbatches, loss_fn=lambda out, _: out.sum())
    runtime._load_csv(str(job.csv), format="compute_comms")  # noqa: SLF001 (PyTorch has no other way yet)
    recorder = RankRecorder(
        job.path, rank, job.num_ranks, device=job.devices[rank], schedule=job.schedule, clock="monotonic"
    )
    attempts = list[RankIteration]()
    deadline = time.monotonic() + job.budget_s
    clean, begins_ns = 0, 0
    while clean < job.clean and len(attempts) <= job.attempts:
        attempt = _one(job, rank, device, runtime, iteration)
        late, out_of_time = _all(attempt.late), _all(int(time.monotonic() > deadline))
        length = _all(device.clock.free_ns - device.origin_ns, dist.ReduceOp.MAX)
        if iteration >= 0:  # the first one warms up
            clean += late == 0
            attempts.append(attempt)
            recorder.iteration = iteration
            opens = job.opens_pair[rank]
            for number, (action, start, end) in enumerate(device.ran):
                stage, op, microbatch = _parts(action)
                shift = begins_ns - device.origin_ns
                pair = number in opens or number - 1 in opens
                recorder.add(op, stage, microbatch, start + shift, end + shift, pair=pair)
            begins_ns += length
        if out_of_time and attempts:
            break
        iteration += 1
    tell(0, "writes")
    recorder.write()
    save_attempts(job.result(rank), attempts)
    tell(0, "is through")
    state.close()


def _one(
    job: Job, rank: int, device: EmulatedDevice, runtime: _PipelineScheduleRuntime, iteration: int
) -> RankIteration:
    """One iteration, from a start on which all ranks agree."""
    gc.collect()
    rows = torch.zeros(job.num_microbatches, WIDTH, dtype=torch.float64)
    numbers = {stage for stage, owner in enumerate(job.rank_of_stage) if owner == rank}
    given = [rows] if 0 in numbers else []
    target = {"target": rows} if len(job.rank_of_stage) - 1 in numbers else {}
    dist.barrier()
    origin = torch.tensor([time.monotonic_ns() + LEAD_NS])
    dist.broadcast(origin, 0)
    device.begin(max(iteration, 0), int(origin.item()))
    runtime.step(*given, **target)
    device.clock.end()
    wall = device.clock.woke_ns - device.origin_ns
    ran = tuple(action for action, _, _ in device.ran)
    return RankIteration(
        late=device.clock.late, worst_ns=device.clock.worst_ns, wall_ns=wall, in_order=ran == job.actions[rank]
    )


def _all(value: int, kind: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> int:
    total = torch.tensor([value])
    dist.all_reduce(total, op=kind)
    return int(total.item())


def _parts(action: str) -> tuple[int, str, int]:
    op = next(letter for letter in action if letter.isalpha())
    stage, microbatch = action.split(op)
    return int(stage), op, int(microbatch)


def _end_with(parent: int) -> None:
    """End this process when the one that watches it has ended, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
