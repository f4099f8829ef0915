"""The command line as a user meets it: what it prints, writes and refuses, and with which exit code."""

import io
import json
import os
import re
import subprocess
import sys

import pytest

SPEC = """
simulation: {iterations: 2}
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms, message: 1 MiB}
  microbatches: 4
hardware:
  nodes: [{devices: [l4, l4]}]
"""


@pytest.fixture
def hops(command, monkeypatch, tmp_path):
    """The command line beside a small spec, 100 columns wide."""
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return command


def test_run_prints_a_summary(hops):
    code, out, err = hops("run", "spec.yaml")
    assert (code, err) == (0, "")
    assert "1f1b (simulated): 2 ranks, 2 stages, 4 microbatches" in out


def test_run_json_is_only_json(hops):
    code, out, _ = hops("run", "spec.yaml", "--json", "--set", "pipeline.microbatches=8")
    summary = json.loads(out)
    assert code == 0
    assert summary["num_microbatches"] == 8
    assert summary["iteration_time"]["mean_ms"] > (8 + 1) * 6


def test_progress_leaves_nothing_in_files(hops, monkeypatch):
    """A long run whose errors go to a file: the bar is for those who watch a terminal."""
    monkeypatch.setattr("hops.cli.console.PATIENCE_S", 0.0)
    code, _, err = hops("run", "spec.yaml")
    assert (code, err) == (0, "")


def test_run_quiet_prints_nothing(hops):
    assert hops("run", "spec.yaml", "--quiet") == (0, "", "")


def test_run_writes_everything_into_a_folder(hops, tmp_path):
    _, out, _ = hops("run", "spec.yaml", "-o", "out")
    names = {"summary.json", "events.csv", "trace.json.gz", "timeline.png", "dashboard.png", "report.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert all(f"wrote out/{name}" in out for name in names)
    assert json.loads((tmp_path / "out/summary.json").read_text())["format"] == "hops-summary/1"


@pytest.mark.parametrize("name", ["[/red]", "[bold]", ":smile:"])
def test_names_are_printed_as_they_are(hops, tmp_path, name):
    """What looks like a style of rich is none: it neither vanishes nor ends in a traceback."""
    (tmp_path / "spec.yaml").write_text(SPEC.replace("{devices: [l4, l4]}", f'{{name: "{name}", devices: [l4, l4]}}'))
    code, out, _ = hops("run", "spec.yaml", "--set", f"output.events=out{name}x/events.csv")
    assert code == 0
    assert f"l4 {name}/1" in out
    assert f"wrote out{name}x/events.csv" in out
    assert f"l4 {name}/1" in hops("trace", "show", f"out{name}x/events.csv")[1]


def test_paths_stay_in_one_piece_on_narrow_terminals(hops):
    folder = "a-folder-with-a-name/that-is-longer/than-the-terminal-is-wide/because-somebody/keeps-many-runs-apart"
    assert (
        f"wrote {folder}/summary.json\n"
        in hops("run", "spec.yaml", "--set", f"output.summary={folder}/summary.json")[1]
    )


def test_run_writes_what_the_spec_names(hops, tmp_path):
    (tmp_path / "spec.yaml").write_text(
        SPEC
        + "output: {summary: a/s.json, events: a/e.csv.gz, trace: a/t.json.gz, timeline: a/t.svg, dashboard: a/d.png}\n"
    )
    assert hops("run", "spec.yaml")[0] == 0
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "d.png",
        "e.csv.gz",
        "s.json",
        "t.json.gz",
        "t.svg",
    ]


def test_same_seed_same_bytes_across_processes_and_hash_seeds(tmp_path):
    (tmp_path / "spec.yaml").write_text(
        SPEC.replace("  microbatches: 4", "  microbatches: 4\n  jitter: {distribution: lognormal, mean: 1, std: 0.1}")
    )
    names = {"summary": "s.json", "events": "e.csv", "trace": "t.json", "timeline": "t.png"}
    outputs = []
    for hash_seed in ("0", "1"):
        folder = tmp_path / f"out{hash_seed}"
        keys = [part for key, name in names.items() for part in ("--set", f"output.{key}={folder / name}")]
        command = [sys.executable, "-m", "hops", "run", "spec.yaml", "-q", *keys]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True)
        outputs.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert set(outputs[0]) == set(names.values())
    assert outputs[0] == outputs[1]


def test_a_wrong_spec_is_a_message_with_its_place_and_exit_code_2(hops, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("microbatches: 4", "microbatchs: 4"))
    code, out, err = hops("run", "spec.yaml")
    assert (code, out) == (2, "")
    assert "\nspec.yaml:5:3: pipeline.microbatchs" in err
    assert "did you mean microbatches?" in err


def test_a_plan_that_does_not_fit_is_exit_code_1_and_says_what_it_needs(hops, tmp_path):
    (tmp_path / "spec.yaml").write_text(
        SPEC.replace("message: 1 MiB", "message: 1 MiB, weights: 19 GiB, activation: 3 GiB")
    )
    code, _, err = hops("run", "spec.yaml")
    assert code == 1
    assert "rank 0 (l4 node0/0) needs 25.0 GiB of 22.5 GiB: weights 19.0, 2 microbatches in flight 6.0" in err
    assert "rank 1" not in err


def test_a_stall_is_exit_code_1(hops):
    code, _, err = hops("run", "spec.yaml", "--set", "pipeline.p2p=blocking")
    assert code == 1
    assert "rank 0: waits to send the output of 0F1 to rank 1" in err


def test_compare_puts_schedules_side_by_side(hops, tmp_path):
    code, out, _ = hops("compare", "spec.yaml", "--schedules", "gpipe,1f1b,zb_h1", "-p", "all.png")
    assert code == 0
    assert all(name in out for name in ("gpipe", "1f1b", "zb_h1", "wrote all.png"))
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


def test_compare_lists_what_cannot_run_with_the_reason(hops):
    code, out, _ = hops("compare", "spec.yaml", "-s", "1f1b,dualpipe_v", "--set", "pipeline.microbatches=2", "--json")
    found = json.loads(out)
    assert code == 0
    assert list(found["runs"]) == ["1f1b"]
    assert found["refused"]["dualpipe_v"].startswith("dualpipe_v: ")


def test_compare_answers_no_if_nothing_can_run(hops):
    code, _, err = hops("compare", "spec.yaml", "-s", "1f1b,gpipe", "--set", "pipeline.stage_times.weights=30 GiB")
    assert code == 1
    assert "none of the schedules can run" in err


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        ("", "expected different names separated by commas"),
        ("1f1b,1f1b", "expected different names separated by commas"),
        ("1f1b,zb_h3", "unknown schedule 'zb_h3': did you mean 'zb_h"),
    ],
)
def test_compare_refuses_bad_lists(hops, schedules, message):
    """A name that nobody knows is wrong usage, even if the others could run."""
    code, out, err = hops("compare", "spec.yaml", "-s", schedules)
    assert (code, out) == (2, "")
    assert message in err


def test_schedule_show_fits_the_terminal_and_explains_its_letters(hops, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("zb_h1", "interleaved_1f1b"):
        out = hops("schedule", "show", name)[1]
        assert max(map(len, out.splitlines())) <= 80
        assert "I and W its halves" in out
        assert ("second chunk" in out) == (name == "interleaved_1f1b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("interleaved_1f1b", "--set", "chunks=1"), "error: chunks must be"),
        (("zb_h1", "--set", "chunk=1"), "error: chunk: unknown parameter of the schedule zb_h1, it takes none"),
    ],
)
def test_schedule_show_says_what_is_wrong_with_parameters(hops, arguments, message):
    code, out, err = hops("schedule", "show", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_compare_takes_all_schedules_that_fit_and_says_why_others_do_not(hops):
    out = hops("compare", "spec.yaml", "-s", "all", "--json", "--set", "pipeline.microbatches=5")[1]
    found = json.loads(out)
    assert {"1f1b", "zb_v", "hops_hetero", "looped_bfs"} <= set(found["runs"])
    assert set(found["runs"]).isdisjoint(found["refused"])
    assert found["refused"]["chimera"].startswith("chimera: microbatches must be an even number")
    assert found["refused"]["program"].startswith("program: it needs a file")


def test_the_list_of_schedules_has_figures_for_the_numbers_asked_for(hops):
    rows = {row["name"]: row for row in json.loads(hops("list", "schedules", "-p", "2", "-m", "6", "--json")[1])}
    assert rows["1f1b"]["bubble_fraction"] == pytest.approx(3 / 21)
    assert rows["dualpipe"]["copies"] == 2
    out = hops("list", "schedules", "-p", "2", "-m", "6")[1]
    assert "Needs: p and m even, m at least 2 p." in " ".join(out.split())
    assert "2 ranks, 6 microbatches" in out


@pytest.mark.parametrize("what", ["devices", "links", "models", "schedules"])
def test_lists_fit_80_columns_without_cutting_names(hops, monkeypatch, what):
    monkeypatch.setenv("COLUMNS", "80")
    out = hops("list", what)[1]
    assert max(map(len, out.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    assert "None" not in out


def test_devices_without_bf16_show_their_fp16_rate(hops):
    rows = {line.split()[0]: line for line in hops("list", "devices")[1].splitlines() if line.strip()}
    assert "fp16 65" in rows["t4"]
    assert "fp16 125" in rows["v100-sxm-32"]


@pytest.mark.parametrize("what", ["devices", "links", "models", "schedules"])
def test_lists_are_tables_and_json(hops, what):
    code, out, _ = hops("list", what)
    assert code == 0
    assert len(out.splitlines()) > 5
    rows = json.loads(hops("list", what, "--json")[1])
    assert all(row["name"] in out for row in rows)


def test_init_writes_a_starter_that_runs_and_never_overwrites(hops, tmp_path):
    assert hops("init", "mine.yaml")[0] == 0
    code, _, err = hops("init", "mine.yaml")
    assert code == 2
    assert "mine.yaml exists already" in err
    assert hops("init", "mine.yaml", "--force")[0] == 0
    assert hops("run", "mine.yaml", "-q")[0] == 0


def test_show_prints_a_spec_that_runs_the_same(hops, tmp_path):
    shown = hops("show", "spec.yaml")[1]
    assert "synchronized: true" in shown
    (tmp_path / "shown.yaml").write_text(shown)
    assert hops("run", "shown.yaml", "--json")[1] == hops("run", "spec.yaml", "--json")[1]
    assert json.loads(hops("show", "spec.yaml", "--json")[1])["simulation"]["iterations"] == 2


def test_show_says_beside_open_values_what_they_come_out_as(hops, tmp_path):
    (tmp_path / "open.yaml").write_text(
        "pipeline: {model: gpt2-medium, microbatches: 4, partition: balanced}\n"
        "hardware: {nodes: [{count: 2, devices: [l4]}, {devices: [{type: t4, memory: 12 GiB}]}]}\n"
        "optimizer: {enabled: false}\n"
    )
    shown = hops("show", "open.yaml", "--set", "pipeline.precision=fp16")[1].splitlines()
    assert sum("memory: null # 22.5 GiB" in line for line in shown) == 1  # once per entry, not per host
    assert any("memory: 12 GiB" in line and "#" not in line for line in shown)
    assert any("peak: null # 65 TFLOP/s" in line for line in shown)
    assert any("nic: null # ethernet-25" in line for line in shown)
    (layers,) = [line for line in shown if "partition: balanced # [" in line]
    stated = layers.split("# ")[1]
    runs = [
        hops("run", "open.yaml", "--json", "--set", "pipeline.precision=fp16", "--set", f"pipeline.partition={each}")[1]
        for each in ("balanced", stated)
    ]
    assert runs[0] == runs[1]


def test_python_dash_m_is_the_same_command():
    said = subprocess.run([sys.executable, "-m", "hops", "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"hops [\d.]+( \([0-9a-f]{12}\+?\))?\n", said.stdout)


def test_without_arguments_it_shows_four_commands_for_four_wishes(hops):
    code, out, err = hops()
    assert (code, err) == (0, "")
    wishes = [line for line in out.splitlines() if line.startswith("  hops ")]
    assert [line.split()[1] for line in wishes] == ["init", "view", "plan", "trace"]
    assert all(len(line) <= 80 for line in out.splitlines())


def test_schema_is_a_json_schema(hops):
    assert json.loads(hops("schema")[1])["$schema"].startswith("https://json-schema.org/")


def test_schedule_show_prints_a_grid_and_a_program_that_checks(hops, tmp_path):
    code, out, _ = hops("schedule", "show", "1f1b", "--ranks", "2", "-m", "3")
    assert code == 0
    assert "rank 0" in out
    program = hops("schedule", "show", "interleaved_1f1b", "-p", "2", "-m", "4", "--set", "chunks=2", "--program")[1]
    (tmp_path / "mine.txt").write_text(program)
    code, out, _ = hops("schedule", "check", "mine.txt")
    assert code == 0
    assert "32 actions on 2 ranks can run" in out
    assert json.loads(hops("schedule", "check", "mine.txt", "--json")[1])["actions"] == 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("0B1", ""), "0B1"),
        (("0F0 0F1", "0B0 0F0 0F1"), "0B0"),
        (("rank of stage 0 1", "rank of stage 0 7"), "rank"),
    ],
)
def test_schedule_check_marks_the_fault(hops, tmp_path, change, message):
    program = hops("schedule", "show", "1f1b", "-p", "2", "-m", "2", "--program")[1]
    (tmp_path / "bad.txt").write_text(program.replace(*change))
    code, _, err = hops("schedule", "check", "bad.txt")
    assert code == 2
    assert message in err


def test_a_program_that_would_stall_is_the_answer_no(hops, tmp_path):
    (tmp_path / "stall.txt").write_text("microbatches 2, rank of stage 0 1\n0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n")
    code, _, err = hops("schedule", "check", "stall.txt")
    assert code == 1
    assert "stall.txt: the program deadlocks" in err


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("run", "spec.yaml", "--json", "out.json"), "out.json"),
        (("run", "--json", "out.json", "spec.yaml"), "out.json"),
        (("run", "spec.yaml", "--json=other"), "other"),
        (("list", "devices", "--json", "out.json"), "out.json"),
    ],
)
def test_json_goes_to_a_file_or_to_the_screen(hops, tmp_path, arguments, file):
    code, out, err = hops(*arguments)
    assert (code, out, err) == (0, "", f"wrote {file}\n")
    plain = [each for each in arguments if not each.endswith("out.json") and "=" not in each]
    printed = hops(*plain, *([] if "--json" in plain else ["--json"]))[1]
    assert (tmp_path / file).read_text() == printed


def test_what_json_is_followed_by_may_be_the_input(hops, tmp_path):
    """A run as JSON that the command needs is never taken as the place to write to."""
    (tmp_path / "spec.json").write_text((tmp_path / "spec.yaml").read_text())
    before = (tmp_path / "spec.json").read_text()
    code, out, _ = hops("run", "--json", "spec.json")
    assert code == 0
    assert json.loads(out)["source"] == "simulated"
    assert (tmp_path / "spec.json").read_text() == before


def test_a_spec_comes_from_standard_input_too(hops, monkeypatch, tmp_path):
    text = (tmp_path / "spec.yaml").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert hops("run", "-", "--json")[1] == hops("run", "spec.yaml", "--json")[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"pipeline: 3")))
    code, _, err = hops("run", "-")
    assert code == 2
    assert err.startswith("<stdin>:1:")


def test_outputs_are_looked_at_before_the_run(hops, tmp_path, monkeypatch):
    monkeypatch.setattr("hops.build.run.simulate", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    code, _, err = hops("run", "spec.yaml", "-o", "file/folder")
    assert code == 2
    assert "is not a folder" in err


def test_compare_makes_no_folder_unasked(hops, tmp_path):
    code, _, err = hops("compare", "spec.yaml", "-p", "no/where.png")
    assert code == 2
    assert "there is no folder no" in err
    assert not (tmp_path / "no").exists()


def test_import_megatron_takes_flags_and_writes_a_spec(hops, tmp_path):
    flags = (
        "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 "
        "--global-batch-size 4 --vocab-size 1000 --pipeline-model-parallel-size 2 --bf16"
    )
    code, out, _ = hops("import", "megatron", "--flags", flags, "--devices", "h100,l4", "-o", "m.yaml")
    assert code == 0
    assert "next: hops run m.yaml" in out
    assert hops("run", "m.yaml", "-q")[0] == 0
    assert hops("import", "megatron", "--flags", flags, "--devices", "h100,l4")[1].startswith("# ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "missing.yaml"),
        ("run", "."),
        ("run",),
        ("nonsense",),
        ("run", "spec.yaml", "--set", "nonsense"),
        ("run", "spec.yaml", "--set", "pipeline.nonsense=3"),
        ("run", "spec.yaml", "-o", "spec.yaml/folder"),
        ("import", "megatron"),
        ("import", "megatron", "nowhere"),
        ("schedule", "show", "nonsense"),
        ("schedule", "show", "1f1b", "--set", "chunks=2"),
        ("schedule", "show", "1f1b", "--set", "chunks"),
        ("schedule", "show", "interleaved_1f1b", "-p", "4", "-m", "9"),
        ("schedule", "check", "missing.txt"),
        ("schedule", "check", "spec.yaml"),
        ("init", "spec.yaml/spec.yaml"),
    ],
)
def test_wrong_usage_is_a_message_and_exit_code_2(hops, arguments):
    code, out, err = hops(*arguments)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    assert err.strip()


def test_help_imports_no_heavy_library():
    """Help stays quick: start-up time is what is imported."""
    script = (
        "import sys; sys.argv = ['hops', 'run', '--help']\n"
        "from hops.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'matplotlib', 'scipy', 'numba', 'ruamel'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
