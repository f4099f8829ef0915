"""`hops schedule search` and `hops bench hetero16`: certificates that hold, tables that add up, pointed errors."""

import json

import pytest

from hops.diagnose.versus import HETERO16, read_hetero16
from hops.program.lowering import check
from hops.program.program import Program
from hops.timing.examples import read_profiles
from hops.timing.longest_path import evaluate

PIPELINE = {
    "name": "one",
    "microbatches": 4,
    "forward_ms": [10.0, 12.0],
    "input_backward_ms": [10.0, 12.0],
    "weight_backward_ms": [8.0, 9.0],
    "fused_backward_ms": [17.0, 20.0],
    "hop_ms": [0.5],
    "activation_bytes": [4, 4],
    "kept_for_weight_bytes": [2, 2],
    "memory_bytes": [8, None],
}


@pytest.fixture
def hops(command):
    return command


def test_each_pipeline_is_one_object_a_line_whose_program_has_the_makespan_it_claims(hops, tmp_path):
    lines = [json.dumps({**PIPELINE, "name": name}) for name in ("one", "two")]
    (tmp_path / "two.jsonl").write_text("\n".join(lines))
    code, out, _ = hops("schedule", "search", "two.jsonl", "--budget", "20ms", "--json")
    assert code == 0
    reports = [json.loads(line) for line in out.splitlines()]
    assert [report["name"] for report in reports] == ["one", "two"]
    for report, named in zip(reports, read_profiles(tmp_path / "two.jsonl"), strict=True):
        head = "microbatches 4, rank of stage 0 1"
        program = Program.parse("\n".join([head, *(" ".join(row) for row in report["program"])]))
        check(program)
        found = evaluate(program, named.profile)
        assert found.makespan_ns / 1e6 == report["makespan_ms"]
        assert list(found.peak_bytes) == report["peak_bytes"]
        assert found.peak_bytes[0] <= 8
        assert report["bound_ms"] <= report["makespan_ms"]
        assert report["makespan_ms"] <= min(each for each in report["builtins_ms"].values() if each is not None)
        assert report["search_ms"] > 0


def test_the_same_call_gives_the_same_program(hops, tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(PIPELINE))
    first, second = (json.loads(hops("schedule", "search", "one.json", "--json")[1]) for _ in range(2))
    assert {**first, "search_ms": 0} == {**second, "search_ms": 0}


def test_the_table_names_pipelines_and_gaps(hops, tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(PIPELINE))
    code, out, _ = hops("schedule", "search", "one.json")
    assert code == 0
    assert "one" in out
    assert "mean gap" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"microbatches": 0}, "one.json:1:33: microbatches"),
        ({"forward_ms": [-1.0, 1.0]}, "one.json:1:51: forward_ms[0]"),
        ({"hop_ms": []}, "one.json:1:1: hop_ms"),
        ({"memory_bytes": [3, None]}, "one.json:1:1: memory_bytes[0]"),
    ],
)
def test_a_bad_profile_is_a_pointed_error(hops, tmp_path, change, message):
    (tmp_path / "one.json").write_text(json.dumps({**PIPELINE, **change}))
    code, out, err = hops("schedule", "search", "one.json", "--json")
    assert code in {1, 2}
    assert out == ""
    assert message in err


@pytest.mark.parametrize("arguments", [("search", "missing.json"), ("search", "one.json", "--budget", "300")])
def test_wrong_usage_is_said(hops, tmp_path, arguments):
    (tmp_path / "one.json").write_text(json.dumps(PIPELINE))
    code, _, err = hops("schedule", *arguments)
    assert code == 2
    assert err.startswith("error: ")


def test_bench_hetero16_compares_both_cost_models(hops, tmp_path):
    pipelines = json.loads(HETERO16.read_text())["pipelines"]
    few = dict(list(pipelines.items())[5:7])
    (tmp_path / "few.json").write_text(json.dumps({"pipelines": few}))
    code, out, _ = hops("bench", "hetero16", "few.json", "--budget", "50 ms", "--json")
    found = json.loads(out)
    assert code == 0
    assert list(found) == ["as given", "B := I + W"]
    for costs in found.values():
        assert [row["name"] for row in costs["pipelines"]] == list(few)
        for row in costs["pipelines"]:
            planned = row["planned_ms"]
            assert row["bound_ms"] <= planned["hops_hetero"] <= min(planned["1f1b"], planned["zero_bubble"])
        assert {report["rival"] for report in costs["against"]} == {"1f1b", "zero_bubble", "zb_or_1f1b"}
    table = hops("bench", "hetero16", "few.json", "--budget", "50 ms")[1]
    assert all(name in table for name in few)


def test_the_16_pipelines_are_shipped():
    assert len(read_hetero16(HETERO16)) == 16
