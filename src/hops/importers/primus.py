"""Primus pipeline dumps (pp_vis): a folder with config.json and `pp_rank_<r>.json`, reduced to the pipeline's actions.

Per iteration a rank lists starts and ends of forwards, backwards and weight backwards in ms from the iteration's start
on that rank, in the order in which they ran; `*_minibatch` and `*_chunk` beside them say which microbatch and chunk.
Without them, the n-th is microbatch n of the only chunk. Where weights have times of their own, backwards are I. Equal
intervals of a forward and a backward ran as one. Source: AMD-AGI/Primus fd1eeabb, `tools/visualization/pp_vis`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hops.errors import TraceError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import EventFilter, Events, numbered_lines
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.units import NS_PER_S

CONFIG = "config.json"
_FILE = re.compile(r"pp_rank_(\d{1,6})\.json")
_NS_PER_MS = NS_PER_S // 1000
_KINDS = {"fwd": Op.F, "bwd": Op.B, "wgrad": Op.W}
_EXPECTED = "{iteration: {total, fwd_start, fwd_end, bwd_start, bwd_end, wgrad_start, wgrad_end, ...}}, times in ms"
_GAP_NS = 1_000_000  # between iterations, whose own clocks begin at 0


@IMPORTERS.register("primus")
class Primus(Importer):
    """A folder of one pipeline. Clocks of ranks are taken as they are: each counts from its own start."""

    def recognises(self, path: Path) -> bool:
        return path.is_dir() and (path / CONFIG).is_file() and bool(_files(path))

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        files = _files(path)
        if not files or not (path / CONFIG).is_file():
            raise TraceError(f"{path}: expected {CONFIG} and pp_rank_0.json, pp_rank_1.json, ...")
        ranks = _config(path / CONFIG)
        if len(files) != ranks:
            raise TraceError(f"{path}: got {len(files)} files of ranks, expected the {ranks} of pp_size in {CONFIG}")
        events, runs = Events(files), [_object(file) for file in files]
        numbers = sorted({int(each) for run in runs for each in run if each.isdigit()})
        start = 0
        for iteration, number in enumerate(numbers):
            length = 0
            for rank, (file, run) in enumerate(zip(files, runs, strict=True)):
                if str(number) not in run:
                    raise TraceError(f"{file}: iteration {number} is missing, but other ranks have it")
                length = max(length, _add(events, file, rank, ranks, iteration, run[str(number)], start))
            start += length + _GAP_NS
        if not len(events):
            raise TraceError(f"{path}: no iteration in it, expected {_EXPECTED}")
        sieve = EventFilter(lenient=lenient)
        names = tuple(f"rank {rank}" for rank in range(ranks))
        found = assemble(events, Origin(devices=names, hosts=names), sieve, align_clocks=align_clocks)
        return Imported(trace=found.trace, facts=RunFacts(), dropped=sieve.dropped, notes=found.notes)


def _files(path: Path) -> list[Path]:
    found = [(int(match[1]), file) for file in path.iterdir() if (match := _FILE.fullmatch(file.name))]
    return [file for _, file in sorted(found)] if path.is_dir() else []


def _object(file: Path) -> dict[str, Any]:
    text = "\n".join(line for _, line in numbered_lines(file))
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TraceError(f"{file}: cannot be read as JSON: {error}; expected {_EXPECTED}") from None
    if not isinstance(value, dict):
        raise TraceError(f"{file}: got {text[:40]!r}, expected {_EXPECTED}")
    return value


def _config(file: Path) -> int:
    size = _object(file).get("pp_size")
    if not isinstance(size, int) or size < 1:
        raise TraceError(f"{file}: pp_size: got {size!r}, expected how many ranks the pipeline has")
    return size


def _add(
    events: Events, file: Path, rank: int, ranks: int, iteration: int, run: Mapping[str, Any], start_ns: int
) -> int:
    """Add a rank's iteration; returns its last end in ns from the iteration's start."""
    where = f"{file}: iteration {iteration}"
    spans = {kind: _spans(run, kind, where) for kind in _KINDS}
    split = bool(spans["wgrad"])
    together = {each[2:] for each in spans["fwd"]} & {each[2:] for each in spans["bwd"]}
    last = 0
    for kind, op in _KINDS.items():
        for place, (chunk, microbatch, begin, end) in enumerate(spans[kind], start=1):
            stage = chunk * ranks + rank
            named = Op.I if split and op is Op.B else op
            pair = op is not Op.W and (begin, end) in together
            half = (begin + end) // 2
            first, then = ((begin, half) if op is Op.F else (half, end)) if pair else (begin, end)
            events.add(
                iteration, rank, stage, named, microbatch, rank, place, start_ns + first, start_ns + then, pair=pair
            )
            last = max(last, end)
    return last


def _spans(run: Mapping[str, Any], kind: str, where: str) -> list[tuple[int, int, int, int]]:
    """Chunk, microbatch, start and end (ns) of every action of a kind."""
    starts, ends = (_numbers(run, f"{kind}_{edge}", where) for edge in ("start", "end"))
    microbatches = _numbers(run, f"{kind}_minibatch", where) or list(range(len(starts)))
    chunks = _numbers(run, f"{kind}_chunk", where) or [0] * len(starts)
    if len({len(starts), len(ends), len(microbatches), len(chunks)}) > 1:
        raise TraceError(
            f"{where}: {kind}_start has {len(starts)} values, {kind}_end {len(ends)}, {kind}_minibatch "
            f"{len(microbatches)}, {kind}_chunk {len(chunks)}; expected as many of each"
        )
    return [
        (int(chunk), int(microbatch), round(start * _NS_PER_MS), round(end * _NS_PER_MS))
        for chunk, microbatch, start, end in zip(chunks, microbatches, starts, ends, strict=True)
    ]


def _numbers(run: Mapping[str, Any], key: str, where: str) -> Sequence[float]:
    """A list of numbers; none if the key is not there."""
    if key not in run:
        return []
    values = run[key]
    if not isinstance(values, list) or any(type(each) not in (int, float) or each < 0 for each in values):
        raise TraceError(f"{where}: {key}: got {str(values)[:40]!r}, expected a list of numbers >= 0")
    return values
