"""`hops compare` over schedules with parameters, specs, one more key and many seeds; `hops run --samples`."""

import json

import pytest

SPEC = """
simulation: {iterations: 1}
pipeline:
  stage_times: {forward: 1 ms, backward: 2 ms, message: 1 MiB, weights: 1 GiB}
  microbatches: 8
  jitter: {distribution: lognormal, mean: 1.0, std: 0.05}
hardware: {nodes: [{count: 2, devices: [l4]}], interconnect: ethernet-25}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(SPEC.replace("forward: 1 ms", "forward: 2 ms"), encoding="utf-8")
    return tmp_path


def names(out):
    return list(json.loads(out)["runs"])


def test_schedules_take_parameters(command, folder):
    code, out, _ = command("compare", "a.yaml", "-s", "1f1b,interleaved_1f1b:chunks=4,interleaved_1f1b", "--json")
    assert code == 0
    assert names(out) == ["1f1b", "interleaved_1f1b:chunks=4", "interleaved_1f1b"]
    runs = json.loads(out)["runs"]
    assert runs["interleaved_1f1b:chunks=4"]["num_stages"] == 8
    assert runs["interleaved_1f1b"]["num_stages"] == 4


def test_several_specs_keep_their_own_schedules(command, folder):
    code, out, _ = command("compare", "a.yaml", "b.yaml", "--json")
    assert (code, names(out)) == (0, ["a", "b"])
    runs = json.loads(out)["runs"]
    assert runs["b"]["iteration_time"]["mean_ms"] > runs["a"]["iteration_time"]["mean_ms"]
    _, out, _ = command("compare", "a.yaml", "b.yaml", "--json", "-s", "1f1b,gpipe")
    assert names(out) == ["a 1f1b", "a gpipe", "b 1f1b", "b gpipe"]


def test_one_more_key_varies(command, folder):
    code, out, _ = command("compare", "a.yaml", "--vary", "pipeline.microbatches=4,8", "--json")
    assert (code, names(out)) == (0, ["microbatches=4", "microbatches=8"])
    assert [each["num_microbatches"] for each in json.loads(out)["runs"].values()] == [4, 8]


def test_samples_of_all_have_the_same_seeds(command, folder):
    arguments = ("compare", "a.yaml", "-s", "1f1b,gpipe,zb_h1", "--samples", "24", "--jobs", "1")
    code, out, _ = command(*arguments, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["runs"]["1f1b"]["seeds"] == found["runs"]["gpipe"]["seeds"] == list(range(24))
    first, other = (found["runs"][name]["iteration_ms"] for name in ("1f1b", "zb_h1"))
    difference = sum(b - a for a, b in zip(first, other, strict=True)) / 24
    assert found["differences_ms"]["zb_h1"]["value"] == pytest.approx(difference)
    _, out, _ = command(*arguments)
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["1f1b", "gpipe", "zb_h1"]
    assert "24 samples each, of the same seeds" in " ".join(out.split())


def test_run_with_samples_says_spreads_and_probabilities(command, folder):
    code, out, _ = command("run", "a.yaml", "--samples", "40", "--deadline", "1 ms", "--jobs", "1")
    assert code == 0
    assert out.startswith("40 samples\n")
    assert "longer than 1.00 ms: 100.0 % (91.2 % to 100.0 %)" in out
    assert "out of memory: 0.0 % (0.0 % to 8.8 %)" in out
    code, out, _ = command("run", "a.yaml", "--samples", "1000", "--precision", "0.02", "--json", "--jobs", "1")
    assert json.loads(out)["samples"] < 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "a.yaml", "-s", "1f1b:chunks"), "error: got the schedule '1f1b:chunks', expected NAME:PARAMETER"),
        (("compare", "a.yaml", "-s", "1f2b"), "error: unknown schedule '1f2b'"),
        (("compare", "a.yaml", "-s", "1f1b,1f1b"), "error: --schedules: got '1f1b,1f1b', expected different names"),
        (("compare", "a.yaml", "a.yaml"), "error: got a spec twice, expected different files\n"),
        (("compare", "a.yaml", "--vary", "x"), "error: --vary: got 'x', expected KEY=A,B such as hardware.inter"),
        (("run", "a.yaml", "--samples", "1"), "error: --samples: got 1, expected at least 2"),
        (("run", "a.yaml", "--deadline", "1 s"), "error: --deadline and --precision are of many samples: add --sam"),
        (("run", "a.yaml", "--samples", "3", "-o", "x"), "error: --output is of one run, and --samples has many"),
        (("compare", "a.yaml", "--samples", "3", "-p", "a.png"), "error: --picture is of one run each, and --samples"),
    ],
)
def test_what_is_wrong_is_said(command, folder, arguments, message):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)
