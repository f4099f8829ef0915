"""PyTorch's schedule classes against ours, action by action, and PyTorch's loader on what we write.

Known faults of releases are recorded here: a test fails when one is gone.
"""

import pytest
from needs_torch import needs_torch

from hops.program.posting_check import stuck_in_one_queue
from hops.program.pytorch_csv import communicating_csv, compute_csv, parse_csv, streams_of_csv
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts

GRID = [(2, 4), (3, 9), (4, 8), (4, 12), (8, 16)]
CLASSES = [  # PyTorch's class, ours, chunks, our parameters
    ("ScheduleGPipe", "gpipe", 1, {}),
    ("ScheduleLoopedBFS", "looped_bfs", 2, {}),
    ("ScheduleInterleaved1F1B", "interleaved_1f1b", 2, {"chunks": 2}),
    ("ScheduleInterleaved1F1B", "interleaved_1f1b", 3, {"chunks": 3}),
    ("ScheduleInterleavedZeroBubble", "interleaved_zb", 2, {}),
    ("ScheduleZBVZeroBubble", "zb_v", 2, {}),
    ("ScheduleDualPipeV", "dualpipe_v", 2, {}),
]


def ours(name, ranks, microbatches, **parameters):
    scheduler = SCHEDULERS.get(name)(**parameters)
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


def stand_ins(numbers, total, ranks):
    """Stages that are asked for nothing but their place."""
    import torch

    class Stage:
        group_rank, has_backward, device, submod = 0, True, torch.device("cpu"), torch.nn.Identity()

        def __init__(self, number):
            self.stage_index, self.num_stages, self.group_size = number, total, ranks
            self.is_first, self.is_last = number == 0, number == total - 1

    return [Stage(number) for number in numbers]


def theirs(name, ranks, microbatches, chunks):
    """A class's order as compute-only CSV."""
    from torch.distributed.pipelining import schedules

    total = ranks * chunks
    in_v = name in {"ScheduleZBVZeroBubble", "ScheduleDualPipeV"}
    stages = stand_ins([0, total - 1] if in_v else range(0, total, ranks), total, ranks)
    single = chunks == 1
    made = getattr(schedules, name)(stages[0] if single else stages, microbatches, loss_fn=lambda out, _: out)
    order = made._get_pipeline_order() if single else made.pipeline_order
    return "".join(",".join(str(each or "") for each in order[rank]) + "\n" for rank in range(ranks))


def loaded(text, program, tmp_path, kind):
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    shape = program.shape
    stages = stand_ins(shape.stages_of(0), shape.num_stages, shape.num_ranks)
    runtime = _PipelineScheduleRuntime(stages, shape.num_microbatches, loss_fn=lambda out, _: out)
    (tmp_path / "schedule.csv").write_text(text)
    runtime._load_csv(str(tmp_path / "schedule.csv"), format=kind)
    return runtime


@needs_torch
@pytest.mark.parametrize(("ranks", "microbatches"), GRID)
@pytest.mark.parametrize(("name", "own", "chunks", "parameters"), CLASSES)
def test_every_class_has_our_order(name, own, chunks, parameters, ranks, microbatches):
    assert parse_csv(theirs(name, ranks, microbatches, chunks)) == ours(own, ranks, microbatches, **parameters)


@needs_torch
@pytest.mark.parametrize(("ranks", "microbatches"), GRID)
def test_known_fault_1f1b_prints_its_last_rank_one_forward_ahead(ranks, microbatches):
    """PyTorch 2.13: what it runs is in order; `_get_pipeline_order` starts the last rank at F1."""
    printed, program = parse_csv(theirs("Schedule1F1B", ranks, microbatches, 1)), ours("1f1b", ranks, microbatches)
    wrong = [rank for rank in range(ranks) if printed.actions(rank) != program.actions(rank)]
    assert wrong == [ranks - 1], "the fault is gone: compare Schedule1F1B with 1f1b as the others are"
    assert printed.actions(ranks - 1)[0].microbatch == 1


SCHEDULES = [
    ("gpipe", 4, 6), ("1f1b", 4, 6), ("interleaved_1f1b", 4, 8), ("zb_h1", 4, 8), ("zb_h2", 3, 8),
    ("zero_bubble", 4, 7), ("zb_v", 3, 6), ("v_half", 4, 8), ("dualpipe_v", 3, 8),
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("name", "ranks", "microbatches"), SCHEDULES)
def test_pytorch_loads_what_we_write_and_adds_communication_that_can_run(name, ranks, microbatches, tmp_path):
    program = ours(name, ranks, microbatches)
    runtime = loaded(compute_csv(program), program, tmp_path, "compute_only")
    runtime._dump_csv(str(tmp_path / "lowered.csv"))
    lowered = (tmp_path / "lowered.csv").read_text()
    assert parse_csv(lowered) == program
    assert stuck_in_one_queue(program, streams_of_csv(lowered)) == ""


@needs_torch
@pytest.mark.parametrize(("name", "ranks", "microbatches"), SCHEDULES)
def test_pytorch_takes_our_communication_as_it_stands(name, ranks, microbatches, tmp_path):
    program = ours(name, ranks, microbatches)
    text = communicating_csv(program)
    runtime = loaded(text, program, tmp_path, "compute_comms")
    rows = [[str(each) for each in row] for row in runtime.pipeline_order_with_comms.values()]
    assert rows == [line.split(",") for line in text.splitlines()]


@needs_torch
def test_known_fault_the_dry_run_rejects_what_pytorch_itself_adds(tmp_path):
    """PyTorch 2.13: `_simulate` knows no UNSHARD, which the lowering of every compute-only schedule puts first."""
    program = ours("1f1b", 2, 2)
    runtime = loaded(compute_csv(program), program, tmp_path, "compute_only")
    assert "0UNSHARD" in map(str, runtime.pipeline_order_with_comms[0])
    with pytest.raises((ValueError, AssertionError, RuntimeError)):  # gone? then dry-run what `hops export` writes
        runtime._simulate()
