"""What a run folder says before the run: run.yaml and link_bench. This module opens no trace."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from hops.build.setup import LinkBenchmark, RunInputs
from hops.decode.decode import Where, decode_json, opened, read_text
from hops.decode.quantities import Positive
from hops.errors import TraceError
from hops.importers.megatron.launch import read_launch
from hops.importers.megatron.spec import spec_text
from hops.spec.load import loads

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkLine:
    """One measurement; more keys are let be."""

    size_mb: Positive
    p50_ms: Positive


def read_benchmark(file: Path) -> LinkBenchmark:
    """One pair of ranks: JSON lines, each a size in MiB and a median in ms at one of the ends; other lines are logs."""
    match = _PAIR.fullmatch(file.name)
    if match is None:
        raise TraceError(f"{file}: got this name, expected pair_<rank>_<rank>.jsonl")
    medians: dict[float, list[float]] = {}
    where = Where(name=str(file), error=TraceError, strict=False)
    lines = read_text(file, error=TraceError, expected="JSON lines with size_mb and p50_ms").splitlines()
    for number, text in enumerate(lines, start=1):
        if not text.startswith("{"):
            continue
        line = decode_json(BenchmarkLine, text, replace(where, line=number))
        medians.setdefault(line.size_mb, []).append(line.p50_ms)
    if not medians:
        raise TraceError(f"{file}: no measurement in it, expected JSON lines with size_mb and p50_ms")
    sizes = sorted(medians)
    return LinkBenchmark(
        ranks=(int(match[1]), int(match[2])),
        sizes_bytes=tuple(size * _MIB for size in sizes),
        seconds=tuple(fmean(medians[size]) * 1e-3 for size in sizes),
    )


_ARGUMENTS = re.compile(r"^arguments:", re.MULTILINE)


def is_launch(file: Path) -> bool:
    """Whether a YAML file is a Megatron-LM launch and no spec of ours: it has `arguments`."""
    try:
        return _ARGUMENTS.search(file.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read_label(file: Path) -> str:
    """`labelled_schedule` of a run.yaml that `read_launch` accepts, "" if it has none."""
    data, _ = opened(file, expected="a run.yaml")
    return str(data["labelled_schedule"] or "") if "labelled_schedule" in data else ""
