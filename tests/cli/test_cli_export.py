"""`hops export` as a user meets it, `hops schedule` on what it wrote, and what `hops plan` writes beside its specs."""

import json

SPEC = """\
simulation: {iterations: 1}
pipeline:
  model: {layers: 6, hidden: 512, heads: 8, vocab: 8192}
  sequence_length: 512
  microbatches: 8
  schedule: 1f1b
hardware: {nodes: [{name: a, devices: [h100]}, {name: b, devices: [l4, l4]}], interconnect: ethernet-25}
"""


def test_export_schedule_check_show_and_run_again(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    code, out, err = command("export", "torch", "spec.yaml", "-o", "out")
    assert (code, err) == (0, "")
    assert out.startswith("wrote out/schedule.csv\nwrote out/schedule_with_communication.csv\n")
    for name in ("schedule.csv", "schedule_with_communication.csv"):
        code, out, _ = command("schedule", "check", f"out/{name}")
        assert (code, out) == (
            0,
            f"out/{name}: 48 actions on 3 ranks can run; most microbatches in flight per rank: 3 2 1\n",
        )
    code, by_name, _ = command("schedule", "show", "1f1b", "-p", "3", "-m", "8")
    assert command("schedule", "show", "out/schedule_with_communication.csv")[1] == by_name
    own = "pipeline.schedule={name: program, file: out/schedule.csv}"
    first, second = (
        json.loads(command("run", "spec.yaml", "--json", *more)[1])["iteration_time"] for more in ((), ("--set", own))
    )
    assert first == second


def test_export_in_json_and_refusals(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    code, out, _ = command("export", "program", "spec.yaml", "-o", "out", "--json")
    assert (code, json.loads(out)) == (0, {"files": ["out/program.txt"], "notes": []})
    code, _, err = command("export", "nemo", "spec.yaml", "-o", "out")
    assert (code, err) == (
        2,
        "error: unknown exporter 'nemo': known are megatron, program, torch, torchtitan\n",
    )
    code, _, err = command("export", "megatron", "spec.yaml", "-o", "out", "--set", "pipeline.schedule=zb_h1")
    assert code == 2
    assert "Megatron-LM cannot run the program of zb_h1" in err


def test_plans_come_with_their_exports(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("  schedule: 1f1b\n", ""))
    code, _, err = command("plan", "spec.yaml", "--budget", "0.1s", "--top", "1", "-o", "plans")
    assert (code, err) == (0, "")
    assert (tmp_path / "plans/plan-1/torch/schedule.csv").is_file()
    assert (tmp_path / "plans/plan-1/torchtitan/torchtitan.toml").is_file()
    assert command("export", "torch", "plans", "-o", "again")[0] == 0
    assert (tmp_path / "again/schedule.csv").read_text() == (tmp_path / "plans/plan-1/torch/schedule.csv").read_text()
