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

from hops.files import atomic_bytes
from hops.program.action import Op
from hops.trace.lines import ROWS_AT_ONCE, lines, microseconds, names, numbers, only
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
    with atomic_bytes(Path(path)) as out:
        out.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
        out.write(",\n".join(_titles(trace, threads)).encode())
        for events in (_slices(trace, threads), _flows(trace, threads), _counts(trace, counters)):
            out.writelines(events)
        out.write(b"\n]}\n")


def _processes(trace: Trace) -> NDArray[np.int64]:
    """Process number of every rank: the place of its host among the hosts, from 1."""
    hosts = {host: place for place, host in enumerate(dict.fromkeys(trace.meta.hosts), start=1)}
    return np.array([hosts[host] for host in trace.meta.hosts])


def _threads(trace: Trace) -> NDArray[np.int64]:
    """Thread number of every row, such that rows of one thread do not overlap (slices of a thread must nest).

    Numbers start at 1000, since viewers give thread 0 and the thread numbered as its process a meaning of their own.
    """
    kind = np.array([_GROUPS[stream] for stream in Stream])[trace.stream]
    group = (1 + trace.rank.astype(np.int64) * len(_GROUP_NAMES) + kind) * _LANES
    threads: NDArray[np.int64] = group.copy()
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        start, end = trace.start_ns[rows], trace.end_ns[rows]
        if np.any(start[1:] < np.maximum.accumulate(end)[:-1]):
            threads[rows] += _lanes(start.tolist(), end.tolist())
    return threads


def _lanes(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """For each of some rows, sorted by start, the first lane that is free by then."""
    until: list[int] = []  # when each lane becomes free
    lanes = []
    for start, end in zip(starts, ends, strict=True):
        lane = next((n for n, free_from in enumerate(until) if free_from <= start), len(until))
        until[lane : lane + 1] = [end]
        lanes.append(lane)
    return lanes


def _titles(trace: Trace, threads: NDArray[np.int64]) -> Iterator[str]:
    processes = _processes(trace).tolist()
    for host, process in sorted(set(zip(trace.meta.hosts, processes, strict=True)), key=lambda pair: pair[1]):
        yield _title("process_name", process, 0, f'"name":{json.dumps(host)}')
        yield _title("process_sort_index", process, 0, f'"sort_index":{process}')
    for thread in np.unique(threads).tolist():
        place, lane = divmod(thread, _LANES)
        rank, group = divmod(place - 1, len(_GROUP_NAMES))
        name = f"rank {rank} {trace.meta.devices[rank]}{_GROUP_NAMES[group]}{f' {lane + 1}' if lane else ''}"
        yield _title("thread_name", processes[rank], thread, f'"name":{json.dumps(name)}')
        yield _title("thread_sort_index", processes[rank], thread, f'"sort_index":{thread}')


def _title(kind: str, process: int, thread: int, args: str) -> str:
    return f'{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{{args}}}}}'


def _slices(trace: Trace, threads: NDArray[np.int64]) -> Iterator[bytes]:
    processes = _processes(trace)
    for low in range(0, len(trace), ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        rank, stream, stage, op, microbatch, peer = (
            column[part] for column in (trace.rank, trace.stream, trace.stage, trace.op, trace.microbatch, trace.peer)
        )
        start, end = trace.start_ns[part], trace.end_ns[part]
        fault, lost = stream == Stream.FAULT, stream == Stream.LOST
        action = (op <= Op.W) & ~fault
        message = ((stream == Stream.MESSAGE) | lost) & (peer >= 0)
        link = fault & (peer >= 0)
        letters = [op.name.lower() if op in _NAMES else op.name for op in Op]
        ops = names(op, letters)
        category = np.where(fault, len(Op), np.where(lost, len(Op) + 2, np.where(message, len(Op) + 1, op)))
        stages, microbatches, peers = numbers(stage), numbers(microbatch), numbers(peer)
        yield lines(
            b',\n{"ph":"X","name":"',
            only(lost, b"lost: "),
            only(link, b"link "),
            only(fault, b"fault"),
            only(action, stages),
            only(action, ops),
            only(action, microbatches),
            only(~fault, names(op, [_NAMES.get(op, "") for op in Op])),
            only(message | (link & (peer != rank)), b" to rank "),
            only(message | (link & (peer != rank)), peers),
            b'","cat":"',
            names(category, [*letters, "fault", "message", "lost"]),
            b'","pid":',
            numbers(processes[rank]),
            b',"tid":',
            numbers(threads[part]),
            b',"ts":',
            microseconds(start),
            b',"dur":',
            microseconds(end - start),
            b',"args":{"iteration":',
            numbers(trace.iteration[part]),
            only(action, b',"stage":'),
            only(action, stages),
            only(action, b',"op":"'),
            only(action, ops),
            only(action, b'","microbatch":'),
            only(action, microbatches),
            only(message, b',"from_rank":'),
            only(message, numbers(rank)),
            only(message, b',"to_rank":'),
            only(message, peers),
            only(message, b',"bytes":'),
            only(message, numbers(trace.bytes[part])),
            end=b"}}",
        )


def _flows(trace: Trace, threads: NDArray[np.int64]) -> Iterator[bytes]:
    """Arrows: out of the action that sends (at its end), through its message, into the action that receives."""
    processes = _processes(trace)
    producer = producer_rows(trace)
    messages = np.flatnonzero((trace.stream == Stream.MESSAGE) & (producer >= 0))
    message_of = np.full(len(trace), -1, dtype=np.int64)
    message_of[producer[messages]] = messages
    receiver = np.flatnonzero((producer >= 0) & (trace.stream == Stream.COMPUTE))
    receiver = receiver[trace.rank[producer[receiver]] != trace.rank[receiver]]
    sender = producer[receiver]
    leaves = np.maximum(trace.start_ns[sender], trace.end_ns[sender] - 1)
    message = message_of[sender]
    # three steps of each arrow, side by side: shape (3 x arrows,)
    row = np.stack([sender, message, receiver], axis=1).ravel()
    time = np.stack([leaves, trace.start_ns[message], trace.start_ns[receiver]], axis=1).ravel()
    phase = np.tile([0, 1, 2], len(receiver))
    arrow = np.repeat(sender, 3)
    there = np.flatnonzero(row >= 0)
    for low in range(0, len(there), ROWS_AT_ONCE):
        part = there[low : low + ROWS_AT_ONCE]
        yield lines(
            b',\n{"ph":"',
            names(phase[part], ["s", "t", "f"]),
            b'","name":"message","cat":"message","id":',
            numbers(arrow[part]),
            b',"pid":',
            numbers(processes[trace.rank[row[part]]]),
            b',"tid":',
            numbers(threads[row[part]]),
            b',"ts":',
            microseconds(time[part]),
            only(phase[part] == 2, b',"bp":"e"'),
            end=b"}",
        )


def _counts(trace: Trace, counters: Sequence[Counter]) -> Iterator[bytes]:
    processes = _processes(trace)
    for counter in counters:
        name, process = json.dumps(f"rank {counter.rank} {counter.name}"), processes[counter.rank]
        for low in range(0, len(counter.at_ns), ROWS_AT_ONCE):
            part = slice(low, low + ROWS_AT_ONCE)
            yield lines(
                f',\n{{"ph":"C","name":{name},"pid":{process},"ts":'.encode(),
                microseconds(counter.at_ns[part]),
                b',"args":{"value":',
                numbers(counter.values[part]),
                end=b"}}",
            )
