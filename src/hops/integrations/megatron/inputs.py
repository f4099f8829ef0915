"""What a run folder says before the run: run.yaml and link_bench. This module opens no trace."""

import json
import re
from pathlib import Path
from statistics import fmean

from hops.api.inputs import LinkBenchmark, RunInputs
from hops.config.load import loads
from hops.errors import TraceError
from hops.integrations.megatron.launch import read_launch
from hops.integrations.megatron.spec import spec_text

BENCHMARKS = "link_bench"
_PAIR = re.compile(r"pair_(\d+)_(\d+)\.jsonl")
_MIB = 2**20


def read_inputs(folder: Path) -> RunInputs:
    """The inputs of a run folder. Raises UsageError for its run.yaml, TraceError for its benchmarks."""
    folder = Path(folder)
    launch = read_launch(folder)
    spec = loads(spec_text(launch, iterations=2), name=str(folder / "run.yaml"))
    found = sorted((folder / BENCHMARKS).glob("pair_*.jsonl")) if (folder / BENCHMARKS).is_dir() else []
    benchmarks = tuple(read_benchmark(file) for file in found)
    return RunInputs(name=launch.name, spec=spec, benchmarks=benchmarks)


def read_benchmark(file: Path) -> LinkBenchmark:
    """One pair of ranks: JSON lines, each a size in MiB and a median in ms at one of the ends; other lines are logs."""
    match = _PAIR.fullmatch(file.name)
    if match is None:
        raise TraceError(f"{file}: got this name, expected pair_<rank>_<rank>.jsonl")
    medians: dict[float, list[float]] = {}
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not text.startswith("{"):
            continue
        try:
            line = json.loads(text)
            size, median = float(line["size_mb"]), float(line["p50_ms"])
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"{file}:{number}: expected JSON with size_mb and p50_ms, but got {error!r}") from None
        if not size > 0 or not median > 0:
            raise TraceError(f"{file}:{number}: got size_mb {size} and p50_ms {median}, expected more than 0")
        medians.setdefault(size, []).append(median)
    if not medians:
        raise TraceError(f"{file}: no measurement in it, expected JSON lines with size_mb and p50_ms")
    sizes = sorted(medians)
    return LinkBenchmark(
        ranks=(int(match[1]), int(match[2])),
        sizes_bytes=tuple(size * _MIB for size in sizes),
        seconds=tuple(fmean(medians[size]) * 1e-3 for size in sizes),
    )
