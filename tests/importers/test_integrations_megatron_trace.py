"""Traces of Megatron-LM runs are read line by line, whole or not at all, and what no run can have done is said."""

import gzip
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from megatron_files import CLOCK_NS, device, lines_of, recorded_runs, simulated, write_run, write_traces

from hops.build.run import simulate
from hops.diagnose.detect import detect
from hops.errors import TraceError, UsageError
from hops.importers.base import read_trace
from hops.importers.megatron.spec import spec_text
from hops.importers.megatron.trace import read_run
from hops.metrics.critical_path import Piece, critical_paths
from hops.metrics.iterations import Iterations
from hops.metrics.stalls import find_stalls, find_warmup
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.spec.load import loads
from hops.trace.order import program_from_trace
from hops.trace.trace import COLUMNS, Stream

TINY = simulated(3, 2, 3)


def place(files, rank, **wanted):
    """Index of the line of a rank that has these values."""
    return next(n for n, line in enumerate(files[rank]) if all(line[key] == value for key, value in wanted.items()))


def test_what_was_written_is_read(tmp_path):
    trace = simulated()
    run = read_run(write_run(tmp_path, lines_of(trace)))
    computed = trace.of(Stream.COMPUTE)
    for name in set(COLUMNS) - {"iteration"}:
        np.testing.assert_array_equal(getattr(run.trace, name), getattr(computed, name), err_msg=name)
    assert np.unique(run.trace.iteration).tolist() == [3, 4, 5]
    assert run.trace.meta.source == "measured"
    assert run.trace.meta.devices == tuple(f"L4 {device(rank)}" for rank in range(3))
    assert run.origin_ns == CLOCK_NS
    assert dict(run.dropped) == {}
    assert run.launch.num_microbatches == 4


def test_a_bare_trace_folder_is_read_without_a_launch(tmp_path):
    run = read_run(write_traces(tmp_path, lines_of(simulated())))
    assert run.launch is None
    assert run.trace.meta.devices == (device(0), device(1), device(2))
    assert run.trace.meta.hosts == ("host-0", "host-1", "host-2")


def test_times_count_from_the_first_start_and_optimizer_steps_have_no_microbatch(tmp_path):
    run = read_run(write_traces(tmp_path, lines_of(simulated())))
    assert run.trace.start_ns[0] == 0
    assert set(run.trace.microbatch[run.trace.op == Op.OPTIMIZER].tolist()) == {-1}


def test_the_order_of_lines_does_not_matter(tmp_path):
    files = lines_of(simulated())
    there = read_run(write_traces(tmp_path / "there", files)).trace
    back = read_run(write_traces(tmp_path / "back", [lines[::-1] for lines in files])).trace
    assert there == back


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_packed_files_read_like_plain_ones(tmp_path, packing):
    folder = write_traces(tmp_path, lines_of(simulated()))
    plain = read_run(folder).trace
    pack = gzip.compress if packing == ".gz" else pytest.importorskip("zstandard").compress
    for file in folder.glob("*.jsonl"):
        file.with_name(file.name + packing).write_bytes(pack(file.read_bytes()))
        file.unlink()
    assert read_run(folder).trace == plain


def test_a_packed_file_that_breaks_off_is_refused_with_its_line(tmp_path):
    folder = write_traces(tmp_path, lines_of(simulated()))
    whole = gzip.compress((folder / "rank1.jsonl").read_bytes())
    (folder / "rank1.jsonl").unlink()
    (folder / "rank1.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match=r"rank1\.jsonl\.gz:\d+: cannot be read on: .*copy it again"):
        read_run(folder)


def test_zst_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "rank0.jsonl.zst").write_bytes(b"")
    with pytest.raises(UsageError, match=r"zstandard, which is not installed.*hops-sim\[zstd\]"):
        read_run(tmp_path)


def changed(line, **values):
    return {**line, **values}


# what is done to line 6 of rank 1 (a computation), what is said, and what a lenient reader counts
BAD_LINES = {
    "truncated": (lambda line: str(line)[:40], "cut off, expected one JSON object", "truncated or malformed line"),
    "no object": (lambda line: "[1, 2]", "expected one JSON object", "truncated or malformed line"),
    "field missing": (lambda line: {k: v for k, v in line.items() if k != "phase"}, "phase: missing", "missing field"),
    "rank": (lambda line: changed(line, rank=0), "rank: got 0, expected 1", "wrong rank"),
    "stage text": (lambda line: changed(line, stage="1"), "stage: got '1', expected a whole number", "bad stage"),
    "negative": (lambda line: changed(line, microbatch=-1), "microbatch: got -1, expected", "bad microbatch"),
    "true": (lambda line: changed(line, iteration=True), "iteration: got True, expected", "bad iteration"),
    "time as float": (lambda line: changed(line, start_wall_ns=1.5), "start_wall_ns: got 1.5", "bad start_wall_ns"),
    "end before start": (
        lambda line: changed(line, end_wall_ns=line["start_wall_ns"] - 5),
        "5 ns before start_wall_ns",
        "end before start",
    ),
    "duration": (lambda line: changed(line, duration_ms=99), "duration_ms: got 99, expected", "duration disagrees"),
    "NaN": (lambda line: changed(line, duration_ms=float("nan")), "duration_ms: got nan", "duration disagrees"),
    "phase": (lambda line: changed(line, phase="SIDEWARD"), "phase: got 'SIDEWARD', expected one of", "unknown phase"),
    "type": (lambda line: changed(line, event_type="rest"), "event_type: got 'rest'", "unknown event type"),
    "device": (lambda line: changed(line, device_id="x"), "device_id: got 'x', expected 'l4", "wrong device_id"),
    "host": (lambda line: changed(line, hostname="x"), "hostname: got 'x', expected 'host-1'", "wrong hostname"),
    "host empty": (lambda line: changed(line, hostname=""), "hostname: got '', expected a text", "bad hostname"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_a_lenient_reader_drops_its_iteration(tmp_path, name):
    spoil, message, reason = BAD_LINES[name]
    files = lines_of(simulated())
    at = place(files, 1, iteration=4, event_type="compute", phase="FORWARD", microbatch=1)
    files[1][at] = spoil(files[1][at])
    folder = write_traces(tmp_path, files)
    with pytest.raises(TraceError, match=rf"rank1\.jsonl:{at + 1}: .*{re.escape(message)}.*--lenient"):
        read_run(folder)
    run = read_run(folder, lenient=True)
    assert run.dropped[reason] == 1
    assert np.unique(run.trace.iteration).tolist() == [3, 5]
    assert run.dropped["incomplete iteration"] == 3 * (2 * 4 + 1) - 1


def test_a_duplicate_is_named_with_its_first_place_and_a_lenient_reader_keeps_the_first(tmp_path):
    files = lines_of(simulated())
    whole = read_run(write_traces(tmp_path / "whole", files)).trace
    files[2].insert(9, files[2][4])
    folder = write_traces(tmp_path / "double", files)
    with pytest.raises(TraceError, match=r"rank2\.jsonl:10: duplicate event: .* is already at .*rank2\.jsonl:5;"):
        read_run(folder)
    run = read_run(folder, lenient=True)
    assert run.trace == whole
    assert dict(run.dropped) == {"duplicate event": 1}


def test_a_microbatch_number_out_of_range_is_named_however_large(tmp_path):
    files = lines_of(simulated())
    at = place(files, 1, iteration=4, event_type="compute", phase="FORWARD", microbatch=1)
    files[1][at] = changed(files[1][at], microbatch=2_000_000_000)
    folder = write_traces(tmp_path, files)
    with pytest.raises(TraceError, match=rf"rank1\.jsonl:{at + 1}: .*got microbatch 2000000000, expected one below 4"):
        read_run(folder)
    assert read_run(folder, lenient=True).dropped == {"microbatch out of range": 27}


def test_a_stage_number_out_of_range_is_named(tmp_path):
    files = lines_of(simulated())
    files[2][0] = changed(files[2][0], stage=2_000_000_000)
    with pytest.raises(TraceError, match=r"no event of stage 3, but some of stage 2000000000 \(.*rank2\.jsonl:1\)"):
        read_run(write_traces(tmp_path, files))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2),
    st.integers(0, 60),
    st.integers(0, 400),
    st.sampled_from(["cut", "swap", "delete", "double", "digit", "junk"]),
    st.booleans(),
)
def test_whatever_happens_to_a_file_it_reads_or_says_what_is_wrong(tmp_path, rank, line, place_in_line, how, lenient):
    """No traceback, and what is read is a whole trace: every iteration has all its actions."""
    text = write_traces(tmp_path, lines_of(TINY)).joinpath(f"rank{rank}.jsonl").read_text().splitlines()
    line %= len(text)
    at = place_in_line % len(text[line])
    if how == "delete":
        del text[line]
    elif how == "double":
        text.insert(line, text[line])
    elif how == "cut":
        text[line] = text[line][:at]
    elif how == "swap":
        text[line], text[0] = text[0], text[line]
    else:
        text[line] = text[line][:at] + {"digit": "7", "junk": "\x00{"}[how] + text[line][at + 1 :]
    (tmp_path / f"rank{rank}.jsonl").write_text("\n".join(text) + "\n")
    try:
        trace = read_run(tmp_path, lenient=lenient).trace
    except TraceError:
        return
    actions = trace.where(trace.op <= Op.W)
    assert len(actions) == trace.num_iterations * trace.meta.num_stages * trace.meta.num_microbatches * 2


def test_a_missing_computation_is_named_by_iteration_and_rank(tmp_path):
    files = lines_of(simulated())
    del files[1][place(files, 1, iteration=4, event_type="compute", phase="BACKWARD", microbatch=2)]
    with pytest.raises(
        TraceError, match=r"rank1\.jsonl:\d+: iteration 4 is incomplete on rank 1: stage 1 has F of micro"
    ):
        read_run(write_traces(tmp_path, files))


def test_a_missing_optimizer_step_is_named(tmp_path):
    files = lines_of(simulated())
    del files[0][place(files, 0, iteration=5, phase="OPTIMIZER")]
    with pytest.raises(TraceError, match=r"iteration 5 is incomplete on rank 0: no optimizer step"):
        read_run(write_traces(tmp_path, files))


def test_traces_without_any_optimizer_step_are_read(tmp_path):
    files = [[line for line in lines if line["phase"] != "OPTIMIZER"] for lines in lines_of(simulated())]
    assert set(read_run(write_traces(tmp_path, files)).trace.op.tolist()) == {Op.F, Op.B}


def shifted(lines, ns):
    return [line | {key: line[key] + ns for key in ("start_wall_ns", "end_wall_ns")} for line in lines]


@pytest.mark.parametrize(("shift_ms", "accepted"), [(-3, False), (-1, True), (0.5, True), (3, False)])
def test_clocks_may_disagree_by_a_millisecond_and_the_message_and_no_more(tmp_path, shift_ms, accepted):
    files = lines_of(simulated())  # a message takes 0.34 ms
    files[1] = shifted(files[1], int(shift_ms * 1e6))
    folder = write_traces(tmp_path, files)
    if accepted:
        read_run(folder)
        return
    with pytest.raises(
        TraceError, match=r"rank\d\.jsonl:\d+: clocks contradict causality: .* (is made|gradient is made) by .*chrony"
    ):
        read_run(folder)


def test_an_iteration_that_starts_before_the_last_one_has_ended_is_named(tmp_path):
    files = lines_of(simulated())
    files = [[line if line["iteration"] != 5 else shifted([line], -40_000_000)[0] for line in lines] for lines in files]
    with pytest.raises(TraceError, match=r"of iteration 5 on rank 0 starts .* ms before .* of iteration 4.*one after"):
        read_run(write_traces(tmp_path, files))


def test_an_empty_folder_says_what_was_expected(tmp_path):
    with pytest.raises(TraceError, match=r"no trace in it: expected a file per rank, such as rank0\.jsonl, .*\.zst"):
        read_run(tmp_path)


def test_an_empty_file_is_named(tmp_path):
    folder = write_traces(tmp_path, [*lines_of(simulated())[:2], []])
    with pytest.raises(TraceError, match=r"rank2\.jsonl: no event in it"):
        read_run(folder)


def test_a_missing_rank_is_named(tmp_path):
    folder = write_traces(tmp_path, lines_of(simulated()))
    (folder / "rank1.jsonl").unlink()
    with pytest.raises(TraceError, match=r"rank1\.jsonl is missing, but rank2\.jsonl is there"):
        read_run(folder)


def test_a_missing_last_rank_shows_against_run_yaml(tmp_path):
    folder = write_run(tmp_path, lines_of(simulated()))
    (folder / "megatron_trace" / "rank2.jsonl").unlink()
    with pytest.raises(TraceError, match=r"got files of 2 ranks, expected 3, the stages of .*run\.yaml"):
        read_run(folder)


def test_a_missing_last_rank_shows_in_transfers_without_run_yaml(tmp_path):
    folder = write_traces(tmp_path, lines_of(simulated()))
    (folder / "rank2.jsonl").unlink()
    with pytest.raises(TraceError, match=r"rank1\.jsonl:\d+: dst_device: got 'l4_node2_gpu0', expected 'no transfer'"):
        read_run(folder)


def test_a_rank_in_two_packings_is_refused(tmp_path):
    folder = write_traces(tmp_path, lines_of(simulated()))
    (folder / "rank1.jsonl.gz").write_bytes(gzip.compress((folder / "rank1.jsonl").read_bytes()))
    with pytest.raises(TraceError, match=r"rank 1 has rank1\.jsonl as well, expected one file"):
        read_run(folder)


def test_a_copied_file_is_refused(tmp_path):
    files = lines_of(simulated())
    files[1] = [{**line, "rank": 1} for line in files[0]]
    with pytest.raises(TraceError, match=r"rank1\.jsonl: device_id 'l4_node0_gpu0' is that of rank 0"):
        read_run(write_traces(tmp_path, files))


def test_devices_must_be_where_run_yaml_places_them(tmp_path):
    folder = write_run(tmp_path, lines_of(simulated()))
    file = folder / "run.yaml"
    file.write_text(file.read_text().replace(device(1), "elsewhere"))
    with pytest.raises(TraceError, match=r"rank1\.jsonl:1: device_id: got 'l4_node1_gpu0', expected 'elsewhere'"):
        read_run(folder)


def test_microbatches_must_be_as_many_as_were_launched(tmp_path):
    with pytest.raises(TraceError, match=r"got 4 microbatches an iteration, expected 8, which .*run\.yaml launched"):
        read_run(write_run(tmp_path, lines_of(simulated()), microbatches=8))


def test_memory_grows_by_less_than_a_third_of_the_text(tmp_path):
    """By allocations: lines are not kept. A reader that keeps them takes several times the text."""
    peaks, sizes = [], []
    for iterations in (20, 120):
        folder = write_traces(tmp_path / str(iterations), lines_of(simulated(2, 24, iterations)))
        sizes.append(sum(file.stat().st_size for file in folder.iterdir()))
        tracemalloc.start()
        read_run(folder)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] - sizes[0] > 2e6
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 3


@pytest.fixture(scope="module")
def recorded():
    """Every recorded run, by name."""
    return {folder.name: read_run(folder) for folder in recorded_runs()}


def test_the_simulated_program_is_the_measured_order_in_all_recorded_runs(recorded):
    """On every rank of every iteration."""
    for name, run in recorded.items():
        simulated_order = program_from_trace(simulate(loads(spec_text(run.launch, iterations=1))).trace)
        found = detect(run.trace)
        assert found.program == simulated_order, name
        assert (found.iterations, found.others) == (run.trace.num_iterations, ()), name


def test_recorded_runs_that_are_labelled_gpipe_or_zero_bubble_ran_1f1b(recorded):
    for name, run in recorded.items():
        label = run.trace.meta.schedule
        assert label in ("1f1b", "gpipe", "zero_bubble"), name
        assert detect(run.trace).names == ("1f1b",), name
        assert detect(run.trace).contradicts(label) == (label != "1f1b"), name


def test_recorded_runs_stall_in_the_all_reduce_alone_and_warm_up_in_one_iteration_at_most(recorded):
    """The heavy tail of the tied-embedding all-reduce: 150 to 200 ms more, on paths without an A10G at an end."""
    stalled = 0
    for name, run in recorded.items():
        warmup = find_warmup(run.trace)
        assert warmup <= 1, name
        counted = Iterations.of(run.trace, RunFacts(warmup_iterations=warmup))
        paths = critical_paths(counted)
        np.testing.assert_array_equal(paths.spent_ns.sum(axis=1), counted.end_ns - counted.start_ns)
        stalls = find_stalls(counted, paths)
        assert {stall.term.piece for stall in stalls} <= {Piece.REDUCE}, name
        stalled += len(stalls)
        ends = {run.launch.placed[0].device, run.launch.placed[-1].device}
        assert not (stalls and "a10g" in ends), name
    assert stalled > len(recorded)


def test_importing_a_run_gives_its_sizes_but_no_memory(tmp_path):
    found = read_trace(write_run(tmp_path, lines_of(simulated())))
    assert found.facts.tokens_per_microbatch == 128
    assert len(found.facts.peak_flop_per_s) == 3
    assert found.facts.stage_memory == ()
