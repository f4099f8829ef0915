"""`hops trace` as a user meets it: audits, differences, conversions, and what it refuses."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "importers"))

from megatron_files import lines_of, simulated, write_run

from hops.importers.base import read_trace
from hops.program.action import Op
from hops.trace.order import program_from_trace

SPEC = """
simulation: {iterations: 3}
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms, message: 1 MiB}
  microbatches: 4
hardware:
  nodes: [{count: 3, devices: [l4]}]
optimizer: {update_time: 3 ms, host_gap: 1 ms}
"""


@pytest.fixture
def hops(command, tmp_path):
    """The command line beside a run and a spec."""
    write_run(tmp_path / "run", lines_of(simulated(3, 4, 5)), label="gpipe")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return command


SHOWN = """\
run (measured): 3 ranks, 3 stages, 4 microbatches

order       1f1b in all 5 iterations; labelled gpipe
iteration   42.92 ms median, spread 0.00, mean 42.72 (5 iterations, no warm-up)
stalls      none
bubble      38.3 % of the pipeline, 36.8 % of the iteration
"""


def test_show_prints_an_audit_that_flags_a_wrong_label(hops):
    code, out, err = hops("trace", "show", "run")
    assert (code, err) == (0, "")
    assert "\n".join(line.rstrip() for line in out.splitlines()).startswith(SHOWN)
    assert "! labelled gpipe, but every rank ran 1f1b: the label is wrong" in out
    assert "0      L4 l4_node0_gpu0  2.00 ±0.00  4.00 ±0.00       3.00" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_show_json_is_only_json_and_has_everything(hops):
    code, out, _ = hops("trace", "show", "run", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["schedule"] == {
        "labelled": "gpipe",
        "detected": ["1f1b"],
        "mislabelled": True,
        "iterations": 5,
        "iterations_in_other_orders": [],
    }
    assert len(found["audit"]["iterations"]) == 5
    assert found["summary"]["source"] == "measured"
    assert found["dropped_events"] == {}


def test_warm_up_can_be_set(hops):
    _, out, _ = hops("trace", "show", "run", "--warmup", "2", "--json")
    found = json.loads(out)["audit"]
    assert found["warmup_iterations"] == 2
    assert [each["iteration"] for each in found["iterations"]] == [5, 6, 7]


def test_show_draws_the_timeline_under_the_name_of_what_ran(hops, tmp_path):
    code, out, _ = hops("trace", "show", "run", "--picture", "run.svg")
    assert code == 0
    assert "wrote run.svg" in out
    assert (tmp_path / "run.svg").stat().st_size > 10_000


def test_bad_input_is_one_message_with_file_and_line(hops, tmp_path):
    file = tmp_path / "run" / "megatron_trace" / "rank1.jsonl"
    lines = file.read_text().splitlines()
    lines[3] = lines[3][:50]
    file.write_text("\n".join(lines) + "\n")
    code, out, err = hops("trace", "show", "run")
    assert (code, out) == (2, "")
    assert err.startswith("error: run/megatron_trace/rank1.jsonl:4: got '{")
    code, out, _ = hops("trace", "show", "run", "--lenient")
    assert code == 0
    assert "! dropped 1 event: truncated or malformed line" in out


def test_a_measured_run_does_not_differ_from_the_simulation_that_it_was_made_of(hops):
    _, out, _ = hops("trace", "diff", "run", "spec.yaml", "--warmup", "0", "--json")
    found = json.loads(out)
    changes = {term["piece"]: term["change_ms"] for term in found["terms"]}
    assert abs(found["change_ms"]) < 0.2  # the last iteration, which has no host gap, is one of 3 instead of 5
    assert all(abs(change) < 0.2 for change in changes.values())


def test_diff_prints_tables_that_sum_to_the_difference(hops):
    code, out, err = hops("trace", "diff", "run", "spec.yaml", "--picture", "diff.png")
    assert (code, err) == (0, "")
    assert "by cause, on the critical path" in out
    assert "wrote diff.png" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_diff_takes_raw_events_and_a_launch(hops):
    assert hops("trace", "convert", "run", "-o", "events.csv")[0] == 0
    code, out, _ = hops("trace", "diff", "run", "events.csv", "--json")
    assert code == 0
    assert json.loads(out)["change_ms"] == 0
    code, out, _ = hops("trace", "diff", "run", "run/run.yaml")
    assert code == 0
    assert "made (simulated)" in out


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz", "events.parquet"])
def test_converted_events_read_back_as_the_same_trace(hops, tmp_path, name):
    code, out, _ = hops("trace", "convert", "run", "--output", name)
    assert (code, out.split(":")[0]) == (0, f"wrote {name}")
    assert read_trace(tmp_path / name).trace == read_trace(tmp_path / "run").trace


def test_a_chrome_trace_says_what_every_row_says(hops, tmp_path):
    assert hops("trace", "convert", "run", "-o", "run.json")[0] == 0
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    threads = {each["tid"]: each["args"]["name"] for each in events if each.get("name") == "thread_name"}
    trace = read_trace(tmp_path / "run").trace
    columns = (trace.rank, trace.iteration, trace.op, trace.stage, trace.microbatch, trace.start_ns, trace.end_ns)
    rows = [
        (rank, iteration, f"{stage}{Op(op).name}{microbatch}" if stage >= 0 else "optimizer", start, end)
        for rank, iteration, op, stage, microbatch, start, end in zip(*(c.tolist() for c in columns), strict=True)
    ]
    slices = [
        (
            int(threads[each["tid"]].split()[1]),
            each["args"]["iteration"],
            each["name"],
            round(each["ts"] * 1000),
            round((each["ts"] + each["dur"]) * 1000),
        )
        for each in events
        if each["ph"] == "X"
    ]
    assert sorted(slices) == sorted(rows)


def test_converting_to_an_unknown_format_names_the_known_ones(hops):
    code, _, err = hops("trace", "convert", "run", "-o", "run.xml")
    assert code == 2
    assert "expected a name that ends in .csv" in err


def test_importing_a_run_prints_simulated_beside_measured(hops):
    code, out, _ = hops("import", "megatron", "run", "-o", "imported.yaml")
    assert code == 0
    assert "measured ms  simulated ms" in out
    assert "42.92" in out
    _, out, _ = hops("import", "megatron", "run", "-o", "imported.yaml", "--no-compare")
    assert "simulated ms" not in out


def test_show_says_that_a_run_kept_to_a_program_file(hops, tmp_path):
    (tmp_path / "mine.txt").write_text(str(program_from_trace(read_trace(tmp_path / "run").trace)))
    code, out, _ = hops("trace", "show", "run", "--program", "mine.txt")
    assert code == 0
    assert "program     mine.txt in all 5 iterations" in out
    found = json.loads(hops("trace", "show", "run", "--program", "mine.txt", "--json")[1])["program"]
    assert found == {
        "file": "mine.txt", "iterations": 5, "iterations_in_other_orders": [], "first_departure": None
    }  # fmt: skip
    assert json.loads(hops("trace", "show", "run", "--json")[1])["program"] is None


def test_show_marks_where_a_run_left_a_program_file(hops, tmp_path):
    lines = str(program_from_trace(read_trace(tmp_path / "run").trace)).splitlines()
    lines[2] = lines[2].replace("1F1 1B0", "1B0 1F1")
    (tmp_path / "other.txt").write_text("\n".join(lines))
    code, out, _ = hops("trace", "show", "run", "--program", "other.txt")
    assert code == 0
    words = " ".join(out.split())
    where = "iteration 3, rank 1, action 1: ran 1F1, expected 1B0"
    assert f"program other.txt in 0 of 5 iterations; first leaves it at {where}" in words
    assert "rank 1 | 1F0 >1F1< 1B0" in words
    assert f"! another order than other.txt in 3, 4, 5, 6, 7: {where}" in words
    first = json.loads(hops("trace", "show", "run", "--program", "other.txt", "--json")[1])["program"][
        "first_departure"
    ]
    assert (first["rank"], first["position"], first["ran"], first["expected"]) == (1, 1, "1F1", "1B0")


def test_a_program_for_another_pipeline_is_refused(hops, tmp_path):
    (tmp_path / "small.txt").write_text("microbatches 1, rank of stage 0 1\n0F0 0B0\n1F0 1B0\n")
    code, _, err = hops("trace", "show", "run", "--program", "small.txt")
    assert code == 2
    assert "the program has rank of stage [0, 1], but the trace [0, 1, 2]; expected a program for the same" in err


def test_clocks_are_set_back_on_request_and_it_is_said(hops, tmp_path):
    lines = lines_of(simulated(3, 4, 5))
    for line in lines[1]:
        line["start_wall_ns"] += 50_000_000
        line["end_wall_ns"] += 50_000_000
    write_run(tmp_path / "off", lines)
    code, _, err = hops("trace", "show", "off")
    assert code == 2
    assert "clocks contradict causality" in err
    assert "--align-clocks" in err
    code, out, _ = hops("trace", "show", "off", "--align-clocks")
    assert code == 0
    assert "! clock of node1 set back by 50.000 ms" in " ".join(out.split())
    code, _, err = hops("trace", "convert", "off", "-o", "right.csv", "--align-clocks")
    assert code == 0
    assert "set back by 50.000 ms" in err
    code, out, _ = hops("trace", "diff", "off", "right.csv", "--align-clocks", "--json")
    assert abs(json.loads(out)["change_ms"]) < 1e-9
