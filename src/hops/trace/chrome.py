"""A trace as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per host; per rank one thread for what it computes and one for communication (more if messages overlap);
flow arrows from the action that sends through its message to the action that receives; counters as given. Format:
"Trace Event Format", Google, 2016 (times in microseconds).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hops.files import atomic_write
from hops.program.action import Op
from hops.trace.order import producer_rows
from hops.trace.trace import Stream, Trace

_GROUPS = {
    Stream.COMPUTE: 0,
    Stream.HOST: 0,
    Stream.MESSAGE: 1,
    Stream.COLLECTIVE: 1,
    Stream.FAULT: 2,
    Stream.LOST: 2,
}
_GROUP_NAMES = ("", " communication", " faults")
_LANES = 1000  # thread numbers kept free per group of a rank
_NAMES = {
    Op.OPTIMIZER: "optimizer",
    Op.TIED_REDUCE: "tied-embedding all-reduce",
    Op.GRAD_REDUCE: "gradient reduction",
    Op.HOST: "host",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counter:
    """A curve shown under a rank's host: `values[i]` holds from `at_ns[i]` on. Arrays of equal length."""

    rank: int
    name: str
    at_ns: NDArray[np.int64]
    values: NDArray[np.int64]


def write_chrome_trace(trace: Trace, path: Path | str, counters: Sequence[Counter] = ()) -> None:
    """Write the trace for Perfetto; gzipped if the name ends in `.gz`. Raises UsageError if it cannot be written."""
    threads = _threads(trace)
    with atomic_write(Path(path)) as out:
        out.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        out.write(",\n".join(_titles(trace, threads)))
        for events in (_slices(trace, threads), _flows(trace, threads), _counts(trace, counters)):
            out.writelines(f",\n{event}" for event in events)
        out.write("\n]}\n")


def _processes(trace: Trace) -> list[int]:
    """Process number of every rank: the place of its host among the hosts, from 1."""
    hosts = list(dict.fromkeys(trace.meta.hosts))
    return [hosts.index(host) + 1 for host in trace.meta.hosts]


def _threads(trace: Trace) -> list[int]:
    """Thread number of every row, such that rows of one thread do not overlap (slices of a thread must nest).

    Numbers start at 1000, since viewers give thread 0 and the thread numbered as its process a meaning of their own.
    """
    free: dict[int, list[int]] = {}  # first thread of the group -> when each lane becomes free
    threads = []
    rows = zip(trace.rank.tolist(), trace.stream.tolist(), trace.start_ns.tolist(), trace.end_ns.tolist(), strict=True)
    for rank, stream, start, end in rows:
        group = (1 + rank * len(_GROUP_NAMES) + _GROUPS[Stream(stream)]) * _LANES
        lanes = free.setdefault(group, [])
        lane = next((n for n, until in enumerate(lanes) if until <= start), len(lanes))
        lanes[lane : lane + 1] = [end]
        threads.append(group + lane)
    return threads


def _titles(trace: Trace, threads: Sequence[int]) -> Iterator[str]:
    processes = _processes(trace)
    for host, process in sorted(set(zip(trace.meta.hosts, processes, strict=True)), key=lambda pair: pair[1]):
        yield _title("process_name", process, 0, f'"name":{json.dumps(host)}')
        yield _title("process_sort_index", process, 0, f'"sort_index":{process}')
    for thread in sorted(set(threads)):
        place, lane = divmod(thread, _LANES)
        rank, group = divmod(place - 1, len(_GROUP_NAMES))
        name = f"rank {rank} {trace.meta.devices[rank]}{_GROUP_NAMES[group]}{f' {lane + 1}' if lane else ''}"
        yield _title("thread_name", processes[rank], thread, f'"name":{json.dumps(name)}')
        yield _title("thread_sort_index", processes[rank], thread, f'"sort_index":{thread}')


def _title(kind: str, process: int, thread: int, args: str) -> str:
    return f'{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{{args}}}}}'


def _slices(trace: Trace, threads: Sequence[int]) -> Iterator[str]:
    processes = _processes(trace)
    ops = {op.value: (op, op.name.lower() if op in _NAMES else op.name) for op in Op}
    columns = (trace.iteration, trace.rank, trace.stream, trace.stage, trace.op, trace.microbatch, trace.peer)
    rows = zip(*(column.tolist() for column in (*columns, trace.start_ns, trace.end_ns, trace.bytes)), strict=True)
    for thread, (iteration, rank, stream, stage, number, microbatch, peer, start, end, size) in zip(
        threads, rows, strict=True
    ):
        op, category = ops[number]
        name, args = _NAMES.get(op, ""), f'"iteration":{iteration}'
        if stream == Stream.FAULT:
            name = "fault" if peer < 0 else "link fault" if peer == rank else f"link fault to rank {peer}"
            category = "fault"
        elif op.is_action:
            name = f"{stage}{category}{microbatch}"
            args += f',"stage":{stage},"op":"{category}","microbatch":{microbatch}'
        if stream in (Stream.MESSAGE, Stream.LOST) and peer >= 0:
            name, category = f"{name} to rank {peer}", "message"
            args += f',"from_rank":{rank},"to_rank":{peer},"bytes":{size}'
        if stream == Stream.LOST:
            name, category = f"lost: {name}", "lost"
        yield (
            f'{{"ph":"X","name":"{name}","cat":"{category}","pid":{processes[rank]},"tid":{thread},'
            f'"ts":{start / 1000},"dur":{(end - start) / 1000},"args":{{{args}}}}}'
        )


def _flows(trace: Trace, threads: Sequence[int]) -> Iterator[str]:
    """Arrows: out of the action that sends (at its end), through its message, into the action that receives."""
    processes = _processes(trace)
    producer = producer_rows(trace)
    rank, start, end = trace.rank.tolist(), trace.start_ns.tolist(), trace.end_ns.tolist()
    message_of = {
        sender: row for row in np.flatnonzero(trace.stream == Stream.MESSAGE).tolist() if (sender := producer[row]) >= 0
    }
    takes = (producer >= 0) & (trace.stream == Stream.COMPUTE)
    for receiver in np.flatnonzero(takes).tolist():
        sender = int(producer[receiver])
        if rank[sender] == rank[receiver]:
            continue
        steps = [("s", sender, max(start[sender], end[sender] - 1))]
        steps += [("t", message_of[sender], start[message_of[sender]])] if sender in message_of else []
        steps += [("f", receiver, start[receiver])]
        for phase, row, time in steps:
            bind = ',"bp":"e"' if phase == "f" else ""
            yield (
                f'{{"ph":"{phase}","name":"message","cat":"message","id":{sender},"pid":{processes[rank[row]]},'
                f'"tid":{threads[row]},"ts":{time / 1000}{bind}}}'
            )


def _counts(trace: Trace, counters: Sequence[Counter]) -> Iterator[str]:
    processes = _processes(trace)
    for counter in counters:
        name, process = json.dumps(f"rank {counter.rank} {counter.name}"), processes[counter.rank]
        for time, value in zip(counter.at_ns.tolist(), counter.values.tolist(), strict=True):
            yield f'{{"ph":"C","name":{name},"pid":{process},"ts":{time / 1000},"args":{{"value":{value}}}}}'
