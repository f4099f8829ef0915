"""What is known before a run is read from run.yaml and link_bench; a wrong benchmark says file and line."""

import json

import pytest

from hops.errors import TraceError
from hops.importers.megatron.run_folder import read_benchmark

GOOD = [{"size_mb": 4, "p50_ms": 1.2, "rank": 1}, {"size_mb": 1, "p50_ms": 0.3, "rank": 0}]


def written(folder, lines, name="pair_0_1.jsonl"):
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return file


def test_a_benchmark_is_the_mean_of_both_ends_by_rising_size(tmp_path):
    lines = ["NCCL version 2.28", *GOOD, {"size_mb": 1, "p50_ms": 0.5, "rank": 1}]
    found = read_benchmark(written(tmp_path, lines))
    assert found.ranks == (0, 1)
    assert found.sizes_bytes == (2.0**20, 2.0**22)
    assert found.seconds == pytest.approx((0.4e-3, 1.2e-3))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["NCCL version"], "no measurement in it, expected JSON lines with size_mb and p50_ms"),
        ([GOOD[0], "{broken"], ":2:2: is not JSON: "),
        ([{"size_mb": 1}], ":1:1: p50_ms: missing; add it"),
        ([{"size_mb": 1, "p50_ms": -1}], ":1:26: p50_ms: got -1, expected more than 0"),
    ],
)
def test_a_wrong_benchmark_says_file_and_line(tmp_path, lines, message):
    file = written(tmp_path, lines)
    with pytest.raises(TraceError) as error:
        read_benchmark(file)
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


def test_a_benchmark_is_named_by_its_ranks(tmp_path):
    with pytest.raises(TraceError, match=r"expected pair_<rank>_<rank>\.jsonl"):
        read_benchmark(written(tmp_path, GOOD, name="pair_a.jsonl"))
