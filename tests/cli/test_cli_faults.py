"""`hops faults`, and what `hops run` says and saves of faults."""

import json
import sys

import pytest

from hops.cli.main import main

SPEC = """
simulation: {iterations: 2, seed: 1}
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms, message: 4 MiB}
  microbatches: 4
hardware:
  nodes: [{name: a, devices: [l4]}, {name: b, devices: [l4]}]
  interconnect: ethernet-25
failure:
  enabled: true
  horizon: 1 s
  models:
    - {kind: stop, on: a, at: [3 ms], repair: 5 ms}
    - {kind: slow, on: b, at: [10 ms], repair: 5 ms, factor: 1.5}
"""


@pytest.fixture
def hops(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with spec.yaml; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["hops", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return run


def test_draw_shows_what_breaks_and_saves_it(hops, tmp_path):
    code, out, err = hops("faults", "draw", "spec.yaml", "-o", "plan.json")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "2 faults"
    assert "slow x 1.5  b/0     host b" in out
    assert out.splitlines()[-1] == "wrote plan.json"
    saved = json.loads((tmp_path / "plan.json").read_text())
    assert [fault["target"] for fault in saved["faults"]] == ["a/0", "b/0"]


def test_show_shows_a_saved_plan_as_draw_does(hops):
    drawn = hops("faults", "draw", "spec.yaml", "-o", "plan.json")[1]
    assert hops("faults", "show", "plan.json")[1] == drawn.replace("wrote plan.json\n", "")
    shown = json.loads(hops("faults", "show", "plan.json", "--json")[1])
    assert shown == json.loads(hops("faults", "draw", "spec.yaml", "--json")[1])


def test_only_the_first_faults_are_shown_unless_all_are_asked_for(hops):
    many = "failure.models=[{kind: stop, on: hosts, between: 10 ms, repair: 1 ms}]"
    short = hops("faults", "draw", "spec.yaml", "--set", many)[1]
    whole = hops("faults", "draw", "spec.yaml", "--set", many, "--all")[1]
    assert "... and 160 more (--all shows them)" in short
    assert len(whole.splitlines()) == len(short.splitlines()) + 159


def test_another_seed_draws_another_plan(hops):
    drawn = "failure.models=[{kind: stop, on: hosts, between: {distribution: exponential, mean: 10 ms}, repair: 1 ms}]"
    first, again, other = (
        hops("faults", "draw", "spec.yaml", "--set", drawn, "--seed", seed, "--json")[1] for seed in ("1", "1", "2")
    )
    assert first == again != other
    assert hops("faults", "draw", "spec.yaml", "--set", drawn, "--json")[1] == first  # the spec's own seed


def test_a_plan_that_is_none_is_said_in_one_line(hops):
    assert hops("faults", "show", "spec.yaml")[0] == 2
    assert "is not JSON" in hops("faults", "show", "spec.yaml")[2]
    assert hops("faults", "draw", "spec.yaml", "--set", "failure.models=[]")[1] == "no faults\n"


def test_a_run_says_what_faults_cost_and_saves_what_broke(hops, tmp_path):
    code, out, _ = hops("run", "spec.yaml", "-o", "out")
    assert code == 0
    said = " ".join(out.split())
    assert "faults 2 faults planned, in 2 windows on ranks or between two of them" in said
    assert "1.00 ms of work lost in 1 piece, and done again; 1 message lost and sent again" in said
    assert "devices down or slow for 10.00 ms" in said
    plan = (tmp_path / "out" / "faults.json").read_text()
    hops("faults", "draw", "spec.yaml", "-o", "plan.json")
    assert plan == (tmp_path / "plan.json").read_text()


def test_a_run_without_faults_says_and_saves_nothing_of_them(hops, tmp_path):
    _, out, _ = hops("run", "spec.yaml", "-o", "out", "--set", "failure.enabled=false")
    assert "faults" not in out
    assert not (tmp_path / "out" / "faults.json").exists()


def test_a_saved_plan_replays_in_a_run(hops, tmp_path):
    hops("run", "spec.yaml", "-o", "first")
    replay = ["--set", "failure.models=[]", "--set", "failure.plan=first/faults.json"]
    hops("run", "spec.yaml", "-o", "second", *replay)
    events = [(tmp_path / name / "events.csv").read_bytes() for name in ("first", "second")]
    assert events[0] == events[1]


def test_a_stall_for_ever_is_exit_code_1(hops):
    for_ever = "failure.models=[{kind: stop, on: a, at: [7 ms]}]"
    code, _, err = hops("run", "spec.yaml", "--set", for_ever)
    assert code == 1
    assert "never repaired: stop of a/0 since 7.000 ms (host a)" in err
