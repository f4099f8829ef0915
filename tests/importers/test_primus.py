"""Primus pipeline dumps: read as the program that ran, and every fault named."""

import json

import pytest

from hops.diagnose.detect import detect
from hops.errors import TraceError
from hops.importers.base import read_trace
from hops.importers.primus import Primus
from hops.program.action import Op
from hops.schedules.base import SCHEDULERS
from hops.testing.importers import ImporterConformance
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace

KINDS = {Op.F: "fwd", Op.B: "bwd", Op.I: "bwd", Op.W: "wgrad"}


def write(folder, schedule="1f1b", *, ranks=3, microbatches=4, iterations=2, **parameters):
    """A run as Primus dumps it, of a schedule of ours with unequal stages."""
    scheduler = SCHEDULERS.get(schedule)(**parameters)
    costs = StageCosts.uniform(scheduler.shape(ranks, microbatches), f=3e-3, i=2e-3, w=4e-3, hop_s=1e-3)
    scheduler.configure(costs)
    program = scheduler.program
    found = evaluate(program, costs)
    (folder / "config.json").write_text(json.dumps({"pp_size": ranks, "num_mbs": microbatches}))
    for rank in range(ranks):
        run = {}
        for action, start, end in zip(
            program.actions(rank), found.start_ns[rank].tolist(), found.end_ns[rank].tolist(), strict=True
        ):
            kind = KINDS[action.op]
            values = (start / 1e6, end / 1e6, action.microbatch, action.stage // ranks)
            for key, value in zip(("start", "end", "minibatch", "chunk"), values, strict=True):
                run.setdefault(f"{kind}_{key}", []).append(value)
        text = json.dumps({str(number + 5): {**run, "total": 1.0} for number in range(iterations)})
        (folder / f"pp_rank_{rank}.json").write_text(text)
    return program


class TestPrimus(ImporterConformance):
    def make(self):
        return Primus()

    def write(self, folder):
        run = folder / "run"
        run.mkdir()
        write(run)
        return run


@pytest.mark.parametrize(
    ("schedule", "parameters"), [("1f1b", {}), ("gpipe", {}), ("zb_h1", {}), ("interleaved_1f1b", {"chunks": 2})]
)
def test_the_program_is_the_one_that_ran(tmp_path, schedule, parameters):
    program = write(tmp_path, schedule, microbatches=6, **parameters)
    trace = read_trace(tmp_path).trace
    assert program_from_trace(trace) == program
    assert schedule in detect(trace).names
    assert trace.num_iterations == 2
    forward = trace.where((trace.op == Op.F) & (trace.iteration == 0))
    assert set(forward.duration_ns.tolist()) == {3_000_000}


def test_equal_intervals_of_forward_and_backward_ran_as_one(tmp_path):
    (tmp_path / "config.json").write_text('{"pp_size": 1}')
    run = {"fwd_start": [0, 10], "fwd_end": [5, 30], "bwd_start": [10, 40], "bwd_end": [30, 50]}
    (tmp_path / "pp_rank_0.json").write_text(json.dumps({"0": run, "1": run}))
    trace = read_trace(tmp_path).trace
    assert [str(each) for each in program_from_trace(trace).rank(0)] == ["0F0", "0F1+0B0", "0B1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"fwd_end": [1.0]},
            "fwd_start has 4 values, fwd_end 1, fwd_minibatch 4, fwd_chunk 4; expected as many of each",
        ),
        ({"fwd_start": [-1.0, 2, 3, 4]}, "fwd_start: got '[-1.0, 2, 3, 4]', expected a list of numbers >= 0"),
        ({"bwd_start": "x"}, "bwd_start: got 'x', expected a list of numbers >= 0"),
    ],
)
def test_faulty_lists_are_named(tmp_path, change, message):
    write(tmp_path)
    path = tmp_path / "pp_rank_1.json"
    run = json.loads(path.read_text())
    run["5"].update(change)
    path.write_text(json.dumps(run))
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path)
    assert "pp_rank_1.json: iteration 0: " + message in str(error.value)


def test_missing_files_and_iterations_are_named(tmp_path):
    write(tmp_path)
    run = json.loads((tmp_path / "pp_rank_2.json").read_text())
    (tmp_path / "pp_rank_2.json").write_text(json.dumps({"5": run["5"]}))
    with pytest.raises(TraceError, match=r"pp_rank_2.json: iteration 6 is missing, but other ranks have it"):
        read_trace(tmp_path)
    (tmp_path / "pp_rank_2.json").unlink()
    with pytest.raises(TraceError, match=r"got 2 files of ranks, expected the 3 of pp_size in config.json"):
        read_trace(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TraceError, match="pp_size: got None, expected how many ranks"):
        read_trace(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(TraceError, match=r"config.json: cannot be read as JSON"):
        read_trace(tmp_path)
