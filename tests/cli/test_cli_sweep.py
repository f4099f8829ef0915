"""`hops sweep`, as a user runs it."""

import json
import re
import sys

import pytest

SWEEP = """
spec: spec.yaml
axes:
  pipeline.schedule: [gpipe, 1f1b, zb_h1, 1f2b]
  pipeline.microbatches: {from: 4, to: 8, steps: 3}
"""
SPEC = """
pipeline:
  stage_times: {forward: 1 ms, backward: 2 ms}
  microbatches: 4
hardware: {nodes: [{count: 2, devices: [l4]}]}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


def test_it_prints_the_best_and_writes_table_and_picture(command, folder):
    code, out, err = command(
        "sweep", "sweep.yaml", "--jobs", "1", "-o", "out/t.csv", "-o", "t.json", "-p", "heat=map.png"
    )
    assert (code, err) == (0, "")
    assert out.startswith("12 points, 3 without figures\n")
    assert re.search(r"^6 +zb_h1 +4 ", out, flags=re.MULTILINE)
    assert "3 x SpecError: pipeline.schedule: unknown schedule '1f2b'" in out
    assert out.rstrip().endswith("wrote out/t.csv\nwrote t.json\nwrote map.png")
    assert (folder / "out/t.csv").read_text(encoding="utf-8").startswith("number,pipeline.schedule,pipeline.micro")
    assert len(json.loads((folder / "t.json").read_text(encoding="utf-8"))) == 12
    assert (folder / "map.png").stat().st_size > 5_000
    assert (folder / "sweep.sqlite").is_file()


def test_json_and_quiet(command, folder):
    code, out, _ = command("sweep", "sweep.yaml", "--json", "--jobs", "1")
    assert code == 0
    assert [record["pipeline.microbatches"] for record in json.loads(out)] == [4, 6, 8] * 4
    assert command("sweep", "sweep.yaml", "--quiet", "--jobs", "1") == (0, "", "")


def test_set_changes_the_spec_of_all_points(command, folder):
    figures = []
    for extra in ((), ("--set", "pipeline.stage_times.forward=2 ms")):
        _, out, _ = command("sweep", "sweep.yaml", "--json", "--jobs", "1", *extra)
        figures.append(json.loads(out)[0]["iteration_time.mean_ms"])
    assert figures[1] > figures[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.yaml",), "error: nowhere.yaml: cannot be read: there is no such file; expected a sweep\n"),
        (("sweep.yaml", "-o", "t.xls"), "error: --output: got t.xls, expected a name that ends in .csv, .parquet, .js"),
        (("sweep.yaml", "-p", "map.png"), "error: --picture: got 'map.png', expected KIND=FILE, such as heat=map.png"),
        (("sweep.yaml", "-p", "pie=a.png"), "error: --picture: got 'pie', expected one of lines, heat, pareto, para"),
        (("sweep.yaml", "--backend", "slurm"), "error: --backend: got 'slurm', expected processes or ray\n"),
        (("sweep.yaml", "--address", "a:1"), "error: --address is of a Ray cluster: add --backend ray\n"),
        (("sweep.yaml", "--store", "spec.yaml"), "error: cannot use the store spec.yaml: file is not a database;"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(command, folder, arguments, message):
    code, out, err = command("sweep", *arguments, "--jobs", "1")
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_ctrl_c_says_what_is_kept(command, folder, monkeypatch):
    from hops.sweep.work import run_here

    def stop_early(*given):
        for number, results in enumerate(run_here(*given)):
            yield results
            if number == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["hops.sweep.work"], "run_here", stop_early)
    code, _, err = command("sweep", "sweep.yaml", "--jobs", "1")
    assert code == 130
    assert err == "4 of 12 points are kept in sweep.sqlite; the same command goes on from there\n"


def test_progress_is_one_line():
    from hops.cli.sweep import progress_line
    from hops.sweep.run import Progress

    now = Progress(done=1200, failed=3, total=10_000, ran=1000, seconds=2.0)
    assert progress_line(now) == "1,200 of 10,000 points, 3 without figures, 500/s, 17.6 s left"
    assert progress_line(Progress(done=5, failed=0, total=9, ran=0, seconds=0.0)) == "5 of 9 points"
