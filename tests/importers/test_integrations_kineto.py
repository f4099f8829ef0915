"""PyTorch profiler traces are reduced to pipeline actions where their annotations name them."""

import gzip
import json

import numpy as np
import pytest

from hops.diagnose.detect import detect
from hops.errors import TraceError
from hops.importers.base import read_trace
from hops.program.action import Op

FORMS = {
    "pytorch": lambda stage, op, microbatch: f"PP:{stage}{op}{microbatch}",
    "bare": lambda stage, op, microbatch: f"{stage}{op}{microbatch}",
    "spoken": lambda stage, op, microbatch: f"{op} {microbatch} stage {stage}",
    "first schedules": lambda stage, op, microbatch: f"{ {'F': 'Forward', 'B': 'Backward'}[op] } {microbatch}",
}
ORDERS = [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]  # 1F1B on two ranks
STARTS = [[0, 10, 30, 50], [12, 20, 30, 40]]  # microseconds


def profile(rank, *, form="pytorch", iterations=2, gpu=False, steps=True, base=0):
    """What export_chrome_trace writes, without what is not read."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]

    def span(name, start, dur, category="user_annotation", tid=1):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": dur})

    for iteration in range(iterations):
        begin = 1000.5 + 100 * iteration
        if steps:
            span(f"ProfilerStep#{iteration + 5}", begin - 1, 99)
        for action, start in zip(ORDERS[rank], STARTS[rank], strict=True):
            name = FORMS[form](rank, action[0], int(action[1:]))
            span(name, begin + start, 2 if gpu else 8)
            span("aten::mm", begin + start, 1, "cpu_op")
            if gpu:
                span(name, begin + start + 3, 8, "gpu_user_annotation", tid=7)
                if action == "F0":
                    span(name, begin + start + 4, 1, "gpu_user_annotation", tid=20)  # the communication stream
        span("Optimizer.step#AdamW.step", begin + 70, 2 if gpu else 8)
        if gpu:
            span("Optimizer.step#AdamW.step", begin + 73, 8, "gpu_user_annotation", tid=7)
    return {
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "deviceProperties": [{"id": 0, "name": "NVIDIA L4"}],
        "baseTimeNanoseconds": base,
        "traceEvents": events,
    }


def write(folder, profiles, packed=False):
    folder.mkdir(exist_ok=True)
    for number, each in enumerate(profiles):
        text = json.dumps(each)
        if packed:
            (folder / f"host_{number}.pt.trace.json.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"host_{number}.pt.trace.json").write_text(text)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_annotations_of_every_documented_form_are_actions(tmp_path, form):
    trace = read_trace(write(tmp_path, [profile(rank, form=form) for rank in range(2)])).trace
    assert detect(trace).names == ("1f1b",)
    assert np.unique(trace.iteration).tolist() == [5, 6]
    assert trace.meta.devices == ("NVIDIA L4", "NVIDIA L4")
    assert int((trace.op == Op.OPTIMIZER).sum()) == 2 * 2
    assert trace.start_ns[trace.rank == 1][0] == 12_000


def test_times_on_the_gpu_go_before_those_of_the_host(tmp_path):
    host = read_trace(write(tmp_path / "host", [profile(rank) for rank in range(2)])).trace
    gpu = read_trace(write(tmp_path / "gpu", [profile(rank, gpu=True) for rank in range(2)])).trace
    assert set(host.duration_ns.tolist()) == set(gpu.duration_ns.tolist()) == {8000}
    np.testing.assert_array_equal(host.start_ns, gpu.start_ns)  # 3 us later, all of them


def test_without_profiler_steps_repetitions_are_iterations(tmp_path):
    trace = read_trace(write(tmp_path, [profile(rank, steps=False) for rank in range(2)])).trace
    assert np.unique(trace.iteration).tolist() == [0, 1]


def test_packed_profiles_and_their_time_base(tmp_path):
    plain = read_trace(write(tmp_path / "plain", [profile(rank) for rank in range(2)])).trace
    base = 1_700_000_000_000_000_000
    packed = write(tmp_path / "packed", [profile(rank, base=base) for rank in range(2)], packed=True)
    assert read_trace(packed).trace == plain


def test_an_iteration_that_the_profiler_cut_is_named_and_lenient_reading_drops_it(tmp_path):
    profiles = [profile(rank) for rank in range(2)]
    last = next(n for n, e in reversed(list(enumerate(profiles[1]["traceEvents"]))) if e["name"] == "PP:1B1")
    del profiles[1]["traceEvents"][last]
    folder = write(tmp_path, profiles)
    with pytest.raises(
        TraceError, match=r"host_1\.pt\.trace\.json: traceEvents\[\d+\]: iteration 6 is incomplete on rank 1"
    ):
        read_trace(folder)
    found = read_trace(folder, lenient=True)
    assert np.unique(found.trace.iteration).tolist() == [5]
    assert found.dropped == {"incomplete iteration": 9}


def test_a_profile_without_annotations_says_which_are_expected(tmp_path):
    bare = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1}]}
    with pytest.raises(
        TraceError, match=r"no pipeline action in it, expected record_function annotations such as PP:2F0"
    ):
        read_trace(write(tmp_path, [bare]))


def test_what_is_no_profile_is_refused(tmp_path):
    with pytest.raises(
        TraceError, match=r"got no traceEvents, expected what torch\.profiler's export_chrome_trace writes"
    ):
        read_trace(write(tmp_path / "a", [{"events": []}]))
    (tmp_path / "b.json").write_text('{"traceEvents": [')
    with pytest.raises(TraceError, match=r"b\.json: cannot be read as a profile"):
        read_trace(tmp_path / "b.json")


def test_two_profiles_of_one_rank_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r"got profiles of ranks \[0, 0\], expected one each of 0 to 1"):
        read_trace(write(tmp_path, [profile(0), profile(0)]))


def test_an_annotation_without_its_gpu_half_is_named(tmp_path):
    one = profile(0, gpu=True)
    one["traceEvents"] = [e for e in one["traceEvents"] if not (e["name"] == "PP:0B1" and e["cat"][0] == "g")][:]
    with pytest.raises(TraceError, match=r"B of microbatch 1 is annotated 2 times on the host and 0 times on the GPU"):
        read_trace(write(tmp_path, [one, profile(1, gpu=True)]))
