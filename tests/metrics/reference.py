"""The definition of the bubble's causes, nanosecond by nanosecond and as slowly as it reads; for small traces."""

from hops.program.action import Op
from hops.trace.trace import Stream


def causes(trace, iteration=0):
    """(rank, cause) -> ns in the pipeline window, with `other` for imbalance and warm-up/cool-down together."""
    rows = [
        r for r in _rows(trace) if r["stream"] == Stream.COMPUTE and r["op"] <= Op.W and r["iteration"] == iteration
    ]
    faults = [r for r in _rows(trace) if r["stream"] in (Stream.FAULT, Stream.LOST)]
    begin, end = min(r["start_ns"] for r in rows), max(r["end_ns"] for r in rows)
    found = {}
    for rank in range(trace.meta.num_ranks):
        for t in range(begin, end):
            cause = _cause(rank, t, rows, faults, trace.meta)
            found[rank, cause] = found.get((rank, cause), 0) + 1
    return found


def _cause(rank, t, rows, faults, meta):
    mine = sorted((r for r in rows if r["rank"] == rank), key=lambda r: r["start_ns"])
    if any(r["start_ns"] <= t < r["end_ns"] for r in mine):
        return "busy"
    later = [r for r in mine if r["start_ns"] > t]
    if not later:
        ender = max(rows, key=lambda r: (r["end_ns"], -r["rank"]))["rank"]
        ahead = _cause(ender, t, rows, faults, meta)
        return ahead if ahead != "busy" else "fault" if _hit(faults, ender, t) else "other"
    hit = _hit(faults, rank, t)
    producer = _producer(later[0], rows, meta)
    if producer is None or producer["rank"] == rank:
        before = [r for r in mine if r["end_ns"] <= t]
        blocked = bool(before) and _sends(before[-1], meta)
        hit = hit or (blocked and _message_hit(faults, rank, t))
        return "fault" if hit else "messages" if blocked else "other"
    if t >= producer["end_ns"]:
        return "fault" if hit or _message_hit(faults, rank, t) else "messages"
    ahead = _cause(producer["rank"], t, rows, faults, meta)
    if ahead == "busy":
        return "fault" if _hit(faults, producer["rank"], t) else "other"
    return ahead


def _rows(trace):
    names = ("iteration", "rank", "stream", "stage", "op", "microbatch", "peer", "start_ns", "end_ns")
    columns = (getattr(trace, name).tolist() for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _hit(faults, rank, t):
    """By a fault of the rank itself, or at work that will be lost."""
    return any(f["peer"] < 0 and f["rank"] == rank and f["start_ns"] <= t < f["end_ns"] for f in faults)


def _message_hit(faults, rank, t):
    """By a fault of a link to or from the rank, or with a message to or from it that will be lost."""
    of_messages = [f for f in faults if f["peer"] >= 0 and rank in (f["rank"], f["peer"])]
    return any(f["start_ns"] <= t < f["end_ns"] for f in of_messages)


def _producer(row, rows, meta):
    stage = row["stage"] - 1 if row["op"] == Op.F else row["stage"] + 1
    kinds = (Op.F,) if row["op"] == Op.F else (Op.B, Op.I)
    if row["op"] == Op.W or not 0 <= stage < meta.num_stages:
        return None
    same = (r for r in rows if r["stage"] == stage and r["op"] in kinds and r["microbatch"] == row["microbatch"])
    return next(same, None)


def _sends(row, meta):
    target = row["stage"] + (1 if row["op"] == Op.F else -1)
    return row["op"] <= Op.I and 0 <= target < meta.num_stages and meta.rank_of_stage[target] != row["rank"]
