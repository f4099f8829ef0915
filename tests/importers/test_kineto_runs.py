"""Recorded runs of torch.distributed.pipelining (tools/record_kineto.py) are read: order, times, ranks and pairs."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hops.diagnose.detect import detect
from hops.errors import TraceError
from hops.importers.base import read_trace
from hops.metrics.audit import audit
from hops.metrics.iterations import Iterations, is_action
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.trace.order import paired_rows, producer_rows

RUNS = Path(__file__).parent / "kineto_runs"
SCHEDULES = {
    "gpipe-2": "gpipe",
    "interleaved-2": "interleaved_1f1b",
    "interleaved-4": "interleaved_1f1b",
    "interleaved-zb-2": "interleaved_zb",
    "zbv-2": "zb_v",
    "dualpipev-2": "dualpipe_v",
}


def changed(folder, run, *, names=None, of_profile=None, of_event=None, keep=None):
    """A copy of a recorded run: files renamed or left out (`names` by rank), profiles and events changed."""
    folder.mkdir(exist_ok=True)
    files = sorted((RUNS / run).iterdir())
    for rank, file in enumerate(files):
        if keep is not None and rank not in keep:
            continue
        profile = json.loads(gzip.decompress(file.read_bytes()))
        if of_profile is not None:
            of_profile(rank, profile)
        if of_event is not None:
            profile["traceEvents"] = [new for each in profile["traceEvents"] if (new := of_event(rank, each))]
        name = file.name if names is None else names[rank]
        (folder / name).write_bytes(gzip.compress(json.dumps(profile).encode(), 1))
    return folder


def forget_rank(rank, profile):
    del profile["distributedInfo"]


@pytest.mark.parametrize("run", SCHEDULES)
def test_a_recorded_run_has_the_order_of_its_schedule_on_clocks_that_agree(run):
    found = read_trace(RUNS / run)
    assert SCHEDULES[run] in detect(found.trace).names
    assert detect(found.trace).others == ()
    assert (found.dropped, found.notes) == ({}, ())
    assert set(found.trace.meta.hosts) == {"host0"}
    assert set(found.trace.meta.devices) == {"CPU"}
    assert np.unique(found.trace.iteration).tolist() == [2, 3, 4]


@pytest.mark.parametrize("run", SCHEDULES)
def test_no_action_of_one_host_starts_before_its_input_was_made(run):
    """Receives are waited for inside the annotated ranges; without that wait, order holds to the microsecond."""
    trace = read_trace(RUNS / run).trace
    source = producer_rows(trace)
    takes = is_action(trace) & (source >= 0)
    assert np.all(trace.start_ns[takes] >= trace.end_ns[source[takes]])


@pytest.mark.parametrize("run", ["interleaved-2", "zbv-2"])
def test_what_is_left_of_a_range_is_what_its_operators_took_and_little_more(run):
    """Nothing waits for a message inside an action: its operators fill it, but for what Python takes between them."""
    trace = read_trace(RUNS / run).trace
    operators_ns, annotated_ns = 0, 0
    for file in sorted((RUNS / run).iterdir()):
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
        ranges = [e for e in events if e["name"].startswith("PP:") and e["name"][4] in "FBIW"]
        annotated_ns += 1000 * sum(each["dur"] for each in ranges)
        operators_ns += sum(
            1000 * e["dur"] for e in events if e["cat"] == "cpu_op" and not e["name"].startswith("c10d")
            and any(r["ts"] <= e["ts"] < r["ts"] + r["dur"] for r in ranges)
        )  # fmt: skip
    assert operators_ns < trace.duration_ns[is_action(trace)].sum() < 2.5 * operators_ns < annotated_ns


def test_a_pair_is_two_rows_that_bear_their_rank_and_do_not_overlap():
    trace = read_trace(RUNS / "dualpipev-2").trace
    first, second = paired_rows(trace)
    assert len(first) == 3 * 6  # `PP:(1F3;2B1)OVERLAP_F_B` and five more an iteration
    assert np.all(trace.end_ns[first] <= trace.start_ns[second])
    assert set(trace.op[first].tolist()) == {int(Op.F)}
    assert set(trace.op[second].tolist()) == {int(Op.B)}
    assert len(detect(trace).program.step) - len(np.unique(detect(trace).program.step)) == 6


def test_several_optimizer_steps_of_an_iteration_are_one():
    """Two chunks on a rank have an optimizer each."""
    trace = read_trace(RUNS / "interleaved-2").trace
    assert int((trace.op == Op.OPTIMIZER).sum()) == 2 * 3


def test_optimizer_steps_without_profiler_steps_belong_to_the_iteration_that_began_last(tmp_path):
    def stepless(rank, event):
        return None if event["name"].startswith("ProfilerStep") else event

    plain = read_trace(RUNS / "interleaved-2").trace
    found = read_trace(changed(tmp_path / "run", "interleaved-2", of_event=stepless)).trace
    np.testing.assert_array_equal(found.iteration, plain.iteration - 2)
    np.testing.assert_array_equal(found.end_ns, plain.end_ns)


def test_without_ranks_the_stages_say_which_file_is_which(tmp_path):
    names = ["b.json.gz", "a.json.gz"]
    found = read_trace(changed(tmp_path / "run", "zbv-2", names=names, of_profile=forget_rank)).trace
    expected = read_trace(RUNS / "zbv-2").trace
    np.testing.assert_array_equal(found.rank, expected.rank)
    np.testing.assert_array_equal(found.start_ns, expected.start_ns)


def test_without_ranks_or_stages_the_files_must_be_named_by_rank(tmp_path):
    names = ["b.json.gz", "a.json.gz"]
    with pytest.raises(TraceError, match=r"a\.json\.gz: neither distributedInfo nor the file's name says which rank"):
        read_trace(changed(tmp_path / "run", "gpipe-2", names=names, of_profile=forget_rank))
    named = ["x_rank1.json.gz", "x_rank0.json.gz"]
    with pytest.raises(TraceError, match="clocks contradict causality"):  # the wrong way round
        read_trace(changed(tmp_path / "named", "gpipe-2", names=named, of_profile=forget_rank))


@pytest.mark.parametrize("run", ["gpipe-2", "interleaved-4"])
def test_one_file_per_stage_of_a_larger_job_is_one_pipeline(tmp_path, run):
    """Ranks 0, 8, 16 ... of a job whose tensor and data axes lie inside the pipeline's."""
    count = len(list((RUNS / run).iterdir()))

    def of_job(rank, profile):
        profile["distributedInfo"] |= {"rank": 8 * rank, "world_size": 8 * count, "pg_config": []}

    assert read_trace(changed(tmp_path / "run", run, of_profile=of_job)).trace == read_trace(RUNS / run).trace


def test_a_process_group_of_exactly_these_ranks_is_one_pipeline_wherever_its_ranks_lie(tmp_path):
    def of_job(rank, profile):
        group = {"pg_name": "5", "pg_desc": "mesh_pp", "pg_size": 2, "ranks": [3, 4]}
        profile["distributedInfo"] |= {"rank": 3 + rank, "world_size": 16, "pg_config": [group]}

    trace = read_trace(changed(tmp_path / "run", "gpipe-2", of_profile=of_job)).trace
    assert trace == read_trace(RUNS / "gpipe-2").trace


def test_a_missing_last_rank_is_missed_by_what_the_others_send(tmp_path):
    message = r"stage 6 sends activations on, but no profile has stage 7: got ranks \[0, 1, 2\] of a job of 4; add"
    with pytest.raises(TraceError, match=r"no profile has stage 3, but rank2.* has stage 6"):
        read_trace(changed(tmp_path / "run", "interleaved-4", keep=(0, 1, 2)))

    def renamed(rank, event):
        """Stages 4, 5, 6 alone, as 0, 1, 2: a pipeline of four ranks without its last."""
        name = event["name"]
        if name.startswith("PP:"):
            return event | {"name": f"PP:{int(name[3]) - 4}{name[4:]}"} if name[3] in "456" else None
        return event

    with pytest.raises(TraceError, match=message.replace("stage 6", "stage 2").replace("stage 7", "stage 3")):
        read_trace(changed(tmp_path / "other", "interleaved-4", keep=(0, 1, 2), of_event=renamed))


def test_a_missing_last_rank_is_missed_by_the_size_of_the_job(tmp_path):
    def of_three(rank, profile):
        profile["distributedInfo"] |= {"world_size": 3, "pg_config": []}

    with pytest.raises(TraceError, match=r"got profiles of ranks \[0, 1\] of a job of 3, expected those of all ranks"):
        read_trace(changed(tmp_path / "run", "gpipe-2", of_profile=of_three))


@pytest.mark.parametrize(
    ("run", "rank", "stages"),
    [("interleaved-4", 2, "stages 2, 6 are shown as 0 to 1"), ("gpipe-2", 1, ""), ("zbv-2", 0, "stages 0, 3 are")],
)
def test_a_single_file_tells_of_its_rank_alone(run, rank, stages):
    found = read_trace(RUNS / run / f"rank{rank}.pt.trace.json.gz")
    whole = read_trace(RUNS / run).trace
    mine = whole.where(whole.rank == rank)
    assert (found.trace.meta.num_ranks, set(found.trace.rank.tolist())) == (1, {0})
    np.testing.assert_array_equal(found.trace.duration_ns, mine.duration_ns)
    np.testing.assert_array_equal(found.trace.start_ns, mine.start_ns - mine.start_ns.min())
    (note,) = found.notes
    assert note.startswith(f"rank {rank} of {4 if run.endswith('4') else 2} alone")
    assert stages in note
    times = audit(Iterations.of(found.trace, RunFacts()))
    assert {gap.op for gap in times.gaps} == {""}  # nothing is said of messages


def test_a_schedule_that_names_nothing_is_refused_with_what_to_do():
    with pytest.raises(TraceError, match=r"no pipeline action in it.*Schedule1F1B writes none: use a schedule with"):
        read_trace(RUNS / "1f1b-2")


def test_hosts_are_named_as_the_profile_or_its_default_name_has_them(tmp_path):
    def forget_host(rank, profile):
        del profile["host_name"]

    names = ["node-a_4711.1790857026123.pt.trace.json.gz", "node-b_4712.1790857026123.pt.trace.json.gz"]
    found = read_trace(changed(tmp_path / "run", "zbv-2", names=names, of_profile=forget_host)).trace
    assert found.meta.hosts == ("node-a", "node-b")
    shutil.rmtree(tmp_path / "run")
    found = read_trace(changed(tmp_path / "run", "zbv-2", of_profile=forget_host)).trace
    assert found.meta.hosts == ("host of rank 0", "host of rank 1")


def test_where_only_the_posting_of_receives_shows_actions_begin_with_their_first_operator(tmp_path):
    def without_backend(rank, event):
        return None if event["name"].startswith("gloo:") else event

    found = read_trace(changed(tmp_path / "run", "interleaved-2", of_event=without_backend)).trace
    seen = read_trace(RUNS / "interleaved-2").trace
    assert detect(found).names == ("interleaved_1f1b",)
    sums = [int(trace.duration_ns[is_action(trace)].sum()) for trace in (found, seen)]
    assert 0.8 * sums[1] < sums[0] < sums[1]


@pytest.mark.parametrize("bad", [1e300, float("inf"), -1, "3", True])
def test_times_that_no_clock_has_are_refused_with_their_place(tmp_path, bad):
    def late(rank, event):
        return event | {"ts": bad} if event["name"] == "Forward 0" else event

    with pytest.raises(TraceError, match=r"rank0.*traceEvents\[\d+\]: ts and dur: got "):
        read_trace(changed(tmp_path / "run", "gpipe-2", of_event=late))
