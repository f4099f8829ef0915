"""Training scripts that record themselves: every schedule class of PyTorch, those without annotations, too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from needs_torch import needs_torch, shared_setup

import hops
from hops.diagnose.detect import detect
from hops.importers.base import read_trace
from hops.metrics.audit import audit
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.program.lowering import check
from hops.rehearse.launch import free_port
from hops.trace.order import program_from_trace

pytestmark = shared_setup
HERE = Path(__file__).parent
NAMES = ("gpipe", "1f1b", "looped_bfs", "interleaved", "interleaved_zb", "zbv", "dualpipe_v")
RANKS, MICROBATCHES, ITERATIONS = 2, 4, 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    source = str(Path(hops.__file__).parent.parent)
    paths = [source, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    port = str(free_port(None))
    command = [sys.executable, str(HERE / "training.py")]
    with (folder / "log").open("wb") as log:
        ranks = [
            subprocess.Popen([*command, str(rank), str(RANKS), port, str(folder), *NAMES], env=environment, stderr=log)
            for rank in range(RANKS)
        ]
        try:
            codes = [process.wait(timeout=300) for process in ranks]
        finally:
            for process in ranks:
                process.kill()
                process.wait()
    assert codes == [0] * RANKS, (folder / "log").read_text()
    return folder


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_read_and_audited(runs, name):
    found = read_trace(runs / name)
    trace = found.trace
    assert dict(found.dropped) == {}
    assert (trace.num_iterations, trace.meta.num_microbatches, trace.meta.num_ranks) == (
        ITERATIONS,
        MICROBATCHES,
        RANKS,
    )
    program = program_from_trace(trace)
    check(program)
    for iteration in range(1, ITERATIONS):
        assert program_from_trace(trace, iteration=iteration) == program
    assert (trace.op == Op.OPTIMIZER).sum() == RANKS * ITERATIONS
    run = Iterations.of(trace, RunFacts(warmup_iterations=1))
    np.testing.assert_array_equal(audit(run).paths.spent_ns.sum(axis=1), run.end_ns - run.start_ns)


@needs_torch
@pytest.mark.parametrize(
    ("name", "ours"), [("gpipe", "gpipe"), ("1f1b", "1f1b"), ("interleaved", "interleaved_1f1b"), ("zbv", "zb_v")]
)
def test_the_order_is_recognised(runs, name, ours):
    trace = read_trace(runs / name).trace
    if name == "zbv":  # PyTorch's own order of it, which has I and W
        assert {Op.I, Op.W} <= set(trace.op.tolist())
    else:
        assert ours in detect(trace).names


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_both_ends_of_every_message_are_recorded(runs, name):
    posted = {"SEND_F": set(), "RECV_F": set(), "SEND_B": set(), "RECV_B": set()}
    for rank in range(RANKS):
        for line in (runs / name / f"rank{rank}.hops.jsonl").read_text().splitlines()[1:]:
            iteration, what, stage, microbatch, start, end = json.loads(line)
            if what in posted:
                assert start <= end
                posted[what].add((iteration, stage, microbatch))
    assert posted["SEND_F"] == {(iteration, stage - 1, mb) for iteration, stage, mb in posted["RECV_F"]}
    assert posted["SEND_B"] == {(iteration, stage + 1, mb) for iteration, stage, mb in posted["RECV_B"]}
    assert len(posted["SEND_F"]) >= ITERATIONS * MICROBATCHES


@needs_torch
def test_recording_an_action_takes_less_than_40_us(runs):
    assert float((runs / "overhead.txt").read_text()) < 40
