"""Runs that hops.tracing recorded: read whole, and every fault named with file and line."""

import json

import pytest

from hops.errors import TraceError
from hops.importers.base import read_trace
from hops.program.action import Op
from hops.tracing.recorder import RankRecorder, rank_of_environment


def write(folder, *, ranks=2):
    """Two ranks, one microbatch, two iterations, with an optimizer step and postings."""
    for rank in range(ranks):
        recorder = RankRecorder(folder, rank, ranks, device=f"gpu{rank}", schedule="1f1b")
        for iteration in range(2):
            recorder.iteration = iteration
            base = 1000 * iteration
            forward, backward = (10, 500) if rank == 0 else (110, 300)
            recorder.add("F", rank, 0, base + forward, base + forward + 90)
            recorder.add("SEND_F" if rank == 0 else "RECV_F", rank, 0, base + 20, base + 105)
            recorder.add("B", rank, 0, base + backward, base + backward + 180)
            recorder.add("OPTIMIZER", -1, -1, base + 700, base + 800)
            recorder.write()


def test_actions_and_optimizer_steps_become_a_trace(tmp_path):
    write(tmp_path)
    trace = read_trace(tmp_path).trace
    assert trace.meta.devices == ("gpu0", "gpu1")
    assert trace.meta.rank_of_stage == (0, 1)
    assert (trace.meta.schedule, trace.meta.num_microbatches, trace.num_iterations) == ("1f1b", 1, 2)
    assert len(trace) == 12
    rows = trace.where((trace.op == Op.B) & (trace.rank == 1))
    assert rows.start_ns.tolist() == [290, 1290]
    assert rows.duration_ns.tolist() == [180, 180]


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "{}", "rank0.hops.jsonl:1: got '{}', expected such as {\"hops_trace\": 1"),
        (1, '{"hops_trace": 2, "rank": 0, "ranks": 2, "host": "a", "device": "b", "schedule": "", "clock": "unix"}',
         "rank0.hops.jsonl:1: got version 2 of the format, expected 1: update HOPS"),
        (3, '[0, "X", 0, 0, 1, 2]', "rank0.hops.jsonl:3: got '[0, \"X\", 0, 0, 1, 2]', expected such as [0, \"F\""),
        (3, '[0, "F", 0, 0, 1.5, 2]', "rank0.hops.jsonl:3: got"),
        (3, '[0, "F", -1, 0, 1, 2]', "rank0.hops.jsonl:3: got"),
        (3, '[0, "F", 0, 0, 3, 2]', "rank0.hops.jsonl:3: got"),
        (3, '[0, "F", 0, 0, 1, 2, 3]', "rank0.hops.jsonl:3: got"),
        (3, "[0,", "rank0.hops.jsonl:3: got"),
        (2, '[0, "F", 0, 1, 1, 2]', "rank0.hops.jsonl:2: 0F1 of iteration 0 on rank 0: got microbatch 1"),
    ],
)  # fmt: skip
def test_faults_are_named(tmp_path, line, text, message):
    write(tmp_path)
    path = tmp_path / "rank0.hops.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines))
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path)
    assert message in str(error.value)


def test_lenient_drops_bad_lines_and_counts_them(tmp_path):
    write(tmp_path)
    path = tmp_path / "rank0.hops.jsonl"
    path.write_text(path.read_text() + "nonsense\n")
    assert dict(read_trace(tmp_path, lenient=True).dropped) == {"bad line": 1}


def test_a_missing_rank_is_said(tmp_path):
    write(tmp_path)
    (tmp_path / "rank0.hops.jsonl").unlink()
    with pytest.raises(TraceError, match=r"no file of rank 0, expected rank0.hops.jsonl to rank1.hops.jsonl"):
        read_trace(tmp_path)


def test_the_first_line_says_who_recorded(tmp_path):
    write(tmp_path)
    header = json.loads((tmp_path / "rank1.hops.jsonl").read_text().splitlines()[0])
    assert (header["rank"], header["ranks"], header["clock"]) == (1, 2, "unix")


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, (1, 4)),
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, (3, 8)),
        ({"RANK": "3"}, (0, 1)),
    ],
)
def test_rank_and_size_come_from_the_launcher(environment, found):
    assert rank_of_environment(environment) == found
