"""Traces of Megatron-LM runs, one JSONL file per rank, read line by line into a trace.

The trace holds what ran on the ranks: F, B and the optimizer step. A transfer event is the time that NCCL took to
enqueue a send on the host, which says nothing about the message itself: it is checked and left out
(docs/decisions/0080-measured-messages.md).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hops.build.setup import build
from hops.errors import HopsError, TraceError
from hops.importers.assemble import Origin, assemble, each_once
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import PACKED, EventFilter, Events, numbered_lines, plain_name
from hops.importers.megatron.launch import Launch, read_launch
from hops.importers.megatron.run_folder import read_label
from hops.importers.megatron.spec import spec_text
from hops.importers.megatron.trace_line import BadLineError, Event, RankCoordinates, read_event, read_object, read_place
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.spec.load import loads
from hops.trace.trace import Trace

FOLDER = "megatron_trace"
LAUNCH = "run.yaml"
_FILE = re.compile(r"rank(\d+)\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A Megatron-LM run that was recorded.

    Attributes:
        trace: compute rows; `meta.schedule` is the label the run was given, which need not be what ran.
        launch: from run.yaml, None for a bare trace folder.
        dropped: events that a lenient reader left out, by reason.
        origin_ns: time zero of the trace, in nanoseconds since 1970.
        notes: what was done to the clocks.
    """

    trace: Trace
    launch: Launch | None
    dropped: Mapping[str, int]
    origin_ns: int
    notes: tuple[str, ...]


def read_run(path: Path | str, *, lenient: bool = False, align_clocks: bool = False) -> MeasuredRun:
    """Read a run folder (run.yaml beside megatron_trace/), or a bare folder of rank<r>.jsonl; `.gz` and `.zst`, too.

    Lines are read one by one: memory grows with the events, by less than a third of the size of their text.

    Raises TraceError with file and line at the first fault. If `lenient`, faulty lines are dropped and counted, and
    so are whole iterations that a lost line spoils.
    """
    path = Path(path)
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    launch = read_launch(path) if (path / LAUNCH).is_file() else None
    files = rank_files(folder)
    if launch is not None and len(launch.placed) != len(files):
        raise TraceError(
            f"{folder}: got files of {len(files)} ranks, expected {len(launch.placed)}, the stages of {path / LAUNCH}"
        )
    sieve = EventFilter(lenient=lenient)
    reading = _Reading(files, sieve, launch)
    origin = reading.origin(read_label(path / LAUNCH) if launch is not None else "")
    found = assemble(reading.computed, origin, sieve, align_clocks=align_clocks)
    trace = found.trace
    reading.check_targets()
    if launch is not None and trace.meta.num_microbatches != launch.num_microbatches:
        raise TraceError(
            f"{folder}: got {trace.meta.num_microbatches} microbatches an iteration, expected "
            f"{launch.num_microbatches}, which {path / LAUNCH} launched"
        )
    return MeasuredRun(trace=trace, launch=launch, dropped=sieve.dropped, origin_ns=found.origin_ns, notes=found.notes)


def has_trace(path: Path) -> bool:
    """Whether a run folder holds a trace beside its launch."""
    return (path / FOLDER).is_dir()


def rank_files(folder: Path) -> list[Path]:
    """The file of every rank, in order. Raises TraceError for an empty folder, or a missing or doubled rank."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if match := _FILE.fullmatch(plain_name(path)):
            rank = int(match[1])
            if rank in found:
                raise TraceError(f"{path}: rank {rank} has {found[rank].name} as well, expected one file: delete one")
            found[rank] = path
    if not found:
        endings = ", ".join(("rank0.jsonl", *(f"rank0.jsonl{packing}" for packing in PACKED)))
        raise TraceError(f"{folder}: no trace in it: expected a file per rank, such as {endings}")
    missing = next(rank for rank in range(len(found) + 1) if rank not in found)
    if missing < len(found):
        raise TraceError(
            f"{folder}: rank{missing}.jsonl is missing, but rank{max(found)}.jsonl is there; expected ranks from 0 "
            "on without a gap: copy the file from its host"
        )
    return [found[rank] for rank in range(len(found))]


class _Reading:
    """Events of all files: what was computed, and what was sent where."""

    def __init__(self, files: list[Path], sieve: EventFilter, launch: Launch | None) -> None:
        self._files, self._sieve, self._launch = files, sieve, launch
        self.computed = Events(files)
        self._targets: dict[tuple[int, int], tuple[str, str]] = {}  # (stage, op) -> device, and file:line that says so
        self._places = [self._read(rank, file) for rank, file in enumerate(files)]
        self._check_places()

    def origin(self, label: str) -> Origin:
        """What the trace says of its devices and hosts; in run.yaml's words where there is one."""
        if self._launch is None:
            devices, hosts = [each.device for each in self._places], [each.host for each in self._places]
        else:
            devices = [f"{each.device.upper()} {each.id}" for each in self._launch.placed]
            hosts = [each.host for each in self._launch.placed]
        return Origin(schedule=label, devices=tuple(devices), hosts=tuple(hosts))

    def _read(self, rank: int, file: Path) -> RankCoordinates:
        place: RankCoordinates | None = None
        sent = Events(self._files)
        for number, text in numbered_lines(file):
            if not text.strip():
                continue
            try:
                line = read_object(text)
                place = place or self._place(rank, file, line)
                event = read_event(line, place)
                self._add(event, place, number, sent)
            except BadLineError as error:
                self._sieve.drop(error.reason, f"{file}:{number}: {error}")
        if place is None:
            raise TraceError(f"{file}: no event in it, expected one JSON object a line: the rank recorded nothing")
        each_once(sent, self._sieve)
        return place

    def _place(self, rank: int, file: Path, line: Mapping[str, Any]) -> RankCoordinates:
        """What the file's first line says of its rank, which must be what its name and run.yaml say."""
        place = read_place(line)
        if place.rank != rank:
            raise BadLineError("wrong rank", f"rank: got {place.rank}, expected {rank}, as the file's name has it")
        if self._launch is not None and place.device != self._launch.placed[rank].id:
            raise BadLineError(
                "wrong device_id",
                f"device_id: got {place.device!r}, expected {self._launch.placed[rank].id!r}, where {LAUNCH} places "
                f"stage {rank}",
            )
        return place

    def _add(self, event: Event, place: RankCoordinates, number: int, sent: Events) -> None:
        events = self.computed
        if event.target:
            events = sent
            self._check_same_target(event, place.rank, number)
        microbatch = event.microbatch if event.op.is_action else -1  # Megatron gives the step the last one's number
        events.add(
            event.iteration, place.rank, event.stage, event.op, microbatch, place.rank, number,
            event.start_ns, event.end_ns,
        )  # fmt: skip

    def _check_same_target(self, event: Event, rank: int, number: int) -> None:
        """What a stage sends always goes to the same device."""
        key = (event.stage, event.op)
        if key not in self._targets:
            self._targets[key] = (event.target, f"{self._files[rank]}:{number}")
        target, first = self._targets[key]
        if event.target != target:
            what = f"dst_device: got {event.target!r}, expected {target!r} as at {first}"
            raise BadLineError("wrong dst_device", what)

    def _check_places(self) -> None:
        devices = [place.device for place in self._places]
        for rank, device in enumerate(devices):
            if device in devices[:rank]:
                raise TraceError(
                    f"{self._files[rank]}: device_id {device!r} is that of rank {devices.index(device)}, expected a "
                    "device for each rank: one file is a copy of the other"
                )

    def check_targets(self) -> None:
        """Activations go to the device of the next stage, gradients to that of the stage before."""
        stage, rank = (self.computed.column(name) for name in ("stage", "rank"))
        stages, first = np.unique(stage, return_index=True)
        owner = dict(zip(stages.tolist(), rank[first].tolist(), strict=True))
        for (sender, op), (target, where) in self._targets.items():
            receiver = sender + (1 if op == Op.F else -1)
            expected = self._places[owner[receiver]].device if receiver in owner else "no transfer"
            if target != expected:
                raise TraceError(
                    f"{where}: dst_device: got {target!r}, expected {expected!r} for stage {receiver}: a rank is "
                    "missing, or the files are of different runs"
                )


@IMPORTERS.register("megatron")
class Megatron(Importer):
    """A run folder (run.yaml beside megatron_trace/), or a folder of rank<r>.jsonl."""

    def recognises(self, path: Path) -> bool:
        if not path.is_dir():
            return False
        return (path / FOLDER).is_dir() or any(plain_name(file).endswith(".jsonl") for file in path.iterdir())

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        run = read_run(path, lenient=lenient, align_clocks=align_clocks)
        facts = RunFacts() if run.launch is None else launch_facts(run.launch)
        return Imported(trace=run.trace, facts=facts, dropped=run.dropped, notes=run.notes)


def launch_facts(launch: Launch) -> RunFacts:
    """What the launch says of sizes, and of peak rates where the catalog has the devices; memory was not measured."""
    sizes = RunFacts(
        samples_per_microbatch=launch.micro_batch_size,
        tokens_per_microbatch=launch.micro_batch_size * launch.seq_length,
        data_parallel=launch.data_parallel,
    )
    try:
        expected = build(loads(spec_text(launch), name=launch.name)).facts
    except HopsError:  # a launch that HOPS cannot simulate can still be read
        return sizes
    return replace(sizes, flop_per_microbatch=expected.flop_per_microbatch, peak_flop_per_s=expected.peak_flop_per_s)
